"""FunctionTool: a Python function a model can call."""

from __future__ import annotations

import re
from collections import OrderedDict
from collections.abc import Awaitable, Callable
from functools import partial
from inspect import cleandoc, isawaitable, iscoroutinefunction, unwrap
from logging import getLogger
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, TypeVar, cast, overload

from fast_agent.errors import ToolError, ToolRetry
from fast_agent.messages.message import ToolResult
from fast_agent.models.model import ToolSpec
from fast_agent.text.frozen import frozen
from fast_agent.tools.result import result_of, said
from fast_agent.tools.tool import function_tool_name, resolve
from fast_agent.tools.worker_threads import WorkerThreads

if TYPE_CHECKING:
    from collections.abc import Mapping

    from fast_agent.messages.message import ToolCall
    from fast_agent.tools.tool import ToolContext, ToolSource

log = getLogger(__name__)

F = TypeVar("F", bound=Callable[..., object])

_OPTIONS = "__fast_agent_tool__"

_MAX_TURNS = 1000
"""Most turns whose failures a tool counts; the oldest are forgotten first."""


@frozen(kw_only=True)
class ToolOptions:
    """What `tool` says of a function.

    Args:
        name: The tool's name; None takes the function's.
        description: What models read; None takes the docstring's text before `Args:`.
        title: Name for people, or None.
        repeatable: Whether it may be called again when a crash left its outcome unknown.
        timeout: Maximum duration of a call in seconds; None means no limit.
        retries: How often a model may call it again in one turn after a failure; None: no limit.
    """

    name: str | None = None
    description: str | None = None
    title: str | None = None
    repeatable: bool = True
    timeout: float | None = None
    retries: int | None = None


@overload
def tool(function: F, /) -> F: ...
@overload
def tool(
    *,
    name: str | None = None,
    description: str | None = None,
    title: str | None = None,
    repeatable: bool = True,
    timeout: float | None = None,
    retries: int | None = None,
) -> Callable[[F], F]: ...
def tool(
    function: F | None = None,
    /,
    *,
    name: str | None = None,
    description: str | None = None,
    title: str | None = None,
    repeatable: bool = True,
    timeout: float | None = None,
    retries: int | None = None,
) -> F | Callable[[F], F]:
    """Declare how a function is offered as a tool; the function itself stays unchanged.

    Args:
        function: The function, when the decorator is written without parentheses.
        name: The tool's name; without it, the function's.
        description: What models read; without it, the docstring's text before `Args:`.
        title: Name for people.
        repeatable: False for a function that must not be called again when a crash left its
            outcome unknown, such as one that sends a message.
        timeout: Maximum duration of a call in seconds; None means no limit. A synchronous
            function is given up on and runs to its end unheard.
        retries: How often a model may call it again in one turn after it failed, such as by
            `ToolRetry`; further calls fail without calling the function. None means no limit.

    Returns:
        The function, or a decorator.
    """
    if timeout is not None and timeout <= 0:
        raise ValueError("`timeout` must be more than 0 seconds")
    if retries is not None and retries < 0:
        raise ValueError("`retries` must be 0 or more")
    options = ToolOptions(
        name=name,
        description=description,
        title=title,
        repeatable=repeatable,
        timeout=timeout,
        retries=retries,
    )

    def mark(target: F) -> F:
        setattr(target, _OPTIONS, options)
        return target

    return mark if function is None else mark(function)


