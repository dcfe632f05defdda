"""Server: the agent's side of a connection, and the loop that serves one over stdio."""

from __future__ import annotations

import os
import signal
import sys
from asyncio import get_running_loop
from contextlib import ExitStack
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from logging import getLogger
from typing import TYPE_CHECKING, Final

import anyio
from anyio.to_thread import run_sync

from fast_agent.acp.client_tools import ClientSide, read_client_side
from fast_agent.acp.params import (
    CANCELLED,
    INVALID_PARAMS,
    INVALID_REQUEST,
    METHOD_NOT_FOUND,
    NOT_FOUND,
    RequestError,
    child,
    directory,
    objects,
    optional_text,
    refused,
    text,
    texts,
    wrong,
)
from fast_agent.acp.remembered import RestartState
from fast_agent.errors import ConfigError, FastAgentError, RunError, SessionError
from fast_agent.mcp.server import HttpTarget, ServerSpec, StdioTarget, checked_url, unique_name
from fast_agent.rpc.message import take_stdio
from fast_agent.rpc.peer import Peer
from fast_agent.trust.programs import is_launcher
from fast_agent.version import __version__

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Collection
    from pathlib import Path

    from anyio import CancelScope
    from anyio.abc import TaskGroup

    from fast_agent.acp.live_session import LiveSession
    from fast_agent.acp.opening import SessionOpening, SessionRequest
    from fast_agent.mcp.server import Target
    from fast_agent.registry.reload import Reload
    from fast_agent.rpc.message import Request
    from fast_agent.rpc.peer import Work
    from fast_agent.sessions.facts import SessionSummary
    from fast_agent.sessions.session import Session
    from fast_agent.sessions.store import SessionStore
    from fast_agent.text.json_value import JsonObject, JsonValue

PROTOCOL_VERSION: Final = 1
"""The version of the protocol this speaks."""

MAX_SESSIONS: Final = 1_000
"""Most sessions that are open at once."""

_PAGE: Final = 100

log = getLogger(__name__)


_DECLARED = "mcpServers"
MAX_MESSAGE_BYTES: Final = 32 << 20
"""Maximum size of a message: pictures in prompts are long."""


