"""One live session with a server, from its opening to its end, in a separate task.

The SDK's context managers hold task groups, so they have to be entered and left in one task. That
task runs `LiveSession.run`; all other tasks talk to the session through it.
"""

from __future__ import annotations

import logging
from contextlib import asynccontextmanager
from math import inf
from typing import TYPE_CHECKING, Any, Protocol, Self, cast

import anyio
import httpx2
from anyio import EndOfStream
from mcp import InputRequiredRoundsExceededError
from mcp.client import Client
from mcp.client.extension import advertise
from mcp.client.sse import sse_client
from mcp.client.streamable_http import streamable_http_client
from mcp.client.subscriptions import (
    PromptsListChanged,
    ResourcesListChanged,
    SubscriptionLost,
    ToolsListChanged,
)
from mcp.shared.exceptions import MCPError
from mcp.types import (
    CONNECTION_CLOSED,
    METHOD_NOT_FOUND,
    PARSE_ERROR,
    URL_ELICITATION_REQUIRED,
    ElicitationRequiredErrorData,
    ElicitRequestURLParams,
    ErrorData,
    Implementation,
    PromptListChangedNotification,
    ResourceListChangedNotification,
    ToolListChangedNotification,
)
from mcp.types.version import MODERN_PROTOCOL_VERSIONS
from pydantic import ValidationError

from fast_agent.errors import FastAgentError, ToolError
from fast_agent.mcp.client_side import ServerRequests
from fast_agent.mcp.content import ASKS_AS_BEFORE, asks_as_before, one_line
from fast_agent.mcp.message_bounds import ENCODINGS, MESSAGE_LIMIT, MessageBounds
from fast_agent.mcp.oauth.authorization import same_origin
from fast_agent.mcp.oauth.bearer import BearerAuth
from fast_agent.mcp.open_calls import CURRENT_CALL
from fast_agent.mcp.server import HttpTarget, StdioTarget
from fast_agent.mcp.stdio import StdioTransport
from fast_agent.models.http_client import client_options
from fast_agent.resources.skill_client.entry import EXTENSION
from fast_agent.text.frozen import frozen
from fast_agent.text.redaction import redacted
from fast_agent.text.web_failure import system_reason, through_proxy, web_hint
from fast_agent.version import __version__

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable
    from contextvars import Context
    from types import TracebackType

    from anyio.abc import TaskStatus
    from mcp.client._transport import ReadStream, TransportStreams
    from mcp.client.session import IncomingMessage
    from mcp.client.subscriptions import ServerEvent
    from mcp.shared.message import SessionMessage

    from fast_agent.mcp.client_side import ClientSide
    from fast_agent.mcp.open_calls import OpenCalls
    from fast_agent.mcp.process import ServerLog, ServerProcess
    from fast_agent.mcp.server import ServerSpec
    from fast_agent.text.json_value import JsonValue


CLOSE_SECONDS = 8.0
"""Longest wait for a graceful end; ending a stubborn process tree takes most of it."""

_LISTEN_AGAIN_SECONDS = 1.0
_LISTEN_AGAIN_MOST = 30.0
_PING_SECONDS = 10.0
_NEEDS_TOKEN = frozenset({401, 403})
_NOT_STREAMABLE = frozenset({400, 404, 405})
"""How servers that speak only the transport of events answer the first message of the newer one."""
_EVENTS_SECONDS = 10.0
"""Longest wait for the transport of events where it is only tried."""

_log = logging.getLogger(__name__)


class Changes(Protocol):
    """Notified when a list of the server changed."""

    def tools_changed(self) -> None:
        """The list of tools changed."""
        ...

    def resources_changed(self) -> None:
        """The list of resources or of resource templates changed."""
        ...

    def prompts_changed(self) -> None:
        """The list of prompts changed."""
        ...


class _NoAnswerError(Exception):
    """The session was not open in time."""


