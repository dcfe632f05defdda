from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from fast_agent.text.atomic_file import write_atomic

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
