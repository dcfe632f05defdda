"""The pool of a runtime without servers: nothing is connected, and the SDK is not imported."""

from __future__ import annotations

from time import monotonic
from typing import TYPE_CHECKING, Self

from fast_agent.errors import ToolError

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Coroutine, Iterable, Sequence
    from types import TracebackType
    from typing import Never

    from fast_agent.mcp.server import ServerSpec
    from fast_agent.tools.toolbox import ServerFilter


class NullPool:
    """A pool that has no server; see `ServerPool`."""

    __slots__ = ()
    clock = staticmethod(monotonic)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        _type: type[BaseException] | None,
        _error: BaseException | None,
        _traceback: TracebackType | None,
    ) -> None:
        pass

    def add(self, spec: ServerSpec, *, derived: bool = False, agent: str | None = None) -> str:
        """Return the server's name; there is no connection of that name."""
        del derived, agent
        return spec.name

    def renew(self, specs: Iterable[ServerSpec]) -> None:
        """Keep no server."""

    def change(self, agents: Collection[str]) -> Callable[[], None]:
        """Return a function that takes nothing back."""
        del agents
        return _nothing

    def settle(self) -> None:
        """Keep no server."""

    def close_retired(self) -> None:
        """Close nothing."""

    def load_on_start(self) -> None:
        """Connect to nothing."""

    def start_soon(self, act: Callable[[], Coroutine[object, object, object]]) -> None:
        """Start nothing: what waits for agents to end does so when the runtime ends."""

    def connection(self, name: str) -> Never:
        """Refuse: there is no server.

        Raises:
            ToolError: Always.
        """
        raise ToolError(
            f"there is no MCP server `{name}`",
            hint="declare it under `mcp.servers` in the configuration",
        )

    def connections(self, names: Iterable[str]) -> tuple[()]:
        """Return no connection."""
        del names
        return ()

    def toolset(self, name: str, allowed: ServerFilter, has_skills: object = None) -> Never:
        """Refuse; see `connection`."""
        del allowed, has_skills
        self.connection(name)

    def resources(self, name: str, allowed: ServerFilter) -> Never:
        """Refuse; see `connection`."""
        del allowed
        self.connection(name)

    def prompts(self, name: str, allowed: ServerFilter) -> Never:
        """Refuse; see `connection`."""
        del allowed
        self.connection(name)

    async def open(self, names: Sequence[str]) -> tuple[()]:
        """Open nothing."""
        del names
        return ()

    def reports(self) -> tuple[()]:
        """Return no report."""
        return ()


def _nothing() -> None:
    pass
