"""Opening: making agents live for one session of a client."""

from __future__ import annotations

from asyncio import get_running_loop
from collections import deque
from dataclasses import field, replace
from functools import partial
from logging import getLogger
from threading import Lock
from typing import TYPE_CHECKING, Final

import anyio

from fast_agent.errors import FastAgentError, SessionError
from fast_agent.sessions.event import TurnBegan
from fast_agent.text.frozen import frozen

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterator
    from contextlib import AbstractAsyncContextManager
    from pathlib import Path

    from anyio.abc import TaskStatus

    from fast_agent.acp.client_tools import ClientSide
    from fast_agent.acp.live_session import LiveSession
    from fast_agent.acp.project_approval import ProjectApproval
    from fast_agent.acp.remembered import RememberedPermissions
    from fast_agent.acp.updates import Updates
    from fast_agent.agent_app import AgentApp
    from fast_agent.agents.runtime_options import RuntimeOptions
    from fast_agent.cards.agent_config import FileAccess
    from fast_agent.commands.controller import ConversationController
    from fast_agent.mcp.server import ServerSpec
    from fast_agent.messages.history import History
    from fast_agent.program.program import Program
    from fast_agent.registry.watch import CardWatch
    from fast_agent.rpc.peer import Peer
    from fast_agent.sessions.cumulative import CumulativeTranscript
    from fast_agent.sessions.event import HistoryCompacted, SessionEvent
    from fast_agent.sessions.journal import Journal
    from fast_agent.sessions.session import Session
    from fast_agent.sessions.store import SessionStore
    from fast_agent.steps.steps import Steps

log = getLogger(__name__)


_RETRY_SECONDS: Final = 0.005


@frozen(kw_only=True)
class SessionRequest:
    """What a client asks for when it opens a session.

    Args:
        peer: The client.
        client: What it offers.
        cwd: The session's directory.
        servers: MCP servers its agents get.
        replay: Send the client the messages so far.
    """

    peer: Peer
    client: ClientSide
    cwd: Path
    servers: tuple[ServerSpec, ...] = ()
    replay: bool = False


