from __future__ import annotations

import anyio
import pytest

from fast_agent.messages.message import Message
from fast_agent.models.model import ModelRequest
from fast_agent.models.slow import SlowModel

pytestmark = pytest.mark.anyio


@pytest.mark.spec("MODEL-10")
async def test_it_answers_as_passthrough_after_the_delay() -> None:
    model = SlowModel(0.05)
    begun = anyio.current_time()
    response = await model.request(ModelRequest("", [Message.user("hello")]))
    assert anyio.current_time() - begun >= 0.05
    assert response.message.text == "hello"
    call = await model.request(ModelRequest("", [Message.user("***CALL_TOOL a")]))
    assert call.message.tool_calls[0].name == "a"


async def test_requests_wait_side_by_side_and_can_be_cancelled() -> None:
    model = SlowModel(600)
    ended: list[str] = []

    async def one() -> None:
        await model.request(ModelRequest("", [Message.user("x")]))
        ended.append("answered")

    with anyio.move_on_after(0.02) as scope:
        async with anyio.create_task_group() as group:
            group.start_soon(one)
            group.start_soon(one)
    assert scope.cancelled_caught
    assert ended == []
