"""One client: the protocol it speaks, what it follows, and where its notifications go."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fast_agent.resources.changes import Change
from fast_agent.resources.era import MODERN_VERSIONS
from fast_agent.rpc.message import NOTHING

if TYPE_CHECKING:
    from collections.abc import Callable

    from fast_agent.resources.era import Era
    from fast_agent.text.json_value import JsonObject

SUBSCRIPTION_ID = "io.modelcontextprotocol/subscriptionId"
LEVELS = ("debug", "info", "notice", "warning", "error", "critical", "alert", "emergency")


class Listen:
    """One `subscriptions/listen` stream: what it was granted."""

    __slots__ = ("id", "prompts", "resources", "tools", "uris")

    def __init__(
        self,
        request_id: int | str,
        uris: dict[str, str],
        *,
        resources: bool,
        tools: bool,
        prompts: bool = False,
    ) -> None:
        self.id = request_id
        self.uris = uris
        self.resources = resources
        self.tools = tools
        self.prompts = prompts


class Session:
    """A client of the service, on any edge.

    Args:
        send: Takes a notification's method and params to the client. It is called from the
            thread that publishes a change, must not block for long, and must not raise.
        protocol: The version the edge has settled with the client; None where the service settles
            it from the client's first request.
    """

    def __init__(
        self, send: Callable[[str, JsonObject], None], protocol: str | None = None
    ) -> None:
        self.send = send
        self.protocol = protocol
        self.opened: Era | None = None
        self.client: JsonObject = NOTHING
        self.level: str | None = None
        self.lists_shown = False
        """Whether a handshake client has read a list, and is therefore notified of list changes."""
        self.subscriptions: dict[str, str] = {}
        """By canonical URI, the spelling the client used: notifications use it."""
        self.listens: dict[int | str, Listen] = {}

    @property
    def era(self) -> Era:
        """The protocol's era, or that of the opening while the version is not settled."""
        if self.protocol is None:
            return self.opened or "handshake"
        return "modern" if self.protocol in MODERN_VERSIONS else "handshake"

    @property
    def follows(self) -> int:
        """How many URIs this client follows."""
        return len(self.subscriptions) + sum(len(one.uris) for one in self.listens.values())

    @property
    def interested(self) -> bool:
        """Whether any change would be notified to this client."""
        return bool(self.subscriptions or self.listens or self.lists_shown)

    def notify(self, change: Change) -> None:
        """Send the notifications of a change that this client asked for."""
        uris = sorted(uri.text for uri in change.updated)
        if self.lists_shown:
            self._lists(NOTHING, change)
        for uri in uris:
            if (spelt := self.subscriptions.get(uri)) is not None:
                self.send("notifications/resources/updated", {"uri": spelt})
        for listen in tuple(self.listens.values()):
            mark: JsonObject = {"_meta": {SUBSCRIPTION_ID: listen.id}}
            granted = Change(
                resources=change.resources and listen.resources,
                tools=change.tools and listen.tools,
                prompts=change.prompts and listen.prompts,
            )
            self._lists(mark, granted)
            for uri in uris:
                if (spelt := listen.uris.get(uri)) is not None:
                    self.send("notifications/resources/updated", {"uri": spelt, **mark})

    def log(self, level: str, logger: str, message: str) -> None:
        """Send a log message, where this client asked for ones of its level or below."""
        if self.level is not None and LEVELS.index(level) >= LEVELS.index(self.level):
            params: JsonObject = {"level": level, "logger": logger, "data": message}
            self.send("notifications/message", params)

    def _lists(self, params: JsonObject, change: Change) -> None:
        if change.resources:
            self.send("notifications/resources/list_changed", params)
        if change.tools:
            self.send("notifications/tools/list_changed", params)
        if change.prompts:
            self.send("notifications/prompts/list_changed", params)
