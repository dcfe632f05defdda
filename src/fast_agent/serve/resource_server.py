"""A server of resources, as every transport asks it, in both eras of the protocol.

A queue brings notifications from a watcher's thread to one client.
"""

from __future__ import annotations

import logging
from asyncio import get_running_loop
from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING, Final, NamedTuple, Protocol, cast

import anyio
from anyio import to_thread

from fast_agent.errors import ResourceError
from fast_agent.resources.problem import RequestRefused, error_object
from fast_agent.rpc.message import INTERNAL_ERROR, RpcError, encode

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from fast_agent.resources.provider import Answer
    from fast_agent.resources.service import ResourceService
    from fast_agent.resources.session import Session
    from fast_agent.rpc.message import Request
    from fast_agent.text.json_value import JsonObject


class Notification(NamedTuple):
    """A message without an answer."""

    method: str
    params: JsonObject


class NotificationQueue:
    """Holds what a client has not taken yet. The same notification waits once, however often it
    put in, so a client that reads slowly costs no memory and delays no other.

    It belongs to the event loop it is made in; `put` may be called from any thread.
    """

    def __init__(self) -> None:
        self._loop = get_running_loop()
        self._waiting: dict[bytes, Notification] = {}
        self._filled = anyio.Event()
        self._closed = False

    def put(self, method: str, params: JsonObject) -> None:
        """Add a notification; after the loop has ended it is dropped."""
        try:
            self._loop.call_soon_threadsafe(self._put, Notification(method, params))
        except RuntimeError:
            return

    def close(self) -> None:
        """End `deliver` once the queue is empty."""
        self._closed = True
        self._filled.set()

    async def deliver(self, send: Callable[[Notification], Awaitable[None]]) -> None:
        """Send everything, in order, until `close`.

        Args:
            send: Sends one notification; waiting for a slow client is its matter.
        """
        while True:
            while self._waiting:
                key = next(iter(self._waiting))
                await send(self._waiting.pop(key))
            if self._closed:
                return
            self._filled = anyio.Event()
            await self._filled.wait()

    def _put(self, notification: Notification) -> None:
        self._waiting.setdefault(encode([notification.method, notification.params]), notification)
        self._filled.set()


log = logging.getLogger(__name__)
INITIALIZE: Final = "initialize"
LISTEN: Final = "subscriptions/listen"
MAX_STREAMS: Final = 1000
"""Maximum number of `subscriptions/listen` streams of all clients together."""
QUICK: Final = frozenset(
    {
        INITIALIZE,
        "server/discover",
        "ping",
        "logging/setLevel",
        "resources/list",
        "resources/templates/list",
        "resources/read",
    }
)
"""What is answered in the event loop; the rest may hash files, search, or wait for a lock."""


class Channel(Protocol):
    """The way to the client of a request while the request is answered.

    Attributes:
        owner: Who the client is, for what is shared among clients: an address.
    """

    owner: str

    async def notify(self, method: str, params: JsonObject) -> None:
        """Send a notification that belongs to the request."""
        ...

    async def request(self, method: str, params: JsonObject) -> JsonObject:
        """Send a request and wait for its answer.

        Raises:
            RemoteError: The client answered with an error, or cannot answer.
        """
        ...


class ResourceServer:
    """Serves a resource service.

    Args:
        service: Answers.

    Attributes:
        service: The same service.
    """

    streams = False
    """Whether an answer may be a stream that carries notifications before the result."""

    grace_seconds = 2.0
    """How long requests may take to end once the server is asked to stop."""

    stopping = False
    """Whether new calls are refused, because the server ends once those under way are answered."""

    own_methods: frozenset[str] = frozenset()
    """Methods that are answered here and not by the service."""

    def __init__(self, service: ResourceService) -> None:
        self.service = service
        self._streams: set[NotificationQueue] = set()
        self._listening = 0

    def stop(self, then: Callable[[float], None]) -> None:
        """Start to stop; for a signal's handler.

        Args:
            then: Ends the server, which has so many seconds left for requests under way.
        """
        then(self.grace_seconds)

    async def open(self, session: Session, params: JsonObject) -> None:
        """Open what a client that shook hands has in addition to its session.

        Args:
            session: The client.
            params: Those of its `initialize`.

        Raises:
            FastAgentError: It cannot be opened.
        """

    async def close(self, session: Session) -> None:
        """Close the session of a client that has left."""
        await to_thread.run_sync(self.service.close, session)

    def admit(self, session: Session, request: Request) -> None:
        """Check that a request may be answered now, in the order in which requests arrive.

        Raises:
            RpcError: It belongs to another version of the protocol, or comes too early.
        """
        served = request.method in self.own_methods
        try:
            self.service.admit(session, request.method, request.params, served=served)
        except ResourceError as problem:
            raise rpc_error(problem, session) from None

    async def serve(self, session: Session, request: Request, channel: Channel) -> bytes:
        """Return the result of a request that was admitted, as JSON.

        Raises:
            RpcError: It cannot be answered.
        """
        try:
            if request.method == LISTEN:
                return (await self._listen(session, request, channel)).json
            return (await self.answer(session, request, channel)).json
        except ResourceError as problem:
            raise rpc_error(problem, session) from None
        except RpcError:
            raise
        except Exception:  # a task boundary: the server outlives a request it cannot answer
            log.exception("could not answer `%s`", request.method)
            raise RpcError(INTERNAL_ERROR, "internal error") from None

    async def answer(self, session: Session, request: Request, channel: Channel) -> Answer:  # noqa: ARG002
        """Answer a request.

        Args:
            session: The client.
            request: The request.
            channel: The way to its client while the request runs.

        Raises:
            ResourceError: It cannot be answered.
        """
        call = partial(self.service.call, session, request.method, request.params)
        return call() if request.method in QUICK else await to_thread.run_sync(call)

    def cancel_all(self) -> None:
        """Cancel what takes long and is under way; it answers that it was cancelled."""

    def end_streams(self) -> None:
        """End every stream of notifications."""
        for mailbox in self._streams:
            mailbox.close()

    async def stream(self, mailbox: NotificationQueue, channel: Channel) -> None:
        """Send what comes into a mailbox until it is closed, or the server ends."""

        async def send(notification: Notification) -> None:
            await channel.notify(notification.method, notification.params)

        self._streams.add(mailbox)
        try:
            await mailbox.deliver(send)
        finally:
            self._streams.discard(mailbox)

    async def _listen(self, session: Session, request: Request, channel: Channel) -> Answer:
        """Answer `subscriptions/listen`, whose notifications go out until the client leaves."""
        if self._listening >= MAX_STREAMS:
            raise RequestRefused(INTERNAL_ERROR, f"there are {MAX_STREAMS} streams open already")
        mailbox = NotificationQueue()
        listening = self.service.open(mailbox.put, session.protocol)
        last: list[Answer] = []
        self._listening += 1
        try:
            listen = partial(self.service.listen, listening, request.params, request.id)
            await to_thread.run_sync(listen)
            await self.stream(mailbox, channel)
        finally:
            self._listening -= 1
            with anyio.CancelScope(shield=True):
                ended = await to_thread.run_sync(self.service.close, listening)
                last.extend(answer for _, answer in ended)
        return last[0]


def rpc_error(problem: ResourceError, session: Session) -> RpcError:
    """Return a problem as the client's version of the protocol has it."""
    error = error_object(problem, session.era)
    data = error.get("data")
    return RpcError(
        cast("int", error["code"]),
        cast("str", error["message"]),
        data if isinstance(data, Mapping) else None,
    )
