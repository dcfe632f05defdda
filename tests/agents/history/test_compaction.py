from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from anyio import fail_after
from tests.patience import PATIENCE

from fast_agent.agents.events import Warned
from fast_agent.agents.history.compaction import (
    _piece,
    compact,
    size_of_message,
    size_since_answer,
    start_for,
)
from fast_agent.agents.history.transcript import Compaction, Transcript
from fast_agent.cards.agent_config import RequestParams, UsageLimits
from fast_agent.errors import ContextError, LimitError, ModelError, RunError
from fast_agent.messages.history import History
from fast_agent.messages.message import Message, TextContent, ToolCall, ToolResult

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.agents.conftest import Doing, Script

    from fast_agent.agents.live_agent import LlmAgent
    from fast_agent.models.model import ModelRequest

pytestmark = pytest.mark.anyio

TEMPLATE = Message("user", (TextContent("t"),), is_template=True)


def exchange(number: int) -> list[Message]:
    return [Message.user(f"question {number}"), Message.assistant(f"answer {number}")]


def calling(number: int) -> list[Message]:
    call = ToolCall(f"c{number}", "tool", {"n": number})
    result = ToolResult(f"c{number}", (TextContent(f"result {number}"),))
    return [Message("assistant", (), (call,)), Message("user", tool_results=(result,))]


def texts(conversation: Transcript) -> list[str]:
    return [one.text or ("call" if one.tool_calls else "results") for one in conversation.view]


@pytest.mark.parametrize(
    ("messages", "counted"),
    [
        ([], 0),
        ([Message.user("q" * 400)], 1),
        (exchange(1), 0),
        ([*exchange(1), Message.user("q" * 400)], 1),
        ([*exchange(1), Message.user("q" * 400), Message.user("more")], 2),
        ([*exchange(1), *calling(1)], 1),
    ],
)
def test_what_no_answer_has_counted_is_estimated(messages: list[Message], counted: int) -> None:
    left = messages[len(messages) - counted :]
    assert size_since_answer(History(messages)) == sum(map(size_of_message, left))
    assert all(size_of_message(message) > 0 for message in left)


@pytest.mark.parametrize(
    ("messages", "turn", "start"),
    [
        ([Message.user("q")], 0, None),
        ([*exchange(1), Message.user("q")], 2, 2),
        ([TEMPLATE, Message.assistant("a"), Message.user("q")], 2, 2),
        ([TEMPLATE, Message.user("q")], 1, None),
        ([Message.user("q"), *calling(1)], 0, None),
        ([Message.user("q"), *calling(1), *calling(2)], 0, 3),
        ([*exchange(1), Message.user("q"), *calling(1), *calling(2)], 2, 2),
    ],
)
def test_a_turn_keeps_its_own_messages_or_its_last_calls(
    messages: list[Message], turn: int, start: int | None
) -> None:
    assert start_for(Transcript(messages), turn) == start


def test_a_second_compaction_goes_on_where_the_first_ended() -> None:
    messages = [*exchange(1), Message.user("q"), *calling(1), *calling(2), *calling(3)]
    conversation = Transcript(messages)
    conversation.compact(Compaction(2, "s"))
    assert start_for(conversation, 2) == 7
    conversation.compact(Compaction(7, "s"))
    assert start_for(conversation, 2) is None


@pytest.mark.spec("T-C0.3")
def test_the_view_begins_with_templates_and_the_summary_and_the_history_is_whole() -> None:
    messages = [TEMPLATE, *exchange(1), *exchange(2)]
    conversation = Transcript(messages)
    conversation.compact(Compaction(3, "they talked"))
    for one in (Transcript(conversation), conversation.draft(), conversation):
        one.append(Message.user("and now?"))
        assert list(one.history) == [*messages, Message.user("and now?")]
        assert texts(one) == [
            "t\n[the conversation so far, summarized]\n\nthey talked\nquestion 2",
            "answer 2",
            "and now?",
        ]
        assert one.has_cut


async def test_what_was_said_is_summarized_in_pieces_the_model_has_room_for() -> None:
    seen: list[str] = []

    async def ask(_system: str, text: str) -> str:
        if len(text) > 5_000:
            raise ContextError("too long")
        seen.append(text)
        return f"summary {len(seen)}"

    said = [Message.user("u" * 7_000), Message.assistant("a" * 7_000), *calling(1)]
    compaction = await compact(Transcript(said), len(said), ask, "the names")
    assert compaction == Compaction(4, f"summary {len(seen)}")
    assert len(seen) > 3
    for number, text in enumerate(seen[1:], 1):
        assert text.startswith(f"The summary so far:\n\nsummary {number}\n")
    whole = "".join(seen)
    assert whole.count("u") >= 7_000
    assert 'calls tool with {"n": 1}' in whole
    assert "RESULT session://results/c1: result 1" in whole
    assert all("above all: the names" in text for text in seen)


