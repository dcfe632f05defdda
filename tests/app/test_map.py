from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

import anyio
import pytest
from pydantic import BaseModel

from fast_agent.errors import ModelError, RunError
from fast_agent.messages.message import Message

if TYPE_CHECKING:
    from collections.abc import Callable

    from fast_agent import FastAgent

    NewProgram: TypeAlias = Callable[..., FastAgent]

pytestmark = pytest.mark.anyio


class City(BaseModel):
    name: str


async def test_each_message_has_a_conversation_of_its_own(new_program: NewProgram) -> None:
    program = new_program()
    program.agent("ann", model="passthrough", default=True)
    async with program.run() as app:
        await app("said before")
        texts = [f"message {number}" for number in range(50)]
        assert await app.map("ann", texts, concurrency=7) == texts
        assert await app.map("ann", [Message.user("one")]) == ["one"]
        assert await app.map("ann", []) == []
        assert len(app.ann.history) == 2
        assert app.usage.requests == 52


async def test_no_more_conversations_than_asked_for_run_at_a_time(new_program: NewProgram) -> None:
    running = most = 0

    async def work(text: str) -> str:
        """Work."""
        nonlocal running, most
        running += 1
        most = max(most, running)
        await anyio.lowlevel.checkpoint()
        await anyio.lowlevel.checkpoint()
        running -= 1
        return text

    program = new_program()
    program.agent("ann", model="passthrough", function_tools=[work], default=True)
    async with program.run() as app:
        calls = [f'***CALL_TOOL work {{"text": "{number}"}}' for number in range(20)]
        answers = await app.map("ann", calls, concurrency=4)
    assert answers == [str(number) for number in range(20)]
    assert 1 < most <= 4


async def test_answers_are_values_where_a_shape_is_given(new_program: NewProgram) -> None:
    program = new_program()
    program.agent("ann", model="passthrough", default=True)
    async with program.run() as app:
        cities = await app.map("ann", ['{"name": "Oslo"}', '{"name": "Bergen"}'], City)
        assert cities == [City(name="Oslo"), City(name="Bergen")]


async def test_the_first_failure_ends_all(new_program: NewProgram) -> None:
    program = new_program()
    program.agent("ann", model="passthrough", default=True)
    async with program.run() as app:
        with pytest.raises(ModelError, match="unknown passthrough command"):
            await app.map("ann", ["fine", "***NO_SUCH x", *["later"] * 1000], concurrency=1)
        assert app.usage.requests < 10
        with pytest.raises(ValueError, match="concurrency"):
            await app.map("ann", ["x"], concurrency=0)
        with pytest.raises(RunError, match="bob"):
            await app.map("bob", ["x"])
