"""What a session is exported as: a history that reads back equal, and text for people."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from tests.sessions.session_world import plain_turn, result, store_in, tool_turn, write

from fast_agent.errors import SessionError
from fast_agent.messages.json_message import read_json_history
from fast_agent.sessions.event import ToolAnswered
from fast_agent.sessions.export import agent_of, export_json, export_markdown
from fast_agent.text.source import Source

if TYPE_CHECKING:
    from collections.abc import Generator
    from pathlib import Path

    from fast_agent.sessions.session import Session


@pytest.fixture(name="session")
def _session(tmp_path: Path) -> Generator[Session]:
    with store_in(tmp_path).create("the trip") as session:
        write(session, plain_turn("ann-1", "where to?", "south"), tool_turn("ann-2"))
        write(session, plain_turn("bob-1", "and then?", "north", agent="bob"))
        yield session


def test_a_history_reads_back_equal(session: Session) -> None:
    text = export_json(session.state, "ann")
    messages = read_json_history(Source("x.json", text)).messages
    assert messages == tuple(session.state.history("ann") or ())
    assert [one.text for one in messages][:2] == ["where to?", "south"]
    assert len(messages) == 6


def test_the_agent_that_was_talked_to_last_is_exported(session: Session) -> None:
    assert agent_of(session.state) == "bob"
    assert export_json(session.state) == export_json(session.state, "bob")
    with pytest.raises(SessionError, match="no history of agent `anne`") as caught:
        agent_of(session.state, "anne")
    assert caught.value.hint == "did you mean `ann`?"


def test_a_session_without_turns_has_no_agent(tmp_path: Path) -> None:
    with (
        store_in(tmp_path).create("empty") as session,
        pytest.raises(SessionError, match="the session has no turns yet"),
    ):
        export_json(session.state)


@pytest.mark.parametrize(
    ("text", "fence"), [("a", "```"), ("a ` b", "```"), ("a ``` b", "````"), ("`" * 6, "`" * 7)]
)
def test_a_result_cannot_end_its_block(tmp_path: Path, text: str, fence: str) -> None:
    with store_in(tmp_path).create("x") as session:
        turn = tool_turn("ann-1")
        turn[2] = ToolAnswered("ann-1", result("2", text))
        write(session, turn)
        (summary,) = store_in(tmp_path).list()
        lines = export_markdown(summary, session.state).split("\n")
    at = lines.index(text)
    assert (lines[at - 1], lines[at + 1]) == (fence, fence)


def test_text_for_people_names_turns_calls_and_results(session: Session, tmp_path: Path) -> None:
    (summary,) = store_in(tmp_path).list()
    lines = export_markdown(summary, session.state).split("\n")
    shown = [line for line in lines if line and not line.startswith(("Session `", "```", "{}"))]
    assert shown == [
        "# the trip",
        "## Turn 1: ann",
        "**User**",
        "where to?",
        "**Assistant**",
        "south",
        "## Turn 2: ann",
        "**User**",
        "look twice",
        *("**Calls `look`**", "**Calls `look`**", "**Result**", "one", "**Result**", "two"),
        "**Assistant**",
        "done",
        "## Turn 3: bob",
        "**User**",
        "and then?",
        "**Assistant**",
        "north",
    ]
