"""Sessions and their turns, as lines for people and as JSON."""

from __future__ import annotations

import json
from dataclasses import asdict
from datetime import datetime
from typing import TYPE_CHECKING

from fast_agent.text.visible import visible
from fast_agent.text.wording import local_minute, shortened_line

if TYPE_CHECKING:
    from collections.abc import Sequence

    from fast_agent.sessions.facts import SessionSummary
    from fast_agent.sessions.state import SessionState

_MAX_TITLE_CHARACTERS = 70


def render_sessions(sessions: Sequence[SessionSummary]) -> str:
    """Write sessions as lines for people."""
    if not sessions:
        return "there are no sessions; `fast-agent go --session` starts one\n"
    lines = [
        f"{one.id}  {local_minute(one.changed)}  {_count(one)}  {visible(one.problem or one.title)}"
        for one in sessions
    ]
    return "".join(f"{line.rstrip()}\n" for line in lines)


def sessions_json(sessions: Sequence[SessionSummary]) -> str:
    """Write sessions as JSON."""
    return json.dumps([_facts(one) for one in sessions], indent=2) + "\n"


def render_turns(summary: SessionSummary, state: SessionState) -> str:
    """Write the turns of a session as lines for people."""
    lines = [f"{summary.id}  {visible(summary.title)}".rstrip()]
    if summary.cwd:
        lines.append(f"directory: {visible(summary.cwd)}")
    if summary.parent:
        lines.append(f"forked from: {summary.parent}")
    for turn in _turns(state):
        asked, answer = (
            visible(shortened_line(turn[key], _MAX_TITLE_CHARACTERS))
            for key in ("message", "answer")
        )
        lines.append(f"{turn['turn']:>4}  {turn['agent']}: {asked}")
        lines.append(f"      {answer or turn['stop_reason']}")
    return "\n".join(lines) + "\n"


def turns_json(summary: SessionSummary, state: SessionState) -> str:
    """Write a session and its turns as JSON."""
    facts = {**_facts(summary), "usage": _usage(state), "turns": _turns(state)}
    return json.dumps(facts, indent=2) + "\n"


def _usage(state: SessionState) -> dict[str, int]:
    from fast_agent.models.model import Usage

    return asdict(Usage(*state.used))


def _turns(state: SessionState) -> list[dict[str, str]]:
    found: list[dict[str, str]] = []
    for number, turn in enumerate(state.turns, 1):
        messages = turn.closed() if turn.ended is None else turn.messages()
        last = messages[-1]
        found.append(
            {
                "turn": str(number),
                "id": turn.turn_id,
                "agent": turn.agent,
                "message": messages[0].text,
                "answer": last.text if last.role == "assistant" else "",
                "stop_reason": turn.stop_reason or "cancelled",
            }
        )
    return found


def _facts(one: SessionSummary) -> dict[str, str | int | None]:
    return {
        "id": one.id,
        "title": one.title,
        "created": _iso(one.created),
        "changed": _iso(one.changed),
        "directory": one.cwd or None,
        "forked_from": one.parent,
        "turns": one.turns,
        "problem": one.problem,
    }


def _count(one: SessionSummary) -> str:
    if one.problem is not None:
        return " damaged"
    return f"{one.turns:>2} turn{'' if one.turns == 1 else 's'}".ljust(8)


def _iso(seconds: float) -> str:
    return datetime.fromtimestamp(seconds).astimezone().isoformat(timespec="seconds")
