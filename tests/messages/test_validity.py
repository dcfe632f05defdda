from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from fast_agent.messages.history import History, check_validity, close_open_calls
from fast_agent.messages.message import Message, ToolCall, ToolResult


def calling(*ids: str) -> Message:
    return Message("assistant", tool_calls=tuple(ToolCall(one, "t") for one in ids))


def answering(*ids: str) -> Message:
    return Message("user", tool_results=tuple(ToolResult(one) for one in ids))


HELLO, ANSWER = Message.user("hello"), Message.assistant("hi")


def test_valid_conversations() -> None:
    assert check_validity([]) == []
    assert check_validity([HELLO]) == []
    assert check_validity([HELLO, HELLO, ANSWER, HELLO]) == []
    calls = [HELLO, calling("a", "b"), answering("b", "a"), calling("a"), answering("a"), ANSWER]
    assert check_validity(calls) == []


def test_what_providers_refuse() -> None:
    assert check_validity([ANSWER]) == [
        "message 0 is from the assistant, but the user must speak first"
    ]
    assert check_validity([HELLO, ANSWER, ANSWER]) == [
        "message 2 is from the assistant, as is the one before it"
    ]
    assert check_validity([HELLO, calling("a")]) == [
        "message 1 has a tool call without a result: `a`"
    ]
    assert check_validity([HELLO, calling("a", "b"), answering("a"), answering("b")]) == [
        "message 2 has no result for the tool call `b` before it",
        "message 3 has a result without a call: `b`",
    ]
    assert check_validity([HELLO, calling("a"), answering("a", "a")]) == [
        "message 2 answers the tool call `a` twice"
    ]
    assert check_validity([HELLO, calling("a", "a"), answering("a")]) == [
        "message 1 calls twice with the id `a`"
    ]
    assert check_validity([answering("a")]) == ["message 0 has a result without a call: `a`"]
    wrong_way = [
        Message("user", tool_calls=(ToolCall("a", "t"),)),
        Message("assistant", tool_results=(ToolResult("a"),)),
    ]
    assert check_validity(wrong_way) == [
        "message 0 is from the user but calls tools",
        "message 1 is from the assistant but holds tool results",
    ]


@given(
    st.lists(st.integers(0, 3), max_size=6),
    st.integers(0, 3),
    st.lists(st.booleans(), min_size=3, max_size=3),
    st.sampled_from(["calls", "some results", "text after calls", "nothing"]),
)
def test_closing_makes_any_interrupted_turn_valid(
    turns: list[int], open_calls: int, kept: list[bool], ending: str
) -> None:
    messages = [HELLO]
    for turn, count in enumerate(turns):
        ids = [f"{turn}.{number}" for number in range(count)]
        messages += [calling(*ids), answering(*ids)] if ids else [ANSWER, HELLO]
    ids = [f"open.{number}" for number in range(open_calls)]
    there = [one for one, keep in zip(ids, kept, strict=False) if keep]
    if ids and ending != "nothing":
        messages.append(calling(*ids))
        if ending == "some results":
            messages.append(answering(*there))
        elif ending == "text after calls":
            messages.append(HELLO)
    history = History(messages)
    closed = close_open_calls(history, "cancelled")
    assert check_validity(closed) == []
    assert list(history) == messages
    if check_validity(history) == []:
        assert closed is history
    else:
        assert [result.id for result in closed[-1].tool_results] == ids
        for result in closed[-1].tool_results:
            given_already = ending == "some results" and result.id in there
            assert result.is_error is not given_already
            assert result.text == ("" if given_already else "cancelled")
    assert close_open_calls(closed, "cancelled") is closed