class LiveSession:
    """One session.

    Args:
        spec: The server.
        offered: What this client does for it.
        calls: The requests open at it.
        changes: Notified of changed lists.
        server_log: What its messages are logged to.
        process: The process of a stdio server, which runs for as long as the session.
    """

    def __init__(
        self,
        spec: ServerSpec,
        offered: ClientSide,
        calls: OpenCalls,
        changes: Changes,
        *,
        server_log: ServerLog,
        process: ServerProcess | None = None,
    ) -> None:
        self._spec = spec
        self.requests = ServerRequests(spec, offered, calls)
        self._changes = changes
        self._server_log = server_log
        self._client: Client | None = None
        self._process = process
        self._ending = anyio.Event()
        self._http_status: int | None = None
        self._url = spec.target.url if isinstance(spec.target, HttpTarget) else ""
        self._uses_events = isinstance(spec.target, HttpTarget) and spec.target.transport == "sse"
        self.done = anyio.Event()
        """Set when nothing of the session is left, its process included."""
        self.listening = False
        """Whether the server notifies of changed lists by a subscription."""
        self.forgotten = False
        """Whether the server has forgotten the session, so that it takes no more requests."""
        self._auth: BearerAuth | None = None
        self.why_ended: str | None = None
        """What ended it, when it was not closed from here."""

    @property
    def client(self) -> Client:
        """The SDK's client, once `run` has started."""
        if self._client is None:
            raise RuntimeError("the session is not open")
        return self._client

    @property
    def ended(self) -> bool:
        """Whether it is over or about to be."""
        return self._ending.is_set()

    @property
    def modern(self) -> bool:
        """Whether it speaks 2026-07-28 or later, where the handshake is gone."""
        return self.client.protocol_version in MODERN_PROTOCOL_VERSIONS

    @property
    def pid(self) -> int | None:
        """The process of a stdio server."""
        return None if self._process is None else self._process.pid

    @property
    def refused_authorization(self) -> ToolError | None:
        """Why the server wants another authorization than requests have; None where it does not."""
        return None if self._auth is None else self._auth.problem

    async def answers_ping(self) -> bool:
        """Return whether the server takes a request that is right in any session it knows."""
        with anyio.move_on_after(_PING_SECONDS):
            try:
                await self.client.session.send_ping()
            except MCPError as problem:
                return problem.code == METHOD_NOT_FOUND
            return True
        return True

    def end(self) -> None:
        """Ask the session to end; `done` is set when it has."""
        self._ending.set()

    async def wait_ending(self) -> None:
        """Wait until the session is about to end."""
        await self._ending.wait()

    async def run(self, *, task_status: TaskStatus[LiveSession]) -> None:
        """Open the session, report it as started, and keep it until it ends.

        Raises:
            Exception: It could not be opened; `not_opened` says why, once its process has ended.
        """
        seconds = self._spec.connect_timeout_seconds
        try:
            await self._run(task_status, seconds)
        except Exception as problem:
            status = self._http_status
            if self._uses_events or status not in _NOT_STREAMABLE:
                raise
            self._uses_events = True
            self._ending = anyio.Event()  # which the end of the first attempt may have set
            try:
                await self._run(task_status, min(seconds, _EVENTS_SECONDS))
            except Exception:
                if self._http_status in _NEEDS_TOKEN:
                    raise
                self._http_status = status
                raise problem from None
        finally:
            self._ending.set()

    async def _run(self, task_status: TaskStatus[LiveSession], seconds: float) -> None:
        started = False
        with anyio.CancelScope(deadline=anyio.current_time() + seconds) as scope:
            try:
                async with self._opened() as client:
                    self._client = client
                    scope.deadline = inf
                    started = True
                    task_status.started(self)
                    await self._live(client)
                    scope.deadline = anyio.current_time() + CLOSE_SECONDS
            except Exception as problem:  # the boundary of the session's task
                if not started:
                    raise
                self.why_ended = self._problem_text(problem)
                _log.warning(
                    "server `%s`: the connection ended: %s", self._spec.name, self.why_ended
                )
        if scope.cancelled_caught and not started:
            raise _NoAnswerError

    @asynccontextmanager
    async def _opened(self) -> AsyncGenerator[Client]:
        client = Client(
            self._transport(),
            client_info=Implementation(name="fast-agent", version=__version__),
            message_handler=self._on_message,
            logging_callback=self._server_log.receive,
            log_level="info",
            mode=self._protocol(),
            cache=None,
            extensions=(advertise(EXTENSION),),
            **self.requests.options(),
        )
        async with client:
            yield client

    def _protocol(self) -> str:
        """Return which protocol to speak; the transport of events has the older one only."""
        return "legacy" if self._uses_events else self._spec.protocol

    @asynccontextmanager
    async def _transport(self) -> AsyncGenerator[TransportStreams]:
        target = self._spec.target
        if isinstance(target, HttpTarget):
            self._spec.check_start()
            transport = self._http(target)
        else:
            assert self._process is not None  # noqa: S101 - it is started before its session
            transport = StdioTransport(self._process).streams()
        async with transport as (incoming, outgoing):
            redact = None if self._auth is None else self._auth.redact
            yield WatchedStream(incoming, self._ending.set, redact), outgoing

    @asynccontextmanager
    async def _http(self, target: HttpTarget) -> AsyncGenerator[TransportStreams]:
        self._auth = self._authorization(target)
        http = httpx2.AsyncClient(
            **client_options(),
            headers={"accept-encoding": ENCODINGS} | dict(target.headers),
            auth=self._auth,
            # How long an answer may take is decided for each request, not by the socket.
            timeout=httpx2.Timeout(30.0, read=None),
            event_hooks={
                "response": [self._on_response, MessageBounds(self._spec.name).apply_to_response]
            },
            transport=self._guard(),
            trust_env=self._spec.grant is None,
        )
        if self._uses_events:

            def client(*_: object, **__: object) -> httpx2.AsyncClient:
                return http  # the one above has what the SDK would set

            async with sse_client(target.url, httpx_client_factory=client) as streams:
                yield streams
            return
        async with (
            http,
            streamable_http_client(
                target.url, http_client=http, max_sse_event_size=MESSAGE_LIMIT
            ) as streams,
        ):
            yield streams

    def _authorization(self, target: HttpTarget) -> BearerAuth | None:
        """Return what sends the token of the server; None where it gets none."""
        authorizations = self.requests.authorizations
        if authorizations is None or self._spec.lacks_oauth or target.oauth.enabled is False:
            return None
        return BearerAuth(self._spec.name, target.url, authorizations, self._spec.login_command())

    def _guard(self) -> httpx2.AsyncBaseTransport | None:
        grant = self._spec.grant
        if grant is None:
            return None
        from fast_agent.mcp.guarded_http import GuardedTransport

        return GuardedTransport(grant.check_connect)

    async def _live(self, client: Client) -> None:
        """Stay until the end, listening for changed lists where that takes a subscription."""
        async with anyio.create_task_group() as tasks:
            if self.modern and self._notifies_changes(client):
                tasks.start_soon(self._listen, client)
            await self._ending.wait()
            tasks.cancel_scope.cancel()

    @staticmethod
    def _notifies_changes(client: Client) -> bool:
        has = client.server_capabilities
        return any(
            part is not None and part.list_changed
            for part in (has.tools, has.resources, has.prompts)
        )

    async def _listen(self, client: Client) -> None:
        has = client.server_capabilities
        wait = _LISTEN_AGAIN_SECONDS
        while True:
            try:
                async with client.listen(
                    tools_list_changed=bool(has.tools and has.tools.list_changed),
                    resources_list_changed=bool(has.resources and has.resources.list_changed),
                    prompts_list_changed=bool(has.prompts and has.prompts.list_changed),
                ) as subscription:
                    # Changes before the subscription started were not notified.
                    self._changed_all()
                    self.listening = True
                    wait = _LISTEN_AGAIN_SECONDS
                    async for event in subscription:
                        self._on_event(event)
            except SubscriptionLost:
                _log.debug("server `%s`: the subscription was lost", self._spec.name)
            except (MCPError, TimeoutError) as problem:
                _log.debug("server `%s` offers no subscription: %s", self._spec.name, problem)
                return
            finally:
                self.listening = False
            await anyio.sleep(wait)
            wait = min(2 * wait, _LISTEN_AGAIN_MOST)

    def _on_event(self, event: ServerEvent) -> None:
        match event:
            case ToolsListChanged():
                self._changes.tools_changed()
            case ResourcesListChanged():
                self._changes.resources_changed()
            case PromptsListChanged():
                self._changes.prompts_changed()
            case _:
                pass

    def _changed_all(self) -> None:
        self._changes.tools_changed()
        self._changes.resources_changed()
        self._changes.prompts_changed()

    async def _on_message(self, message: IncomingMessage) -> None:
        match message:
            case ToolListChangedNotification():
                self._changes.tools_changed()
            case ResourceListChangedNotification():
                self._changes.resources_changed()
            case PromptListChangedNotification():
                self._changes.prompts_changed()
            case Exception():
                self._server_log.write(logging.WARNING, str(message))
            case _:
                pass

    async def _on_response(self, response: httpx2.Response) -> None:
        if not same_origin(str(response.request.url), self._url):
            return  # the answer of an authorization server
        self._http_status = response.status_code
        call = CURRENT_CALL.get()
        if call is not None:
            call.http_status = response.status_code
        # What the protocol says of this status: the server has forgotten the session.
        if response.status_code == 404 and "mcp-session-id" in response.request.headers:
            self.forgotten = True

    def not_opened(self, problem: Exception) -> ToolError:
        """Return why it could not be opened, for a user.

        Args:
            problem: What `run` raised.
        """
        cause = _first(problem)
        if isinstance(cause, _NoAnswerError):
            return ToolError(
                f"server `{self._spec.name}`: no answer from `{self._spec.target}` "
                f"within {self._spec.connect_timeout_seconds:g} s{self._last_words()}",
                hint="raise the server's connect timeout, or find out what delays it",
            )
        if isinstance(cause, ToolError):
            return cause
        if isinstance(cause, FastAgentError):
            return ToolError(cause.message, hint=cause.hint)
        refused = self.refused_authorization
        if refused is not None and self._http_status in _NEEDS_TOKEN:
            return refused
        name, target = self._spec.name, self._spec.target
        if self._process is not None:
            ending = self._process.ending or "it closed its output"
            message = f"server `{name}`: `{target}` stopped before it was ready ({ending})"
            if isinstance(cause, MCPError) and self._process.ending is None:
                message = f"server `{name}`: `{target}` refused: {one_line(cause.message)}"
            return ToolError(
                message + self._last_words(),
                hint=_by_hand(self._spec),
            )
        reason, proxy = self._problem_text(problem), through_proxy(self._url)
        return ToolError(
            f"server `{name}`: no MCP server answers at `{target}`{proxy}: {reason}",
            hint=self._http_hint(reason),
        )

    def _http_hint(self, reason: str) -> str:
        if self._http_status in _NEEDS_TOKEN and self._spec.lacks_oauth:
            return (
                "write `oauth: true` for the server in the configuration and approve the project"
                f" to use your authorization (`{self._spec.login_command()}`); or give credentials"
                " in `headers`"
            )
        if self._http_status in _NEEDS_TOKEN:
            return "give the server's credentials in its `headers`"
        remedy = "check the address, and that the server runs"
        return remedy if self._http_status is not None else web_hint(reason, self._url, remedy)

    def _problem_text(self, problem: Exception) -> str:
        cause = _first(problem)
        if isinstance(cause, MCPError):
            text = one_line(cause.message)
            if self._http_status is not None and self._http_status >= 400:
                return f"HTTP status {self._http_status}"
            return text
        if isinstance(cause, httpx2.HTTPStatusError):
            return f"HTTP status {cause.response.status_code}"
        if isinstance(cause, httpx2.ConnectError):
            return system_reason(cause) or "the connection could not be made"
        if isinstance(cause, ValidationError):
            return "its answer violates the protocol"
        return one_line(str(cause)) or type(cause).__name__

    def describe_end(self) -> str:
        """Describe how it ended, for a user."""
        if self._process is not None:
            return f"{self._process.ending or 'it closed its output'}{self._last_words()}"
        return self.why_ended or "the connection closed"

    @property
    def log_end(self) -> tuple[str, ...]:
        """The last lines of its standard error, made fit to be shown."""
        return () if self._process is None else self._process.last_words

    def _last_words(self) -> str:
        words = self.log_end
        if not words:
            return ""
        return "; its last output was:\n  " + "\n  ".join(words)


