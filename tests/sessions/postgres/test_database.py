"""Addresses and errors of databases as people see them."""

from __future__ import annotations

from functools import partial
from types import SimpleNamespace
from typing import Any

import psycopg
import pytest

from fast_agent.sessions.postgres.database import Database, _reason, _shown


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("postgres://ann:hunter2@db.example/agents", "postgres://ann@db.example/agents"),
        ("postgres://db.example:5433/agents?sslmode=require", "postgres://db.example:5433/agents"),
        ("postgres:///agents", "postgres://localhost/agents"),
        ("postgres://db:nonsense/x", "postgres://…"),
    ],
)
def test_an_address_is_shown_without_its_password(url: str, shown: str) -> None:
    assert _shown(url) == shown


def test_connections_that_are_not_needed_are_closed() -> None:
    closed: list[int] = []
    idle: list[Any] = [SimpleNamespace(close=partial(closed.append, one)) for one in range(6)]
    kept = Database("postgres:///x")
    for one in idle:
        kept.release_connection(one)
    assert closed == [4, 5]
    assert [kept.take() for _ in range(4)] == idle[3::-1]


@pytest.mark.parametrize(
    ("said", "reason", "hint"),
    [
        (
            'connection to server at "db" failed: Connection refused\n\tIs the server running?',
            'it cannot be reached (connection to server at "db" failed: Connection refused)',
            "check that it runs, and `sessions.url`",
        ),
        (
            'root certificate file "/r.crt" does not exist\nEither provide it, or disable that.',
            'it cannot be trusted (root certificate file "/r.crt" does not exist)',
            "set `PGSSLROOTCERT` to the file that certifies it, or to `system`",
        ),
        (
            "SSL error: certificate verify failed",
            "it cannot be trusted (SSL error: certificate verify failed)",
            "set `PGSSLROOTCERT` to the file that certifies it, or to `system`",
        ),
        (
            "no answer from postgres://ann:hunter2@db/agents",
            "it cannot be reached (no answer from postgres://ann:***@db/agents)",
            "check that it runs, and `sessions.url`",
        ),
        ("", "it cannot be reached (OperationalError)", "check that it runs, and `sessions.url`"),
        (
            'FATAL: password authentication failed for user "ann"',
            "it rejects the user or the password",
            "check `sessions.url`",
        ),
        *(
            (
                f'connection to server at "db" failed: FATAL:  {said}',
                "it has no connection left",
                "raise `max_connections` there, or have a pooler share them",
            )
            for said in (
                "sorry, too many clients already",
                "remaining connection slots are reserved for roles with the SUPERUSER attribute",
                "no more connections allowed (max_client_conn)",
            )
        ),
        *(
            (
                f'connection to server at "db" failed: FATAL:  {said} does not exist',
                "it has no such database or user",
                "create it, or correct `sessions.url`",
            )
            for said in ('database "agents"', 'role "ann"')
        ),
    ],
)
def test_what_the_library_says_is_put_in_one_line(said: str, reason: str, hint: str) -> None:
    assert _reason(psycopg.OperationalError(said)) == (reason, hint)
