"""Runners: the ways users run coroutines, and the hooks that run coroutine tests by them.

Code that works under one runner can fail under another. `anyio.run` names the library for every
context, callbacks of the loop included; `asyncio.run` does not. A notebook, a web framework and
other test plugins have a loop that runs already, and open in one task what they use and close in
others.

A test or fixture marked `anyio` that is a coroutine function runs by one of the runners: the one
of its `runner` marker, the one of `--runner NAME`, or else one that is chosen by the test's id, so
that each runner of asyncio's loop has a third of the tests and a test always has the same.
"""

from __future__ import annotations

import asyncio
from contextvars import Context, copy_context
from functools import partial, wraps
from importlib.util import find_spec
from inspect import isasyncgenfunction, iscoroutinefunction
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, TypeVar, cast
from zlib import crc32

import pytest
import sniffio

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable, Coroutine, Generator

T = TypeVar("T")
RunnerName: TypeAlias = Literal["asyncio.run", "anyio.run", "running loop", "uvloop.run"]
_OF_ASYNCIO: tuple[RunnerName, ...] = ("asyncio.run", "anyio.run", "running loop")
RUNNERS: tuple[RunnerName, ...] = (
    (*_OF_ASYNCIO, "uvloop.run") if find_spec("uvloop") else _OF_ASYNCIO
)

_CANCEL_SECONDS = 10

_open: dict[RunnerName, tuple[Runner, int]] = {}
"""The runners in use, and by how many tests and fixtures: those of a wide scope outlive a test."""


