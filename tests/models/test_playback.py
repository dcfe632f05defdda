from __future__ import annotations

from dataclasses import replace

import pytest

from fast_agent.errors import ModelError
from fast_agent.messages.content import TextContent
from fast_agent.messages.message import Message, ToolCall, ToolResult
from fast_agent.models.model import Delta, ModelRequest, TextDelta
from fast_agent.models.playback import PlaybackModel

pytestmark = pytest.mark.anyio

CALL = Message("assistant", (), (ToolCall("c1", "now", {"zone": "UTC"}),), stop_reason="toolUse")
RESULT = Message("user", tool_results=(ToolResult("c1", (TextContent("12:00"),)),))
HISTORY = [
    Message.user("what time is it?"),
    CALL,
    RESULT,
    Message.assistant("noon"),
    Message.user("thanks"),
    replace(Message.assistant("welcome"), stop_reason=None),
]


async def say(model: PlaybackModel, *messages: Message) -> Message:
    return (await model.request(ModelRequest("", messages))).message


@pytest.mark.spec("MODEL-9")
async def test_a_given_history_is_played_then_exhausted() -> None:
    model = PlaybackModel(HISTORY)
    user = Message.user("go")
    first = await say(model, user)
    assert first.tool_calls == CALL.tool_calls
    assert first.stop_reason == "toolUse"
    assert (await say(model, user, first, RESULT)).text == "noon"
    last = await say(model, user)
    assert (last.text, last.stop_reason) == ("welcome", "endTurn")
    assert (await say(model, user)).text == "MESSAGES EXHAUSTED (list size 6) (1 overage)"
    assert (await say(model, user)).text == "MESSAGES EXHAUSTED (list size 6) (2 overage)"


async def test_the_history_of_the_conversation_is_played_from_the_first_request() -> None:
    model = PlaybackModel()
    seeded = [replace(message, is_template=True) for message in HISTORY]
    first = await say(model, *seeded, Message.user("one"), Message.user("two"))
    (call,) = first.tool_calls
    assert call.name == "now"
    assert call.id != "c1", "that id is taken"
    assert first.is_template is False
    conversation = [*seeded, Message.user("one"), first, RESULT]
    assert (await say(model, *conversation)).text == "noon"
    conversation += [Message.assistant("noon"), Message.user("three")]
    assert (await say(model, *conversation)).text == "welcome"
    exhausted = await say(model, *conversation)
    assert exhausted.text == "MESSAGES EXHAUSTED (list size 6) (1 overage)"


async def test_two_runs_play_the_same() -> None:
    def seeded() -> list[Message]:
        return [*HISTORY, Message.user("go")]

    assert await say(PlaybackModel(), *seeded()) == await say(PlaybackModel(), *seeded())


async def test_nothing_to_play_is_exhausted_at_once() -> None:
    message = await say(PlaybackModel(), Message.user("hello"))
    assert message.text == "MESSAGES EXHAUSTED (list size 0) (1 overage)"


async def test_it_streams_the_text() -> None:
    deltas: list[Delta] = []
    request = ModelRequest("", [Message.user("x")])
    await PlaybackModel([Message.assistant("hello")]).request(request, deltas.append)
    assert deltas == [TextDelta("hello")]


async def test_there_must_be_something_to_answer() -> None:
    with pytest.raises(ModelError, match="nothing to answer"):
        await say(PlaybackModel(HISTORY), Message.assistant("x"))
