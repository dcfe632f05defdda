"""Stores of parts: a directory, a PostgreSQL database, and either of them encrypted."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from tests.postgres_server import PostgresServer, why_not

from fast_agent.engine.part_store import Cipher, PostgresParts, open_parts
from fast_agent.errors import RunError

if TYPE_CHECKING:
    from pathlib import Path

KEY = Cipher(bytes(range(32)))


@pytest.mark.skipif(why_not() is not None, reason=f"{why_not()}")
def test_parts_in_postgresql_are_kept_once_and_read_by_others() -> None:
    with PostgresServer() as server:
        parts = PostgresParts(server.url)
        parts.put({"a1": b"one", "b2": b"\x00two"})
        parts.put({"a1": b"one", "c3": b"three"})
        other = open_parts(server.url)
        assert other.get(["a1", "b2", "zz"]) == {"a1": b"one", "b2": b"\x00two"}


def test_encrypted_parts_open_with_their_key_and_under_their_name_only(tmp_path: Path) -> None:
    open_parts(str(tmp_path), KEY).put({"a1": b"plan", "b2": b"other"})
    assert open_parts(str(tmp_path), KEY).get(["a1"]) == {"a1": b"plan"}
    assert b"plan" not in (tmp_path / "a1" / "a1").read_bytes()
    with pytest.raises(RunError, match="another key"):
        open_parts(str(tmp_path), Cipher(bytes(32))).get(["a1"])
    (tmp_path / "a1" / "a1").write_bytes((tmp_path / "b2" / "b2").read_bytes())
    with pytest.raises(RunError, match="was changed"):
        open_parts(str(tmp_path), KEY).get(["a1"])
