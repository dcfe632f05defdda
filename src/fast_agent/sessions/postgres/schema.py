"""Schema: the tables of sessions in a database, and how those of an older version are upgraded."""

from __future__ import annotations

from typing import TYPE_CHECKING, LiteralString, TypeAlias

from psycopg.errors import UndefinedTable

from fast_agent.errors import SessionError

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from psycopg import Connection

Step: TypeAlias = "Sequence[LiteralString]"
"""Statements that upgrade the tables by one version."""

LOCK = 0x46415345
"""The advisory lock that lets one process at a time upgrade the tables."""

STEPS: tuple[Step, ...] = (
    (
        # Columns not in the facts are what a listing shows. The free space on each page lets the
        # row, which moves with every append, stay on its page and out of the indexes.
        """CREATE TABLE fast_agent_session (
            id text PRIMARY KEY, facts text NOT NULL, alias text UNIQUE,
            head bigint NOT NULL DEFAULT 0, sum bigint NOT NULL DEFAULT 0,
            turns integer NOT NULL DEFAULT 0, title text, first text NOT NULL DEFAULT '',
            created double precision NOT NULL, changed double precision NOT NULL,
            touched timestamptz NOT NULL DEFAULT clock_timestamp(),
            owner text, fence bigint NOT NULL DEFAULT 0, lease timestamptz
        ) WITH (fillfactor = 60)""",
        # `body` is bytes, since a PostgreSQL text cannot contain the character NUL.
        """CREATE TABLE fast_agent_event (
            session text NOT NULL, seq bigint NOT NULL, at double precision NOT NULL,
            kind text NOT NULL, top boolean NOT NULL, number bigint, body bytea NOT NULL,
            sum bigint NOT NULL, PRIMARY KEY (session, seq))""",
        """CREATE INDEX fast_agent_mark ON fast_agent_event (session, seq)
            WHERE top OR kind IN ('rewound', 'titled')""",
    ),
    (
        # The steps of turns that are under way, by their names in the session.
        """CREATE TABLE fast_agent_step (
            session text NOT NULL, name text NOT NULL, body bytea NOT NULL,
            PRIMARY KEY (session, name))""",
    ),
)
"""Step `n` upgrades the tables from version `n` to version `n + 1`."""

_VERSION = "SELECT version FROM fast_agent_meta"


def bring_up(connection: Connection[Any], steps: Sequence[Step] = STEPS) -> None:
    """Create the tables, or upgrade those of an older version; all or nothing.

    Args:
        connection: A connection outside a transaction, with autocommit.
        steps: The steps of all versions.

    Raises:
        SessionError: The tables are of a newer version.
    """
    if _version(connection) == len(steps):
        return
    with connection.transaction():
        connection.execute("SELECT pg_advisory_xact_lock(%s)", (LOCK,))
        connection.execute("CREATE TABLE IF NOT EXISTS fast_agent_meta (version integer NOT NULL)")
        # Another process may have upgraded them while this one waited for the lock.
        found = connection.execute(_VERSION).fetchone()
        version = 0 if found is None else int(found[0])
        if version > len(steps):
            raise SessionError(
                f"its sessions are of version {version}, and this program knows"
                f" {len(steps)} at most",
                hint="use the newer version of fast-agent that wrote them",
            )
        for step in steps[version:]:
            for statement in step:
                connection.execute(statement)
        connection.execute("DELETE FROM fast_agent_meta")
        connection.execute("INSERT INTO fast_agent_meta VALUES (%s)", (len(steps),))


def _version(connection: Connection[Any]) -> int:
    try:
        found = connection.execute(_VERSION).fetchone()
    except UndefinedTable:
        return 0
    return 0 if found is None else int(found[0])
