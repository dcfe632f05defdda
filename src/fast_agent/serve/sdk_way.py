"""The SDK's way: requests of plain sessions that are handed on to the SDK."""

from __future__ import annotations

from typing import TYPE_CHECKING

import anyio

from fast_agent.rpc.encoding import encode
from fast_agent.serve.plain_sessions import HANDED_ON, SESSION_ID

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from contextlib import AbstractContextManager

    from starlette.types import ASGIApp, Message, Receive, Scope, Send

    from fast_agent.serve.mailbox import Mailbox, Notification
    from fast_agent.serve.plain_sessions import PlainSession
    from fast_agent.text.json_value import JsonObject

    Late = Callable[[Scope], AbstractContextManager[Scope]]
    Headers = Sequence[tuple[bytes, bytes]]

_READY = b'{"jsonrpc":"2.0","method":"notifications/initialized"}'
_WRITTEN: Headers = (
    (b"content-type", b"application/json"),
    (b"accept", b"application/json, text/event-stream"),
)
_FIRST_FAILURE = 400


class SdkWay:
    """Hands requests on, and tells the SDK of their session first where it does not know of it.

    The SDK gives sessions ids of its own; clients never see these.

    Args:
        app: The SDK's.
        late: Takes note of a request that waits for the SDK, until it is answered.
    """

    def __init__(self, app: ASGIApp, late: Late) -> None:
        self._app = app
        self._late = late
        self._telling = anyio.Lock()

    async def take(self, opened: PlainSession, scope: Scope, receive: Receive, send: Send) -> None:
        """Hand a request on.

        Args:
            opened: Its session.
            scope: What its headers say.
            receive: Gives its body.
            send: Takes the answer.
        """
        if opened.sdk_id is not None or scope["method"] != "POST":
            await self._take(opened, scope, receive, send)
            return
        with self._late(scope) as noted:
            await self._take(opened, noted, receive, send)

    async def _take(self, opened: PlainSession, scope: Scope, receive: Receive, send: Send) -> None:
        async with self._telling:
            if opened.sdk_id is None:
                await self._tell(opened, scope)
        sdk_id = opened.sdk_id
        if sdk_id is None:  # it is refused: the client hears that there is no such session
            await self._app(scope, receive, send)
            return

        answering = _Answering(opened.name, send)
        headers = _renamed(scope["headers"], sdk_id)
        handed: Scope = {**scope, "headers": headers, HANDED_ON: opened}
        async with anyio.create_task_group() as tasks:
            if scope["method"] == "GET":
                tasks.start_soon(answering.deliver, opened.mailbox)
            await self._app(handed, receive, answering.send)
            await answering.finish()
            tasks.cancel_scope.cancel()

    async def _tell(self, opened: PlainSession, scope: Scope) -> None:
        """Say to the SDK what the client said when it opened the session."""
        found = await self._post(opened, scope, (), opened.hello)
        if found is not None and opened.ready:
            await self._post(opened, scope, ((SESSION_ID, found),), _READY)
        opened.sdk_id = found

    async def _post(
        self, opened: PlainSession, scope: Scope, headers: Headers, body: bytes
    ) -> bytes | None:
        """Send a message as the client would; gives the id of the session it belongs to."""
        told = {**scope, "method": "POST", "headers": [*_WRITTEN, *headers], HANDED_ON: opened}
        waiting: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]
        found: list[bytes] = []

        async def receive() -> Message:
            if not waiting:
                await anyio.sleep_forever()
            return waiting.pop()

        async def send(message: Message) -> None:
            if message["type"] == "http.response.start" and message["status"] < _FIRST_FAILURE:
                found.extend(value for key, value in message["headers"] if key == SESSION_ID)

        await self._app(told, receive, send)
        return found[0] if found else None


class _Answering:
    """The SDK's answer to a request, and what is told on a stream that it opens.

    Args:
        name: What the client calls its session.
        send: Takes the answer.
    """

    def __init__(self, name: bytes, send: Send) -> None:
        self._name = name
        self._send = send
        self._open = False
        self._opened = anyio.Event()

    async def send(self, message: Message) -> None:
        """Pass a piece of the answer on."""
        if message["type"] == "http.response.start":
            message = {**message, "headers": _renamed(message["headers"], self._name)}
            self._open = message["status"] < _FIRST_FAILURE
        elif not message.get("more_body"):
            self._open = False
        await self._send(message)
        if self._open:
            self._opened.set()

    async def finish(self) -> None:
        """End an answer that the SDK left open because the server ends."""
        if self._open:
            await self.send({"type": "http.response.body", "body": b""})

    async def deliver(self, mailbox: Mailbox) -> None:
        """Write notifications between what the SDK writes, once the stream is open."""
        await self._opened.wait()
        await mailbox.deliver(self._tell)

    async def _tell(self, notification: Notification) -> None:
        if self._open:
            told: JsonObject = {"jsonrpc": "2.0", **notification._asdict()}
            event = b"event: message\r\ndata: %b\r\n\r\n" % encode(told)
            await self._send({"type": "http.response.body", "body": event, "more_body": True})


def _renamed(headers: Headers, name: bytes) -> Headers:
    return [(key, name if key == SESSION_ID else value) for key, value in headers]