@frozen(kw_only=True)
class SessionOpening:
    """Opens sessions: each has its own live agents, servers and directory.

    Args:
        program: The agents, loaded.
        remembered: What its user allows for good.
        new_id: Gives ids of sessions that are not kept.
        agent: The agent to talk to first; None is the default one.
        model: The model of every agent; None leaves it to cards and configuration.
        shell: Whether every agent may run commands.
        files: What every agent may do with files of the workspace; None leaves it to the cards.
        fetch: Whether every agent may fetch web pages.
        trust_cards: Whether cards that a smart agent reaches may run code.
        store: Gives where sessions are kept; None where they are not.
        watch: What watches the cards, or None.
    """

    program: Program
    remembered: RememberedPermissions
    new_id: Callable[[], str]
    agent: str | None = None
    model: str | None = None
    shell: bool = False
    files: FileAccess | None = None
    fetch: bool = False
    trust_cards: bool = False
    store: Callable[[], SessionStore] | None = None
    watch: CardWatch | None = None
    asking: anyio.Lock = field(default_factory=anyio.Lock)
    """Held while any session asks the user about a project."""

    @property
    def server_names(self) -> tuple[str, ...]:
        """The names of the given MCP servers; found ones give way to the editor's."""
        servers = self.program.settings.mcp.servers.values()
        found = {server.name for server in servers if server.grant is not None}
        return tuple(name for name in self.program.server_names if name not in found)

    async def live(
        self,
        wanted: SessionRequest,
        session: Session | None,
        sessions: dict[str, LiveSession],
        changed: Callable[[], None],
        again: Callable[[LiveSession], None],
        *,
        task_status: TaskStatus[LiveSession],
    ) -> None:
        """Make the agents of a session live until it closes.

        Args:
            wanted: What the client asks for.
            session: Where the conversation is kept; closed with it. None keeps it nowhere.
            sessions: All that are open, by id; this one is among them while it is.
            changed: Called when it loaded cards.
            again: Called to restart the program.
            task_status: Started when the session is open.

        Raises:
            FastAgentError: Its agents cannot be made live; only before it is open.
        """
        from fast_agent.acp.live_session import LiveSession
        from fast_agent.acp.project_approval import ProjectApproval
        from fast_agent.acp.updates import Updates, replayed

        opened: LiveSession | None = None
        notes: list[str] = []

        def note(text: str) -> None:
            if opened is None:
                notes.append(text)
            else:
                opened.note(text)

        session_id = self.new_id() if session is None else session.id
        updates = Updates(wanted.peer, session_id, wanted.cwd)
        used = session is not None and session.last_agent is not None
        try:
            if session is not None and wanted.replay:
                for update in replayed(session.state, wanted.cwd):
                    updates.send(update)
            servers = tuple(spec.name for spec in wanted.servers)
            approval = ProjectApproval(wanted.peer, session_id, self.program, self.asking, servers)
            async with self._agents(wanted, session_id, updates, approval, note) as app:
                controller = self._controller(app, wanted, session, updates, approval, note)
                agree = None if session is None else self._agree(wanted, session)
                opened = LiveSession(
                    session_id,
                    wanted.cwd,
                    controller,
                    updates,
                    approval,
                    changed,
                    again,
                    agree=agree,
                    used=used,
                )
                for text in (*notes, *self._lost_names(servers), *_interruption(session)):
                    opened.note(text)
                sessions[session_id] = opened
                task_status.started(opened)
                await opened.stay(sessions)
        except FastAgentError as error:
            if opened is None:
                raise
            log.warning("session `%s`: %s", session_id, error.message)
        finally:
            if session is not None:
                self._end(session, used=used if opened is None else opened.used)
            if opened is not None:
                opened.closed.set()

    def _lost_names(self, servers: tuple[str, ...]) -> Iterator[str]:
        """Yield a line for each found server that gives way to a server of the editor."""
        from fast_agent.trust.taken_names import taken_line

        for name in servers:
            found = self.program.settings.mcp.servers.get(name)
            if found is not None and found.grant is not None:
                yield taken_line("server", name, self.program.server_origin(name) or "the project")

    def _agree(
        self, wanted: SessionRequest, session: Session
    ) -> Callable[[], Awaitable[None]] | None:
        """Return what asks, before its first message, about a session that was kept under another
        root or with agents that could do less; None if no user is asked.
        """
        if self.store is None or self.program.gate.policy.everything:
            return None
        from fast_agent.acp.permission import ClientHuman

        store = self.store()
        change = store.change(session)

        async def agree() -> None:
            nonlocal change
            if change is not None:
                human = ClientHuman(wanted.peer, session.id, wanted.client, self.program)
                if not await human.confirm("Go on with this session?", change.text, yes="Go on"):
                    raise change.refusal
                change = None
            # What was approved in the middle of a conversation is part of it from then on.
            store.agreed(session)

        return agree

    def _agents(
        self,
        wanted: SessionRequest,
        session_id: str,
        updates: Updates,
        approval: ProjectApproval,
        note: Callable[[str], None],
    ) -> AbstractAsyncContextManager[AgentApp]:
        from fast_agent.acp.client_tools import ClientFiles, EditorTools
        from fast_agent.acp.permission import ClientHuman, ClientPermission
        from fast_agent.runtime.protected_files import ProtectedFiles

        peer, client, cwd = wanted.peer, wanted.client, wanted.cwd
        files = ClientFiles(peer, session_id, cwd, client)
        timeout = self.program.settings.shell.timeout_seconds
        kit = EditorTools(peer, session_id, cwd, client, files, updates, timeout)
        self.program.known_secrets.also_hide(wanted.servers)
        origins = _SessionOrigins(self.program, wanted.servers)
        protected = ProtectedFiles(self.program, self.remembered.home, cwd)
        permission = ClientPermission(
            peer, session_id, cwd, updates, self.remembered, files, origins, protected
        )

        def with_edges(given: RuntimeOptions) -> RuntimeOptions:
            return replace(
                given,
                workspace=cwd,
                place_server=partial(self.program.place_server, workspace=cwd),
                servers=(*given.servers, *wanted.servers),
                extra_servers=tuple(spec.name for spec in wanted.servers),
                barred=approval.barred,
                tool_transform=kit,
                permission=permission,
                protected=protected.holds,
            )

        return self.program.run(
            model=self.model,
            shell=self.shell,
            files=self.files,
            fetch=self.fetch,
            human=ClientHuman(peer, session_id, client, origins),
            notify=note,
            trust_cards=self.trust_cards,
            grows=True,
            partial_set=True,
            adjust=with_edges,
        )

    def _controller(
        self,
        app: AgentApp,
        wanted: SessionRequest,
        session: Session | None,
        updates: Updates,
        approval: ProjectApproval,
        note: Callable[[str], None],
    ) -> ConversationController:
        from fast_agent.acp.live_session import mode_names
        from fast_agent.commands.controller import ConversationController

        last = None if session is None else session.last_agent
        return ConversationController(
            self.program,
            app,
            agent=last if last in mode_names(app, approval.waiting()) else self.agent,
            sessions=None if self.store is None else self.store(),
            session=session,
            watch=self.watch,
            listener=updates.notify,
            notify=note,
            workspace=wanted.cwd,
            journal_of=_journal_of,
            waiting=approval.waiting,
        )

    def _end(self, session: Session, *, used: bool) -> None:
        """Close a session; one in which nothing was said is deleted."""
        session.close()
        if self.store is not None and not used:
            try:
                self.store().delete(session.id)
            except SessionError as error:
                log.warning("%s", error.message)


