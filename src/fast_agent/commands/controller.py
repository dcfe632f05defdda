"""The place of a user in a conversation: what commands read and change.

A restart starts the program again in its process, so that no module keeps old state.
"""

from __future__ import annotations

import os
import sys
from logging import getLogger
from typing import TYPE_CHECKING, NoReturn

from fast_agent.agents.live_agent import LlmAgent
from fast_agent.errors import RunError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping, Sequence
    from pathlib import Path

    from fast_agent.agent_app import AgentApp
    from fast_agent.agents.agent import Agent
    from fast_agent.agents.conversation import Conversation
    from fast_agent.agents.events import Listener
    from fast_agent.cards.agent_config import AgentConfig
    from fast_agent.program.program import Program
    from fast_agent.registry.watch import CardWatch
    from fast_agent.sessions.journal import Journal
    from fast_agent.sessions.session import Session
    from fast_agent.sessions.store import SessionStore
    from fast_agent.tools.human import Human

_NEW = "--session"
_RESUME = "--resume"


def restart(session: str | None = None) -> NoReturn:
    """Start the program again with its arguments; called once all its resources are closed.

    Args:
        session: The session to continue; None if there is none.

    Raises:
        OSError: The interpreter cannot be run; the program keeps running.
    """
    arguments = resuming(sys.orig_argv[1:], session)
    for stream in (sys.stdout, sys.stderr):
        stream.flush()
    os.execv(sys.executable, [sys.executable, *arguments])  # noqa: S606 (no shell is wanted)


def resuming(arguments: Sequence[str], session: str | None) -> list[str]:
    """Return the arguments of a command line, naming the session to continue with.

    Args:
        arguments: The arguments, as the program was started with.
        session: The session; None leaves them as they are.

    Returns:
        The same without `--session` and `--resume [ID]`, and with `--resume` of this session.
    """
    if session is None:
        return list(arguments)
    kept: list[str] = []
    after_resume = False
    for place, argument in enumerate(arguments):
        if argument == "--":
            return [*kept, _RESUME, session, *arguments[place:]]
        if after_resume and not argument.startswith("-"):
            after_resume = False
            continue
        after_resume = argument == _RESUME
        if not after_resume and argument != _NEW and not argument.startswith(f"{_RESUME}="):
            kept.append(argument)
    return [*kept, _RESUME, session]


log = getLogger(__name__)


