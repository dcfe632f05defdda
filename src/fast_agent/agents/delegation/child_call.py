"""Child call: one turn of a clone, with the histories it starts from and leaves messages in."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, TypeAlias

from anyio import CancelScope

from fast_agent.sessions.cumulative import CumulativeTranscript

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from fast_agent.agents.agent import Agent
    from fast_agent.agents.child_call_batch import ChildCallBatch
    from fast_agent.agents.delegation.child_history import HistoryRoute
    from fast_agent.agents.turn_context import TurnContext, TurnResult
    from fast_agent.messages.message import Message

Clone: TypeAlias = "Callable[[Iterable[Message]], Agent]"
"""Makes a fresh instance of a child that starts with the given messages."""


async def call_child(
    clone: Clone,
    route: HistoryRoute,
    child_calls: ChildCallBatch,
    message: Message | str,
    *,
    index: int,
    context: TurnContext,
) -> TurnResult:
    """Call a clone of a child, and deliver its new messages.

    A child that fails, is cancelled or takes too long leaves what its own history would keep: its
    messages so far, closed so that a model can continue from them; or nothing if it failed before
    its first answer or does not remember.

    Args:
        clone: Makes the clone.
        route: Where it starts from, and where its messages go.
        child_calls: The parent's side.
        message: What it is asked.
        index: Which call of the parent's message this is, from 0.
        context: Where its turn stands.

    Raises:
        FastAgentError: What it starts with cannot be read, or its turn could not be finished.
    """
    child = clone(() if route.source is None else await route.source(child_calls))
    started = len(child.history)
    left: Sequence[Message] | None = None
    transcript, own = context.transcript, None
    if transcript is not None and child_calls.concurrent:
        # What the child and those below it say is held back until its place is known.
        own = CumulativeTranscript()
        context = replace(context, transcript=own)
    try:
        turn = await child.generate(message, context=context)
        left = turn.messages + turn.external_messages
    finally:
        if transcript is not None and own is not None:
            child_calls.defer(index, partial(_land, transcript, own))
        if route.target is not None:
            route.defer(child_calls, index, child.history[started:] if left is None else left)
        with CancelScope(shield=True):
            await child.aclose()
    return turn


async def _land(transcript: CumulativeTranscript, held: CumulativeTranscript) -> None:
    transcript.block(held)