class FunctionTool:
    """A function as a tool: schema from its hints, arguments checked, its value made a result.

    A coroutine function runs on the event loop and is cancelled with its turn. Any other function
    runs in a worker thread, so that one that waits delays no other; one whose calls are quick is
    waited for a moment, which costs less than a notification of its end. When its turn is cancelled
    it is given up on and runs to its end unheard.

    Args:
        function: The function.
        options: Name, description and so on; None takes what `tool` said of it.
        threads: Where synchronous functions run; None makes separate threads.
        keep: Anything that must live as long as the tool, such as the loader of the function's
            file.

    Raises:
        ToolError: The function cannot be a tool; the message names what is wrong with it.
    """

    __slots__ = (
        "_asynchronous",
        "_context_name",
        "_failures",
        "_function",
        "_keep",
        "_parameters",
        "_repeatable",
        "_retries",
        "_spec",
        "_threads",
        "_timeout",
    )

    def __init__(
        self,
        function: Callable[..., object],
        options: ToolOptions | None = None,
        *,
        threads: WorkerThreads | None = None,
        keep: object = None,
    ) -> None:
        from fast_agent.tools.functions.parameters import parameters_of

        options = options or options_of(function)
        name = options.name or name_of(function)
        self._function = function
        docstring = parse_docstring(_docstring(function))
        self._parameters = parameters_of(function, name, docstring.parameters)
        self._context_name = self._parameters.context
        self._asynchronous = iscoroutinefunction(function) or iscoroutinefunction(
            getattr(function, "__call__", None)  # noqa: B004 (an object's own `async __call__`)
        )
        self._repeatable = options.repeatable
        self._timeout = options.timeout
        self._retries = options.retries
        self._failures: OrderedDict[str, int] = OrderedDict()
        self._threads = threads or WorkerThreads()
        self._keep = keep
        self._spec = ToolSpec(
            function_tool_name(name),
            docstring.description if options.description is None else options.description,
            self._parameters.schema,
            title=options.title,
        )

    @property
    def spec(self) -> ToolSpec:
        """How the model sees it."""
        return self._spec

    @property
    def source(self) -> ToolSource:
        """Always `function`."""
        return "function"

    @property
    def server_name(self) -> str | None:
        """Always None."""
        return None

    @property
    def repeatable(self) -> bool:
        """Whether it may be called again when a crash left its outcome unknown."""
        return self._repeatable

    @property
    def function(self) -> Callable[..., object]:
        """The function itself."""
        return self._function

    async def call(self, call: ToolCall, context: ToolContext) -> ToolResult:
        """Check the arguments, call the function, and make a result of what it returns.

        Args:
            call: The call.
            context: Given to the parameter that asks for a `ToolContext`.

        Returns:
            The result; wrong arguments and what the function raises are error results.

        Raises:
            MissingDependencyError: The program gave no value that a parameter asks for.
        """
        if self._retries is None:
            return await self._call(call, context)
        failures = self._failures.get(context.turn_id, 0)
        if failures > self._retries:
            times = "once" if failures == 1 else f"{failures} times"
            return ToolResult.error(
                call.id,
                f"`{self._spec.name}` was not called: it failed {times} in this turn, and may not "
                "be tried again; answer without it",
            )
        result = await self._call(call, context)
        self._failures.pop(context.turn_id, None)
        if result.is_error:
            self._failures[context.turn_id] = failures + 1
            if len(self._failures) > _MAX_TURNS:
                self._failures.popitem(last=False)
        return result

    async def _call(self, call: ToolCall, context: ToolContext) -> ToolResult:
        try:
            given = self._parameters.check(call.arguments)
        except ToolError as problem:
            return ToolResult.error(call.id, problem.message)
        if self._context_name is not None:
            given[self._context_name] = context
        if self._parameters.dependencies:
            given |= resolve(self._parameters.dependencies, context.deps, self._spec.name)
        if self._timeout is None:
            return await self._run_function(call, given)
        from anyio import move_on_after

        with move_on_after(self._timeout):
            return await self._run_function(call, given)
        message = f"`{self._spec.name}` did not finish within {self._timeout:g} seconds"
        return ToolResult.error(call.id, message)

    async def _run_function(self, call: ToolCall, given: dict[str, object]) -> ToolResult:
        try:
            if self._asynchronous:
                value = await cast("Awaitable[object]", self._function(**given))
                return result_of(call.id, value)
            outcome = await self._threads.run(partial(self._run, call.id, given))
            if isinstance(outcome, _PendingResult):
                return result_of(call.id, await outcome.value)
        except (Exception, SystemExit) as error:  # noqa: BLE001 (the boundary of a tool call)
            return self._failed(call.id, error)
        return outcome

    def _run(self, call_id: str, given: dict[str, object]) -> ToolResult | _PendingResult:
        """Call a synchronous function and make its result; in a worker thread."""
        try:
            value = self._function(**given)
            # Such as a lambda around a coroutine function: awaited on the loop.
            if isawaitable(value):
                return _PendingResult(cast("Awaitable[object]", value))
            return result_of(call_id, value)
        except (Exception, SystemExit) as error:  # noqa: BLE001 (the boundary of a tool call)
            return self._failed(call_id, error)

    def _failed(self, call_id: str, error: BaseException) -> ToolResult:
        if not isinstance(error, ToolRetry):  # a wish, not a failure
            log.warning("function tool `%s` failed", self._spec.name, exc_info=error)
        return ToolResult.error(call_id, said(error))