def _first(problem: BaseException) -> BaseException:
    """Find the first real cause in nested groups."""
    cause = problem
    while isinstance(cause, BaseExceptionGroup):
        group = cast("BaseExceptionGroup[BaseException]", cause)
        cause = group.exceptions[0]
    return cause


def _by_hand(spec: ServerSpec) -> str:
    """Describe how to find out why a program stops; a launcher may not start where users expect."""
    if not spec.is_moved or not isinstance(spec.target, StdioTarget):
        return "run the command by hand to see what it says"
    return (
        f"run the command by hand in `{spec.target.cwd}`, where launchers start; in the workspace "
        "they start with `cwd: .`, or once the project is approved or your own"
    )


class WatchedStream:
    """The stream of a transport, which notifies of its end and hides tokens in messages.

    Args:
        inner: The transport's stream.
        on_end: Called when nothing more comes.
        redact: Hides the tokens of the server, which may repeat them; None hides none.
    """

    def __init__(
        self,
        inner: ReadStream[SessionMessage | Exception],
        on_end: Callable[[], None],
        redact: Callable[[str], str] | None = None,
    ) -> None:
        self._inner = inner
        self._on_end = on_end
        self._redact = redact

    @property
    def last_context(self) -> Context | None:
        """The context of the sender, where the stream carries one."""
        context: Any = getattr(self._inner, "last_context", None)
        return context

    async def receive(self) -> SessionMessage | Exception:
        """Receive the next message."""
        try:
            return self._hidden(await self._inner.receive())
        except EndOfStream:
            self._on_end()
            raise

    def _hidden(self, message: SessionMessage | Exception) -> SessionMessage | Exception:
        redact, held = self._redact, getattr(message, "message", None)
        if redact is None or held is None:
            return message
        # What is repeated would be in the history of the agent, in its session and recordings.
        for part in ("result", "error", "params"):
            value = getattr(held, part, None)
            if isinstance(value, dict):
                setattr(held, part, redacted(cast("JsonValue", value), redact))
            elif isinstance(value, ErrorData):
                value.message = redact(value.message)
                value.data = redacted(cast("JsonValue", value.data), redact)
        return message

    async def aclose(self) -> None:
        """Close the stream."""
        await self._inner.aclose()

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> SessionMessage | Exception:
        try:
            return self._hidden(await self._inner.__anext__())
        except StopAsyncIteration:
            self._on_end()
            raise

    async def __aenter__(self) -> Self:
        await self._inner.__aenter__()
        return self

    async def __aexit__(
        self,
        exc_type: type[BaseException] | None,
        exc_val: BaseException | None,
        exc_tb: TracebackType | None,
    ) -> bool | None:
        return await self._inner.__aexit__(exc_type, exc_val, exc_tb)


