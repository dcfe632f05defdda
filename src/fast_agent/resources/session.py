"""One client: how it opens, the protocol it speaks, what it follows, and where notifications go.

The first request decides: one that carries the newest protocol's envelope in `_meta` opens a
session without a handshake, anything else opens one that needs `initialize`.
"""

from __future__ import annotations

from collections.abc import Mapping
from threading import Lock
from typing import TYPE_CHECKING, NamedTuple, cast

from fast_agent.resources.problem import (
    HANDSHAKE_VERSIONS,
    MODERN_VERSIONS,
    UNSUPPORTED_VERSION,
    RequestRefused,
    bad_params,
    shown,
)
from fast_agent.rpc.message import INVALID_REQUEST, METHOD_NOT_FOUND, NOTHING

if TYPE_CHECKING:
    from collections.abc import Callable

    from fast_agent.resources.problem import Era
    from fast_agent.resources.uri import Uri
    from fast_agent.text.json_value import JsonObject


class Change(NamedTuple):
    """What is different now.

    Args:
        updated: Resources whose content is.
        resources: Whether the lists of resources or templates are.
        tools: Whether the list of tools, or what one says of itself, is.
        prompts: Whether the list of prompts is.
    """

    updated: frozenset[Uri] = frozenset()
    resources: bool = False
    tools: bool = False
    prompts: bool = False

    def __bool__(self) -> bool:
        return bool(self.updated) or self.resources or self.tools or self.prompts

    def __or__(self, other: Change) -> Change:
        return Change(
            self.updated | other.updated,
            self.resources or other.resources,
            self.tools or other.tools,
            self.prompts or other.prompts,
        )


class ChangeBus:
    """Hands each change to every listener, in the thread that publishes it."""

    def __init__(self) -> None:
        self._listeners: tuple[Callable[[Change], None], ...] = ()
        self._lock = Lock()

    def listen(self, listener: Callable[[Change], None]) -> Callable[[], None]:
        """Add a listener, which must return quickly and not raise.

        Returns:
            A function that removes it; calling it twice does no harm.
        """
        with self._lock:
            self._listeners = (*self._listeners, listener)

        def stop() -> None:
            with self._lock:
                self._listeners = tuple(one for one in self._listeners if one is not listener)

        return stop

    def publish(self, change: Change) -> None:
        """Notify every listener, unless nothing changed."""
        if change:
            for listener in self._listeners:
                listener(change)


SUBSCRIPTION_ID = "io.modelcontextprotocol/subscriptionId"
LEVELS = ("debug", "info", "notice", "warning", "error", "critical", "alert", "emergency")


class ListenStream:
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
        self.listens: dict[int | str, ListenStream] = {}

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
    def is_interested(self) -> bool:
        """Whether any change would be notified to this client."""
        return bool(self.subscriptions or self.listens or self.lists_shown)

    def notify(self, change: Change) -> None:
        """Send the notifications of a change that this client asked for."""
        uris = sorted(uri.text for uri in change.updated)
        if self.lists_shown:
            self._lists(NOTHING, change)
        for uri in uris:
            if (spelled := self.subscriptions.get(uri)) is not None:
                self.send("notifications/resources/updated", {"uri": spelled})
        for listen in tuple(self.listens.values()):
            mark: JsonObject = {"_meta": {SUBSCRIPTION_ID: listen.id}}
            granted = Change(
                resources=change.resources and listen.resources,
                tools=change.tools and listen.tools,
                prompts=change.prompts and listen.prompts,
            )
            self._lists(mark, granted)
            for uri in uris:
                if (spelled := listen.uris.get(uri)) is not None:
                    self.send("notifications/resources/updated", {"uri": spelled, **mark})

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


VERSION_KEY = "io.modelcontextprotocol/protocolVersion"
CAPABILITIES_KEY = "io.modelcontextprotocol/clientCapabilities"
HANDSHAKE_ONLY = frozenset(
    {"initialize", "ping", "logging/setLevel", "resources/subscribe", "resources/unsubscribe"}
)
MODERN_ONLY = frozenset({"server/discover", "subscriptions/listen"})


