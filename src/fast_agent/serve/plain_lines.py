"""Plain lines: what clients over stdio say of which the SDK need know nothing.

The same requests are plain as over HTTP: a well-formed handshake, lists, reads, and calls of agents
that want no progress and whose client cannot be asked anything. What is not plainly right, and what
cannot be answered with a result, is left to the SDK, which is told of the client first.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING

from anyio import CancelScope

from fast_agent.errors import FastAgentError
from fast_agent.resources.answer import Answer
from fast_agent.resources.era import MODERN_VERSIONS
from fast_agent.resources.opening import CAPABILITIES, VERSION, envelope
from fast_agent.resources.session import Session
from fast_agent.rpc.encoding import encode
from fast_agent.rpc.message import INTERNAL_ERROR
from fast_agent.serve.plain_message import plain_message, plain_notification
from fast_agent.serve.plain_opening import open_plainly
from fast_agent.serve.plain_requests import result_of
from fast_agent.serve.plain_sessions import PlainSession
from fast_agent.serve.sdk_lines import Opening

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Coroutine

    from anyio.abc import TaskGroup

    from fast_agent.serve.agent_call import Begun
    from fast_agent.serve.agent_server import AgentServer
    from fast_agent.serve.mailbox import Notification
    from fast_agent.serve.open_requests import OpenRequests
    from fast_agent.serve.plain_message import PlainMessage, PlainNotification
    from fast_agent.serve.sdk_lines import SdkLines
    from fast_agent.text.json_value import JsonObject

log = logging.getLogger(__name__)

_INITIALIZE = "initialize"
_INITIALIZED = "notifications/initialized"
_CALL = "tools/call"
_LISTS = frozenset({"tools/list", "prompts/list"})
_AT_ONCE = frozenset(
    {"server/discover", "ping", "resources/list", "resources/templates/list", "resources/read"}
)


class PlainLines:
    """Answers one client as long as what it says is plain.

    Args:
        server: Answers.
        tasks: Where what takes its time is answered.
        requests: Counts the client's requests.
        send: Sends a message.
        sdk: Takes what is not plain.
    """

    def __init__(
        self,
        server: AgentServer,
        tasks: TaskGroup,
        requests: OpenRequests,
        send: Callable[[bytes], Awaitable[None]],
        sdk: SdkLines,
    ) -> None:
        self._server = server
        self._tasks = tasks
        self._requests = requests
        self._send = send
        self._sdk = sdk
        self._session: Session | None = None
        self._modern = False
        self._opening: Opening | None = None
        self._running: set[int | str] = set()

    async def take(self, line: bytes) -> None:
        """Answer a line, or hand it on."""
        if not await self._taken(line):
            await self._hand_on(line)

    async def close(self) -> None:
        """End the client's session."""
        if self._session is not None and not self._modern:
            with CancelScope(shield=True):
                await self._server.farewell(self._session)
            self._session = None

    async def _hand_on(self, line: bytes) -> None:
        self._sdk.begin(self._opening)
        await self._sdk.take(line)

    async def _taken(self, line: bytes) -> bool:
        if self._session is None and self._sdk.begun:
            return False  # it did not open plainly
        message = plain_message(line)
        if message is None:
            note = plain_notification(line)
            return note is not None and self._noted(note)
        if self._session is None and not await self._opened(message, line):
            return False
        if message.method == _INITIALIZE:
            return self._opening is not None and self._opening.line is line
        session = self._session
        return session is not None and await self._answered(session, message, line)

    async def _opened(self, message: PlainMessage, line: bytes) -> bool:
        """Take the first request, which settles which protocol the client speaks."""
        if message.method == _INITIALIZE:
            begun = await open_plainly(self._server, message, line, partial(PlainSession, b""))
            if begun is None:
                return False
            opened, answer = begun
            self._session, self._opening = opened.session, Opening(line, opened)
            self._tasks.start_soon(opened.mailbox.deliver, self._tell)
            await self._send(result_of(message, answer))
            guest = self._server.guests.find(opened.session)
            if guest is not None and guest.askable:
                self._sdk.begin(self._opening)  # its first call will need that
            return True
        # What comes first is told to the SDK again, so it must be nothing that has an effect.
        if message.method in _AT_ONCE | _LISTS and _is_modern(message):
            self._session, self._modern = Session(_no_send), True
            self._opening = Opening(line, None)
        return self._modern

    async def _answered(self, session: Session, message: PlainMessage, line: bytes) -> bool:
        if not (_is_modern(message) if self._modern else envelope(message.params) is None):
            return False
        if message.method == _CALL:
            return await self._called(session, message)
        if message.method in _LISTS:
            self._begin(message, self._list(session, message, line))
            return True
        if message.method not in _AT_ONCE:
            return False
        try:
            answer = self._server.service.answer(
                session, message.method, message.params, message.id
            )
        except Exception:  # noqa: BLE001 - the long way meets the same, and says and logs it
            return False
        if answer is not None:
            await self._send(result_of(message, answer))
        return answer is not None

    async def _called(self, session: Session, message: PlainMessage) -> bool:
        try:
            begun = await self._server.begin_plainly(session, message, modern=self._modern)
        except FastAgentError:
            return False
        if begun is not None:
            self._begin(message, self._call(session, message, begun))
        return begun is not None

    def _begin(self, message: PlainMessage, work: Coroutine[None, None, None]) -> None:
        self._requests.add()
        self._running.add(message.id)
        self._tasks.start_soon(self._run, message, work)

    async def _run(self, message: PlainMessage, work: Coroutine[None, None, None]) -> None:
        try:
            await work
        except Exception:  # a task boundary: the server outlives a request it cannot answer
            log.exception("could not answer `%s`", message.method)
            error: JsonObject = {"code": INTERNAL_ERROR, "message": "internal error"}
            await self._send(encode({"jsonrpc": "2.0", "id": message.id, "error": error}))
        finally:
            self._running.discard(message.id)
            self._requests.settle()

    async def _list(self, session: Session, message: PlainMessage, line: bytes) -> None:
        try:
            answer = await self._server.list_plainly(session, message)
        except FastAgentError:
            answer = None
        if answer is None:
            await self._hand_on(line)
        else:
            await self._send(result_of(message, answer))

    async def _call(self, session: Session, message: PlainMessage, begun: Begun) -> None:
        """Let the agent answer; a call that is called off is not answered."""
        with CancelScope() as scope, self._server.guests.calling(session, message.id, scope):
            answer = Answer((await begun.call.run()).data)
            await self._send(result_of(message, self._server.sealed(answer, session, begun)))

    def _noted(self, note: PlainNotification) -> bool:
        """Take a notification; says whether the SDK need not hear of it."""
        if self._session is None:
            return False
        self._server.notice(self._session, note.method, note.params)
        if self._sdk.begun:
            called_off = note.params.get("requestId")
            return isinstance(called_off, int | str) and called_off in self._running
        if note.method == _INITIALIZED and self._opening and self._opening.session:
            self._opening.session.ready = True
        return True

    async def _tell(self, notification: Notification) -> None:
        await self._send(encode({"jsonrpc": "2.0", **notification._asdict()}))


def _is_modern(message: PlainMessage) -> bool:
    """Whether a request has the whole envelope of the newest protocol."""
    meta = envelope(message.params)
    return (
        meta is not None
        and meta.get(VERSION) in MODERN_VERSIONS
        and isinstance(meta.get(CAPABILITIES), Mapping)
    )


def _no_send(method: str, params: JsonObject) -> None:
    """Pass over a notification to a client that opened no stream."""
