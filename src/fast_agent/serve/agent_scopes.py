"""Instance scopes: which conversation a request belongs to."""

from __future__ import annotations

from collections import OrderedDict
from contextlib import asynccontextmanager, contextmanager
from functools import partial
from hashlib import sha256
from logging import getLogger
from typing import TYPE_CHECKING, Literal, NamedTuple, TypeAlias

from anyio import CancelScope, move_on_after
from anyio.to_thread import run_sync

from fast_agent.errors import FastAgentError
from fast_agent.resources.problem import RequestRefused, bad_params
from fast_agent.rpc.message import INTERNAL_ERROR
from fast_agent.serve.agent_conversation import ServedConversation
from fast_agent.serve.connections import spare_descriptors
from fast_agent.serve.fair_share import FairShare

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable, Generator, Iterator
    from pathlib import Path

    from fast_agent.serve.agent_generation import Generation, Generations
    from fast_agent.sessions.session import Session
    from fast_agent.sessions.store import SessionStore

log = getLogger(__name__)

InstanceScope: TypeAlias = Literal["shared", "connection", "request"]
"""Conversation scope: all clients, the requests of one connection, or a single request."""

MAX_OPEN = 64
"""Maximum number of unused conversations that are kept as sessions and hold agents."""

_ENDING_SECONDS = 5.0
"""How long a conversation is held for its cancelled calls, which still write how they ended."""

SESSION_DESCRIPTORS = 7
"""Descriptors of an open session: its lock, and a database, a write-ahead log and its index for
each of its events and the steps of its turns."""