@pytest.mark.parametrize(
    ("size", "piece", "rest"),
    [
        (1, "a", ["aa", "bbb", "c"]),
        (3, "aaa", ["", "bbb", "c"]),
        (4, "aaa", ["bbb", "c"]),
        (7, "aaa", ["bbb", "c"]),
        (8, "aaa\nbbb", ["c"]),
        (9, "aaa\nbbb", ["c"]),
        (10, "aaa\nbbb\nc", []),
    ],
)
def test_a_piece_has_as_many_lines_as_fit(size: int, piece: str, rest: list[str]) -> None:
    assert _piece(["aaa", "bbb", "c"], size) == (piece, rest)


@pytest.mark.parametrize(("window", "most"), [(1_000, 2_000), (2_500, 5_000)])
async def test_a_piece_is_half_of_the_window_of_its_model(window: int, most: int) -> None:
    sizes: list[int] = []

    async def ask(_system: str, text: str) -> str:
        sizes.append(text.count("§"))
        return "-"

    said = [Message.user("§" * 7_000) for _ in range(4)]
    await compact(Transcript(said), len(said), ask, window=window)
    assert most - 100 < max(sizes) <= most
    assert sum(sizes) == 28_000


async def test_of_a_very_long_text_the_summary_has_both_ends() -> None:
    asked: list[str] = []

    async def ask(_system: str, text: str) -> str:
        asked.append(text)
        return "a summary"

    long = f"begin {'x' * 20_000} end"
    conversation = Transcript([Message.user(long), Message.assistant("yes"), *exchange(1)])
    await compact(conversation, 2, ask)
    (text,) = asked
    assert "USER: begin xxx" in text
    assert "\n[12,010 characters left out]\n" in text
    assert "xxx end\n" in text


@pytest.mark.parametrize("answer", ["", "  \n", ContextError("too long"), ModelError("down")])
async def test_a_model_that_gives_no_summary_is_an_error(answer: str | Exception) -> None:
    asked = 0

    async def ask(_system: str, _text: str) -> str:
        nonlocal asked
        asked += 1
        if isinstance(answer, Exception):
            raise answer
        return answer

    with pytest.raises(ModelError):
        await compact(Transcript(exchange(1)), 2, ask)
    assert asked < 12


def small(limit: int, request: ModelRequest) -> Message | Exception:
    """A model with room for so many characters, which echoes what it is given."""
    length = sum(len(one.text) for one in request.messages)
    if length > limit:
        return ContextError("the conversation is too long")
    if request.system.startswith("You summarize"):
        return Message.assistant("a short summary")
    return Message.assistant("done")


async def test_a_conversation_goes_on_for_ever_in_a_small_window(
    make_agent: Callable[..., LlmAgent], script: type[Script]
) -> None:
    seen: list[ModelRequest] = []
    agent = make_agent(script([lambda request: small(2_000, request)], seen))
    for number in range(60):
        assert await agent.send(f"{number} " + "x" * 300) == "done"
    assert len(agent.history) == 120
    assert [one.text for one in agent.history[::2]] == [f"{n} " + "x" * 300 for n in range(60)]
    last = seen[-1].messages
    assert "a short summary" in last[0].text
    assert agent.usage.requests > 60


async def test_a_compaction_that_fails_leaves_the_conversation_as_it_was(
    make_agent: Callable[..., LlmAgent], script: type[Script]
) -> None:
    def failing(request: ModelRequest) -> Message | Exception:
        if request.system.startswith("You summarize"):
            return ModelError("down")
        return small(2_000, request)

    params = RequestParams(usage_limits=UsageLimits(max_total_tokens=1_000))
    agent = make_agent(script([failing]), params=params)
    await agent.send("x" * 1_500)
    with pytest.raises(ContextError, match="too long"):
        await agent.send("y" * 1_500)
    assert [one.text for one in agent.history] == ["x" * 1_500, "done"]
    assert agent.conversation.compaction is None
    with fail_after(PATIENCE):  # it would wait for ever for the end of the request that failed
        assert await agent.send("short") == "done"


