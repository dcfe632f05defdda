from __future__ import annotations

import os
import stat
from typing import TYPE_CHECKING

import pytest

from fast_agent.text.safe_file import write_atomic

if TYPE_CHECKING:
    from pathlib import Path


def test_follows_a_link_and_leaves_nothing_behind(tmp_path: Path) -> None:
    (tmp_path / "there").mkdir()
    real = tmp_path / "there/real.txt"
    real.write_bytes(b"old")
    link = tmp_path / "link.txt"
    link.symlink_to(real)
    write_atomic(link, b"new")
    assert link.is_symlink()
    assert real.read_bytes() == b"new"
    assert [item.name for item in (tmp_path / "there").iterdir()] == ["real.txt"]


@pytest.mark.spec("ROUTE-2")
def test_it_is_on_the_disk_before_it_is_in_its_place_and_the_place_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    done: list[str] = []
    target = tmp_path / "file"
    fsync = os.fsync

    def noted(descriptor: int) -> None:
        fsync(descriptor)
        kind = "directory" if stat.S_ISDIR(os.fstat(descriptor).st_mode) else "file"
        done.append(f"{kind}, {'in' if target.exists() else 'not in'} its place")

    monkeypatch.setattr(os, "fsync", noted)
    write_atomic(target, b"new")
    assert done == ["file, not in its place", "directory, in its place"]


def test_a_failure_leaves_the_old_file_and_no_other(tmp_path: Path) -> None:
    target = tmp_path / "busy"
    (target / "inside").mkdir(parents=True)
    with pytest.raises(OSError):  # noqa: PT011  (which one is the system's choice)
        write_atomic(target, b"new")
    assert [item.name for item in tmp_path.iterdir()] == ["busy"]


def test_long_names(tmp_path: Path) -> None:
    path = tmp_path / ("n" * 250)
    write_atomic(path, b"x")
    assert path.read_bytes() == b"x"