@frozen
class _SessionOrigins:
    """Where the agents and servers of a session come from.

    Args:
        program: The agents.
        given: Servers the editor gave the session.
    """

    program: Program
    given: tuple[ServerSpec, ...]

    def agent_origin(self, name: str) -> str | None:
        """Return the file of an agent's card; None where it has none."""
        return self.program.agent_origin(name)

    def server_origin(self, name: str) -> str | None:
        """Return where a server is declared, the editor's before others."""
        if any(server.name == name for server in self.given):
            return "this editor"
        return self.program.server_origin(name)


def _journal_of(session: Session) -> Journal:
    return PromptJournal(session.journal)


class PromptJournal:
    """A journal around another, for a client that shows a prompt itself.

    The start of a turn that nothing else started is written with the next event, and at the
    latest when the turn waits for anything: so early that nothing of it was sent to the client
    before. Where a turn ends without waiting, that saves it half of what writing costs.

    After a failed write, the start of each turn is written immediately until a write succeeds
    again, so that no model is asked for what cannot be kept.

    Args:
        inner: The other journal.
    """

    def __init__(self, inner: Journal) -> None:
        self._inner = inner
        self._held: deque[SessionEvent] = deque()
        self._writing = Lock()
        self._refused = False

    @property
    def session_id(self) -> str:
        """The session; see `Journal.session_id`."""
        return self._inner.session_id

    @property
    def steps(self) -> Steps | None:
        """What carries the turns; see `Journal.steps`."""
        return self._inner.steps

    def is_due(self, *, top: bool) -> bool:
        """Whether the end of a turn is to be brought to the disk; see `Journal.is_due`."""
        return self._inner.is_due(top=top)

    def record(self, *events: SessionEvent) -> None:
        """Write events, or hold the start of a turn; see `Journal.record`.

        Raises:
            SessionError: They cannot be written, nor what was held.
        """
        first = events[0] if len(events) == 1 else None
        if isinstance(first, TurnBegan) and first.parent_call_id is None and not self._refused:
            self._held.append(first)
            get_running_loop().call_soon(self._write_held)
        else:
            self._write(events, sure=False)

    async def barrier(self) -> None:
        """Wait until what was written is safe; see `Journal.barrier`.

        A held start is deferred: it is written before the event loop sends anything.

        Raises:
            SessionError: Some of it cannot be written.
        """
        await self._inner.barrier()

    def record_durably(self, *events: SessionEvent) -> None:
        """Write events and bring them to the disk; see `Journal.record_durably`.

        Raises:
            SessionError: They cannot be written, nor what was held.
        """
        self._write(events, sure=True)

    def history(self, agent: str) -> History | None:
        """Return what an agent remembered before; see `Journal.history`.

        Raises:
            SessionError: It cannot be read, or what was held cannot be written.
        """
        self._write((), sure=False)
        return self._inner.history(agent)

    def compaction(self, agent: str) -> HistoryCompacted | None:
        """Return the last compaction of an agent's history; see `Journal.compaction`."""
        return self._inner.compaction(agent)

    @property
    def used(self) -> tuple[int, ...]:
        """What the recorded turns used; see `Journal.used`."""
        return self._inner.used

    @property
    def transcript(self) -> CumulativeTranscript:
        """Everything said before; see `Journal.transcript`."""
        return self._inner.transcript

    def _write_held(self) -> None:
        """Write held events; if that fails, the next writer reports the error."""
        if not self._held:
            return
        if self._writing.locked():  # by a thread that waits for the disk
            get_running_loop().call_later(_RETRY_SECONDS, self._write_held)
            return
        try:
            self._write((), sure=False)
        except SessionError:
            return

    def _write(self, events: tuple[SessionEvent, ...], *, sure: bool) -> None:
        write = self._inner.record_durably if sure else self._inner.record
        with self._writing:
            held = tuple(self._held)
            if not (held or events):
                return
            try:
                write(*held, *events)
            except BaseException:
                self._refused = True
                raise
            self._refused = False
            for _ in held:
                self._held.popleft()


def _interruption(session: Session | None) -> Iterator[str]:
    """Yield the notice about a turn whose process was killed."""
    from fast_agent.commands.session_commands import interruption

    note = interruption(session)
    if note is not None:
        yield note