class AcpServer:
    """Answers one client.

    Args:
        peer: The client.
        opening: Opens sessions.
        handover: What the process before left that served the client; None where none did.

    Attributes:
        left: What the next process needs; None where the connection is to end.
    """

    def __init__(
        self, peer: Peer, opening: SessionOpening, handover: RestartState | None = None
    ) -> None:
        self._peer = peer
        self._opening = opening
        self._handover = handover
        self.left: RestartState | None = None
        self._hello: JsonObject = {}
        self._client: ClientSide | None = None
        self._given: dict[str, JsonValue] = {}
        """By session, the MCP servers as the client gave them."""
        self._sessions: dict[str, LiveSession] = {}
        self._tasks: TaskGroup | None = None
        self._reloads: list[Reload] = []
        self._reloaded = anyio.Event()
        self._methods: dict[str, Callable[[JsonObject], Awaitable[JsonObject]]] = {
            "session/new": self._new,
            "session/load": partial(self._open, replay=True),
            "session/resume": partial(self._open, replay=False),
            "session/fork": self._fork,
            "session/list": self._list,
            "session/close": self._close,
            "session/delete": self._delete,
            "session/set_mode": self._set_mode,
            "session/set_config_option": self._set_option,
            "authenticate": self._authenticate,
        }

    async def serve(self) -> None:
        """Answer until the client is gone; then every session is closed."""
        async with anyio.create_task_group() as tasks:
            self._tasks = tasks
            tasks.start_soon(self._take_reloads)
            try:
                if self._handover is not None:
                    await self._take_over(self._handover)
                await self._peer.serve(self)
                if self._peer.paused:
                    self.left = self._restart_state()
            finally:
                with anyio.CancelScope(shield=True):
                    for session in tuple(self._sessions.values()):
                        await session.close()
                tasks.cancel_scope.cancel()

    def accept(self, request: Request, scope: CancelScope) -> Work:
        """Take a request; see `Side.accept`."""
        method, params = request.method, request.params
        if method == "initialize":
            return partial(self._initialize, params)
        if self._client is None:
            raise RequestError(INVALID_REQUEST, "`initialize` comes first")
        if method == "session/prompt":
            return self._session(params).take(params, scope)
        work = self._methods.get(method)
        if work is None:
            raise RequestError(METHOD_NOT_FOUND, f"there is no method `{method}`")
        return partial(work, params)

    def cancelled(self, request: Request) -> JsonObject:
        """Return the result of a cancelled request; see `Side.cancelled`."""
        if request.method == "session/prompt":
            return {"stopReason": "cancelled"}
        raise RequestError(CANCELLED, "the request was cancelled")

    def notice(self, method: str, params: JsonObject) -> None:
        """Take a notification; see `Side.notice`."""
        if method == "session/cancel":
            session = self._sessions.get(text(params, "sessionId"))
            if session is not None:
                session.cancel()

    def reloaded(self, done: Reload) -> None:
        """Handle a reload: every session soon takes the current cards and announces them."""
        self._reloads.append(done)
        self._reloaded.set()

    def _request_restart(self, asking: LiveSession) -> None:
        """Restart the program once the prompt of a session is answered.

        Raises:
            RunError: Something would be lost.
        """
        if self._opening.store is None:
            raise RunError("conversations are not saved here, and would be lost")
        for session in self._sessions.values():
            if session.is_busy and session is not asking:
                raise RunError(f"session `{session.id}` is answering a prompt", hint="wait for it")
        self._peer.pause()

    def _restart_state(self) -> RestartState:
        sessions: list[JsonObject] = []
        for session in self._sessions.values():
            session.used = True  # otherwise the session could not be found again
            sessions.append(
                {
                    "sessionId": session.id,
                    "cwd": str(session.cwd),
                    "mcpServers": self._given.get(session.id, []),
                    "agent": session.agent,
                }
            )
        unread, asked = self._peer.left()
        return RestartState(hello=self._hello, sessions=tuple(sessions), unread=unread, asked=asked)

    async def _take_over(self, handover: RestartState) -> None:
        await self._initialize(handover.hello)
        for params in handover.sessions:
            try:
                await self._open(params, replay=False)
                self._session(params).continue_with(text(params, "agent"))
            except RequestError as problem:
                log.warning("session `%s`: %s", params.get("sessionId"), problem.message)

    async def _take_reloads(self) -> None:
        while True:
            await self._reloaded.wait()
            self._reloaded = anyio.Event()
            reloads, self._reloads = self._reloads, []
            for done in reloads:
                for session in self._sessions.values():
                    _note_reload(session, done)
            self._refresh_all()

    def _refresh_all(self) -> None:
        if self._tasks is not None:
            for session in self._sessions.values():
                self._tasks.start_soon(session.refresh)

    async def _initialize(self, params: JsonObject) -> JsonObject:
        wanted = params.get("protocolVersion")
        if not isinstance(wanted, int) or isinstance(wanted, bool) or wanted < 0:
            raise wrong("protocolVersion", "must be a whole number")
        if self._sessions:
            raise RequestError(INVALID_REQUEST, "the connection is initialized already")
        self._client = read_client_side(child(params, "clientCapabilities"))
        self._hello = params
        here: JsonObject = {}
        able: dict[str, JsonValue] = {"close": here}
        if self._opening.store is not None:
            able |= {"list": here, "resume": here, "fork": here, "delete": here}
        return {
            "protocolVersion": PROTOCOL_VERSION,
            "agentCapabilities": {
                "loadSession": self._opening.store is not None,
                "promptCapabilities": {"image": True, "audio": True, "embeddedContext": True},
                "mcpCapabilities": {"http": True, "sse": True},
                "sessionCapabilities": able,
            },
            "agentInfo": {"name": "fast-agent", "title": "fast-agent", "version": __version__},
            "authMethods": [],
        }

    async def _authenticate(self, params: JsonObject) -> JsonObject:
        method = text(params, "methodId")
        raise RequestError(INVALID_PARAMS, f"there is no authentication method `{method}`")

    async def _new(self, params: JsonObject) -> JsonObject:
        wanted = self._wanted(params)
        session = None
        if self._opening.store is not None:
            session = await self._open_stored(partial(self._require_store().create, cwd=wanted.cwd))
        live = await self._live(session, wanted, params)
        return {"sessionId": live.id, **live.facts}

    async def _open(self, params: JsonObject, *, replay: bool) -> JsonObject:
        wanted = self._wanted(params, replay=replay)
        store, session_id = self._require_store(), text(params, "sessionId")
        await self._end(session_id)
        session = await self._open_stored(partial(store.open_unasked, session_id))
        live = await self._live(session, wanted, params)
        return live.facts

    async def _fork(self, params: JsonObject) -> JsonObject:
        wanted = self._wanted(params)
        store, session_id = self._require_store(), text(params, "sessionId")
        session = await self._open_stored(partial(store.fork, session_id))
        live = await self._live(session, wanted, params)
        return {"sessionId": live.id, **live.facts}

    async def _list(self, params: JsonObject) -> JsonObject:
        store = self._require_store()
        cwd, cursor = optional_text(params, "cwd"), optional_text(params, "cursor") or "0"
        if not (cursor.isascii() and cursor.isdecimal()) or len(cursor) > 9:
            raise wrong("cursor", "was not given by this agent")
        found = [
            one
            for one in await run_sync(store.list)
            if one.problem is None and one.turns and one.cwd and cwd in {None, one.cwd}
        ]
        first = int(cursor)
        page: list[JsonValue] = [_info(one) for one in found[first : first + _PAGE]]
        if first + _PAGE < len(found):
            return {"sessions": page, "nextCursor": str(first + _PAGE)}
        return {"sessions": page}

    async def _close(self, params: JsonObject) -> JsonObject:
        await self._session(params).close()
        return {}

    async def _delete(self, params: JsonObject) -> JsonObject:
        store, session_id = self._require_store(), text(params, "sessionId")
        await self._end(session_id)
        try:
            await run_sync(store.delete, session_id)
        except SessionError as error:
            raise refused(error, NOT_FOUND) from error
        return {}

    async def _set_mode(self, params: JsonObject) -> JsonObject:
        self._session(params).choose(text(params, "modeId"))
        return {}

    async def _set_option(self, params: JsonObject) -> JsonObject:
        from fast_agent.acp.live_session import AGENT_OPTION, MODEL_OPTION

        session, option = self._session(params), text(params, "configId")
        if option == AGENT_OPTION:
            session.choose(text(params, "value"))
        elif option == MODEL_OPTION:
            await session.choose_model(text(params, "value"))
        else:
            raise RequestError(INVALID_PARAMS, f"there is no option `{option}`")
        return {"configOptions": session.facts["configOptions"]}

    def _wanted(self, params: JsonObject, *, replay: bool = False) -> SessionRequest:
        if self._client is None:
            raise RequestError(INVALID_REQUEST, "`initialize` comes first")
        if len(self._sessions) >= MAX_SESSIONS:
            msg = f"{MAX_SESSIONS:,} sessions are open"
            raise RequestError(INVALID_REQUEST, msg, hint="close one with `session/close`")
        cwd = directory(params, "cwd")
        from fast_agent.acp.opening import SessionRequest

        wanted = SessionRequest(peer=self._peer, client=self._client, cwd=cwd, replay=replay)
        if not params.get("mcpServers"):
            return wanted
        taken = self._opening.server_names
        return replace(wanted, servers=tuple(read_servers(params, cwd=cwd, taken=taken)))

    async def _open_stored(self, open_it: Callable[[], Session]) -> Session:
        """Open a session of the store, in a worker thread: it waits for the disk."""
        try:
            return await run_sync(open_it)
        except SessionError as error:
            raise refused(error, NOT_FOUND) from error

    async def _live(
        self, session: Session | None, wanted: SessionRequest, params: JsonObject
    ) -> LiveSession:
        if self._tasks is None:
            raise RequestError(INVALID_REQUEST, "the connection is closed")
        start = partial(
            self._opening.live,
            wanted,
            session,
            self._sessions,
            self._refresh_all,
            self._request_restart,
        )
        try:
            live: LiveSession = await self._tasks.start(start)
        except FastAgentError as error:
            raise refused(error) from error
        self._given = {key: one for key, one in self._given.items() if key in self._sessions}
        self._given[live.id] = params.get("mcpServers") or []
        self._tasks.start_soon(_announce, live)
        self._tasks.start_soon(live.prepare)  # while the user writes
        return live

    def _session(self, params: JsonObject) -> LiveSession:
        session_id = text(params, "sessionId")
        session = self._sessions.get(session_id)
        if session is None:
            hint = "open one with `session/new` or `session/load`"
            raise RequestError(NOT_FOUND, f"there is no open session `{session_id}`", hint=hint)
        return session

    async def _end(self, session_id: str) -> None:
        """Close a session that is open here.

        Raises:
            RequestError: It is answering a prompt.
        """
        session = self._sessions.get(session_id)
        if session is None:
            return
        if session.is_busy:
            raise RequestError(INVALID_REQUEST, f"session `{session_id}` is answering a prompt")
        await session.close()

    def _require_store(self) -> SessionStore:
        if self._opening.store is None:
            raise RequestError(METHOD_NOT_FOUND, "sessions are not saved here")
        return self._opening.store()


