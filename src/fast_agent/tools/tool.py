"""The Tool protocol."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from hashlib import sha256
from typing import TYPE_CHECKING, Literal, Protocol, TypeAlias, runtime_checkable

from fast_agent.text.frozen import frozen

if TYPE_CHECKING:
    from fast_agent.messages.message import ToolCall, ToolResult
    from fast_agent.models.model import ToolSpec
    from fast_agent.text.json_value import JsonObject
    from fast_agent.tools.file_change import FileChange
    from fast_agent.tools.human import Human


ToolSource: TypeAlias = Literal["mcp", "function", "agent", "runtime"]

Progress: TypeAlias = Callable[[float, float | None, str | None], None]
"""Called with (progress, total or None, message or None) while a tool works."""


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
    """What tools of the runtime have in common: they belong to no server."""

    __slots__ = ()

    @property
    def source(self) -> ToolSource:
        """Always `runtime`."""
        return "runtime"

    @property
    def server_name(self) -> str | None:
        """Always None."""
        return None