def envelope(params: JsonObject) -> JsonObject | None:
    """The newest protocol's envelope: `_meta`, where it names a protocol version."""
    meta = params.get("_meta")
    if isinstance(meta, Mapping) and VERSION_KEY in meta:
        return meta
    return None


def admit(session: Session, method: str, params: JsonObject) -> None:
    """Settle the session's protocol with a request, before it is answered.

    Args:
        session: The client's; its `opened` and `protocol` are set here.
        method: The request's.
        params: The request's.

    Raises:
        RequestRefused: The request belongs to the other era, its envelope is incomplete, or its
            version is none that is spoken here.
    """
    found = envelope(params) if method != "initialize" else None
    if session.opened is None:
        session.opened = "handshake" if found is None else "modern"
    if session.opened == "handshake":
        if found is not None:
            raise RequestRefused(
                INVALID_REQUEST,
                "this connection was opened by a handshake; requests with the envelope of"
                f" {MODERN_VERSIONS[-1]} need a separate connection",
            )
        if method in MODERN_ONLY:
            raise unknown_method(method)
        if method == "initialize" and session.protocol is not None:
            raise RequestRefused(INVALID_REQUEST, "the session is initialized already")
        return
    if method == "initialize":
        asked = params.get("protocolVersion")
        raise unsupported(asked if isinstance(asked, str) else None)
    _check_envelope(found, params)
    session.protocol = cast("str", cast("JsonObject", found)[VERSION_KEY])
    if method in HANDSHAKE_ONLY:
        raise unknown_method(method)


def _check_envelope(found: JsonObject | None, params: JsonObject) -> None:
    meta = found if found is not None else params.get("_meta")
    keys: JsonObject = meta if isinstance(meta, Mapping) else {}
    if missing := [key for key in (VERSION_KEY, CAPABILITIES_KEY) if key not in keys]:
        raise bad_params(f"`params._meta` lacks {' and '.join(f'`{key}`' for key in missing)}")
    version = keys[VERSION_KEY]
    if not isinstance(version, str):
        raise bad_params(f"`{VERSION_KEY}` is not a string")
    if version not in MODERN_VERSIONS:
        raise unsupported(version)


def negotiate(params: JsonObject) -> str:
    """Pick the version that answers `initialize`: the client's where it is spoken here.

    Raises:
        RequestRefused: The parameters are not those of `initialize`.
    """
    version = params.get("protocolVersion")
    if not isinstance(version, str):
        raise bad_params("`protocolVersion` is missing or not a string")
    for key in ("capabilities", "clientInfo"):
        if not isinstance(params.get(key), Mapping):
            raise bad_params(f"`{key}` is missing or not an object")
    capabilities = cast("JsonObject", params["capabilities"])
    for key, value in capabilities.items():
        if value is not None and not isinstance(value, Mapping):
            raise bad_params(f"`capabilities.{shown(key)}` is not an object")
    client = cast("JsonObject", params["clientInfo"])
    for key in ("name", "version"):
        if not isinstance(client.get(key), str):
            raise bad_params(f"`clientInfo.{key}` is missing or not a string")
    return version if version in HANDSHAKE_VERSIONS else HANDSHAKE_VERSIONS[-1]


def unknown_method(method: str) -> RequestRefused:
    """Refuse a method that is not served."""
    return RequestRefused(METHOD_NOT_FOUND, f"there is no method `{shown(method)}`")


def unsupported(requested: str | None) -> RequestRefused:
    """Refuse a protocol version, naming those that are spoken."""
    data = {"supported": list(MODERN_VERSIONS)}
    if requested is None:
        return RequestRefused(UNSUPPORTED_VERSION, "unsupported protocol version", data)
    return RequestRefused(
        UNSUPPORTED_VERSION, "unsupported protocol version", {**data, "requested": requested}
    )
