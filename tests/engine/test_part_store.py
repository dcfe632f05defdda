"""Stores of parts: a directory, a PostgreSQL database, and either of them encrypted."""

from __future__ import annotations

from errno import ENOSPC
from pathlib import Path

import pytest
from tests.postgres_server import PostgresServer, why_not

from fast_agent.engine.part_store import Cipher, PostgresParts, open_parts
from fast_agent.errors import RunError

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


@pytest.mark.spec("RUN-26")
@pytest.mark.parametrize("count", [1, 40])
def test_parts_are_on_the_disk_before_they_have_their_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, count: int
) -> None:
    parts = open_parts(str(tmp_path))
    settled, named = set[str](), list[str]()

    def settle(descriptor: int) -> None:
        settled.add(str(Path(f"/proc/self/fd/{descriptor}").readlink()))

    def settle_all() -> None:
        settled.update(map(str, tmp_path.rglob("*")))

    def replace(written: Path, path: Path) -> None:
        assert str(written) in settled
        named.append(str(path))
        written.rename(path)

    monkeypatch.setattr("os.fsync", settle)
    monkeypatch.setattr("os.sync", settle_all)
    monkeypatch.setattr("pathlib.Path.replace", replace)
    parts.put({f"{number:04}": b"value" for number in range(count)})
    assert len(named) == count
    assert {str(Path(path).parent) for path in named} <= settled
    settled.clear()
    parts.put({"0000": b"value"})
    assert not settled  # it is there


def test_a_disk_that_refuses_leaves_no_part_behind(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    parts = open_parts(str(tmp_path))

    def refuse(descriptor: int) -> None:
        raise OSError(ENOSPC, f"no room for {descriptor}")

    with monkeypatch.context() as patch:
        patch.setattr("os.fsync", refuse)
        with pytest.raises(RunError, match="cannot be stored in"):
            parts.put({"a1": b"one", "a2": b"two"})
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == []
    parts.put({"a1": b"one", "a2": b"two"})
    assert parts.get(["a1", "a2"]) == {"a1": b"one", "a2": b"two"}