async def test_a_person_has_the_conversation_summarized(
    make_agent: Callable[..., LlmAgent], script: type[Script]
) -> None:
    seen: list[ModelRequest] = []
    agent = make_agent(script([lambda request: small(2_000, request)], seen))
    with pytest.raises(RunError, match="no history to summarize"):
        await agent.compact()
    await agent.send("hello")
    assert await agent.compact("the greeting") == Compaction(2, "a short summary")
    assert "above all: the greeting" in seen[-1].messages[0].text
    with pytest.raises(RunError, match="no history to summarize"):
        await agent.compact()
    await agent.send("go on")
    assert [one.text for one in seen[-1].messages] == [
        "[the conversation so far, summarized]\n\na short summary\ngo on"
    ]
    assert len(agent.history) == 4
    agent.clear()
    assert agent.conversation.compaction is None


async def test_a_long_turn_is_summarized_up_to_its_last_calls(
    make_agent: Callable[..., LlmAgent], script: type[Script], doing: type[Doing]
) -> None:
    calls = 0

    async def work(_call: object, _context: object) -> str:
        return "r" * 300

    def model(request: ModelRequest) -> Message | Exception:
        nonlocal calls
        length = sum(len(r.text) for one in request.messages for r in one.tool_results)
        if length + sum(len(one.text) for one in request.messages) > 4_000:
            return ContextError("the conversation is too long")
        if request.system.startswith("You summarize"):
            return Message.assistant("so far it worked")
        calls += 1
        if calls > 40:
            return Message.assistant("done")
        return Message("assistant", (), (ToolCall("c", "work"),))

    agent = make_agent(script([model]), tools=(doing("work", work),))
    assert await agent.send("do all of it") == "done"
    assert len(agent.history) == 82
    assert agent.conversation.compaction is not None


async def test_a_summary_is_charged_like_any_request(
    make_agent: Callable[..., LlmAgent], script: type[Script]
) -> None:
    params = RequestParams(usage_limits=UsageLimits(max_requests=2))
    agent = make_agent(script([lambda request: small(2_000, request)]), params=params)
    await agent.send("x" * 1_500)
    with pytest.raises(LimitError, match="max_requests"):
        await agent.send("y" * 1_500)


def wordy(doing: type[Doing], *names: str) -> tuple[Doing, ...]:
    """Make tools whose descriptions take about 4,000 tokens each."""

    async def work(_call: ToolCall, _context: object) -> str:
        return "done"

    tools = tuple(doing(name, work) for name in names)
    for tool in tools:
        tool.spec = replace(tool.spec, description="x" * 16_000)
    return tools


@pytest.mark.spec("CONTEXT-5")
async def test_tools_that_fill_the_window_are_named_before_the_first_request(
    make_agent: Callable[..., LlmAgent], script: type[Script], doing: type[Doing]
) -> None:
    model = script([ModelError("down"), Message.assistant("hi"), Message.assistant("hi")])
    tools = wordy(doing, "docs__a", "docs__b", "mail__send")
    agent = make_agent(model, tools=tools, known_window=20_000)
    warned: list[str] = []

    def hear(event: object) -> None:
        if isinstance(event, Warned):
            warned.append(event.message)

    with pytest.raises(ModelError, match="down"):
        await agent.generate("go", listener=hear)
    [first] = warned
    start = (
        "most of the context window of `script` (20,000 tokens) is in use before the conversation"
    )
    assert first.startswith(start)
    assert "tools of server `docs` about 8,0" in first
    assert first.index("`docs`") < first.index("`mail`")
    warned.clear()
    roomy = make_agent(model, tools=tools, known_window=30_000)
    await roomy.generate("go", listener=hear)
    await make_agent(model, tools=tools).generate("go", listener=hear)
    assert warned == []


async def test_an_error_of_a_start_that_is_too_long_says_what_fills_it(
    make_agent: Callable[..., LlmAgent], script: type[Script], doing: type[Doing]
) -> None:
    agent = make_agent(script([ContextError("too long")]), tools=wordy(doing, "docs__a"))
    with pytest.raises(ContextError, match="too long") as caught:
        await agent.send("hi")
    assert "use fewer servers" in (caught.value.hint or "")
    assert "`docs` about 4,0" in (caught.value.hint or "")
    plain = make_agent(script([ContextError("too long")]))
    with pytest.raises(ContextError) as caught:
        await plain.send("hi " * 1000)
    assert caught.value.hint is None