_UNREADABLE = "Failed to parse"
"""How transports report an answer they cannot read, with the code of a parse error."""


@frozen
class Refusal:
    """Why there is no result.

    Args:
        text: The end of a sentence that starts with the method.
        closed: The connection may have ended.
        addresses: Addresses a user has to open before the request can be served.
        hint: What may help; None where nothing is known to.
    """

    text: str
    closed: bool = False
    addresses: tuple[ElicitRequestURLParams, ...] = ()
    hint: str | None = None


def refusal(problem: Exception) -> Refusal | None:
    """Read an exception of the SDK; None for one that is not an answer of a server."""
    match problem:
        case MCPError():
            closed = problem.code == CONNECTION_CLOSED
            if problem.code == PARSE_ERROR and problem.message.startswith(_UNREADABLE):
                said = problem.message.partition(": ")[2]
                return Refusal(f"got an answer that cannot be decoded: {one_line(said)}")
            return Refusal(
                f"{'got no answer' if closed else 'was refused'}: {one_line(problem.message)}",
                closed=closed,
                addresses=_addresses(problem),
                hint=ASKS_AS_BEFORE if asks_as_before(problem.message) else None,
            )
        case ValidationError():
            return Refusal("got an answer that violates the protocol")
        case InputRequiredRoundsExceededError():
            return Refusal("never finished: the server kept asking for more")
        case RuntimeError():
            # The SDK's way to say that structured content does not fit the output schema.
            return Refusal(f"got an invalid answer: {one_line(str(problem))}")
        case _:
            return None


def _addresses(problem: MCPError) -> tuple[ElicitRequestURLParams, ...]:
    if problem.code != URL_ELICITATION_REQUIRED:
        return ()
    try:
        data = ElicitationRequiredErrorData.model_validate(problem.error.data)
    except ValidationError:
        return ()
    return tuple(data.elicitations)
