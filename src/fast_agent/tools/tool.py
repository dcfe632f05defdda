"""Tools: the protocol, their names as models see them, and the arguments of a call, checked.

A tool that changes files can say in advance what it would change: a `FileChange`. A function tool
may ask the program for values: `Deps`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from hashlib import sha256
from types import UnionType
from typing import (
    TYPE_CHECKING,
    Annotated,
    ClassVar,
    Final,
    Literal,
    Protocol,
    TypeAlias,
    TypeVar,
    Union,
    cast,
    get_args,
    get_origin,
    runtime_checkable,
)

from fast_agent.errors import RunError, ToolError
from fast_agent.text.frozen import frozen
from fast_agent.text.wording import closest, did_you_mean

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path

    from fast_agent.messages.message import ToolCall, ToolResult
    from fast_agent.models.model import ToolSpec
    from fast_agent.text.json_value import JsonObject, JsonValue
    from fast_agent.tools.human import Human

T = TypeVar("T")


class MissingDependencyError(RunError):
    """A tool asks for a value that the program did not pass; ends the turn."""


class _Mark:
    """Marks a hint as one of a dependency."""


_MARK: Final = _Mark()

Deps: TypeAlias = Annotated[T, _MARK]
"""The hint of a parameter the program fills: `def find(db: Deps[Database], name: str)`."""


def as_dependencies(given: object) -> tuple[object, ...]:
    """Return the values of `deps=`: one value, or a list or tuple of several; None is none."""
    if given is None:
        return ()
    if isinstance(given, list | tuple):
        return tuple(cast("Sequence[object]", given))
    return (given,)


def dependency_type(hint: object, parameter: str, function: str) -> tuple[type, bool] | None:
    """Return the class a hint asks the program for, and whether the parameter may go without.

    Args:
        hint: The parameter's hint.
        parameter: The parameter's name, for messages.
        function: The function's name, for messages.

    Returns:
        The class and whether None is accepted; None for a hint that is not a `Deps`.

    Raises:
        ToolError: `Deps` of something that is not a class.
    """
    if get_origin(hint) in (Union, UnionType):
        parts = get_args(hint)
        found = [dependency_type(part, parameter, function) for part in parts]
        kinds = [one for one in found if one is not None]
        return (kinds[0][0], type(None) in parts) if kinds else None
    if get_origin(hint) is not Annotated or _MARK not in get_args(hint)[1:]:
        return None
    kind = get_args(hint)[0]
    origin = get_origin(kind)
    kind = origin if isinstance(origin, type) else kind
    try:
        isinstance(None, kind)
    except TypeError:
        msg = f"`Deps` of `{parameter}` of `{function}` does not name a class"
        raise ToolError(msg, hint="write `Deps[Database]`, with a class of yours") from None
    return kind, False


def resolve(
    wanted: Mapping[str, tuple[type, bool]], given: Iterable[object], function: str
) -> dict[str, object]:
    """Find the value of each parameter that asks for one.

    Args:
        wanted: By parameter, its class and whether it may go without.
        given: The values there are; the first of a class is taken.
        function: The function's name, for messages.

    Returns:
        A value for each parameter.

    Raises:
        MissingDependencyError: There is no value of a class that is needed.
    """
    values = tuple(given)
    found: dict[str, object] = {}
    for name, (kind, may_miss) in wanted.items():
        matches = [value for value in values if isinstance(value, kind)]
        if not matches and not may_miss:
            msg = f"the tool `{function}` needs a `{kind.__name__}`, and the program passed none"
            hint = f"pass one: `fast.run(deps=…)` with a `{kind.__name__}` among the values"
            raise MissingDependencyError(msg, hint=hint)
        found[name] = matches[0] if matches else None
    return found


_MAX_COMPARED: Final = 4_000_000
_CONTEXT: Final = 3


@frozen
class FileChange:
    """What a call would change, for approval.

    Args:
        path: The file, absolute.
        name: The file as it was named.
        old: Its text; None where there is no such file.
        new: Its text afterwards.
    """

    path: Path
    name: str
    old: str | None
    new: str

    def diff(self) -> str:
        """Return the change as a unified diff."""
        return unified_diff(self.old or "", self.new, self.name)


def unified_diff(old: str, new: str, name: str) -> str:
    """Return the difference of two texts as a unified diff; empty where there is none.

    Args:
        old: The text before.
        new: The text after.
        name: The file, as its head names it.
    """
    before, after = old.splitlines(), new.splitlines()
    # Equal ends are cut off first: comparing is quadratic, and most changes are small.
    head = _equal_from_start(before, after)
    tail = _equal_from_start(before[head:][::-1], after[head:][::-1])
    start = max(0, head - _CONTEXT)
    first = before[start : len(before) - max(0, tail - _CONTEXT)]
    second = after[start : len(after) - max(0, tail - _CONTEXT)]
    if len(first) * len(second) > _MAX_COMPARED:
        return f"--- {name}\n+++ {name}\n@@ {len(first):,} lines became {len(second):,} @@\n"
    from difflib import unified_diff

    lines = unified_diff(first, second, name, name, n=_CONTEXT, lineterm="")
    text = "\n".join(_moved(line, start) for line in lines)
    if not text and old != new:
        return f"--- {name}\n+++ {name}\n@@ only line ends changed @@\n"
    return f"{text}\n" if text else ""


def _moved(line: str, by: int) -> str:
    """Count the lines of a diff's head from the start of the file."""
    if not line.startswith("@@ ") or not by:
        return line
    _, before, after, _ = line.split(" ", 3)
    return f"@@ {_shifted(before, by)} {_shifted(after, by)} @@"


