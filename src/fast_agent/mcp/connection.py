"""The connection to one server: opened when it is needed, opened again when it was lost."""

from __future__ import annotations

import logging
from collections import deque
from contextlib import nullcontext
from functools import partial
from math import inf
from typing import TYPE_CHECKING, Literal, Protocol, TypeAlias, TypeVar

import anyio

from fast_agent.errors import FastAgentError, ToolError
from fast_agent.mcp.content import INSTRUCTIONS_LIMIT, block, one_line
from fast_agent.mcp.listing import (
    ListedPrompt,
    ListedResource,
    ListedTemplate,
    ListedTool,
    Listing,
    Page,
)
from fast_agent.mcp.open_calls import OpenCalls, TotalTimeError
from fast_agent.mcp.process import ServerLog, ServerProcess
from fast_agent.mcp.server import StdioTarget
from fast_agent.text.frozen import frozen
from fast_agent.text.garbage_collection import collection_paused

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Coroutine, Sequence

    from anyio.abc import TaskStatus
    from mcp.client import Client
    from mcp.types import CacheableResult

    from fast_agent.mcp.client_side import ClientSide
    from fast_agent.mcp.listing import (
        Fetch,
        ToolSizes,
    )
    from fast_agent.mcp.live_session import LiveSession
    from fast_agent.mcp.open_calls import OpenCall
    from fast_agent.mcp.server import ServerSpec
    from fast_agent.tools.human import Human

State: TypeAlias = Literal["unused", "connected", "failed", "lost", "closed"]

RETRY_SECONDS = 5.0
"""How long a failure to connect is believed before the next need tries again."""

LOSS_LIMIT = 3
LOSS_WINDOW_SECONDS = 60.0
"""A server lost so often in this time is given up until the time has passed."""

SHOWN_AFTER_SECONDS = 2.0
"""How long a server may block everything else before the wait is shown."""

RunSession: TypeAlias = "Callable[..., Coroutine[object, object, None]]"
"""Runs a session in a task; passes it to its `task_status` once it is open."""

_SETTLE_SECONDS = 0.5
_CONNECTION_CLOSED = -32000

T = TypeVar("T")

_log = logging.getLogger(__name__)


