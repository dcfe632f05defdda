"""Memory: what an agent instance keeps from turn to turn, and what others put into it."""

from __future__ import annotations

from collections import deque
from contextvars import ContextVar
from logging import getLogger
from typing import TYPE_CHECKING

from anyio import Event
from anyio.lowlevel import checkpoint_if_cancelled

from fast_agent.agents.history.transcript import Compaction, Transcript
from fast_agent.errors import RunError, SessionError

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from contextvars import Token
    from types import TracebackType

    from fast_agent.agents.history.journal import HistoryWriter
    from fast_agent.messages.history import History, ResultLimits
    from fast_agent.messages.message import Message
    from fast_agent.sessions.journal import Journal

log = getLogger(__name__)


class Memory:
    """The conversation of an instance.

    A conversation in it is never changed, only replaced, so that what others start from stays as it
    is. Messages from outside never wait: while a turn runs they are deferred, and added when it
    has ended, in the order they came.

    Args:
        messages: What it starts with; templates among them outlive a plain `clear`.
        remembers: Whether a turn sees those before it.
        limits: How much of a tool result a model is given; None is all.

    Attributes:
        remembers: The same.
        lock: Held by the turn that runs; turns run one after another, in the order they came.
        record: What a journal holds of it; None where none does.
    """

    __slots__ = (
        "_conversation",
        "_deferred",
        "_first",
        "_limits",
        "_open",
        "_start",
        "lock",
        "record",
        "remembers",
    )

    def __init__(
        self,
        messages: Iterable[Message],
        *,
        remembers: bool,
        limits: ResultLimits | None = None,
    ) -> None:
        self._limits = limits
        self._first = self._start = Transcript(messages, limits)
        self._conversation = self._start
        self.remembers = remembers
        self.lock = TurnLock()
        self._open = False
        self._deferred: list[Sequence[Message]] = []
        self.record: HistoryWriter | None = None

    @property
    def conversation(self) -> Transcript:
        """What is remembered now; another conversation can start from it in constant time."""
        return self._conversation

    @property
    def history(self) -> History:
        """The messages of that."""
        return self._conversation.history

    def begin(self) -> tuple[Transcript, Transcript]:
        """Start a turn.

        Returns:
            The value to pass to `keep`, and the draft the turn adds to.

        Raises:
            SessionError: A journal could not be brought to hold what is remembered.
        """
        if self.record is not None:
            self.record.catch_up(self._conversation)
        self._open = True
        base = self._conversation
        return base, base.draft() if self.remembers else Transcript(self._start)

    def keep(self, base: Transcript, draft: Transcript) -> bool:
        """Remember a draft, unless this memory was cleared or loaded since its turn began.

        Returns:
            Whether it is remembered now.
        """
        if self.remembers and self._conversation is base:
            self._conversation = draft
            made = draft.compaction
            if made is not base.compaction and made is not None and self.record is not None:
                self.record.compacted(made)
            return True
        return False

    def end(self) -> None:
        """End the turn; deferred messages are added."""
        self._open = False
        if self._deferred:
            deferred, self._deferred = self._deferred, []
            for messages in deferred:
                self._append_block(messages)

    def add_external(self, messages: Sequence[Message]) -> None:
        """Add messages of another conversation as one block, behind a turn that is running."""
        if self._open:
            self._deferred.append(messages)
        else:
            self._append_block(messages)

    def attach(self, journal: Journal, agent: str) -> None:
        """Take up what a journal holds of an agent, and have it hold what is remembered from now.

        Where a journal that is attached again holds nothing, this is as it was at first.

        Raises:
            SessionError: It cannot be read.
        """
        if not self.remembers:
            return
        from fast_agent.agents.history.journal import HistoryWriter
        from fast_agent.text.garbage_collection import collection_paused

        with collection_paused():
            past = journal.history(agent)
            if past is not None:
                self._replace(past)
                found = journal.compaction(agent)
                if found is not None and found.start <= len(past):
                    made = Compaction(found.start, found.summary, found.native)
                    self._conversation.compact(made)
        if past is None and self.record is not None:
            self._replace(self._first)
        self.record = HistoryWriter(journal, agent, 0 if past is None else len(past))

    async def barrier(self) -> None:
        """Wait until the end of the process can no longer lose what is remembered.

        Raises:
            SessionError: Some of it cannot be written.
        """
        if self.record is not None:
            await self.record.barrier()

    def write_out(self) -> None:
        """Write what a journal could not record before, as at the end; a problem is logged."""
        record = self.record
        if record is not None and record.is_lost and not self._open:
            try:
                record.catch_up(self._conversation)
            except SessionError as error:
                log.warning("%s", error.message)

    def clear(self, *, everything: bool) -> None:
        """Forget everything, or all but the templates; also deferred messages.

        Raises:
            SessionError: It cannot be written; nothing is forgotten then.
        """
        kept = () if everything else tuple(one for one in self.history if one.is_template)
        if self.record is not None:
            self.record.record_clear(len(kept), everything=everything)
        self._start = self._conversation = Transcript(kept, self._limits)
        self._deferred.clear()

    def load(self, messages: Iterable[Message]) -> None:
        """Replace what is remembered, and deferred messages, by `messages`.

        Raises:
            SessionError: They cannot be written; nothing changes then.
        """
        loaded = tuple(messages)
        if self.record is not None:
            self.record.replaced(loaded)
        self._replace(loaded)

    def _replace(self, messages: Iterable[Message]) -> None:
        self._conversation = Transcript(messages, self._limits)
        templates = [one for one in self.history if one.is_template]
        self._start = Transcript(templates, self._limits)
        self._deferred.clear()

    def _append_block(self, messages: Sequence[Message]) -> None:
        before, draft = self.history, self._conversation.draft()
        draft.append_block(messages)
        self._conversation = draft
        if self.record is not None:
            self.record.extended(draft.history[len(before) :], before)