@frozen
class _PendingResult:
    value: Awaitable[object]


def options_of(function: Callable[..., object]) -> ToolOptions:
    """Return what `tool` declared for a function, or the defaults."""
    found = getattr(function, _OPTIONS, None)
    return found if isinstance(found, ToolOptions) else ToolOptions()


def name_of(function: Callable[..., object]) -> str:
    """Return the name of a function, of what a partial wraps, or of a callable object's class."""
    while isinstance(function, partial):
        function = cast("partial[object]", function).func
    name: Any = getattr(function, "__name__", None)
    return name if isinstance(name, str) else type(function).__name__


def _docstring(function: Callable[..., object]) -> str | None:
    while isinstance(function, partial):
        function = cast("partial[object]", function).func
    return unwrap(function).__doc__


_PARAMETERS = frozenset({"args", "arguments", "parameters", "params", "keyword args"})
_SECTION = re.compile(
    r"(Args|Arguments|Parameters|Params|Keyword Args|Returns?|Yields?|Raises|Examples?|Notes?"
    r"|Attributes|Warnings?|See Also|References|Todo)\s*:\s*",
    re.IGNORECASE,
)
_ENTRY = re.compile(r"\*{0,2}(?P<name>[^\W\d]\w*)\s*(\([^)]*\)\s*)?:(?:\s+(?P<text>.*))?")


@frozen
class Docstring:
    """A docstring taken apart.

    Args:
        description: The text before the first section, such as `Args:`.
        parameters: What the `Args:` section says of each parameter.
    """

    description: str
    parameters: Mapping[str, str]


def parse_docstring(text: str | None) -> Docstring:
    """Take a docstring apart.

    Args:
        text: The docstring as written, or None.

    Returns:
        Its parts; empty ones where there is nothing.
    """
    lines = cleandoc(text or "").splitlines()
    headings = [
        (index, found.group(1).lower())
        for index, line in enumerate(lines)
        if (found := _SECTION.fullmatch(line))
    ]
    first = headings[0][0] if headings else len(lines)
    parameters: dict[str, str] = {}
    ends = [*(index for index, _ in headings), len(lines)][1:]
    for (start, title), end in zip(headings, ends, strict=True):
        if title in _PARAMETERS:
            parameters |= _entries(lines[start + 1 : end])
    return Docstring("\n".join(lines[:first]).strip(), MappingProxyType(parameters))


def _entries(lines: list[str]) -> dict[str, str]:
    """Read `name (type): text` entries; what is indented deeper than the first continues one."""
    depth = min((_indent(line) for line in lines if line.strip()), default=0)
    entries: dict[str, list[str]] = {}
    current: list[str] | None = None
    for line in lines:
        if not line.strip():
            continue
        entry = _ENTRY.fullmatch(line.strip()) if _indent(line) == depth else None
        if entry is not None:
            current = entries.setdefault(entry["name"], [])
            current.append((entry["text"] or "").strip())
        elif current is not None:
            current.append(line.strip())
    return {name: " ".join(filter(None, parts)) for name, parts in entries.items()}


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip())
