"""Conversation: what one client, or all of them together, said to the agents."""

from __future__ import annotations

from logging import getLogger
from typing import TYPE_CHECKING

from anyio import CancelScope, Event, Lock
from anyio.to_thread import run_sync

from fast_agent.cards.load_set import agents_below
from fast_agent.errors import SessionError
from fast_agent.messages.message import Message

if TYPE_CHECKING:
    from collections.abc import Callable

    from fast_agent.agents.agent import Agent
    from fast_agent.agents.conversation import Conversation
    from fast_agent.serve.agent_generation import Generation
    from fast_agent.sessions.session import InterruptedTurn, Session
    from fast_agent.sessions.store import SessionStore

log = getLogger(__name__)


class ServedConversation:
    """A conversation with the agents of a generation.

    Nothing is made for it until an agent is asked. Where it is kept as a session it may be parked:
    then it has no agents, no memories and no open file, and restores them when it continues.

    Args:
        generation: Its agents.
        begin: Starts the session it is kept in; None keeps it in memory only.
        store: Where its session is opened again; None where it is kept in memory only.
        session_id: Its session, if another server or a former life of this one started it; None
            for one that starts here.

    Attributes:
        using: How many requests use it now.
        used_at: When it was used last, in seconds of the server's clock.
    """

    __slots__ = (
        "_begin",
        "_conversation",
        "_interrupted",
        "_is_of_former_life",
        "_left",
        "_preparing",
        "_session",
        "_session_id",
        "_store",
        "generation",
        "used_at",
        "using",
    )

    def __init__(
        self,
        generation: Generation,
        begin: Callable[[], Session] | None = None,
        store: SessionStore | None = None,
        session_id: str | None = None,
    ) -> None:
        self.generation = generation.take()
        self.using = 0
        self.used_at = 0.0
        self._begin = begin
        self._store = store
        self._conversation: Conversation | None = None
        self._session: Session | None = None
        self._session_id = session_id
        self._is_of_former_life = session_id is not None
        self._left: Event | None = None
        self._preparing = Lock()
        self._interrupted: InterruptedTurn | None = None

    @property
    def is_open(self) -> bool:
        """Whether it holds agents."""
        return self._conversation is not None

    @property
    def begun(self) -> bool:
        """Whether an agent was asked something."""
        return self._conversation is not None or self._session_id is not None

    def agent(self, name: str) -> Agent:
        """Return an agent of the conversation.

        Raises:
            FastAgentError: There is none, it cannot be run, or the session cannot be written.
        """
        begun = self.begun
        try:
            return self.generation.app.agent(name, self.conversation)
        except BaseException:
            if not begun:
                self._undo_start()
            raise

    def busy_agents(self, name: str) -> frozenset[str]:
        """Name the agents with a turn under way that a call of one would use."""
        conversation, cards = self._conversation, self.generation.app.load_set.cards
        if conversation is None or name not in cards:
            return frozenset()
        used = {name, *agents_below(cards, name)}.intersection(conversation.live)
        return frozenset([one for one in used if not conversation.agent(one).idle])

    @property
    def conversation(self) -> Conversation:
        """Its agents, taken up again where it was parked.

        Raises:
            SessionError: Its session cannot be made, opened or read.
        """
        if self._conversation is None:
            if self._session is None:
                self._session = self._opened()
            journal = None if self._session is None else self._session.journal
            self._conversation = self.generation.app.new_conversation(journal=journal)
        return self._conversation

    @property
    def kept(self) -> bool:
        """Whether it is kept as a session, and so may be parked."""
        return self._store is not None

    def leave(self) -> None:
        """Note that a request no longer uses it."""
        self.using -= 1
        left, self._left = self._left, None
        if left is not None:
            left.set()

    async def unused(self) -> None:
        """Wait until no request uses it."""
        while self.using:
            self._left = self._left or Event()
            await self._left.wait()

    async def prepare(self) -> None:
        """Hold its session, where other servers answer it too, without blocking the event loop.

        If another server wrote it, agents are made again from the session's current state. Where
        no other server can, the session of a former life of this one is opened. One that is being
        parked is waited for.

        Raises:
            FastAgentError: Another server uses it, or it cannot be read.
        """
        store = self._store
        if store is None:
            return
        if not (store.is_shared or self._is_of_former_life or self._preparing.locked()):
            return
        async with self._preparing:
            if not store.is_shared and not self._is_of_former_life:
                return  # another request opened it, or it was parked
            if self._session is not None:
                if await run_sync(self._session.acquire):
                    return
                await self._park()
            self._session = await run_sync(self._opened)

    async def take_up(self, agent: str, text: str) -> None:
        """Continue the turn that was killed, if a message is that turn's message sent again.

        To be called before an agent is asked. Any other message leaves the turn as cancelled.

        Args:
            agent: The agent the message is for.
            text: The message.

        Raises:
            SessionError: The session cannot be read or written.
        """
        found, self._interrupted = self._interrupted, None
        session = self._session
        if found is None or session is None or self._conversation is not None:
            return
        if (found.agent, found.message) == (agent, Message.user(text)):
            await run_sync(session.take_up)

    async def release(self) -> None:
        """Release the conversation to other servers, if it is idle and they can answer it."""
        session = self._session
        if session is None or self.using or self._store is None or not self._store.is_shared:
            return
        async with self._preparing:
            if self.using or self._session is not session:
                return  # a request arrived in between, or it ended
            try:
                await run_sync(session.release)
            except SessionError as error:
                # What it has in memory is not what is kept.
                log.warning("%s", error.message)
                await self._park()

    async def change_to(self, generation: Generation) -> None:
        """Go on with the agents of another generation, which remember what those here do.

        Raises:
            FastAgentError: One of them cannot be made; the conversation stays as it was.
        """
        if generation is self.generation:
            return
        before, left = self._conversation, self.generation
        fresh = None
        if before is not None:
            journal = None if self._session is None else self._session.journal
            fresh = generation.app.new_conversation(journal=journal)
            try:
                for name in before.live:
                    if name in generation.app.load_set.cards:
                        fresh.agent(name).take_over_from(before.agent(name))
            except BaseException:
                await fresh.aclose()
                raise
        # A request may come while the old agents are closed: it finds all changed.
        self._conversation, self.generation = fresh, generation.take()
        try:
            if before is not None:
                await before.aclose()
        finally:
            left.leave()

    async def park(self) -> None:
        """Release agents and session, if no request uses it; the session keeps what was said."""
        async with self._preparing:
            if not self.using:
                await self._park()

    async def _park(self) -> None:
        conversation, session = self._conversation, self._session
        self._conversation = self._session = None
        try:
            if conversation is not None:
                await conversation.aclose()
        finally:
            if session is not None:
                with CancelScope(shield=True):
                    await run_sync(session.close)  # it waits for the disk

    async def aclose(self) -> None:
        """End it; its session, where it has one, can be resumed elsewhere."""
        try:
            async with self._preparing:
                self._begin = None
                await self._park()
        finally:
            self.generation.leave()

    def _undo_start(self) -> None:
        """Undo the start if no model could be asked: no session without turns remains."""
        if self._conversation is not None and self._conversation.live:
            return  # a workflow whose members are there, some of them
        session = self._session
        self._conversation = self._session = self._session_id = None
        if session is not None and self._store is not None:
            session.close()
            try:
                self._store.delete(session.id)
            except SessionError as error:
                log.warning("an empty session remains: %s", error.message)

    def _opened(self) -> Session | None:
        if self._store is None or self._begin is None:
            return None
        if self._session_id is None:
            session = self._begin()
            self._session_id = session.id
            return session
        if self._is_of_former_life and not self._store.is_shared:
            session = self._store.open(self._session_id)
        else:
            # The same conversation continues, whatever was approved since: no user is asked in
            # its middle.
            session = self._store.open_unasked(self._session_id)
        self._is_of_former_life = False
        try:
            self._interrupted = session.interrupted
        except BaseException:
            session.close()
            raise
        return session