class Runner:
    """An event loop, and how coroutines run in it.

    Args:
        name: `asyncio.run`, `anyio.run` and `uvloop.run` run a test and its fixtures in one task,
            as one `main`; `running loop` runs the setup of each fixture, the test, and the end of
            each fixture in a task of its own, in a loop that just runs, as a notebook does its
            cells.
    """

    def __init__(self, name: RunnerName) -> None:
        self._name: RunnerName = name
        self._runner = asyncio.Runner(loop_factory=_loop_factory(name))
        self._loop = self._runner.get_loop()
        self._loop.set_exception_handler(self._note)
        self._raised: list[BaseException] = []
        self._steps: asyncio.Queue[Callable[[], Coroutine[Any, Any, None]]] = asyncio.Queue()
        self._main: asyncio.Task[None] | None = None

    def run(self, begin: Callable[[], Coroutine[Any, Any, T]]) -> T:
        """Run a coroutine to its end, and raise what a callback of the loop raised meanwhile."""
        done: asyncio.Future[T] = self._loop.create_future()

        async def step() -> None:
            try:
                done.set_result(await begin())
            except BaseException as error:  # noqa: BLE001 (raised below, by `result`)
                done.set_exception(_CarriedError(error))
            finally:
                self._loop.stop()

        if self._name == "running loop":
            task = self._loop.create_task(step())
        else:
            task = self._main = self._main or self._loop.create_task(
                self._serve(), context=_context(self._name)
            )
            self._steps.put_nowait(step)
        try:
            self._loop.run_forever()
        except BaseException:  # an interrupt, or the time limit of the test
            task.cancel()
            self._loop.run_until_complete(asyncio.wait([task], timeout=_CANCEL_SECONDS))
            raise
        raised, self._raised = self._raised, []
        try:
            result = done.result()
        except _CarriedError as carried:
            raise carried.error from None
        if raised:
            raise BaseExceptionGroup("callbacks of the loop failed", raised)
        return result

    def close(self) -> None:
        """Cancel what still runs, and close the loop."""
        self._runner.close()

    async def _serve(self) -> None:
        while True:
            await (await self._steps.get())()

    def _note(self, loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        error = context.get("exception")
        if isinstance(error, BaseException):
            self._raised.append(error)
        else:
            loop.default_exception_handler(context)


class _CarriedError(Exception):
    """Carries what a future cannot hold: `StopIteration`, `KeyboardInterrupt` and the like."""

    def __init__(self, error: BaseException) -> None:
        super().__init__(str(error))
        self.error = error


def _loop_factory(name: RunnerName) -> Callable[[], asyncio.AbstractEventLoop] | None:
    if name != "uvloop.run":
        return None
    import uvloop

    return uvloop.new_event_loop


every_runner = pytest.mark.parametrize(
    "runner", [pytest.param(name, marks=pytest.mark.runner(name)) for name in RUNNERS]
)
"""Runs a coroutine test by each of the runners; it takes `runner`."""


def _context(name: RunnerName) -> Context:
    context = copy_context()
    if name == "anyio.run":  # as it does itself
        context.run(sniffio.current_async_library_cvar.set, "asyncio")
    return context


def run_by(name: RunnerName, main: Callable[[], Coroutine[Any, Any, T]]) -> T:
    """Run a coroutine function as a program does that is started by a runner."""
    runner = Runner(name)
    try:
        return runner.run(main)
    finally:
        runner.close()


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add `--runner`."""
    parser.addoption("--runner", choices=RUNNERS, help="run every coroutine test by this runner")


def pytest_configure(config: pytest.Config) -> None:
    """Declare the markers."""
    config.addinivalue_line("markers", "anyio: run a coroutine test by one of `tests/runners.py`")
    config.addinivalue_line("markers", "runner(name): run it by this runner")


def runner_of(node: pytest.Item) -> RunnerName:
    """Choose the runner of a test."""
    marker = node.get_closest_marker("runner")
    if marker is not None:
        return marker.args[0]
    chosen: RunnerName | None = node.config.getoption("--runner")
    if chosen is not None:
        return chosen
    return _OF_ASYNCIO[crc32(_group(node).encode()) % len(_OF_ASYNCIO)]


def _group(item: pytest.Item) -> str:
    """Return what a test shares its runner with: itself, or a file that shares a fixture."""
    fixtures = cast("pytest.Function", item)._fixtureinfo.name2fixturedefs
    wide = [one[-1] for one in fixtures.values() if one[-1].scope != "function"]
    return (
        item.nodeid.partition("::")[0] if any(_is_async(one.func) for one in wide) else item.nodeid
    )


def _is_async(function: object) -> bool:
    return iscoroutinefunction(function) or isasyncgenfunction(function)


def _take(name: RunnerName) -> Runner:
    runner, users = _open.get(name) or (Runner(name), 0)
    _open[name] = runner, users + 1
    return runner


def _leave(name: RunnerName) -> None:
    runner, users = _open[name]
    if users == 1:
        del _open[name]
        runner.close()
    else:
        _open[name] = runner, users - 1


@pytest.hookimpl(wrapper=True)
def pytest_fixture_setup(
    fixturedef: pytest.FixtureDef[Any], request: pytest.FixtureRequest
) -> Generator[None, object, object]:
    """Run a coroutine fixture by the runner of its test."""
    function: Any = fixturedef.func
    if not _is_async(function):
        return (yield)
    name = runner_of(request._pyfuncitem)
    wrap = _generator_fixture if isasyncgenfunction(function) else _plain_fixture
    definition: Any = fixturedef  # pytest has no other way in for a plugin
    definition.func = wrap(function, name)
    try:
        return (yield)
    finally:
        definition.func = function


def _plain_fixture(function: Callable[..., Any], name: RunnerName) -> Callable[..., Any]:
    @wraps(function)
    def fixture(**given: object) -> Generator[object]:
        runner = _take(name)
        try:
            yield runner.run(partial(function, **given))
        finally:
            _leave(name)

    return fixture


def _generator_fixture(
    function: Callable[..., AsyncGenerator[Any]], name: RunnerName
) -> Callable[..., Any]:
    @wraps(function)
    def fixture(**given: object) -> Generator[object]:
        runner = _take(name)
        try:
            steps = function(**given)

            async def end() -> None:
                async for _ in steps:
                    msg = "the fixture yields twice"
                    raise RuntimeError(msg)

            yield runner.run(steps.__anext__)
            runner.run(end)
        finally:
            _leave(name)

    return fixture


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    """Run a coroutine test, also where Hypothesis calls it many times."""
    function: Any = pyfuncitem.obj
    inner = getattr(getattr(function, "hypothesis", None), "inner_test", None)
    if inner is not None:
        inner = getattr(inner, "coroutine_test", inner)
        if iscoroutinefunction(inner):
            _see_marker(pyfuncitem)
            function.hypothesis.inner_test = _example(inner, runner_of(pyfuncitem))
        return None
    if not iscoroutinefunction(function):
        return None
    _see_marker(pyfuncitem)
    names = pyfuncitem._fixtureinfo.argnames
    given = {name: pyfuncitem.funcargs[name] for name in names}
    _example(function, runner_of(pyfuncitem))(**given)
    return True


def _see_marker(item: pytest.Item) -> None:
    if item.get_closest_marker("anyio") is None:
        pytest.fail("a coroutine test needs the marker `anyio`", pytrace=False)


def _example(function: Callable[..., Any], name: RunnerName) -> Callable[..., None]:
    @wraps(function)
    def test(*args: object, **given: object) -> None:
        runner = _take(name)
        try:
            runner.run(partial(function, *args, **given))
        finally:
            _leave(name)

    test.coroutine_test = function  # type: ignore[attr-defined]
    return test