async def _announce(session: LiveSession) -> None:
    """Announce the commands, after the answer that names the session."""
    session.announce()


def _note_reload(session: LiveSession, done: Reload) -> None:
    if done.line is not None:
        session.note(done.line)
    for problem in done.problems:
        session.note(f"{problem.path or 'cards'}: {problem.message}")


def _info(one: SessionSummary) -> JsonObject:
    changed = datetime.fromtimestamp(one.changed, UTC).isoformat()
    info: JsonObject = {"sessionId": one.id, "cwd": one.cwd, "updatedAt": changed}
    return {**info, "title": one.title} if one.title else info


def read_servers(params: JsonObject, *, cwd: Path, taken: Collection[str]) -> list[ServerSpec]:
    """Read the servers of a request.

    Args:
        params: The request's.
        cwd: Where servers that are started run; of launchers that is decided elsewhere.
        taken: Names of other servers; one that is taken gets a number.

    Raises:
        RequestError: One of them is wrong.
    """
    specs: list[ServerSpec] = []
    for index, server in enumerate(objects(params, _DECLARED)):
        place = f"{_DECLARED}[{index}]"
        name = text(server, "name").strip().replace("__", "_") or "server"
        name = unique_name(name, {*taken, *(spec.name for spec in specs)})
        try:
            specs.append(
                ServerSpec(name=name, target=_target(server, place, cwd), declared=_DECLARED)
            )
        except ConfigError as error:
            raise wrong(place, f"cannot be used: {error.message}") from None
    return specs


