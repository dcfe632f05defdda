"""What one server offers: its lists, shared by all agents that use it."""

from __future__ import annotations

import logging
from math import inf
from typing import TYPE_CHECKING, Protocol, TypeVar

from fast_agent.mcp.listing import Listing, Page

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence

    from mcp.client import Client
    from mcp.types import CacheableResult

    from fast_agent.mcp.listed import ListedPrompt, ListedResource, ListedTemplate, ListedTool
    from fast_agent.mcp.listing import Fetch
    from fast_agent.mcp.live_session import LiveSession
    from fast_agent.mcp.server import ServerSpec

_log = logging.getLogger(__name__)

T = TypeVar("T")
R = TypeVar("R", bound="CacheableResult")


class Asked(Protocol):
    """What lists are asked of: a `Connection`."""

    @property
    def spec(self) -> ServerSpec:
        """The server."""
        ...

    @property
    def tells_changes(self) -> bool:
        """Whether lists stay as they are until the server tells of a change."""
        ...

    async def open(self) -> LiveSession:
        """Give the live session; raises ToolError where there is none to be had."""
        ...

    async def list_page(self, method: str, send: Callable[[Client], Awaitable[R]]) -> R:
        """Ask for a page of a list; raises ToolError where there is no answer."""
        ...


class Catalog:
    """The four lists of a server; each is fetched when needed and kept until it changes.

    Args:
        connection: The server.
        clock: Seconds that never go back.
    """

    def __init__(self, connection: Asked, clock: Callable[[], float]) -> None:
        self._connection = connection
        self._resource_changes = 0
        self._compared: Sequence[ListedTool] | None = None
        self._tools = self._listing("tools/list", self._tool_page, clock)
        self._resources = self._listing("resources/list", self._resource_page, clock)
        self._templates = self._listing("resources/templates/list", self._template_page, clock)
        self._prompts = self._listing("prompts/list", self._prompt_page, clock)
        self.no_skills_until = -1.0
        """Until when a list of skills that could not be had counts as empty, for all agents."""

    async def tools(self) -> tuple[ListedTool, ...]:
        """Give the tools.

        Raises:
            ToolError: The server cannot be reached, or its pages do not end.
        """
        listed = await self._tools.items() if await self._has("tools") else ()
        if listed is not self._compared:
            self._compared = listed
            await self._compare(listed)
        return listed

    async def _compare(self, listed: Sequence[ListedTool]) -> None:
        """Tell once when a server of a project offers other tools than when it was last used."""
        spec = self._connection.spec
        if spec.grant is None:
            return
        from anyio.to_thread import run_sync

        digests = {tool.name: tool.digest for tool in listed}
        change = await run_sync(spec.grant.tools_change, spec.name, digests)
        if change is not None:
            _log.warning(
                "server `%s` of `%s` offers other tools than before: %s",
                spec.name,
                spec.grant.root,
                change,
            )

    async def resources(self) -> tuple[ListedResource, ...]:
        """Give the resources; raises as `tools` does."""
        return await self._resources.items() if await self._has("resources") else ()

    async def templates(self) -> tuple[ListedTemplate, ...]:
        """Give the resource templates; raises as `tools` does."""
        return await self._templates.items() if await self._has("resources") else ()

    async def prompts(self) -> tuple[ListedPrompt, ...]:
        """Give the prompts; raises as `tools` does."""
        return await self._prompts.items() if await self._has("prompts") else ()

    def tools_changed(self) -> None:
        """Fetch the tools anew at the next need."""
        self._tools.changed()

    @property
    def resource_changes(self) -> int:
        """How often the resources changed or may have; skills of the server change with them."""
        return self._resource_changes

    def resources_changed(self) -> None:
        """Fetch the resources and templates anew at the next need."""
        self._resource_changes += 1
        self._resources.changed()
        self._templates.changed()

    def prompts_changed(self) -> None:
        """Fetch the prompts anew at the next need."""
        self._prompts.changed()

    def all_changed(self) -> None:
        """Fetch everything anew at the next need, as after a new connection."""
        self.tools_changed()
        self.resources_changed()
        self.prompts_changed()

    def _listing(self, method: str, fetch: Fetch[T], clock: Callable[[], float]) -> Listing[T]:
        spec = self._connection.spec
        what = f"server `{spec.name}`: `{method}`"
        return Listing(what, fetch, clock, seconds=spec.read_timeout_seconds)

    async def _has(self, capability: str) -> bool:
        session = await self._connection.open()
        return getattr(session.client.server_capabilities, capability) is not None

    async def _tool_page(self, cursor: str | None) -> Page[ListedTool]:
        from fast_agent.mcp.listed import ListedTool

        result = await self._ask("tools/list", lambda client: client.list_tools(cursor=cursor))
        items = [ListedTool.of(tool) for tool in result.tools]
        return self._page(items, result.next_cursor, result)

    async def _resource_page(self, cursor: str | None) -> Page[ListedResource]:
        from fast_agent.mcp.listed import ListedResource

        result = await self._ask(
            "resources/list", lambda client: client.list_resources(cursor=cursor)
        )
        items = [ListedResource.of(resource) for resource in result.resources]
        return self._page(items, result.next_cursor, result)

    async def _template_page(self, cursor: str | None) -> Page[ListedTemplate]:
        from fast_agent.mcp.listed import ListedTemplate

        result = await self._ask(
            "resources/templates/list",
            lambda client: client.list_resource_templates(cursor=cursor),
        )
        items = [ListedTemplate.of(template) for template in result.resource_templates]
        return self._page(items, result.next_cursor, result)

    async def _prompt_page(self, cursor: str | None) -> Page[ListedPrompt]:
        from fast_agent.mcp.listed import ListedPrompt

        result = await self._ask("prompts/list", lambda client: client.list_prompts(cursor=cursor))
        items = [ListedPrompt.of(prompt) for prompt in result.prompts]
        return self._page(items, result.next_cursor, result)

    async def _ask(self, method: str, send: Callable[[Client], Awaitable[R]]) -> R:
        return await self._connection.list_page(method, send)

    def _page(self, items: Sequence[T], cursor: str | None, result: CacheableResult) -> Page[T]:
        # 2026-07-28 says how long a list stays fresh. Before that, and where changes are told by a
        # subscription, it stays until a change is told.
        told = self._connection.tells_changes
        return Page(items, cursor, inf if told else result.ttl_ms / 1000)
