"""A short way for plain calls of agents over HTTP, and word of clients that went away.

A call that wants no progress, of a client that cannot be asked anything, is answered with one JSON
body: it needs no stream, and so nothing of the SDK. It ends when its client leaves; so do calls
that take the long way, where the SDK would let them run on for nobody.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import anyio

from fast_agent.errors import FastAgentError, ResourceError
from fast_agent.resources.answer import Answer
from fast_agent.rpc.encoding import encode
from fast_agent.serve.agent_departure import DEPARTURE, Departure
from fast_agent.serve.plain_requests import PlainRequests, as_headers_say, result_of, send_json

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Receive, Scope, Send

    from fast_agent.serve.agent_call import Begun
    from fast_agent.serve.agent_server import AgentServer
    from fast_agent.serve.plain_message import PlainMessage
    from fast_agent.serve.plain_requests import Plain

_CALL = "tools/call"
_LATE = frozenset({_CALL, "tools/list", "prompts/list"})
_CANCELLED = b'{"code":-32800,"message":"the call was called off"}'


class AgentRequests(PlainRequests):
    """An application in front of the SDK's, for a server of agents.

    Args:
        app: The SDK's.
        server: Answers, and knows the sessions.
        path: Where MCP is served.
    """

    def __init__(self, app: ASGIApp, server: AgentServer, path: str) -> None:
        super().__init__(app, server, path)
        self._server = server

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a plain request; hand every other one on."""
        if scope["type"] != "http" or scope["method"] != "POST":
            await super().__call__(scope, receive, send)
            return
        departure = scope[DEPARTURE] = Departure(receive, send)
        try:
            await super().__call__(scope, departure.receive, departure.send)
        finally:
            departure.done()

    async def late(self, message: PlainMessage, plain: Plain, receive: Receive, send: Send) -> bool:
        """Answer a call of an agent or a list of what there is; see `PlainRequests.late`."""
        if message.method not in _LATE:
            return False
        if plain.modern and not as_headers_say(message, plain.headers):
            return False
        if message.method != _CALL:
            return await self._list(message, plain, send)
        try:
            begun = await self._server.begin_plainly(plain.session, message, modern=plain.modern)
        except ResourceError:
            return False
        if begun is None:
            return False
        answer = await self._run(begun, message, plain, receive)
        if answer is not None:
            await send_json(result_of(message, answer), plain, send)
        elif not begun.left:
            body = b'{"jsonrpc":"2.0","id":%b,"error":%b}' % (encode(message.id), _CANCELLED)
            await send_json(body, plain, send)
        return True

    async def _list(self, message: PlainMessage, plain: Plain, send: Send) -> bool:
        try:
            answer = await self._server.list_plainly(plain.session, message)
        except FastAgentError:
            return False
        if answer is not None:
            await send_json(result_of(message, answer), plain, send)
        return answer is not None

    async def _run(
        self, begun: Begun, message: PlainMessage, plain: Plain, receive: Receive
    ) -> Answer | None:
        """Let the agent answer until the client leaves or calls the call off; None then."""
        answer: Answer | None = None

        async def watch() -> None:
            while (await receive())["type"] != "http.disconnect":
                pass
            begun.left = True
            tasks.cancel_scope.cancel()

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(watch)
            with self._server.guests.calling(plain.session, message.id, tasks.cancel_scope):
                answer = Answer((await begun.call.run()).data)
            tasks.cancel_scope.cancel()
        return None if answer is None else self._server.sealed(answer, plain.session, begun)
