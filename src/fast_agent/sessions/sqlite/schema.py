"""Schema: the tables of a session's file, and how an older file is brought up to this version."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

from fast_agent.errors import SessionError
from fast_agent.sessions.event import ROW_COLUMNS, Row
from fast_agent.sessions.integrity import FACTS_SUM, facts_sum, summed

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Callable, Sequence


def add_sums(connection: sqlite3.Connection) -> None:
    """Add the checksums to a file that has none yet: a step of the schema."""
    total = 0
    sums: list[tuple[int, int]] = []
    for row in connection.execute(f"SELECT seq, {ROW_COLUMNS}, at FROM events ORDER BY seq"):  # noqa: S608
        _, seq, total, _ = summed((Row._make(row[1:-1]),), row[-1], row[0] - 1, total)
        sums.append((total, seq))
    connection.executemany("UPDATE events SET sum = ? WHERE seq = ?", sums)
    facts = dict(connection.execute("SELECT key, value FROM session"))
    if facts:
        connection.execute("INSERT INTO session VALUES (?, ?)", (FACTS_SUM, facts_sum(facts)))


Step: TypeAlias = "Sequence[str | Callable[[sqlite3.Connection], None]]"
"""What brings a file one version up: statements, and functions of the open file."""

APPLICATION_ID = 0x46415345
"""Marks a SQLite file as one of ours, in its header."""

STEPS: tuple[Step, ...] = (
    (
        "CREATE TABLE session (key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID",
        """CREATE TABLE events (
            seq INTEGER PRIMARY KEY, at REAL NOT NULL, kind TEXT NOT NULL, turn TEXT, agent TEXT,
            parent TEXT, number INTEGER, flag INTEGER, form TEXT, data TEXT)""",
        "CREATE INDEX marks ON events (kind, seq) WHERE kind IN ('rewound', 'titled')",
        "CREATE INDEX tops ON events (seq) WHERE kind = 'turn' AND parent IS NULL",
    ),
    ("ALTER TABLE events ADD COLUMN sum INTEGER", add_sums),
    (),  # from now on there may be compactions, which older programs do not know
)
"""Step `n` brings a file from version `n` to version `n + 1`."""

FIRST_WITH_SUMS = 2
"""The version from which on events have checksums."""


def version_of(connection: sqlite3.Connection) -> int:
    """Read the version of a file; 0 is an empty one."""
    (version,) = connection.execute("PRAGMA user_version").fetchone()
    return int(version)


def check_schema(connection: sqlite3.Connection, steps: Sequence[Step] = STEPS) -> bool:
    """Check that a file is a session this program can read.

    Args:
        connection: The open file.
        steps: The steps of all versions.

    Returns:
        Whether it is of this very version; False for an older one.

    Raises:
        SessionError: It is not a session, or of a newer version.
    """
    (marked,) = connection.execute("PRAGMA application_id").fetchone()
    version = version_of(connection)
    if marked != APPLICATION_ID or version < 1:
        raise SessionError(
            "the file is not a session",
            hint="put a copy in its place, or delete it with `fast-agent session delete`",
        )
    if version > len(steps):
        raise SessionError(
            f"the session is of version {version}, and this program knows {len(steps)} at most",
            hint="use the newer version of fast-agent that wrote it",
        )
    return version == len(steps)


def upgrade_schema(connection: sqlite3.Connection, steps: Sequence[Step] = STEPS) -> None:
    """Make the tables of a new file, or bring an older one to this version; all or nothing.

    Args:
        connection: The open file, outside a transaction.
        steps: The steps of all versions.
    """
    connection.execute("BEGIN IMMEDIATE")
    try:
        for number in range(version_of(connection), len(steps)):
            for act in steps[number]:
                if callable(act):
                    act(connection)
                else:
                    connection.execute(act)
        connection.execute(f"PRAGMA user_version = {len(steps)}")
        connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
    except BaseException:
        connection.execute("ROLLBACK")
        raise
    connection.execute("COMMIT")