class Connection:
    """One server, shared by all agents of an app.

    Args:
        spec: The server.
        offered: What this client does for it.
        begin: Runs a session in a separate task and returns once it is open.
        clock: Seconds that never go back.
        sizes: Records how long its tools are; None records nothing.
    """

    def __init__(
        self,
        spec: ServerSpec,
        offered: ClientSide,
        begin: Callable[[RunSession], Awaitable[LiveSession]],
        clock: Callable[[], float],
        sizes: ToolSizes | None = None,
    ) -> None:
        self.spec = spec
        self.calls = OpenCalls()
        self.catalog = Catalog(self, clock, sizes)
        self._offered = offered
        self._begin = begin
        self._clock = clock
        self._opening = anyio.Lock()
        self._session: LiveSession | None = None
        self._failure: FastAgentError | None = None
        self._failed_at = 0.0
        self._losses: deque[float] = deque(maxlen=LOSS_LIMIT)
        self._closed = False

    @property
    def name(self) -> str:
        """The server's name."""
        return self.spec.name

    @property
    def state(self) -> State:
        """How it stands."""
        if self._closed:
            return "closed"
        if self._failure is not None:
            return "failed"
        if self._session is None:
            return "unused"
        return "lost" if self._session.ended else "connected"

    @property
    def failure(self) -> FastAgentError | None:
        """Why the last attempt to connect failed; None when it did not."""
        return self._failure

    @property
    def pid(self) -> int | None:
        """The process of a stdio server, while there is one."""
        return None if self._session is None else self._session.pid

    @property
    def log_end(self) -> tuple[str, ...]:
        """The last lines of a stdio server's standard error, made fit to be shown."""
        return () if self._session is None else self._session.log_end

    @property
    def notifies_changes(self) -> bool:
        """Whether lists stay valid until the server notifies of a change."""
        session = self._session
        return session is not None and (session.listening or not session.modern)

    async def open(self, meanwhile: Callable[[], None] | None = None) -> LiveSession:
        """Return the live session, opened now where there is none.

        Args:
            meanwhile: Called where it is opened, once that only waits for the server.

        Raises:
            ToolError: There is no session to be had; says why and what to do.
        """
        session = self._session
        if session is not None and not session.ended:
            return session
        async with self._opening:
            if self._closed:
                raise ToolError(f"server `{self.name}` is closed")
            session = self._session
            if session is not None and not session.ended:
                return session
            if session is not None:
                await self._watch_for_loss(session)
            if self._failure is not None and self._clock() - self._failed_at < RETRY_SECONDS:
                raise ToolError(self._failure.message, hint=self._failure.hint)
            seconds = self.spec.connect_timeout_seconds
            return await self._shown("the connection", seconds, partial(self._start, meanwhile))

    async def connect(self) -> None:
        """Open the session now, also where the last attempt failed a moment ago.

        Raises:
            ToolError: There is no session to be had; says why and what to do.
        """
        self._failure = None
        self._losses.clear()
        await self.open()

    async def disconnect(self) -> bool:
        """End the session; the next need opens another one.

        Returns:
            Whether there was one.
        """
        async with self._opening:
            session, self._session = self._session, None
            self._failure = None
            if session is None:
                return False
            session.end()
            await session.done.wait()
            return True

    async def _watch_for_loss(self, session: LiveSession) -> None:
        await session.done.wait()
        self._session = None
        self._losses.append(self._clock())
        _log.warning("server `%s` was lost: %s", self.name, session.describe_end())

    async def _start(self, meanwhile: Callable[[], None] | None) -> LiveSession:
        self._refuse_if_unstable()
        try:
            session = await self._begin(partial(self._run, meanwhile))
        except FastAgentError as problem:
            self._failure = problem
            self._failed_at = self._clock()
            raise
        self._failure = None
        self._session = session
        self.catalog.all_changed()
        return session

    async def _run(
        self, meanwhile: Callable[[], None] | None, *, task_status: TaskStatus[LiveSession]
    ) -> None:
        """Run a session, from the start of the server's process to its end."""
        target, log = self.spec.target, ServerLog(self.name)
        process = None
        if isinstance(target, StdioTarget):
            process = ServerProcess(self.spec, target, log)
        session: LiveSession | None = None
        try:
            async with nullcontext() if process is None else process.running():
                # The SDK costs most of a second, in which a process starts up by itself; an agent
                # without servers never pays for it.
                with collection_paused():
                    from fast_agent.mcp.live_session import LiveSession

                if meanwhile is not None:
                    meanwhile()
                session = LiveSession(
                    self.spec,
                    self._offered,
                    self.calls,
                    self.catalog,
                    server_log=log,
                    process=process,
                )
                await session.run(task_status=task_status)
        except Exception as problem:  # what opens a session: nothing is raised once it is open
            if session is None:
                raise
            raise session.not_opened(problem) from problem
        finally:
            log.close()
            if session is not None:
                session.done.set()

    def _refuse_if_unstable(self) -> None:
        if len(self._losses) < LOSS_LIMIT:
            return
        if self._clock() - self._losses[0] < LOSS_WINDOW_SECONDS:
            raise ToolError(
                f"server `{self.name}` was lost {LOSS_LIMIT} times "
                f"within {LOSS_WINDOW_SECONDS:g} s and is not started again for now",
                hint="find out why it stops; its last output is in the log",
            )
        self._losses.clear()

    async def instructions(self) -> str:
        """Return the server's instructions: its own text, untrusted, bounded.

        Raises:
            ToolError: The server cannot be reached.
        """
        session = await self.open()
        return block(session.client.instructions or "", INSTRUCTIONS_LIMIT)

    async def request(
        self,
        method: str,
        send: Callable[[Client, OpenCall], Awaitable[T]],
        *,
        repeatable: bool,
        agent_name: str | None = None,
        human: Human | None = None,
    ) -> T:
        """Make one request; it may take `read_timeout_seconds`, and longer where progress comes.

        Args:
            method: The protocol's method, for messages.
            send: Sends it by the SDK's client and awaits the answer.
            repeatable: Send it once more when the connection was lost on the way.
            agent_name: The agent it is for.
            human: Asks the user it is for, where the conversation has its own.

        Raises:
            ToolError: There is no connection, no answer in time, or an error for an answer.
        """
        spec = self.spec
        limits = _Limits(
            "read_timeout_seconds",
            spec.read_timeout_seconds,
            max(spec.call_timeout_seconds, spec.read_timeout_seconds),
        )

        async def attempt() -> T:
            return await self._attempt(method, send, limits, agent_name, human)

        return await _with_retry(attempt, repeatable=repeatable)

    async def list_page(self, method: str, send: Callable[[Client], Awaitable[T]]) -> T:
        """Ask for a page of a list; it may take `list_timeout_seconds`, and a wait is shown.

        An agent's turn waits for the lists of its servers before it says a word.

        Args:
            method: The protocol's method, for messages.
            send: Sends it by the SDK's client and awaits the answer.

        Raises:
            ToolError: There is no connection, no answer in time, or an error for an answer.
        """
        seconds = self.spec.list_timeout_seconds
        limits = _Limits("list_timeout_seconds", seconds, seconds)

        async def attempt() -> T:
            return await self._attempt(method, lambda client, _: send(client), limits)

        async def ask() -> T:
            return await _with_retry(attempt, repeatable=True)

        await self.open()  # its wait is shown as that for the connection
        return await self._shown(f"`{method}`", seconds, ask)

    async def _shown(self, what: str, seconds: float, act: Callable[[], Awaitable[T]]) -> T:
        """Run an action, and show the wait if it takes a while."""
        results: list[T] = []
        failure: Exception | None = None
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self._report_wait, what, seconds)
            try:
                results.append(await act())
            except Exception as problem:  # noqa: BLE001 - raised below, not as a group
                failure = problem
            tasks.cancel_scope.cancel()
        if failure is not None:
            raise failure
        return results[0]

    async def _report_wait(self, what: str, seconds: float) -> None:
        await anyio.sleep(SHOWN_AFTER_SECONDS)
        _log.warning("still waiting for server `%s`: %s, %g s at most", self.name, what, seconds)

    async def _attempt(
        self,
        method: str,
        send: Callable[[Client, OpenCall], Awaitable[T]],
        limits: _Limits,
        agent_name: str | None = None,
        human: Human | None = None,
    ) -> T:
        session = await self.open()
        call: OpenCall | None = None
        try:
            with self.calls.waiting(
                agent_name, limits.seconds, human, total_seconds=limits.total_seconds
            ) as call:
                return await self._send(session, send, call)
        except TotalTimeError as problem:
            raise ToolError(
                f"server `{self.name}` did not end `{method}` within {limits.total_seconds:g} s, "
                "although it reported progress",
                hint="raise the server's `call_timeout_seconds` if it needs longer",
            ) from problem
        except TimeoutError as problem:
            raise ToolError(
                f"server `{self.name}` did not answer `{method}` within {limits.seconds:g} s",
                hint=f"raise the server's `{limits.setting}` if it needs longer",
            ) from problem
        except FastAgentError:
            raise
        except Exception as problem:  # the boundary of a server request
            raise await self._failure_of(problem, session, call, method) from problem

    async def _failure_of(
        self, problem: Exception, session: LiveSession, call: OpenCall | None, method: str
    ) -> ToolError:
        """Return the error of a request that failed; a session that is gone is ended for it."""
        from fast_agent.mcp.live_session import refusal

        refused = refusal(problem)
        if refused is None:
            _log.error("server `%s`: `%s` failed", self.name, method, exc_info=problem)
            return ToolError(f"server `{self.name}`: `{method}` failed: {one_line(str(problem))}")
        status = None if call is None else call.http_status
        # Only an answer can say so; a lost connection leaves open what the server did. The
        # reference server answers with the code of a lost connection, so the status decides.
        forgotten = session.forgotten and (status == 404 or not refused.closed)
        # Servers that keep sessions in memory answer 400 after a restart, then to all requests.
        if not forgotten and status == 400 and not session.modern:
            forgotten = not await session.answers_ping()
        if forgotten:
            session.end()
        if refused.closed:
            with anyio.move_on_after(_SETTLE_SECONDS):
                await session.wait_ending()
        if session.ended:
            with anyio.move_on_after(_SETTLE_SECONDS):
                await session.done.wait()
            return ConnectionLostError(
                f"server `{self.name}` was lost during `{method}`: {session.describe_end()}",
                unsent=forgotten,
            )
        wanted = session.refused_authorization
        if wanted is not None and status in (401, 403):
            return ToolError(wanted.message, hint=wanted.hint)
        text = f"server `{self.name}`: `{method}` {refused.text}"
        return ToolError(text, hint=refused.hint)

    @staticmethod
    async def _send(
        session: LiveSession, send: Callable[[Client, OpenCall], Awaitable[T]], call: OpenCall
    ) -> T:
        from mcp.shared.exceptions import MCPError

        from fast_agent.mcp.live_session import refusal

        try:
            return await send(session.client, call)
        except MCPError as problem:
            refused = refusal(problem)
            if refused is None or not refused.addresses:
                raise
            # The server waits for the user to have opened an address, then for the same request.
            if not await session.requests.open_addresses(refused.addresses):
                raise
        return await send(session.client, call)

    async def notify_roots_changed(self) -> None:
        """Notify a server of the handshake protocols of changed roots; others ask each time."""
        session = self._session
        if session is None or session.ended or session.modern or not self.spec.roots:
            return
        from mcp.types import RootsListChangedNotification

        await session.client.session.send_notification(RootsListChangedNotification())

    async def close(self) -> None:
        """End the session and wait until nothing of it is left; safe to call twice."""
        self._closed = True
        session = self._session
        if session is not None:
            session.end()
            await session.done.wait()


