"""A session: what its log amounts to, also when it ends in the middle of something."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.messages.test_round_trip import empty_messages, full_messages, plain_messages
from tests.sessions.session_world import (
    began,
    calling,
    plain_turn,
    result,
    sqlite_log,
    store_in,
    texts,
    tool_turn,
    write,
)

from fast_agent.errors import SessionError
from fast_agent.messages.history import check_validity
from fast_agent.messages.json_message import message_from_wire
from fast_agent.messages.message import Message
from fast_agent.sessions.event import (
    BlockListed,
    HistoryCleared,
    HistoryExtended,
    HistoryReplaced,
    MessageAdded,
    ToolAnswered,
    TurnEnded,
)
from fast_agent.sessions.message_text import (
    read,
    read_all,
    read_result,
    store,
    store_all,
    store_result,
    usual_message,
)
from fast_agent.sessions.session import InterruptedTurn
from fast_agent.sessions.state import INTERRUPTED, LOST, SessionState
from fast_agent.sessions.store import SessionStore
from fast_agent.steps.steps import NullSteps

if TYPE_CHECKING:
    from pathlib import Path

    from fast_agent.sessions.event import SessionEvent


def test_results_come_back_in_call_order_with_messages_between_told_only_once(
    tmp_path: Path,
) -> None:
    with store_in(tmp_path).create() as session:
        write(session, tool_turn("a"))
        history = session.history("ann")
    assert list(texts(history)) == ["look twice", "1 2", "<one>", "<two>", "done"]
    assert check_validity(history) == []


def test_a_message_told_again_takes_the_place_of_the_first(tmp_path: Path) -> None:
    with store_in(tmp_path).create() as session:
        write(session, tool_turn("a")[:-2])
        changed = Message("user", tool_results=(result("1", "changed"), result("2", "too")))
        again = [
            MessageAdded("a", 0, Message.user("hooked")),
            MessageAdded("a", 2, changed),
            MessageAdded("a", 3, Message.assistant("done")),
            TurnEnded("a", "endTurn", kept=True),
        ]
        write(session, list(again))
        history = session.history("ann")
    assert list(texts(history)) == ["hooked", "1 2", "<changed>", "<too>", "done"]


class Carrier(NullSteps):
    """What kept the steps of a turn, as the process was killed."""

    interrupted = InterruptedTurn("a", "ann", Message.user("hi"), 1)

    def take_up(self) -> None:
        """Continue."""

    def close(self) -> None:
        """Close nothing."""


@pytest.mark.parametrize("ended", [True, False])
def test_only_a_turn_that_had_not_ended_was_interrupted(tmp_path: Path, ended: bool) -> None:
    turn = plain_turn("a", "hi", "yes")
    with store_in(tmp_path).create() as session:
        write(session, turn if ended else turn[:-1])
        place = session.id
    store = SessionStore(tmp_path, steps=lambda _: Carrier())
    with store.open(place) as session:
        # Else it was killed while the steps of a turn that had ended were deleted.
        assert session.interrupted == (None if ended else Carrier.interrupted)
        if not ended:
            assert session.take_up() == Carrier.interrupted
            assert session.history("ann") == []


def test_a_turn_that_was_told_to_end_twice_is_there_once(tmp_path: Path) -> None:
    with store_in(tmp_path).create() as session:
        write(session, plain_turn("a", "hi", "ho"), [TurnEnded("a", "cancelled", kept=True)])
        assert list(texts(session.history("ann"))) == ["hi", "ho"]
        assert [turn.stop_reason for turn in session.state.turns] == ["endTurn"]
        assert len(session.state.entries()) == 1


def test_events_written_at_once_are_there_all_or_none(tmp_path: Path) -> None:
    with store_in(tmp_path).create() as session:
        connection = sqlite_log(session.journal)._connection
        connection.execute("PRAGMA max_page_count = 1")
        with pytest.raises(SessionError, match="the disk is full"):
            session.journal.record(*plain_turn("a", "hi", "ho" * 9000))
        assert session.state.last == 0
        connection.execute("PRAGMA max_page_count = 1000000")
        session.journal.record(*plain_turn("a", "hi", "ho"))
        assert session.state.last == 3
        assert list(texts(session.history("ann"))) == ["hi", "ho"]


def test_a_session_that_may_not_be_written_says_what_to_check(tmp_path: Path) -> None:
    with store_in(tmp_path).create() as session:
        sqlite_log(session.journal)._connection.execute("PRAGMA query_only = ON")
        with pytest.raises(SessionError, match="it may not be written") as caught:
            session.journal.record(*plain_turn("a", "hi", "ho"))
        assert caught.value.hint == "check the permissions of the file and its directory"


def test_a_turn_that_left_nothing_is_in_no_history_and_no_transcript(tmp_path: Path) -> None:
    store = store_in(tmp_path)
    with store.create() as session:
        failed = TurnEnded("b", "error", kept=False, place="dropped")
        write(session, plain_turn("a", "one", "1"), [began("b", "lost"), failed])
        write(session, plain_turn("c", "two", "2"))
        assert list(texts(session.history("ann"))) == ["one", "1", "two", "2"]
    with store.open(session.id) as again:
        assert [entry.turn_id for entry in again.journal.transcript] == ["a", "c"]
        assert [turn.stop_reason for turn in again.state.turns] == ["endTurn", "error", "endTurn"]


def test_histories_are_cleared_replaced_and_extended(tmp_path: Path) -> None:
    seed = (
        Message("user", Message.user("rule").content, is_template=True),
        Message("assistant", Message.assistant("yes").content, is_template=True),
    )
    with store_in(tmp_path).create() as session:
        write(session, [HistoryReplaced("ann", seed)], plain_turn("a", "one", "1"))
        write(session, plain_turn("b", "other", "agent", agent="bob"))
        write(session, [HistoryCleared("ann", all=False)])
        assert list(texts(session.history("ann"))) == ["rule", "yes"]
        assert session.history("ann") == list(seed)
        write(session, [HistoryExtended("ann", (Message.user("x"), Message.assistant("y")))])
        assert list(texts(session.history("ann"))) == ["rule", "yes", "x", "y"]
        write(session, [HistoryCleared("ann", all=True)])
        assert session.history("ann") == []
        assert list(texts(session.history("bob"))) == ["other", "agent"]
        assert session.state.agents == ("ann", "bob")
        assert session.state.history("nobody") is None


def test_children_stand_where_their_block_came(tmp_path: Path) -> None:
    child = began("c1", "sub", agent="kid", parent="1", depth=1, keeps=False)
    other = began("c2", "sub", agent="kid", parent="2", depth=1, keeps=False)
    with store_in(tmp_path).create() as session:
        write(
            session,
            [began("a", "go"), MessageAdded("a", 1, calling("1", "2")), child, other],
            [MessageAdded("c2", 1, Message.assistant("fast"))],
            [TurnEnded("c2", "endTurn", kept=False, place="held")],
            [MessageAdded("c1", 1, Message.assistant("slow"))],
            [TurnEnded("c1", "endTurn", kept=False, place="held")],
            [ToolAnswered("a", result("2")), ToolAnswered("a", result("1"))],
            [BlockListed(("c1",)), BlockListed(("c2",))],
            [MessageAdded("a", 3, Message.assistant("all")), TurnEnded("a", "endTurn", kept=True)],
        )
        entries = session.state.entries()
        assert session.history("kid") == []
        assert len(session.state.turns) == 1
    assert [(entry.turn_id, entry.parent_call_id) for entry in entries] == [
        ("c1", "1"),
        ("c2", "2"),
        ("a", None),
    ]


def test_a_child_that_ended_is_listed_at_resume_and_does_not_end_again(tmp_path: Path) -> None:
    child = began("c", "sub", agent="kid", parent="1", depth=1, keeps=False)
    store = store_in(tmp_path)
    with store.create() as session:
        write(session, [began("a", "go"), MessageAdded("a", 1, calling("1")), child])
        write(session, [TurnEnded("c", "endTurn", kept=False, place="held")])
    with store.open(session.id) as again:
        assert [entry.turn_id for entry in again.state.entries()] == ["c", "a"]
        log = sqlite_log(again.journal)._connection
        ends = log.execute("SELECT turn FROM events WHERE kind = 'end' ORDER BY seq").fetchall()
        assert ends == [("c",), ("a",)]


def test_a_session_is_not_rewound_while_a_turn_runs(tmp_path: Path) -> None:
    with store_in(tmp_path).create() as session:
        write(session, plain_turn("a", "one", "1"), [began("b", "running")])
        with pytest.raises(SessionError, match="while a turn is running"):
            session.rewind(1)
        write(session, [TurnEnded("b", "error", kept=False, place="dropped")])
        session.rewind(1)
        assert len(session.state.turns) == 1


def test_a_turn_that_ran_beside_the_one_gone_back_to_is_closed(tmp_path: Path) -> None:
    store = store_in(tmp_path)
    with store.create() as session:
        write(session, [began("b", "beside", agent="bob")], plain_turn("a", "one", "1"))
        write(session, [MessageAdded("b", 1, Message.assistant("late"))])
        write(session, [TurnEnded("b", "endTurn", kept=True)])
        session.rewind("a")
        write(session, plain_turn("c", "two", "2", agent="bob"))
        expected = ["beside", INTERRUPTED, "two", "2"]
        assert list(texts(session.history("bob"))) == expected
    with store.open(session.id) as again:
        assert list(texts(again.history("bob"))) == expected


def test_what_a_rewind_took_away_can_be_taken_over_again(tmp_path: Path) -> None:
    with store_in(tmp_path).create() as session:
        write(session, plain_turn("a", "one", "1"), plain_turn("b", "two", "2"))
        before = list(texts(session.history("ann")))
        events = session.events_after(1)
        session.rewind(1)
        assert list(texts(session.history("ann"))) == ["one", "1"]
        session.take_over(events)
        assert list(texts(session.history("ann"))) == before
        assert [turn.turn_id for turn in session.state.turns] == ["a", "b"]
        assert session.events_after(2) == []


EVENTS: list[SessionEvent] = [
    *plain_turn("a", "one", "1"),
    began("b", "go"),
    MessageAdded("b", 1, calling("1", "2")),
    began("k", "sub", agent="kid", parent="1", depth=1, keeps=False),
    MessageAdded("k", 1, calling("x")),
    ToolAnswered("k", result("x")),
    ToolAnswered("b", result("2")),
    MessageAdded("k", 3, Message.assistant("sub done")),
    TurnEnded("k", "endTurn", kept=False, place="held"),
    ToolAnswered("b", result("1", "sub done")),
    BlockListed(("k",)),
    MessageAdded("b", 3, calling("3")),
    ToolAnswered("b", result("3")),
    MessageAdded("b", 5, Message.assistant("done")),
    TurnEnded("b", "endTurn", kept=True),
    HistoryExtended("ann", (Message.user("extra"), Message.assistant("noted"))),
]


@pytest.mark.spec("SESSION-3")
@pytest.mark.parametrize("length", range(len(EVENTS) + 1))
def test_a_log_that_ends_anywhere_gives_histories_providers_accept(
    tmp_path: Path, length: int
) -> None:
    store = store_in(tmp_path)
    with store.create() as session:
        write(session, EVENTS[:length])
        before = session.state
    with store.open(session.id) as again:
        given = again.journal.history("ann") or ()
        assert check_validity(given) == []
        assert check_validity(again.journal.transcript.messages()) == []
        for entry in again.journal.transcript:
            assert check_validity(entry.messages) == []
        # The end written for what was interrupted says what had been recorded before.
        assert list(given) == (before.history("ann") or []) == again.history("ann")
        assert again.state.entries() == before.entries()
        assert again.state.open_turns == ()
        write(again, plain_turn("next", "next", "answer"))
        assert list(texts(again.history("ann")))[-2:] == ["next", "answer"]
        assert again.history("ann")[: len(given)] == list(given)
        there = {
            found.text
            for entry in again.journal.transcript
            for message in entry.messages
            for found in message.tool_results
        }
    reported = {event.result.text for event in EVENTS[:length] if isinstance(event, ToolAnswered)}
    assert reported <= there


@st.composite
def nested_turns(draw: st.DrawFn) -> list[SessionEvent]:
    """Turns of four agents, one below the other, that begin and end in any order a run allows."""
    events: list[SessionEvent] = []
    stack: list[str] = []
    for number in range(draw(st.integers(1, 8))):
        while stack and draw(st.booleans()):
            events += _ended(stack.pop())
        agent, parent = f"agent{len(stack)}", f"call{len(stack)}" if stack else None
        events.append(
            began(f"t{number}", f"m{number}", agent=agent, parent=parent, depth=len(stack))
        )
        stack.append(f"t{number}")
    while stack:
        events += _ended(stack.pop())
    return events


def _ended(turn_id: str) -> list[SessionEvent]:
    return [
        MessageAdded(turn_id, 1, Message.assistant("done")),
        TurnEnded(turn_id, "endTurn", kept=True),
    ]


@pytest.mark.spec("SESSION-3")
@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(events=nested_turns(), data=st.data())
def test_nested_turns_that_are_killed_anywhere_are_the_same_once_they_are_resumed(
    tmp_path_factory: pytest.TempPathFactory, events: list[SessionEvent], data: st.DataObject
) -> None:
    length = data.draw(st.integers(0, len(events)))
    store = store_in(tmp_path_factory.mktemp("killed"))
    with store.create() as session:
        write(session, events[:length])
        before = session.state
        open_turns = [turn.depth for turn in before.open_turns]
    with store.open(session.id) as again:
        after = again.state
        assert after.entries() == before.entries()
        assert [again.history(agent) for agent in before.agents] == [
            before.history(agent) for agent in before.agents
        ]
        assert after.open_turns == ()
        assert list(again.journal.transcript) == before.entries()
    # A turn stands behind those it started, also where both were interrupted.
    assert open_turns == sorted(open_turns, reverse=True)
    places = [int(entry.agent.removeprefix("agent")) for entry in before.entries()]
    assert places[len(places) - len(open_turns) :] == open_turns


def test_interrupted_turns_are_listed_behind_those_they_started(tmp_path: Path) -> None:
    store = store_in(tmp_path)
    with store.create() as session:
        write(
            session,
            [
                began("a", "top", agent="ann"),
                began("b", "below", agent="bob", parent="1", depth=1),
                began("c", "deepest", agent="cid", parent="2", depth=2),
            ],
        )
    with store.open(session.id) as again:
        assert [entry.agent for entry in again.journal.transcript] == ["cid", "bob", "ann"]
    with store.open(session.id) as again:
        assert [entry.agent for entry in again.journal.transcript] == ["cid", "bob", "ann"]


def test_what_was_answered_before_the_end_is_kept_and_the_rest_says_so(tmp_path: Path) -> None:
    store = store_in(tmp_path)
    with store.create() as session:
        write(session, tool_turn("a")[:3])
    with store.open(session.id) as again:
        history = again.history("ann")
    assert list(texts(history)) == ["look twice", "1 2", f"<{LOST}>", "<two>", INTERRUPTED]
    assert history[2].tool_results[0].is_error
    assert history[3].stop_reason == "cancelled"


def test_an_interrupted_turn_does_not_bring_back_what_was_cleared(tmp_path: Path) -> None:
    store = store_in(tmp_path)
    with store.create() as session:
        write(session, plain_turn("a", "one", "1"), [began("b", "x")])
        write(session, [HistoryCleared("ann", all=True)])
    with store.open(session.id) as again:
        assert again.history("ann") == []
        assert len(again.journal.transcript) == 2


@pytest.mark.spec("SESSION-15")
@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(full_messages | plain_messages | empty_messages)
def test_every_message_comes_back_as_it_was(message: Message) -> None:
    try:
        form, text = store(message)
    except SessionError:
        with pytest.raises(SessionError):
            store_all([message])
        return
    text.encode()
    assert read(form, text) == message
    assert read_all(store_all([message, message])) == [message, message]
    for one in message.tool_results:
        assert read_result(*store_result(one)) == one


BROKEN: list[Any] = [None, 7, "x", [], [7], {}, {"1": {}}, {"1": 7}, True]


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(full_messages | plain_messages, st.data())
def test_the_short_way_to_read_a_message_gives_what_the_codec_gives(
    message: Message, data: st.DataObject
) -> None:
    try:
        wire: Any = json.loads(store_all([message]))[0]
    except SessionError:
        return
    usual = usual_message(wire)
    assert usual is None or usual == message_from_wire(wire) == message
    # Whatever is broken in it, the short way never reads what the codec refuses.
    key = data.draw(st.sampled_from(sorted(wire)))
    wire[key] = data.draw(st.sampled_from(BROKEN))
    usual = usual_message(wire)
    assert usual is None or usual == message_from_wire(wire)


def test_plain_messages_calls_and_results_go_the_short_way() -> None:
    for message in (calling("1", "2"), Message("user", tool_results=(result("1"),))):
        (wire,) = json.loads(store_all([message]))
        assert usual_message(wire) == message


@settings(max_examples=40, deadline=None)
@given(st.text(), st.sampled_from([None, "", "endTurn", "a b", "ß"]))
def test_plain_texts_survive_the_file(text: str, reason: str | None) -> None:
    message = Message("assistant", Message.user(text).content, stop_reason=reason)
    assert read(*store(message)) == message


def test_a_state_of_nothing() -> None:
    state = SessionState(())
    assert (state.turns, state.agents, state.entries(), state.title, state.last) == (
        (),
        (),
        [],
        None,
        0,
    )