def _shifted(span: str, by: int) -> str:
    start, comma, count = span[1:].partition(",")
    return f"{span[0]}{int(start) + by}{comma}{count}"


def _equal_from_start(first: list[str], second: list[str]) -> int:
    for count, (one, other) in enumerate(zip(first, second, strict=False)):
        if one != other:
            return count
    return min(len(first), len(second))


ToolSource: TypeAlias = Literal["mcp", "function", "agent", "runtime"]
Progress: TypeAlias = Callable[[float, float | None, str | None], None]
"""Called with (progress, total or None, message or None) while a tool works."""


MAX_LENGTH = 64
"""Most characters of a name that every provider takes."""
SEPARATOR = "__"
AGENT_PREFIX = "agent"
_HASH_DIGITS = 10
_FITS = re.compile(rf"[A-Za-z0-9_-]{{1,{MAX_LENGTH}}}")
_LOOKS_HASHED = re.compile(rf"_[0-9a-f]{{{_HASH_DIGITS}}}\Z")
_OUTSIDE = re.compile(r"[^A-Za-z0-9_-]+")
_WORDS = {"string": "a string", "integer": "a whole number", "boolean": "true or false"}


def no_progress(progress: float, total: float | None, message: str | None) -> None:
    """Drop a progress report."""


@frozen(kw_only=True)
class ToolContext:
    """What a tool may know of the call it serves.

    Args:
        agent_name: The agent whose turn it is.
        turn_id: The turn.
        call_id: The tool call; unique within the history.
        correlation_id: One id for everything a request set off, across agents.
        progress: Where to report progress.
        human: Asks the user of this conversation, before any other; None where it has none
            of it.
        conversation: What is one and the same in every call of a conversation; None outside one.
        deps: The values the program gave its tools: `fast.run(deps=…)`.
    """

    agent_name: str
    turn_id: str
    call_id: str
    correlation_id: str
    progress: Progress = no_progress
    human: Human | None = None
    conversation: object | None = None
    deps: tuple[object, ...] = ()

    @property
    def idempotency_key(self) -> str:
        """A key that is the same when this call is made again after a crash.

        Hexadecimal digits: ids of calls come from models, and may hold what no header or variable
        takes.
        """
        return sha256(f"{self.turn_id}:{self.call_id}".encode(errors="surrogatepass")).hexdigest()


class Tool(Protocol):
    """Something a model can call."""

    @property
    def spec(self) -> ToolSpec:
        """How the model sees it."""
        ...

    @property
    def source(self) -> ToolSource:
        """Where it comes from."""
        ...

    @property
    def server_name(self) -> str | None:
        """The MCP server it belongs to, or None."""
        ...

    @property
    def repeatable(self) -> bool:
        """Whether it may be called again when a crash left its outcome unknown."""
        ...

    async def call(self, call: ToolCall, context: ToolContext) -> ToolResult:
        """Do the work. What goes wrong is an error result for the model, not an exception."""
        ...


@runtime_checkable
class PreviewedTool(Protocol):
    """A tool that can say what a call would change in a file."""

    async def preview(self, arguments: JsonObject) -> FileChange | None:
        """Return what a call would change; None where it changes nothing.

        Raises:
            ToolError: The call cannot be made.
        """
        ...


class Toolset(Protocol):
    """A set of tools that may change while an agent lives, such as those of an MCP server."""

    async def tools(self) -> Sequence[Tool]:
        """The tools now; cheap when nothing changed."""
        ...


class RuntimeTool:
    """What tools of the runtime have in common: they belong to no server.

    Attributes:
        asks_in_steps: Whether all a call does are steps of its own; see `Step`.
    """

    __slots__ = ()

    asks_in_steps: ClassVar[bool] = False

    @property
    def source(self) -> ToolSource:
        """Always `runtime`."""
        return "runtime"

    @property
    def server_name(self) -> str | None:
        """Always None."""
        return None