@frozen
class _Limits:
    """How long a request may take: without a sign of the server by `setting`, and in all."""

    setting: str
    seconds: float
    total_seconds: float


async def _with_retry(attempt: Callable[[], Awaitable[T]], *, repeatable: bool) -> T:
    """Make a request, and once more where the connection was lost and that does no harm."""
    try:
        return await attempt()
    except ConnectionLostError as lost:
        if not (repeatable or lost.unsent):
            raise
    return await attempt()


class ConnectionLostError(ToolError):
    """The connection ended while a request waited; `unsent` says that the server never took it."""

    def __init__(self, message: str, *, unsent: bool) -> None:
        super().__init__(message)
        self.unsent = unsent


R = TypeVar("R", bound="CacheableResult")


class ListingSource(Protocol):
    """What lists are asked of: a `Connection`."""

    @property
    def spec(self) -> ServerSpec:
        """The server."""
        ...

    @property
    def notifies_changes(self) -> bool:
        """Whether lists stay valid until the server notifies of a change."""
        ...

    async def open(self) -> LiveSession:
        """Return the live session; raises ToolError if there is none."""
        ...

    async def list_page(self, method: str, send: Callable[[Client], Awaitable[R]]) -> R:
        """Ask for a page of a list; raises ToolError where there is no answer."""
        ...


