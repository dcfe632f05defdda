"""Addresses of databases as people see them."""

from __future__ import annotations

import pytest

from fast_agent.sessions.postgres.database import _shown


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
