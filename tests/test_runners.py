"""The runners of tests differ in what they differ in for users."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import anyio
import pytest
from tests.runners import RUNNERS, Runner, RunnerName, every_runner, run_by

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Iterator

pytestmark = pytest.mark.anyio


@pytest.mark.parametrize("name", RUNNERS)
def test_only_anyio_run_knows_its_library_in_a_callback(name: RunnerName) -> None:
    async def main() -> bool:
        known: asyncio.Future[bool] = asyncio.get_running_loop().create_future()

        def callback() -> None:
            try:
                anyio.CancelScope()
            except anyio.NoEventLoopError:
                known.set_result(False)
            else:
                known.set_result(True)

        asyncio.get_running_loop().call_soon(callback)
        return await known

    assert run_by(name, main) is (name == "anyio.run")


@pytest.mark.parametrize("name", RUNNERS)
def test_only_in_a_running_loop_each_step_has_a_task_of_its_own(name: RunnerName) -> None:
    async def task() -> asyncio.Task[object] | None:
        return asyncio.current_task()

    runner = Runner(name)
    try:
        assert (runner.run(task) is runner.run(task)) is (name != "running loop")
    finally:
        runner.close()


@pytest.mark.parametrize("name", RUNNERS)
def test_what_a_callback_raises_is_no_success(name: RunnerName) -> None:
    async def main() -> None:
        asyncio.get_running_loop().call_soon(lambda: 1 // 0)
        await asyncio.sleep(0)

    with pytest.raises(ExceptionGroup) as raised:
        run_by(name, main)
    assert raised.group_contains(ZeroDivisionError)


@pytest.fixture(name="pair")
async def _pair() -> AsyncGenerator[list[str]]:
    events = ["begun"]
    await asyncio.sleep(0)
    yield events
    await asyncio.sleep(0)
    events.append("ended")


@pytest.fixture(name="seen")
def _seen() -> Iterator[list[list[str]]]:
    seen: list[list[str]] = []
    yield seen
    assert seen == [["begun", "used", "ended"]]


@every_runner
async def test_fixtures_begin_and_end_around_a_test(
    runner: str, seen: list[list[str]], pair: list[str]
) -> None:
    pair.append("used")
    seen.append(pair)