class Catalog:
    """The four lists of a server; each is fetched when needed and kept until it changes.

    Args:
        connection: The server.
        clock: Seconds that never go back.
        sizes: Records how long its tools are; None records nothing.
    """

    def __init__(
        self, connection: ListingSource, clock: Callable[[], float], sizes: ToolSizes | None = None
    ) -> None:
        self._connection = connection
        self._sizes = sizes
        self._resource_changes = 0
        self._compared: Sequence[ListedTool] | None = None
        self._tools = self._listing("tools/list", self._tool_page, clock)
        self._resources = self._listing("resources/list", self._resource_page, clock)
        self._templates = self._listing("resources/templates/list", self._template_page, clock)
        self._prompts = self._listing("prompts/list", self._prompt_page, clock)
        self.no_skills_until = -1.0
        """Until when a list of skills that could not be had counts as empty, for all agents."""

    async def tools(self) -> tuple[ListedTool, ...]:
        """Return the tools.

        Raises:
            ToolError: The server cannot be reached, or its pages do not end.
        """
        listed = await self._tools.items() if await self._has("tools") else ()
        if listed is not self._compared:
            self._compared = listed
            await self._compare(listed)
        return listed

    async def _compare(self, listed: Sequence[ListedTool]) -> None:
        """Report once when a server of a project offers other tools than when it was last used."""
        from anyio.to_thread import run_sync

        spec = self._connection.spec
        if self._sizes is not None:
            await run_sync(self._sizes.remember, spec, listed)
        if spec.grant is None:
            return
        digests = {tool.name: tool.digest for tool in listed}
        change = await run_sync(spec.grant.tools_change, spec.name, digests)
        if change is not None:
            _log.warning(
                "server `%s` of `%s` offers other tools than before: %s",
                spec.name,
                spec.grant.root,
                change,
                extra={"is_security": True},  # shown under `--quiet` too: it is reported only once
            )

    async def resources(self) -> tuple[ListedResource, ...]:
        """Return the resources; raises as `tools` does."""
        return await self._resources.items() if await self._has("resources") else ()

    async def templates(self) -> tuple[ListedTemplate, ...]:
        """Return the resource templates; raises as `tools` does."""
        return await self._templates.items() if await self._has("resources") else ()

    async def prompts(self) -> tuple[ListedPrompt, ...]:
        """Return the prompts; raises as `tools` does."""
        return await self._prompts.items() if await self._has("prompts") else ()

    def tools_changed(self) -> None:
        """Fetch the tools again at the next use."""
        self._tools.changed()

    @property
    def resource_changes(self) -> int:
        """How often the resources changed or may have; skills of the server change with them."""
        return self._resource_changes

    def resources_changed(self) -> None:
        """Fetch the resources and templates again at the next use."""
        self._resource_changes += 1
        self._resources.changed()
        self._templates.changed()

    def prompts_changed(self) -> None:
        """Fetch the prompts again at the next use."""
        self._prompts.changed()

    def all_changed(self) -> None:
        """Fetch everything again at the next use, as after a new connection."""
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
        result = await self._ask("tools/list", lambda client: client.list_tools(cursor=cursor))
        items = [ListedTool.of(tool) for tool in result.tools]
        return self._page(items, result.next_cursor, result)

    async def _resource_page(self, cursor: str | None) -> Page[ListedResource]:
        result = await self._ask(
            "resources/list", lambda client: client.list_resources(cursor=cursor)
        )
        items = [ListedResource.of(resource) for resource in result.resources]
        return self._page(items, result.next_cursor, result)

    async def _template_page(self, cursor: str | None) -> Page[ListedTemplate]:
        result = await self._ask(
            "resources/templates/list",
            lambda client: client.list_resource_templates(cursor=cursor),
        )
        items = [ListedTemplate.of(template) for template in result.resource_templates]
        return self._page(items, result.next_cursor, result)

    async def _prompt_page(self, cursor: str | None) -> Page[ListedPrompt]:
        result = await self._ask("prompts/list", lambda client: client.list_prompts(cursor=cursor))
        items = [ListedPrompt.of(prompt) for prompt in result.prompts]
        return self._page(items, result.next_cursor, result)

    async def _ask(self, method: str, send: Callable[[Client], Awaitable[R]]) -> R:
        return await self._connection.list_page(method, send)

    def _page(self, items: Sequence[T], cursor: str | None, result: CacheableResult) -> Page[T]:
        # 2026-07-28 says how long a list stays fresh. Before that, and with notifications by a
        # subscription, it stays until a change is notified.
        notifies = self._connection.notifies_changes
        return Page(items, cursor, inf if notifies else result.ttl_ms / 1000)
