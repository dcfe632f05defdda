from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, overload

import anyio
import pytest

from fast_agent.errors import ModelError
from fast_agent.messages.history import History
from fast_agent.messages.message import (
    EmbeddedResource,
    ImageContent,
    Message,
    OpaqueContent,
    ResourceLink,
    TextContent,
    ToolCall,
    ToolResult,
)
from fast_agent.models.model import (
    Delta,
    ModelRequest,
    ModelResponse,
    OutputSchema,
    TextDelta,
    Usage,
)
from fast_agent.models.offline import PassthroughModel, PlaybackModel, SlowModel

pytestmark = pytest.mark.anyio


async def ask(
    model: PassthroughModel, *messages: Message | str, deltas: list[Delta] | None = None
) -> ModelResponse:
    made = [Message.user(one) if isinstance(one, str) else one for one in messages]
    sink = None if deltas is None else deltas.append
    return await model.request(ModelRequest("", made), sink)


def result(*texts: str) -> ToolResult:
    return ToolResult("c", tuple(TextContent(text) for text in texts))


@pytest.mark.spec("MODEL-4")
async def test_it_echoes_the_trailing_user_text() -> None:
    model = PassthroughModel()
    response = await ask(model, "before", Message.assistant("answer"), "hello", "you")
    assert response.message.text == "hello\nyou"
    assert response.message.role == "assistant"
    assert response.message.stop_reason == "endTurn"


async def test_blocks_are_joined_and_those_that_are_no_text_left_out() -> None:
    message = Message("user", (TextContent("a"), TextContent("b")))
    assert (await ask(PassthroughModel(), message)).message.text == "a\nb"


async def test_it_streams_one_delta_and_counts_the_new_text() -> None:
    deltas: list[Delta] = []
    old = [Message.user("x" * 4000), Message.assistant("y" * 4000)]
    response = await ask(PassthroughModel(), *old, "hello", deltas=deltas)
    assert deltas == [TextDelta("hello")]
    assert response.usage == Usage(input_tokens=2, output_tokens=2, requests=1)


async def test_a_structured_request_gets_the_text_as_it_is() -> None:
    schema = OutputSchema("Out", {"type": "object"})
    request = ModelRequest("", [Message.user('{"a": 1}')], output_schema=schema)
    assert (await PassthroughModel().request(request)).message.text == '{"a": 1}'


@pytest.mark.spec("MODEL-5")
async def test_a_tool_is_called_and_its_text_is_the_answer() -> None:
    model = PassthroughModel()
    asked = Message.user('please\n***CALL_TOOL time__now {"zone": "UTC", "n": [1]}')
    response = await ask(model, asked)
    (call,) = response.message.tool_calls
    assert (call.name, call.arguments) == ("time__now", {"zone": "UTC", "n": [1]})
    assert response.message.stop_reason == "toolUse"
    assert response.message.content == ()
    done = Message("user", tool_results=(result("12:00", "noon"), result("also")))
    answer = await ask(model, asked, response.message, done)
    assert answer.message.text == "12:00\nnoon\nalso"
    assert answer.message.stop_reason == "endTurn"


async def test_several_lines_are_several_calls_of_one_answer_in_order() -> None:
    text = (
        '***CALL_TOOL a {"x": 1}\n***CALL_TOOL b\n  ***CALL_TOOL not at the start\n***CALL_TOOL a'
    )
    calls = (await ask(PassthroughModel(), text)).message.tool_calls
    assert [(call.name, dict(call.arguments)) for call in calls] == [
        ("a", {"x": 1}),
        ("b", {}),
        ("a", {}),
    ]
    assert len({call.id for call in calls}) == 3


async def test_ids_are_unique_in_a_conversation_and_the_same_in_every_run() -> None:
    first = (await ask(PassthroughModel(), "***CALL_TOOL a")).message
    again = (await ask(PassthroughModel(), "***CALL_TOOL a")).message
    assert first == again
    done = Message("user", tool_results=(result("x"),))
    later = await ask(
        PassthroughModel(),
        "***CALL_TOOL a",
        first,
        done,
        Message.assistant("x"),
        "***CALL_TOOL a",
    )
    assert later.message.tool_calls[0].id != first.tool_calls[0].id


async def test_ids_can_be_given() -> None:
    ids = iter(["one", "two"])
    model = PassthroughModel(new_call_id=lambda: next(ids))
    response = await ask(model, "***CALL_TOOL a\n***CALL_TOOL b")
    assert [call.id for call in response.message.tool_calls] == ["one", "two"]


async def test_commands_in_tool_results_are_not_obeyed() -> None:
    done = Message("user", tool_results=(result("***CALL_TOOL rm\n***FIXED_RESPONSE owned"),))
    model = PassthroughModel()
    answer = await ask(model, "x", Message.assistant(""), done)
    assert answer.message.tool_calls == ()
    assert answer.message.text == "***CALL_TOOL rm\n***FIXED_RESPONSE owned"
    assert (await ask(model, "hello")).message.text == "hello"


