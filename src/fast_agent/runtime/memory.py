"""Memory: what an agent instance keeps from turn to turn, and what others put into it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fast_agent.runtime.conversation import Conversation

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from fast_agent.messages.history import History
    from fast_agent.messages.message import Message


class Memory:
    """The conversation of an instance.

    A conversation in it is never changed, only replaced, so that what others start from stays as it
    is. Messages from outside never wait: while a turn runs they are put aside, and land when it
    has ended, in the order they came.

    Args:
        messages: What it starts with; templates among them outlive a plain `clear`.
        remembers: Whether a turn sees those before it.
    """

    __slots__ = ("_aside", "_conversation", "_open", "_remembers", "_start")

    def __init__(self, messages: Iterable[Message], *, remembers: bool) -> None:
        self._start = Conversation(messages)
        self._conversation = self._start
        self._remembers = remembers
        self._open = False
        self._aside: list[Sequence[Message]] = []

    @property
    def conversation(self) -> Conversation:
        """What is remembered now; another conversation can start from it in constant time."""
        return self._conversation

    @property
    def history(self) -> History:
        """The messages of that."""
        return self._conversation.history

    def begin(self) -> tuple[Conversation, Conversation]:
        """Begin a turn.

        Returns:
            What `keep` must be told it started from, and the draft it adds to.
        """
        self._open = True
        base = self._conversation
        return base, base.draft() if self._remembers else Conversation(self._start)

    def keep(self, base: Conversation, draft: Conversation) -> None:
        """Remember a draft, unless this memory was cleared or loaded since its turn began."""
        if self._remembers and self._conversation is base:
            self._conversation = draft

    def end(self) -> None:
        """End the turn; messages put aside land."""
        self._open = False
        if self._aside:
            aside, self._aside = self._aside, []
            for messages in aside:
                self._land(messages)

    def adopt(self, messages: Sequence[Message]) -> None:
        """Add messages of another conversation as one block, behind a turn that is running."""
        if self._open:
            self._aside.append(messages)
        else:
            self._land(messages)

    def clear(self, *, everything: bool) -> None:
        """Forget all, or all but the templates; also what was put aside."""
        kept = () if everything else tuple(one for one in self.history if one.is_template)
        self._start = self._conversation = Conversation(kept)
        self._aside.clear()

    def load(self, messages: Iterable[Message]) -> None:
        """Put `messages` in the place of what is remembered and of what was put aside."""
        self._conversation = Conversation(messages)
        self._start = Conversation([one for one in self.history if one.is_template])
        self._aside.clear()

    def _land(self, messages: Sequence[Message]) -> None:
        draft = self._conversation.draft()
        draft.append_block(messages)
        self._conversation = draft
