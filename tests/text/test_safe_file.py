from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from fast_agent.text.safe_file import RefusedFileError, confined_parts, read_confined

if TYPE_CHECKING:
    from pathlib import Path


def test_reads_below_its_root_even_if_the_root_is_a_link(tmp_path: Path) -> None:
    (tmp_path / "real/a/b").mkdir(parents=True)
    (tmp_path / "real/a/b/c.txt").write_bytes(b"hi")
    (tmp_path / "link").symlink_to(tmp_path / "real")
    for name in ("a/b/c.txt", "./a//b/./c.txt"):
        found = read_confined(tmp_path / "link", name, 10)
        assert found.data == b"hi"
        status = (tmp_path / "real/a/b/c.txt").stat()
        assert (found.stamp.inode, found.stamp.size) == (status.st_ino, 2)


@pytest.mark.parametrize(
    ("name", "reason", "missing"),
    [
        ("", "names no file", False),
        ("./", "names no file", False),
        ("/x", "is an absolute path", False),
        ("~/x", "is an absolute path", False),
        ("a/../x", "leads out of its directory with `..`", False),
        ("a\0b", "holds a control character", False),
        ("x", "does not exist", True),
        ("no/x", "does not exist", True),
        ("file/x", "does not exist", True),
        ("file/", None, False),
        ("long" * 100, "has a name that is too long", False),
        ("big", "holds more than 4 bytes", False),
        ("up", "goes through the link `up`", False),
        ("up/x", "goes through the link `up`", False),
        ("loop", "goes through the link `loop`", False),
    ],
)
def test_refusals(tmp_path: Path, name: str, reason: str | None, missing: bool) -> None:
    (tmp_path / "file").write_bytes(b"1234")
    (tmp_path / "big").write_bytes(b"12345")
    (tmp_path / "up").symlink_to(tmp_path.parent)
    (tmp_path / "loop").symlink_to("loop")
    if reason is None:
        assert read_confined(tmp_path, name, 4).data == b"1234"
        return
    with pytest.raises(RefusedFileError) as caught:
        read_confined(tmp_path, name, 4)
    assert (caught.value.message, caught.value.missing) == (reason, missing)


def test_no_descriptor_stays_open(tmp_path: Path) -> None:
    (tmp_path / "a/b").mkdir(parents=True)
    (tmp_path / "a/b/c").write_bytes(b"x")
    (tmp_path / "a/link").symlink_to("b")
    before = first_free_descriptor(tmp_path)
    for _ in range(20):
        read_confined(tmp_path, "a/b/c", 10)
        for wrong in ("a/no/c", "a/link/c", "a/b", "a/b/c/d"):
            with pytest.raises(RefusedFileError):
                read_confined(tmp_path, wrong, 10)
    assert first_free_descriptor(tmp_path) == before


def first_free_descriptor(folder: Path) -> int:
    descriptor = os.open(folder, os.O_RDONLY)
    os.close(descriptor)
    return descriptor


def test_parts() -> None:
    assert confined_parts("./a//b/c.md") == ("a", "b", "c.md")