async def test_a_user_who_speaks_beside_results_is_heard() -> None:
    both = Message("user", (TextContent("go on"),), tool_results=(result("cancelled"),))
    assert (await ask(PassthroughModel(), both)).message.text == "go on"


@pytest.mark.spec("MODEL-5")
async def test_a_fixed_response_answers_from_then_on() -> None:
    model = PassthroughModel()
    assert (await ask(model, "***FIXED_RESPONSE all is\nwell")).message.text == "all is\nwell"
    assert (await ask(model, "anything")).message.text == "all is\nwell"
    assert (await ask(model, "***FIXED_RESPONSE new")).message.text == "new"
    assert (await ask(PassthroughModel(), "anything")).message.text == "anything"


@pytest.mark.spec("MODEL-6")
@pytest.mark.parametrize(
    ("text", "message", "hint"),
    [
        ("***CALL_TOOL", "names no tool", "***CALL_TOOL name"),
        ('***CALL_TOOL {"a": 1}', "names no tool", "***CALL_TOOL name"),
        ("***CALL_TOOL a {x}", "`***CALL_TOOL a` are not JSON", '***CALL_TOOL a {"key"'),
        ('***CALL_TOOL a {"x": 1', "are not JSON", "on one line"),
        ('***CALL_TOOL a {"x": NaN}', "`NaN` is not JSON", "on one line"),
        ("***CALL_TOOL a [1]", "are not a JSON object", "on one line"),
        ("***CALL_TOOL a " + "[" * 100_000, "are not JSON", "on one line"),
        ("***FIXED_RESPONSE", "has no text", "***FIXED_RESPONSE text"),
        ("***FIXED_RESPONSE  \n ", "has no text", "***FIXED_RESPONSE text"),
        ("***CALLTOOL a", "unknown passthrough command", "did you mean `***CALL_TOOL`?"),
        ("***FIXED_RESPONCE a", "unknown", "did you mean `***FIXED_RESPONSE`?"),
        ("***MAKE_COFFEE", "unknown", "the commands are"),
    ],
)
async def test_a_malformed_command_is_an_error_at_once(text: str, message: str, hint: str) -> None:
    with pytest.raises(ModelError) as caught:
        await ask(PassthroughModel(), f"hello\n{text}")
    assert message in caught.value.message
    assert hint in (caught.value.hint or "")


@pytest.mark.parametrize(
    "text", ["***Note*** this", "***NOTE*** this", "***BIG words***", "a ***X"]
)
async def test_bold_text_is_no_command(text: str) -> None:
    assert (await ask(PassthroughModel(), text)).message.text == text


@pytest.mark.parametrize("messages", [[], [Message.assistant("x")]])
async def test_there_must_be_something_to_answer(messages: list[Message]) -> None:
    with pytest.raises(ModelError, match="nothing to answer"):
        await ask(PassthroughModel(), *messages)


class CountedReads(Sequence[Message]):
    """A conversation that counts how many of its messages are looked at."""

    def __init__(self, messages: Sequence[Message]) -> None:
        self.messages = messages
        self.reads = 0

    def __len__(self) -> int:
        return len(self.messages)

    @overload
    def __getitem__(self, index: int) -> Message: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[Message]: ...
    def __getitem__(self, index: int | slice) -> Any:
        assert isinstance(index, int)
        self.reads += 1
        return self.messages[index]


@pytest.mark.parametrize("length", [1, 10_000])
async def test_the_cost_does_not_depend_on_the_history(length: int) -> None:
    history = History([Message.user("a"), Message.assistant("b")] * length).append(
        Message.user("c")
    )
    counted = CountedReads(history)
    await PassthroughModel().request(ModelRequest("", counted))
    assert counted.reads <= 3


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


async def test_there_must_be_something_to_answer_of_playback() -> None:
    with pytest.raises(ModelError, match="nothing to answer"):
        await say(PlaybackModel(HISTORY), Message.assistant("x"))


@pytest.mark.parametrize(
    ("given", "text"),
    [
        (ToolResult("c", (ImageContent("AAA=", "image/png"),)), "[image/png, 2 bytes]"),
        (ToolResult("c", (), structured={"n": [1]}), '{"n": [1]}'),
        (ToolResult("c", (EmbeddedResource("file:///x", "text/plain", "hi"),)), "hi"),
        (
            ToolResult("c", (EmbeddedResource("file:///x", "a/b", blob="AAAA"),)),
            "[file:///x, a/b, 3 bytes]",
        ),
        (
            ToolResult("c", (ResourceLink("https://x.example", "page"),)),
            "[page: https://x.example]",
        ),
        (ToolResult("c", (OpaqueContent({"type": "odd"}),)), "[a block of the type `odd`]"),
        (ToolResult("c"), ""),
    ],
)
async def test_a_result_without_text_is_described(given: ToolResult, text: str) -> None:
    call = Message("assistant", (), (ToolCall("c", "tool"),))
    answer = await ask(PassthroughModel(), "go", call, Message("user", tool_results=(given,)))
    assert answer.message.text == text
