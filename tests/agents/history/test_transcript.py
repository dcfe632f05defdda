from __future__ import annotations

from itertools import pairwise

from hypothesis import example, given
from hypothesis import strategies as st

from fast_agent.agents.history.transcript import Transcript
from fast_agent.messages.history import LOST, ResultLimits, check_validity, view_of
from fast_agent.messages.message import (
    ImageContent,
    Message,
    TextContent,
    ToolCall,
    ToolResult,
)

ids = st.sampled_from(["a", "b", "c"])
any_message = st.builds(
    Message,
    st.sampled_from(["user", "assistant"]),
    st.just((TextContent("x"),)),
    st.lists(st.builds(ToolCall, ids, st.just("tool")), max_size=3).map(tuple),
    st.lists(st.builds(ToolResult, ids), max_size=3).map(tuple),
)
any_messages = st.lists(any_message, max_size=12)


def closed(messages: list[Message]) -> list[Message]:
    """Let the user have the last word, as when a turn is asked for."""
    return [*messages, Message.user("and?")]


@given(any_messages)
def test_the_view_of_anything_is_a_conversation_providers_accept(messages: list[Message]) -> None:
    view = view_of(closed(messages))
    assert check_validity(view) == []
    roles = [one.role for one in view]
    assert all(one != other for one, other in pairwise(roles))


@given(any_messages)
@example([Message.user("go"), Message("assistant", (), (ToolCall("a", "t"), ToolCall("a", "t")))])
def test_appending_gives_the_same_view_as_starting_with_all(messages: list[Message]) -> None:
    conversation = Transcript()
    for message in messages:
        conversation.append(message)
    assert conversation.view == view_of(messages)
    assert list(conversation.history) == messages
    assert Transcript(messages).view == conversation.view


@given(any_messages)
def test_what_providers_accept_is_not_touched(messages: list[Message]) -> None:
    valid = list(view_of(closed(messages)))
    conversation = Transcript(valid[:2])
    for message in valid[2:]:
        conversation.append(message)
    assert conversation.view is conversation.history
    assert list(conversation.view) == valid


def test_a_conversation_of_a_turn_with_calls_is_held_once() -> None:
    conversation = Transcript()
    calls = (ToolCall("1", "t"), ToolCall("2", "t"))
    conversation.append(Message.user("go"))
    conversation.append(Message("assistant", (), calls))
    conversation.append(Message("user", tool_results=(ToolResult("1"), ToolResult("2"))))
    conversation.append(Message.assistant("done"))
    assert conversation.view is conversation.history


def test_what_came_since_the_last_answer_is_never_counted_too_low() -> None:
    conversation = Transcript()
    conversation.append(Message.user("hello"))
    assert conversation.most_since_answer == 5
    conversation.append(Message.user("two"))  # the same message, for the model
    assert conversation.most_since_answer == 8
    conversation.append(Message("assistant", (), (ToolCall("1", "t"), ToolCall("2", "t"))))
    results = [ToolResult(one, (TextContent(text),)) for one, text in (("1", "four"), ("2", "x"))]
    conversation.append(Message("user", tool_results=tuple(results)))
    assert conversation.most_since_answer == 2 * 4
    conversation.append(Message.assistant("done"))
    conversation.append(Message("user", (ImageContent("aGk=", "image/png"), TextContent("see"))))
    assert conversation.most_since_answer > 1_000_000


def test_a_lost_result_is_said_to_be_lost() -> None:
    calls = (ToolCall("1", "t"), ToolCall("2", "t"))
    view = view_of([Message.user("go"), Message("assistant", (), calls), Message.user("so?")])
    answered = view[2]
    assert [(one.id, one.text, one.is_error) for one in answered.tool_results] == [
        ("1", LOST, True),
        ("2", LOST, True),
    ]
    assert answered.text == "so?"


def test_a_draft_leaves_the_conversation_as_it_was() -> None:
    conversation = Transcript([Message.user("q"), Message.assistant("a")])
    draft = conversation.draft()
    draft.append(Message.user("more"))
    other = conversation.draft()
    other.append(Message.user("else"))
    assert [one.text for one in conversation.history] == ["q", "a"]
    assert [one.text for one in draft.history] == ["q", "a", "more"]
    assert [one.text for one in other.view] == ["q", "a", "else"]


LIMITS = ResultLimits(1024)


def called(call_id: str, text: str) -> list[Message]:
    """A call and its result."""
    result = ToolResult(call_id, (TextContent(text),))
    return [
        Message("assistant", (), (ToolCall(call_id, "tool"),)),
        Message("user", tool_results=(result,)),
    ]


def with_results(*texts: str) -> list[Message]:
    calls = [one for at, text in enumerate(texts) for one in called(f"c{at}", text)]
    return [Message.user("go"), *calls]


@given(st.lists(st.integers(0, 3000), max_size=5))
def test_long_results_are_cut_in_the_view_however_the_messages_came(sizes: list[int]) -> None:
    messages = with_results(*("x" * size for size in sizes))
    appended = Transcript((), LIMITS)
    for message in messages:
        appended.append(message)
    started = Transcript(messages, LIMITS)
    taken_over = Transcript(Transcript(messages), LIMITS)
    is_cut = max(sizes, default=0) > 1024
    for one in (appended, started, taken_over, Transcript(started), started.draft()):
        assert list(one.history) == messages
        assert list(one.view) == list(appended.view)
        assert one.has_cut is is_cut
        assert (one.view is one.history) is (not is_cut)
    assert all(len(one.text) < 1300 for m in appended.view for one in m.tool_results)


def test_a_conversation_with_other_limits_is_cut_anew_from_the_whole() -> None:
    small = Transcript(with_results("x" * 3000), LIMITS)
    large = Transcript(small, ResultLimits(4000))
    assert large.view[-1].tool_results[0].text == "x" * 3000
    assert not large.has_cut
    assert Transcript(large, LIMITS).has_cut


def test_whole_results_are_found_by_the_id_of_their_call() -> None:
    conversation = Transcript(with_results("a" * 3000, "b"), LIMITS)
    whole = conversation.result("c0")
    assert whole is not None
    assert whole.text == "a" * 3000
    assert conversation.result("c9") is None


def test_shortening_leaves_out_old_results_first_and_then_the_last() -> None:
    conversation = Transcript(with_results(*["x" * 20_000] * 3), ResultLimits(32_000))
    assert conversation.shorten()
    sizes = [len(one.text) for m in conversation.view for one in m.tool_results]
    assert sizes[0] == sizes[1] < 800
    assert sizes[2] == 20_000
    assert conversation.shorten()
    sizes = [len(one.text) for m in conversation.view for one in m.tool_results]
    assert sizes[2] < 4400
    assert "20,000 characters" in conversation.view[-1].tool_results[0].text
    assert not conversation.shorten()
    assert conversation.result("c0") == ToolResult("c0", (TextContent("x" * 20_000),))


def test_there_is_nothing_to_shorten_without_long_results() -> None:
    conversation = Transcript(with_results("short", "é" * 300), LIMITS)
    assert not conversation.shorten()
    assert not conversation.has_cut