class TurnLock:
    """A lock held by the turn that runs; the others get it in the order they came.

    `async with` raises RunError where waiting would never end. While it is free, taking it makes
    nothing that a waiting turn would need.
    """

    __slots__ = ("_hold", "_token", "_waiting")

    def __init__(self) -> None:
        self._hold: _Hold | None = None
        self._token: Token[tuple[_Hold, ...]] | None = None
        self._waiting: deque[Event] = deque()

    @property
    def is_around(self) -> bool:
        """Whether the running code is inside of the turn that holds it."""
        return self._hold is not None and self._hold in _AROUND.get()

    async def __aenter__(self) -> None:
        await checkpoint_if_cancelled()
        around = _AROUND.get()
        if self._hold is not None or self._waiting:
            await self._wait(around)
        self._hold = hold = _Hold()
        self._token = _AROUND.set((*around, hold))

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._token is not None:
            _AROUND.reset(self._token)
        self._hold = self._token = None
        self._wake()

    def _wake(self) -> None:
        """Resume the first waiting turn if the lock is free."""
        if self._waiting and self._hold is None:
            self._waiting[0].set()

    async def _wait(self, around: tuple[_Hold, ...]) -> None:
        if self._waits_for(around):
            raise RunError(
                "deadlock: these agents are waiting for each other's turns",
                hint="call a clone of one of them",
            )
        for hold in around:
            hold.waiting.append(self)
        turn = Event()
        self._waiting.append(turn)
        try:
            await turn.wait()
        except BaseException:
            self._waiting.remove(turn)
            self._wake()  # it may have been released just now
            raise
        finally:
            for hold in around:
                hold.waiting.remove(self)
        self._waiting.popleft()

    def _waits_for(self, around: tuple[_Hold, ...]) -> bool:
        """Return whether the turn that holds this waits, even through others, for one of these."""
        seen: set[_Hold] = set()
        pending = [self._hold]
        while pending:
            hold = pending.pop()
            if hold is None or hold in seen:
                continue
            if hold in around:
                return True
            seen.add(hold)
            pending.extend([lock._hold for lock in hold.waiting])  # noqa: SLF001
        return False


class _Hold:
    """One turn's hold of a lock, and the locks that what it started waits for."""

    __slots__ = ("waiting",)

    def __init__(self) -> None:
        self.waiting: list[TurnLock] = []


_AROUND: ContextVar[tuple[_Hold, ...]] = ContextVar("turns_around", default=())
"""The holds of the turns that this task is inside of, the outermost first."""
