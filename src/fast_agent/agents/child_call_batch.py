"""Call site: the parent's side of the calls one message makes, as its children meet it."""

from __future__ import annotations

from operator import itemgetter
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence

    from fast_agent.agents.history.transcript import Transcript
    from fast_agent.agents.turn_context import SharedConversation
    from fast_agent.messages.message import Message

Delivery: TypeAlias = "Callable[[], Awaitable[None]]"
"""Puts what one child leaves where it goes; it does not raise, and no cancellation stops it."""


class ChildCallBatch:
    """The conversation before the calls, and what their children leave behind.

    What children leave is put where it goes when all calls of the message have ended, in the order
    of the calls, not of their ends. What goes into the parent's own conversation lands at the
    end of its turn: before that there is no place in it where providers would accept a user.

    Args:
        before: The parent's conversation before the message that made the calls.
        warn: Called with each problem that did not stop the calls.
        concurrent: Whether the calls run at the same time.
        conversation: The agents of the conversation; None outside a runtime.

    Attributes:
        before: The same.
        warn: The same.
        concurrent: The same.
        conversation: The same.
        external_messages: What is to land in the parent's conversation.
    """

    __slots__ = ("_deliveries", "before", "concurrent", "conversation", "external_messages", "warn")

    def __init__(
        self,
        before: Transcript,
        warn: Callable[[str], None],
        *,
        concurrent: bool = False,
        conversation: SharedConversation | None = None,
    ) -> None:
        self.before = before
        self.warn = warn
        self.concurrent = concurrent
        self.conversation = conversation
        self.external_messages: list[Message] = []
        self._deliveries: list[tuple[int, Delivery]] = []

    def add_external(self, messages: Sequence[Message]) -> None:
        """Add messages to the parent's conversation as one block."""
        self.external_messages.extend(messages)

    def defer(self, index: int, landing: Delivery) -> None:
        """Defer the delivery of messages.

        Args:
            index: Which call of the message it is, from 0.
            landing: Called when its turn has come.
        """
        self._deliveries.append((index, landing))

    async def deliver(self) -> None:
        """Land what was left, in the order of the calls."""
        landings, self._deliveries = self._deliveries, []
        landings.sort(key=itemgetter(0))
        for _, deliver in landings:
            await deliver()
