"""Kept messages: how many a server has written down in the sessions of its home."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from typing import TYPE_CHECKING

from fast_agent.sessions.event import MESSAGE, RESULT, TURN

if TYPE_CHECKING:
    from pathlib import Path

_COUNT = "SELECT count(*) FROM events WHERE kind IN (?, ?, ?)"


def kept_messages(home: Path) -> int:
    """Count what was said to agents and by them, and what tools gave."""
    total = 0
    for file in (home / "sessions").glob("*.sqlite"):
        with closing(sqlite3.connect(f"file:{file}?mode=ro", uri=True)) as database:
            total += database.execute(_COUNT, (TURN, MESSAGE, RESULT)).fetchone()[0]
    return total
