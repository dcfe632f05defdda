"""Subscriptions, the watcher they need, and the notifications of changes.

The watcher runs only while a client would be notified of a change.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from threading import RLock
from typing import TYPE_CHECKING, TypeAlias

from fast_agent.errors import ResourceError
from fast_agent.resources.problem import RequestRefused, bad_params
from fast_agent.resources.provider import Answer
from fast_agent.resources.session import SUBSCRIPTION_ID, Change, ChangeBus, ListenStream
from fast_agent.resources.uri import Uri
from fast_agent.rpc.message import INTERNAL_ERROR

if TYPE_CHECKING:
    from collections.abc import Callable

    from fast_agent.resources.catalog import Catalog
    from fast_agent.resources.session import Session
    from fast_agent.text.json_value import JsonObject, JsonValue

StartWatch: TypeAlias = "Callable[[Sequence[str], Callable[[], None]], Callable[[], None]]"
"""Starts watching places on disk: given the places and what to call, in a thread of the watcher's,
once it watches and after each burst of changes. Returns a function that stops it."""


class Subscriptions:
    """The sessions of a service and what they follow.

    Args:
        catalog: What is followed.
        watch: Starts a watcher; None for that of `resources.watch`.
        tools: Gives the list of tools in a form that can be compared.
        prompts: Whether there are prompts, whose list may change.
    """

    def __init__(
        self,
        catalog: Catalog,
        watch: StartWatch | None,
        tools: Callable[[], bytes],
        *,
        prompts: bool = False,
    ) -> None:
        self.bus = ChangeBus()
        self._catalog = catalog
        self._watch = watch
        self._tools = tools
        self._prompts = prompts
        self._lists: tuple[tuple[int, ...], bytes] | None = None
        """The catalog's revision and the tools of the last notification."""
        self._sessions: set[Session] = set()
        self._states: dict[Uri, str] = {}
        """The fingerprint of each followed URI at the last notification."""
        self._counts: dict[Uri, int] = {}
        self._stop: Callable[[], None] | None = None
        self._lock = RLock()

    @property
    def is_watching(self) -> bool:
        """Whether a watcher runs."""
        return self._stop is not None

    @property
    def sessions(self) -> tuple[Session, ...]:
        """The sessions that are open."""
        with self._lock:
            return tuple(self._sessions)

    def open(self, session: Session) -> Session:
        """Add a session, which is notified of changes from now on."""
        with self._lock:
            self._sessions.add(session)
        return session

    def close(self, session: Session) -> None:
        """Forget a session and all it followed."""
        with self._lock:
            self._sessions.discard(session)
            gone = [*session.subscriptions]
            for listen in session.listens.values():
                gone.extend(listen.uris)
            session.subscriptions.clear()
            session.listens.clear()
            session.lists_shown = False
            self._release(gone)
            self._settle()

    def show_lists(self, session: Session) -> None:
        """Note that a handshake client has seen a list, and so must hear when lists change."""
        if not session.lists_shown:
            with self._lock:
                session.lists_shown = session in self._sessions
                self._settle()

    def subscribe(self, session: Session, text: str) -> None:
        """Follow a URI; one that reads nothing yet may be followed.

        Raises:
            ResourceError: It is no URI, or of no scheme served; or too many are followed.
        """
        uri = self._served(text)
        with self._lock:
            if uri.text not in session.subscriptions:
                self._make_room(session, 1)
                self._hold([uri])
            session.subscriptions[uri.text] = text
            self._settle()

    def unsubscribe(self, session: Session, text: str) -> None:
        """Stop following a URI; a URI that was not followed is ignored.

        Raises:
            InvalidUri: It is no URI.
        """
        uri = Uri.parse(text)
        with self._lock:
            if session.subscriptions.pop(uri.text, None) is not None:
                self._release([uri.text])
                self._settle()

    def listen(self, session: Session, params: JsonObject, request_id: int | str) -> None:
        """Open a stream of notifications and acknowledge what it was granted.

        Raises:
            RequestRefused: The parameters are wrong, or there are too many streams or URIs.
        """
        asked = params.get("notifications")
        if not isinstance(asked, Mapping):
            raise bad_params("`notifications` is missing or not an object")
        uris = self._granted(asked.get("resourceSubscriptions"))
        listen = ListenStream(
            request_id,
            {uri.text: text for text, uri in uris.items()},
            resources=asked.get("resourcesListChanged") is True,
            tools=asked.get("toolsListChanged") is True,
            prompts=self._prompts and asked.get("promptsListChanged") is True,
        )
        with self._lock:
            if request_id in session.listens:
                raise bad_params("this request id has an open stream")
            if len(session.listens) >= self._catalog.limits.listens:
                raise RequestRefused(
                    INTERNAL_ERROR, f"a client may hold {len(session.listens)} streams open"
                )
            self._make_room(session, len(listen.uris))
            self._hold([*set(uris.values())])
            granted: dict[str, JsonValue] = {}
            if listen.tools:
                granted["toolsListChanged"] = True
            if listen.resources:
                granted["resourcesListChanged"] = True
            if listen.prompts:
                granted["promptsListChanged"] = True
            if uris:
                granted["resourceSubscriptions"] = [*uris]
            session.send(
                "notifications/subscriptions/acknowledged",
                {"notifications": granted, "_meta": {SUBSCRIPTION_ID: request_id}},
            )
            session.listens[request_id] = listen
            self._settle()

    def close_stream(self, session: Session, request_id: int | str) -> bool:
        """End a stream that the client cancelled.

        Returns:
            Whether there was one.
        """
        with self._lock:
            listen = session.listens.pop(request_id, None)
            if listen is None:
                return False
            self._release(listen.uris)
            self._settle()
            return True

    @staticmethod
    def ended(request_id: int | str) -> Answer:
        """The result of a stream that ends in good order."""
        return Answer({"_meta": {SUBSCRIPTION_ID: request_id}})

    def refresh(self) -> Change:
        """Check the disk again and notify all clients of the changes they follow.

        Returns:
            The changes notified.
        """
        with self._lock:
            change = Change()
            for provider in self._catalog.providers:
                change |= provider.refresh()
            updated: set[Uri] = set()
            for uri, before in self._states.items():
                state = self._catalog.provider_of(uri).fingerprint(uri)
                if state != before:
                    updated.add(uri)
                    self._states[uri] = state
            # A list may have noticed the change before the watcher did: compare with what was sent.
            revision, tools = now = self._listed()
            told_revision, told_tools = self._lists or now
            self._lists = now
            change |= Change(
                frozenset(updated), resources=revision != told_revision, tools=tools != told_tools
            )
        if change:
            for session in self.sessions:
                session.notify(change)
            self.bus.publish(change)
        return change

    def _listed(self) -> tuple[tuple[int, ...], bytes]:
        return tuple([one.revision for one in self._catalog.providers]), self._tools()

    def _served(self, text: str) -> Uri:
        uri = Uri.parse(text)
        self._catalog.provider_of(uri)
        return uri

    def _granted(self, asked: JsonValue) -> dict[str, Uri]:
        """The URIs of a filter that can be followed, by the client's spelling."""
        if asked is None:
            return {}
        if not isinstance(asked, Sequence) or isinstance(asked, str):
            raise bad_params("`notifications.resourceSubscriptions` is not a list")
        granted: dict[str, Uri] = {}
        for text in asked:
            if not isinstance(text, str):
                raise bad_params("`notifications.resourceSubscriptions` holds no string")
            try:
                granted[text] = self._served(text)
            except ResourceError:
                continue  # what is not granted is left out of the acknowledgement
        return granted

    def _make_room(self, session: Session, more: int) -> None:
        limits = self._catalog.limits
        total = sum(self._counts.values())
        if session.follows + more > limits.session_subscriptions:
            limit = f"a client may follow {limits.session_subscriptions} resources"
        elif total + more > limits.subscriptions:
            limit = f"all clients together may follow {limits.subscriptions} resources"
        else:
            return
        raise bad_params(f"{limit}; unsubscribe from some first")

    def _hold(self, uris: Sequence[Uri]) -> None:
        for uri in uris:
            self._counts[uri] = self._counts.get(uri, 0) + 1
            if uri not in self._states:
                self._states[uri] = self._catalog.provider_of(uri).fingerprint(uri)

    def _release(self, texts: Mapping[str, str] | Sequence[str]) -> None:
        for text in texts:
            uri = Uri.parse(text)
            left = self._counts[uri] - 1
            if left:
                self._counts[uri] = left
            else:
                del self._counts[uri], self._states[uri]

    def _settle(self) -> None:
        """Start or stop the watcher, depending on whether any session is subscribed."""
        wanted = any(session.is_interested for session in self._sessions)
        if wanted and self._stop is None:
            places = [place for one in self._catalog.providers for place in one.places()]
            if places:
                self._lists = self._listed()
                self._stop = (self._watch or _default_watch)(places, self._noticed)
        elif not wanted and self._stop is not None:
            stop, self._stop = self._stop, None
            stop()

    def _noticed(self) -> None:
        self.refresh()


def _default_watch(places: Sequence[str], on_change: Callable[[], None]) -> Callable[[], None]:
    from fast_agent.resources.watch import start_watch

    return start_watch(places, on_change)