def server_tool_name(server: str, tool: str) -> str:
    """Name the tool of an MCP server.

    Args:
        server: The server's name.
        tool: The tool's name as the server lists it.

    Returns:
        `server__tool`, or a hashed form where that would not fit or could be read as another pair.
    """
    clear = (
        SEPARATOR not in server
        and not server.endswith("_")
        and not tool.startswith("_")
        and server not in ("", AGENT_PREFIX)
        and tool != ""
    )
    return _name(f"{server}{SEPARATOR}{tool}", ("server", server, tool), clear=clear)


def agent_tool_name(agent: str) -> str:
    """Name the tool that calls a child agent: `agent__` and its name."""
    clear = agent != "" and not agent.startswith("_")
    return _name(f"{AGENT_PREFIX}{SEPARATOR}{agent}", ("agent", agent), clear=clear)


def function_tool_name(function: str) -> str:
    """Name the tool of a Python function: the function's own name."""
    return _name(function, ("function", function), clear=SEPARATOR not in function)


def _name(readable: str, meaning: tuple[str, ...], *, clear: bool) -> str:
    # A clear name that ends like a hashed one is hashed as well: else a server could choose a tool
    # name that equals the hashed name of another.
    if clear and _FITS.fullmatch(readable) and not _LOOKS_HASHED.search(readable):
        return readable
    told_apart = "\0".join(f"{len(part)}:{part}" for part in meaning)
    digest = sha256(told_apart.encode("utf-8", "surrogatepass")).hexdigest()[:_HASH_DIGITS]
    kept = _OUTSIDE.sub("_", readable)[: MAX_LENGTH - _HASH_DIGITS - 1]
    return f"{kept}_{digest}"


def object_schema(required: Iterable[str] = (), **properties: tuple[str, str]) -> JsonObject:
    """Write the JSON Schema of some arguments.

    Args:
        required: Those that must be given.
        properties: Type and description of each.
    """
    schema: dict[str, JsonValue] = {
        "type": "object",
        "properties": {
            name: {"type": kind, "description": text} for name, (kind, text) in properties.items()
        },
        "additionalProperties": False,
    }
    return {**schema, "required": list(required)} if required else schema


class ToolArguments:
    """The arguments of one call.

    Args:
        spec: The tool.
        given: What the model gave. What is null counts as left out.

    Raises:
        ToolError: There is one the tool does not have, or one it needs is missing.
    """

    def __init__(self, spec: ToolSpec, given: JsonObject) -> None:
        properties = cast("Mapping[str, JsonObject]", spec.input_schema.get("properties", {}))
        for name in given:
            if name not in properties:
                near = closest(name, properties)
                hint = did_you_mean(near, _named(properties))
                raise ToolError(f"`{name}` is not an argument of `{spec.name}`", hint=hint)
        self._given = {name: value for name, value in given.items() if value is not None}
        for name in cast("Iterable[str]", spec.input_schema.get("required", ())):
            if name not in self._given:
                raise ToolError(f"`{name}` is missing", hint=_describe_argument(name, properties))

    def text(self, name: str) -> str | None:
        """Return a string, or None if it is left out.

        Raises:
            ToolError: It is not a string.
        """
        value = self._given.get(name)
        if value is not None and not isinstance(value, str):
            raise _type_error(name, "string")
        return value

    def required_text(self, name: str) -> str:
        """Return a string that is not blank.

        Raises:
            ToolError: It is not a string, blank, or left out.
        """
        value = self.text(name)
        if value is None or not value.strip():
            raise ToolError(f"`{name}` is empty")
        return value

    def whole(self, name: str, default: int, *, least: int = 0) -> int:
        """Return a whole number, `default` if it is left out.

        Raises:
            ToolError: It is none, or less than `least`.
        """
        value = self._given.get(name, default)
        if isinstance(value, float) and value.is_integer():
            value = int(value)
        if not isinstance(value, int) or isinstance(value, bool):
            raise _type_error(name, "integer")
        if value < least:
            raise ToolError(f"`{name}` must be at least {least}")
        return value

    def flag(self, name: str) -> bool:
        """Return a truth value; false if it is left out.

        Raises:
            ToolError: It is none.
        """
        value = self._given.get(name, False)
        if not isinstance(value, bool):
            raise _type_error(name, "boolean")
        return value

    def mapping(self, name: str) -> JsonObject:
        """Return an object; an empty one if it is left out.

        Raises:
            ToolError: It is none.
        """
        value = self._given.get(name)
        if value is None:
            return {}
        if not isinstance(value, Mapping):
            raise ToolError(f"`{name}` must be an object")
        return value


def _type_error(name: str, kind: str) -> ToolError:
    return ToolError(f"`{name}` must be {_WORDS[kind]}")


def _describe_argument(name: str, properties: Mapping[str, JsonObject]) -> str:
    return f"it is {properties[name].get('description', 'required')}"


def _named(properties: Mapping[str, JsonObject]) -> str:
    return "its arguments are " + ", ".join(f"`{name}`" for name in properties)
