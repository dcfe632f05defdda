"""Summary: what a list of sessions shows of one, read from its log."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fast_agent.sessions.facts import SessionFacts, SessionSummary, short_title

if TYPE_CHECKING:
    from fast_agent.sessions.log import EventLog


def summary_of(log: EventLog) -> SessionSummary:
    """Summarize a session by single events of its log, without reading all of them.

    Raises:
        SessionError: One of them is damaged.
    """
    facts = SessionFacts.of(log.facts, log.place)
    rewinds = log.rewinds()
    root_turns = [
        seq for seq in log.root_turns() if not any(kept < seq < end for kept, end in rewinds)
    ]
    title = log.title()
    if title is None and root_turns:
        title = short_title(log.first_message(root_turns[0]).text)
    return SessionSummary(
        id=facts.id,
        title=title or "",
        created=facts.created,
        changed=log.changed() or facts.created,
        cwd=facts.cwd,
        parent=facts.parent,
        turns=len(root_turns),
        root=None if facts.brought is None else facts.brought.root,
    )
