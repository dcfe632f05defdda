from __future__ import annotations

from contextlib import aclosing
from typing import TYPE_CHECKING

import anyio
import pytest

from fast_agent.agents.events import TextStreamed, TurnFinished, TurnStarted
from fast_agent.errors import ModelError
from fast_agent.messages.message import Message

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.agents.conftest import Script

    from fast_agent.agents.events import Event
    from fast_agent.agents.live_agent import LlmAgent
    from fast_agent.models.model import ModelRequest

pytestmark = pytest.mark.anyio


async def test_events_come_in_order_and_the_text_in_pieces(
    make_agent: Callable[..., LlmAgent], script: type[Script]
) -> None:
    agent = make_agent(script([Message.assistant("hello you")]))
    events = [event async for event in agent.stream("hi")]
    assert isinstance(events[0], TurnStarted)
    assert isinstance(events[-1], TurnFinished)
    assert [one.text for one in events if isinstance(one, TextStreamed)] == ["hello you"]
    assert [text async for text in agent.stream_text("again")] == ["hello you"]
    assert len(agent.history) == 4


async def test_a_failure_is_raised_after_the_events(
    make_agent: Callable[..., LlmAgent], script: type[Script]
) -> None:
    agent = make_agent(script([ModelError("down")]))
    seen: list[Event] = []

    async def listen() -> None:
        async for event in agent.stream("hi"):
            seen.append(event)  # noqa: PERF401 (they are there although it raises)

    with pytest.raises(ModelError, match="down"):
        await listen()
    assert isinstance(seen[-1], TurnFinished)


@pytest.mark.parametrize("way", ["break", "cancel"])
async def test_a_loop_that_is_left_cancels_the_turn(
    make_agent: Callable[..., LlmAgent], script: type[Script], way: str
) -> None:
    asked, cancelled = anyio.Event(), anyio.Event()

    async def hang(_request: ModelRequest) -> Message:
        asked.set()
        try:
            await anyio.sleep_forever()
        finally:
            cancelled.set()
        raise AssertionError

    agent = make_agent(script([hang]))

    async def listen() -> None:
        async with aclosing(agent.stream("hi")) as events:
            async for _ in events:
                if way == "break":
                    await asked.wait()
                    break

    async with anyio.create_task_group() as group:
        group.start_soon(listen)
        await asked.wait()
        if way == "cancel":
            group.cancel_scope.cancel()
    assert cancelled.is_set()
    assert agent.idle
    assert agent.history[-1].stop_reason == "cancelled"