def max_open() -> int:
    """Return `MAX_OPEN`, or fewer where they would take more than a quarter of the descriptors.

    Connections take half of them, and a quarter stays for conversations in use and for processes.
    """
    spare = spare_descriptors()
    return MAX_OPEN if spare is None else max(1, min(MAX_OPEN, spare // 4 // SESSION_DESCRIPTORS))


class ScopeLimits(NamedTuple):
    """How much is held for clients that may never come back.

    Args:
        conversations: Most conversations of clients without connections.
        idle_seconds: How long one of them is held unused.
    """

    conversations: int = 1000
    idle_seconds: float = 1800.0


class ConversationPool:
    """The conversations of a server.

    Args:
        scope: Who shares one.
        generations: The agents.
        store: Where they are kept as sessions; None keeps them in memory only.
        workspace: The directory the sessions belong to.
        limits: How many are held, and how long.
        clock: Seconds that never go back.
        new_id: Returns unguessable ids.
    """

    def __init__(
        self,
        scope: InstanceScope,
        generations: Generations,
        *,
        store: SessionStore | None,
        workspace: Path,
        clock: Callable[[], float],
        new_id: Callable[[], str],
        limits: ScopeLimits | None = None,
        redact: Callable[[str], str] | None = None,
    ) -> None:
        self.scope = scope
        self.redact = redact
        self._generations = generations
        # A separate call is not a conversation: nothing continues it, so nothing of it is kept.
        self._store = None if scope == "request" else store
        self._workspace = workspace
        self._limits = limits or ScopeLimits()
        self._clock = clock
        self._new_id = new_id
        self._shared: ServedConversation | None = None
        self._in_use = 0
        self._taken = 0
        self._by_id: OrderedDict[str, ServedConversation] = OrderedDict()
        self._shares: FairShare[str] = FairShare(self._limits.conversations)
        self._open: OrderedDict[ServedConversation, None] = OrderedDict()
        self._connected: set[ServedConversation] = set()
        self._calls: set[CancelScope] = set()
        self._max_open = max_open()

    @contextmanager
    def calling(self) -> Generator[None]:
        """Hold a call, which ends here if `cancel_all` is called."""
        with CancelScope() as scope:
            self._calls.add(scope)
            try:
                yield
            finally:
                self._calls.discard(scope)

    def cancel_all(self) -> None:
        """Cancel all calls that are under way."""
        for scope in tuple(self._calls):
            scope.cancel()

    @property
    def in_use(self) -> int:
        """How many requests use a conversation now."""
        return self._in_use

    @property
    def taken(self) -> int:
        """How many requests have used one so far."""
        return self._taken

    @property
    def generations(self) -> int:
        """How many versions of the cards are live."""
        return self._generations.running

    def held(self) -> Iterator[ServedConversation]:
        """Yield the conversations of clients without connections, the longest unused first."""
        yield from self._by_id.values()

    @property
    def version(self) -> int:
        """The version of the cards that new conversations start with."""
        return self._generations.current.app.version

    async def connect(self) -> ServedConversation | None:
        """Start the conversation of a new connection; None if connections have none."""
        if self.scope != "connection":
            return None
        conversation = await self._new()
        self._connected.add(conversation)
        return conversation

    async def disconnect(self, conversation: ServedConversation) -> None:
        """End the conversation of a connection that has ended, after its cancelled calls."""
        self._connected.discard(conversation)
        with CancelScope(shield=True):
            with move_on_after(_ENDING_SECONDS):
                await conversation.unused()
            self._open.pop(conversation, None)
            await conversation.aclose()

    @asynccontextmanager
    async def used(self, own: ServedConversation | None) -> AsyncGenerator[ServedConversation]:
        """Use the conversation of a request.

        Args:
            own: That of the connection or of the session the request names; None where it has none.
        """
        if self.scope == "shared":
            conversation = await self._shared_conversation()
        elif own is not None:
            conversation = own
        else:
            conversation = await self._new()
        conversation.using += 1
        self._in_use += 1
        self._taken += 1
        try:
            yield conversation
        finally:
            conversation.leave()
            self._in_use -= 1
            conversation.used_at = self._clock()
            with CancelScope(shield=True):
                await conversation.release()
                if self.scope != "shared" and own is None:
                    await conversation.aclose()
                else:
                    await self._rest(conversation)

    async def named(self, session_id: object, owner: str) -> tuple[str, ServedConversation] | None:
        """Find the conversation named by a request without a connection, or start one.

        Args:
            session_id: What the request names; None where it names none.
            owner: The client.

        Returns:
            Its id and the conversation; None where the scope knows no sessions.

        Raises:
            RequestRefused: It names none that is held, or no more can be held.
        """
        if self.scope != "connection":
            return None
        await self._expire()
        if session_id is None:
            name = self._new_id()
            return name, await self._keep(name, await self._new(name), owner)
        found = self._by_id.get(session_id) if isinstance(session_id, str) else None
        if found is None and isinstance(session_id, str):
            found = await self._of_another_server(session_id, owner)
        if found is None:
            raise bad_params("unknown or expired session in `_meta`; omit it to start a new one")
        self._by_id.move_to_end(str(session_id))
        self._shares.use(str(session_id))
        if not found.using:
            await _upgrade(found, await self._generations.newest())
        return str(session_id), found

    async def renew(self, own: ServedConversation | None) -> None:
        """Take the newest cards, for a client that asked for them."""
        newest = await self._generations.newest()
        if own is not None and not own.using:
            await own.change_to(newest)

    async def follow(self) -> None:
        """Move conversations that nothing binds to older cards to the newest.

        Those of clients without connections rest for long, and a connection in which nothing was
        asked may be of a client that is gone without a word: the agents they began with, and their
        servers, would be held as long.
        """
        newest = self._generations.current
        unasked = [one for one in self._connected if not one.begun]
        for conversation in (*self._by_id.values(), *unasked):
            if not conversation.using:
                await _upgrade(conversation, newest)

    async def aclose(self) -> None:
        """End every conversation that is held here."""
        held = [*self._by_id.values(), *(() if self._shared is None else (self._shared,))]
        self._by_id.clear()
        self._open.clear()
        self._shared = None
        for conversation in held:
            await conversation.aclose()

    async def _shared_conversation(self) -> ServedConversation:
        await self._generations.newest()
        if self._shared is None:
            self._shared = await self._new()
        return self._shared

    async def _new(
        self, name: str | None = None, session_id: str | None = None
    ) -> ServedConversation:
        """Make a conversation.

        Args:
            name: What clients call it; None where they have no name for it.
            session_id: Its session, where another server began it.
        """
        generation = await self._generations.newest()
        store = self._store
        if store is None:
            return ServedConversation(generation)
        alias = None if name is None else self._alias(name)
        return ServedConversation(generation, partial(self._begin, alias), store, session_id)

    async def _keep(
        self, name: str, conversation: ServedConversation, owner: str
    ) -> ServedConversation:
        try:
            await self._make_room(owner)
        except BaseException:
            await conversation.aclose()
            raise
        conversation.used_at = self._clock()
        self._by_id[name] = conversation
        self._shares.add(name, owner)
        return conversation

    async def _of_another_server(self, name: str, owner: str) -> ServedConversation | None:
        """Take up the conversation that a client had with another server, or a former life.

        Raises:
            RequestRefused: No more can be held.
            SessionError: The store cannot be read.
        """
        store = self._store
        if store is None:
            return None
        session_id = await run_sync(store.aliased, self._alias(name), self._limits.idle_seconds)
        if session_id is None:
            return None
        return await self._keep(name, await self._new(name, session_id), owner)

    def _alias(self, name: str) -> str:
        """Return what the store knows a conversation by, which is of no use to who reads it there.

        Files are those of all projects of a user: there, a conversation continues in its own only.
        """
        place = "" if self._store is None or self._store.is_shared else f"{self._workspace} "
        return sha256(f"{place}{name}".encode()).hexdigest()

    def _begin(self, alias: str | None) -> Session:
        if self._store is None:
            raise RuntimeError("these conversations are not saved")
        return self._store.create(cwd=self._workspace, alias=alias)

    async def _rest(self, conversation: ServedConversation) -> None:
        """Leave a conversation alone; the one that rests longest is parked where many do."""
        if not conversation.kept or self.scope == "shared":
            return
        self._open.pop(conversation, None)
        if conversation.is_open and not conversation.using:
            self._open[conversation] = None
        while len(self._open) > self._max_open:
            longest, _ = self._open.popitem(last=False)
            if not longest.using:
                await longest.park()

    async def _expire(self) -> None:
        end = self._clock() - self._limits.idle_seconds
        while self._by_id:
            name, longest = next(iter(self._by_id.items()))  # they are in the order of their use
            if longest.using or longest.used_at >= end:
                return
            await self._end(name)

    async def _make_room(self, owner: str) -> None:
        """End a conversation of the client with the most of them while there are as many as can be.

        Raises:
            RequestRefused: None can end.
        """
        while self._shares.full:  # while one ends, another request may take its place
            name = self._shares.to_end(owner, lambda one: not self._by_id[one].using)
            if name is None or self._by_id[name].using:
                problem = f"too many active conversations (limit: {self._limits.conversations})"
                raise RequestRefused(INTERNAL_ERROR, problem)
            await self._end(name)

    async def _end(self, name: str) -> None:
        self._shares.remove(name)
        await self.disconnect(self._by_id.pop(name))


async def _upgrade(conversation: ServedConversation, generation: Generation) -> None:
    try:
        await conversation.change_to(generation)
    except FastAgentError as error:
        log.warning("a conversation keeps older cards: %s", error.message)
