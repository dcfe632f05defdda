"""The cumulative transcript: order, blocks, and a view providers accept."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fast_agent.errors import SessionError
from fast_agent.messages.history import append_to_view, check_validity
from fast_agent.messages.message import Message, TextContent, ToolCall, ToolResult
from fast_agent.sessions import cumulative
from fast_agent.sessions.cumulative import CumulativeTranscript, Entry

if TYPE_CHECKING:
    from collections.abc import Sequence

    from fast_agent.messages.history import History


def turn(name: str, *messages: Message, agent: str = "ann", parent: str | None = None) -> Entry:
    return Entry(agent, name, parent, messages or (Message.user(name), Message.assistant("ok")))


def tool_turn(name: str, *call_ids: str) -> Entry:
    calls = tuple(ToolCall(one, "look") for one in call_ids)
    results = tuple(ToolResult(one, (TextContent(f"{name} {one}"),)) for one in call_ids)
    return turn(
        name,
        Message.user(name),
        Message("assistant", tool_calls=calls),
        Message("user", tool_results=results),
        Message.assistant("done"),
    )


def transcript_of(*entries: Entry) -> CumulativeTranscript:
    transcript = CumulativeTranscript()
    transcript.block(entries)
    return transcript


@pytest.mark.spec("SESSION-9")
def test_turns_stay_in_the_order_they_were_added() -> None:
    transcript = CumulativeTranscript(lambda: [turn("a")])
    transcript.append(turn("b"))
    transcript.block([turn("c", parent="call"), turn("d")])
    assert [entry.turn_id for entry in transcript.entries] == ["a", "b", "c", "d"]
    assert [entry.turn_id for entry in transcript] == ["a", "b", "c", "d"]
    assert len(transcript) == 4
    assert transcript.entries[2].parent_call_id == "call"


def test_a_block_is_reported_before_it_is_added_and_left_out_where_it_cannot_be_written() -> None:
    reported: list[tuple[int, int]] = []
    transcript = CumulativeTranscript(
        on_block=lambda added: reported.append((len(transcript), len(added)))
    )
    transcript.block([turn("a"), turn("b")])
    transcript.block([])
    transcript.append(turn("c"))
    assert reported == [(0, 2)]

    def fail(added: Sequence[Entry]) -> None:
        raise SessionError("the disk is full")

    refusing = CumulativeTranscript(on_block=fail)
    with pytest.raises(SessionError):
        refusing.block([turn("a")])
    assert refusing.entries == ()


def test_the_past_is_read_once_and_only_when_it_is_needed() -> None:
    asked: list[str] = []

    def past() -> list[Entry]:
        asked.append("past")
        return [turn("a")]

    transcript = CumulativeTranscript(past)
    transcript.append(turn("b"))
    assert asked == []
    assert [message.text for message in transcript.messages()] == ["a", "ok", "b", "ok"]
    transcript.append(turn("c"))
    assert [entry.turn_id for entry in transcript] == ["a", "b", "c"]
    assert len(transcript.messages()) == 6
    assert asked == ["past"]


def test_call_ids_two_turns_share_are_reported_apart_with_their_results() -> None:
    transcript = transcript_of(tool_turn("a", "1", "2"), tool_turn("b", "2", "1", "3"))
    messages = transcript.messages()
    assert check_validity(messages) == []
    ids = [call.id for message in messages for call in message.tool_calls]
    assert len(set(ids)) == 5
    assert all(one in transcript.call_ids for one in ids)
    assert {"1", "2", "3"} <= set(ids)
    assert [result.text for result in messages[6].tool_results] == ["b 2", "b 1", "b 3"]
    # The log itself keeps what was said.
    assert transcript.entries[1].messages[1].tool_calls[0].id == "2"


def test_a_turn_that_calls_with_one_id_in_two_rounds_keeps_each_result_with_its_call() -> None:
    first, second = tool_turn("a", "1").messages, tool_turn("b", "1").messages
    transcript = transcript_of(turn("t", *first[:3], *second[1:]))
    messages = transcript.messages()
    assert check_validity(messages) == []
    assert [r.text for m in messages for r in m.tool_results] == ["a 1", "b 1"]


messages = st.lists(
    st.sampled_from(
        [
            Message.user("hi"),
            Message.assistant("ho"),
            *tool_turn("a", "1", "2").messages[1:3],
            *tool_turn("a", "1").messages[1:3],
        ]
    ),
    max_size=5,
).map(tuple)


@pytest.mark.spec("SESSION-9")
@settings(max_examples=100, deadline=None)
@given(st.lists(st.tuples(messages, st.booleans()), max_size=8))
def test_the_view_is_valid_whatever_the_turns_are_and_whenever_it_is_asked(
    turns: list[tuple[tuple[Message, ...], bool]],
) -> None:
    transcript = CumulativeTranscript()
    for number, (said, ask) in enumerate(turns):
        transcript.append(Entry("ann", f"t{number}", None, said))
        if ask:
            before = list(transcript.messages())
            assert check_validity(before) == []
    whole = transcript_of(*transcript.entries).messages()
    assert check_validity(whole) == []
    assert transcript.messages() == whole
    ids = [call.id for message in whole for call in message.tool_calls]
    assert len(ids) == len(set(ids))


def test_asking_after_every_turn_works_on_each_message_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    worked: list[Message] = []

    def counted(view: History, message: Message) -> History:
        worked.append(message)
        return append_to_view(view, message)

    monkeypatch.setattr(cumulative, "append_to_view", counted)
    transcript = CumulativeTranscript()
    for number in range(300):
        transcript.append(tool_turn(f"t{number}", "1"))
        assert len(transcript.messages()) == 4 * (number + 1)
    assert len(worked) == 4 * 300
