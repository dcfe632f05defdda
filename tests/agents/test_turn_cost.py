"""What a turn costs must not depend on how many there were before it."""

from __future__ import annotations

import gc
import tracemalloc
from typing import TYPE_CHECKING, TypeAlias

import pytest

from fast_agent.messages.message import Message
from fast_agent.models.offline import PassthroughModel

if TYPE_CHECKING:
    from collections.abc import Callable

    from fast_agent.agents.live_agent import LlmAgent
    from fast_agent.tools.hooks import TurnHookContext

    MakeAgent: TypeAlias = Callable[..., LlmAgent]


async def peak_of_a_turn(agent: LlmAgent) -> int:
    """The most memory a turn needs at one moment, in bytes: any copy of the history shows."""
    peaks: list[int] = []
    for _ in range(5):
        gc.collect()
        tracemalloc.start()
        await agent.send("hi")
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    return sorted(peaks)[2]


@pytest.mark.spec("TURN-2")
@pytest.mark.anyio
@pytest.mark.parametrize("with_hooks", [False, True])
async def test_a_turn_copies_nothing_of_a_long_history(
    make_agent: MakeAgent, with_hooks: bool
) -> None:
    from fast_agent.tools.hooks import Hook, TurnHooks

    async def look(ctx: TurnHookContext) -> None:
        assert ctx.message_history is not None

    points = ("before_llm_call", "after_llm_call", "after_turn_complete")
    hooks = TurnHooks({point: [Hook("look", look)] for point in points}) if with_hooks else None
    agent = make_agent(PassthroughModel(), hooks=hooks)
    await agent.send("hi")
    early = await peak_of_a_turn(agent)
    agent.load_history([Message.user("hi"), Message.assistant("hi")] * 10_000)
    await agent.send("hi")
    late = await peak_of_a_turn(agent)
    # One pointer for each of the 20,000 messages would be 160,000 bytes.
    assert late < early + 8_000