class ConversationController:
    """One conversation of a shell, with the current agent.

    Args:
        program: The program, whose cards may be loaded and reloaded.
        app: Its live agents, of `program.run(grows=True)`.
        agent: The agent to talk to; None is the default one. It may be one that waits for an
            approval.
        sessions: Where conversations are kept; None where they are not.
        session: The session this one is kept in, or None. It belongs to the controller.
        watch: Watcher of the cards, notified of further ones; None if nothing watches.
        listener: Notified of the events of turns; None is the app's own.
        human: Asks the user; None is the app's own.
        confirm: Asks the user a question with a title and a text; None if no user can be asked.
        notify: Passes a line to the user.
        workspace: Where relative paths start; None is the program's own directory.
        journal_of: Returns where the turns of a session are written; None is the session's own
            journal.
        waiting: Returns the agents that wait for an approval; None takes those left out.

    Attributes:
        agent: The current agent.
        conversation: The agents of the conversation.
        session: The session it is kept in, or None.

    Raises:
        RunError: There is no such agent, or none at all.
    """

    def __init__(
        self,
        program: Program,
        app: AgentApp,
        *,
        agent: str | None = None,
        sessions: SessionStore | None = None,
        session: Session | None = None,
        watch: CardWatch | None = None,
        listener: Listener | None = None,
        human: Human | None = None,
        confirm: Callable[[str, str], Awaitable[bool]] | None = None,
        notify: Callable[[str], None] = log.warning,
        workspace: Path | None = None,
        journal_of: Callable[[Session], Journal] | None = None,
        waiting: Callable[[], Mapping[str, AgentConfig]] | None = None,
    ) -> None:
        self.program = program
        program.admission.decisions.has_commands = True
        self.app = app
        self.watch = watch
        self.notify = notify
        self.session = session
        self.confirm = confirm
        self._workspace = program.workspace if workspace is None else workspace
        self._sessions = sessions
        self._listener = listener
        self._human = human
        self._journal_of = journal_of
        self._waiting = waiting
        self.agent = self._default() if agent is None else agent
        if self.agent not in app and self.agent not in self.waiting:
            raise RunError(f"no agent is named `{self.agent}`", hint="`/agents` lists them")
        self.conversation = self._new_conversation(session)

    @property
    def workspace(self) -> Path:
        """Where relative paths start."""
        return self._workspace

    @property
    def waiting(self) -> Mapping[str, AgentConfig]:
        """The agents that were found and wait until a user approves them."""
        return self.program.admission.waiting if self._waiting is None else self._waiting()

    @property
    def sessions(self) -> SessionStore:
        """Where conversations are kept.

        Raises:
            RunError: They are not kept.
        """
        if self._sessions is None:
            raise RunError("conversations are not saved here")
        return self._sessions

    @property
    def keeps_sessions(self) -> bool:
        """Whether conversations are kept."""
        return self._sessions is not None

    def instance(self, name: str | None = None) -> Agent:
        """Return an agent of the conversation, by default the current one.

        Raises:
            RunError: There is none.
            TrustError: It waits for an approval.
            FastAgentError: Its card cannot be run.
        """
        name = self.agent if name is None else name
        if name in self.waiting and name not in self.app:
            self.program.admission.require(name)
        return self.app.agent(name, self.conversation)

    @property
    def provider(self) -> str | None:
        """The provider that the current agent's model is of; None for an offline or unknown one."""
        return self.app.runtime.provider_of(self.agent)

    @property
    def servers(self) -> Sequence[str]:
        """The servers that the current agent's card names; none while it waits for an approval."""
        return self.app.runtime.servers_named(self.agent) if self.agent in self.app else ()

    def import_packages(self) -> None:
        """Import what the first turn of the current agent needs, which takes a second or two.

        To be called in a thread.
        """
        if self.servers:
            from fast_agent.mcp.live_session import LiveSession

            del LiveSession  # imported here so that the event loop need not
        provider = self.provider
        if provider is not None:
            from fast_agent.models.providers.provider import warm

            warm(provider)

    async def start_servers(self) -> None:
        """Start the servers of the current agent, before its turn needs them."""
        if self.servers:
            await self.app.runtime.start_servers(self.agent)

    def require_llm_agent(self) -> LlmAgent:
        """Return the current agent, if it asks a model itself.

        Raises:
            RunError: It is a workflow, which has others do the work.
            FastAgentError: Its card cannot be run.
        """
        agent = self.instance()
        if isinstance(agent, LlmAgent):
            return agent
        kind = agent.config.type
        raise RunError(
            f"agent `{agent.name}` is of type `{kind}`, which has others do the work",
            hint="`/agents` lists its members; `/agent NAME` goes to one",
        )

    async def refresh(self) -> bool:
        """Take the cards there are now; where the agent is gone, the default one is talked to.

        Returns:
            Whether the current agent is another one.

        Raises:
            FastAgentError: An agent cannot be made from its new card; all stay as they were.
        """
        await self.app.refresh()
        if self.agent in self.app or self.agent in self.waiting:
            return False
        self.agent = self._default()
        return True

    def follow(self, answered: str) -> bool:
        """Talk to the agent the conversation continues with once an agent has answered.

        Returns:
            Whether the current agent is another one.
        """
        follower = self.app.goes_on_with(answered)
        if follower == self.agent or follower not in self.app.agent_names():
            return False
        self.agent = follower
        return True

    def _default(self) -> str:
        """Return the agent a user talks to first; an agent left out is not replaced.

        Raises:
            RunError: There is none.
        """
        return self.program.admission.waiting_default or self.app.default_name

    async def change_session(self, session: Session) -> None:
        """Go on with another session; the one before is closed.

        Args:
            session: The session, open; the controller closes it.

        Raises:
            FastAgentError: The memory of its agents cannot be read; the controller stays as it is,
                and the session is closed.
        """
        last = session.last_agent if session.last_agent in self.app else None
        try:
            conversation = self._new_conversation(session)
            conversation.agent(last or self.agent)
        except BaseException:
            session.close()
            raise
        former, self.conversation = self.conversation, conversation
        old, self.session = self.session, session
        self.agent = last or self.agent
        await former.aclose()
        if old is not None:
            old.close()

    async def aclose(self) -> None:
        """End the conversation; its session is closed. Safe to call twice."""
        await self.conversation.aclose()
        if self.session is not None:
            self.session.close()

    def _new_conversation(self, session: Session | None) -> Conversation:
        journal: Journal | None = None
        if session is not None:
            journal = session.journal if self._journal_of is None else self._journal_of(session)
        return self.app.new_conversation(
            listener=self._listener, journal=journal, human=self._human
        )