def _target(server: JsonObject, place: str, cwd: Path) -> Target:
    kind = server.get("type", "stdio")
    if kind in {"http", "sse"}:
        url = checked_url(text(server, "url"), f"{place}.url")
        transport = "http" if kind == "http" else "sse"
        return HttpTarget(url=url, headers=_pairs(server, "headers"), transport=transport)
    if kind != "stdio":
        raise wrong(f"{place}.type", "must be `http` or `sse`, or left out for a command")
    command = text(server, "command")
    if not command.strip():
        raise wrong(f"{place}.command", "is empty")
    args = texts(server, "args")
    where = None if is_launcher(command, args) else cwd
    return StdioTarget(command=command, args=args, env=_pairs(server, "env"), cwd=where)


def _pairs(server: JsonObject, name: str) -> dict[str, str]:
    return {text(pair, "name"): text(pair, "value") for pair in objects(server, name)}


def serve_stdio(
    opening: SessionOpening, *, watch: bool = False, handover: RestartState | None = None
) -> None:
    """Serve the client until it hangs up, or SIGTERM or SIGINT comes.

    A restart happens in this process and continues with the same client.

    Any other output during that time goes to standard error, since standard output carries
    messages only.

    Args:
        opening: Opens sessions.
        watch: Take changed cards as soon as they change.
        handover: What the program left when it began again; None where it did not.
    """
    own_input, own_output = take_stdio()
    left = anyio.run(partial(serve, opening, own_input, own_output, watch=watch, handover=handover))
    if left is not None:
        from fast_agent.commands.controller import restart

        sys.stdout.flush()
        os.dup2(own_input, 0)
        os.dup2(own_output, 1)
        left.leave(os.environ)
        restart()


async def serve(
    opening: SessionOpening,
    input_fd: int,
    output_fd: int,
    *,
    watch: bool = False,
    handover: RestartState | None = None,
) -> RestartState | None:
    """Serve a client over two descriptors until it hangs up, or a signal comes.

    Args:
        opening: Opens sessions.
        input_fd: Where messages come from.
        output_fd: Where messages go.
        watch: Take changed cards as soon as they change.
        handover: What the process before left that served the client; None where none did.

    Returns:
        What the next process needs after a restart.
    """
    loop = get_running_loop()
    server: AcpServer | None = None

    def on_reload(done: Reload) -> None:
        """Pass a reload on from the watcher's thread."""
        if server is not None:
            loop.call_soon_threadsafe(server.reloaded, done)

    with ExitStack() as stack:
        if watch:
            cards = stack.enter_context(opening.program.watch(on_reload))
            opening = replace(opening, watch=cards)
        begun, asked = (b"", 0) if handover is None else (handover.unread, handover.asked)
        peer = Peer(
            input_fd,
            output_fd,
            cancel_method="$/cancel_request",
            max_bytes=MAX_MESSAGE_BYTES,
            begun=begun,
            asked=asked,
            redact=opening.program.redact,
        )
        server = AcpServer(peer, opening, handover)
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(_end_at_signal, tasks.cancel_scope)
            await server.serve()
            tasks.cancel_scope.cancel()
        return server.left


async def _end_at_signal(scope: anyio.CancelScope) -> None:
    with anyio.open_signal_receiver(signal.SIGTERM, signal.SIGINT) as signals:
        async for _ in signals:
            scope.cancel()
            return
