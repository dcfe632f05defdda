from __future__ import annotations

import os
import threading
import time
from pathlib import Path

import pytest
from tests.patience import Rounds, wait_until

from fast_agent.config.home import is_never_served
from fast_agent.resources.folder import Folder
from fast_agent.resources.problem import TooLarge
from fast_agent.resources.resource import Limits
from fast_agent.text.safe_file import RefusedFileError

SECRET = b"secret"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    made = tmp_path / "root"
    made.mkdir()
    return made


def open_descriptors() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))


def age(path: Path) -> None:
    """Make a file older than what counts as just changed."""
    past = time.time_ns() - 10_000_000_000
    os.utime(path, ns=(past, past))


def test_walks_sorted_and_says_what_is_left_out(root: Path, tmp_path: Path) -> None:
    for name in ("b/z.md", "b/a.md", "a.md", "é.md"):
        (root / name).parent.mkdir(exist_ok=True)
        (root / name).write_text(name)
    (root / "empty").mkdir()
    for name in (".git", "node_modules", ".env.local"):
        (root / name).mkdir()
        (root / name / "x.md").write_text("hidden")
    (tmp_path / "out.md").write_bytes(SECRET)
    (root / "link.md").symlink_to(tmp_path / "out.md")
    (root / "linked").symlink_to(tmp_path)
    os.mkfifo(root / "pipe")
    (root / "back\\slash").write_text("x")
    (root / "line\nend").write_text("x")
    tree = Folder(root).walk()
    assert [file.path for file in tree.files] == ["a.md", "b/a.md", "b/z.md", "é.md"]
    assert tree.folders == ["b", "empty"]
    assert {skip.path: skip.reason for skip in tree.skipped} == {
        "link.md": "is a link; links are not followed",
        "linked": "is a link; links are not followed",
        "pipe": "is not a regular file",
        "back\\\\slash": "has a name that no URI can hold",
        "line\\nend": "has a name that no URI can hold",
    }
    below = Folder(root).walk(below="b")
    assert [file.path for file in below.files] == ["b/a.md", "b/z.md"]


def test_names_equal_in_composed_form(root: Path) -> None:
    (root / "\u00e9.md").write_text("one")
    (root / "e\u0301.md").write_text("two")
    (root / "K.md").write_text("one")
    (root / "\u212a.md").write_text("two")
    tree = Folder(root).walk()
    if len(list(root.iterdir())) == 4:
        assert len(tree.files) == 2
        assert len(tree.skipped) == 2


def test_bad_utf8_name(root: Path) -> None:
    (root / "\udcff.md").write_text("x")
    tree = Folder(root).walk()
    assert not tree.files
    assert [skip.path for skip in tree.skipped] == ["\\udcff.md"]


def test_bounds(root: Path) -> None:
    for number in range(6):
        (root / f"{number}.md").write_text("x")
    with pytest.raises(TooLarge) as caught:
        Folder(root, "guide docs").walk(Limits(tree_files=5))
    assert caught.value.count == 6
    assert caught.value.samples == ("0.md", "1.md", "2.md")
    assert str(root) not in caught.value.message
    deep = root / "a" / "b" / "c"
    deep.mkdir(parents=True)
    (deep / "x.md").write_text("x")
    tree = Folder(root).walk(Limits(tree_depth=2))
    assert tree.folders == ["a", "a/b"]
    assert [(skip.path, skip.reason) for skip in tree.skipped] == [
        ("a/b/c", "is nested deeper than 2 folders")
    ]


def test_the_root_may_be_a_link_and_is_resolved_once(root: Path, tmp_path: Path) -> None:
    (root / "a.md").write_text("a")
    link = tmp_path / "link"
    link.symlink_to(root)
    folder = Folder(link)
    link.unlink()
    link.symlink_to(tmp_path)
    assert folder.read("a.md", 10).data == b"a"
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "a.md").write_bytes(SECRET)
    root.rename(tmp_path / "moved")
    root.symlink_to(elsewhere)
    with pytest.raises(RefusedFileError):
        folder.read("a.md", 10)
    with pytest.raises(RefusedFileError):
        folder.walk()


def test_a_root_must_be_a_folder(root: Path) -> None:
    (root / "file").write_text("x")
    for wrong in (root / "file", root / "missing"):
        with pytest.raises(RefusedFileError):
            Folder(wrong)


@pytest.mark.parametrize(
    ("path", "reason"),
    [
        ("../out.md", "leads out"),
        ("/etc/passwd", "absolute"),
        ("missing.md", "does not exist"),
        ("link.md", "goes through the link"),
        ("linked/out.md", "goes through the link"),
        ("pipe", "is not a regular file"),
        ("sub", "is a directory"),
        ("large.md", "holds more than 8 bytes"),
        ("a\0b", "control character"),
    ],
)
def test_refused_reads(root: Path, tmp_path: Path, path: str, reason: str) -> None:
    (tmp_path / "out.md").write_bytes(SECRET)
    (root / "link.md").symlink_to(tmp_path / "out.md")
    (root / "linked").symlink_to(tmp_path)
    os.mkfifo(root / "pipe")
    (root / "sub").mkdir()
    (root / "large.md").write_text("123456789")
    with pytest.raises(RefusedFileError, match=reason) as caught:
        Folder(root).read(path, 8)
    assert str(tmp_path) not in caught.value.message


def test_reads_a_device_not(tmp_path: Path) -> None:
    with pytest.raises(RefusedFileError, match="is not a regular file"):
        Folder("/dev").read("null", 8)


def test_stamps(root: Path) -> None:
    file = root / "a.md"
    file.write_text("one")
    folder = Folder(root)
    assert folder.read("a.md", 10).stamp != folder.stamp("a.md")  # it may change in the same tick
    age(file)
    read = folder.read("a.md", 10)
    assert read.stamp == folder.stamp("a.md") == folder.walk().files[0].stamp
    file.write_text("two")
    assert read.stamp != folder.stamp("a.md")
    file.unlink()
    assert folder.stamp("a.md") is None
    file.symlink_to(root)
    assert folder.stamp("a.md") is None
    assert folder.stamp("a\0") is None


@pytest.mark.spec("T-2")
@pytest.mark.parametrize("swapped", ["file", "folder", "root"])
def test_a_link_swapped_in_while_reading_is_never_followed(
    root: Path, tmp_path: Path, swapped: str
) -> None:
    """Race: a name turns from file to link and back, thousands of times, while it is read."""
    outside = tmp_path / "outside" / "d"
    outside.mkdir(parents=True)
    (outside / "a.md").write_bytes(SECRET)
    (outside.parent / "d2").mkdir()
    (root / "d").mkdir()
    (root / "d" / "a.md").write_bytes(b"good")
    folder = Folder(root)
    target = {"file": root / "d" / "a.md", "folder": root / "d", "root": root}[swapped]
    evil = {"file": outside / "a.md", "folder": outside, "root": outside.parent}[swapped]
    aside, link = tmp_path / "aside", tmp_path / "link"
    stop = threading.Event()

    def swap() -> None:
        while not stop.is_set():
            target.rename(aside)
            link.symlink_to(evil)
            link.rename(target)
            target.unlink()
            aside.rename(target)

    thread = threading.Thread(target=swap)
    thread.start()
    seen: set[bytes] = set()
    refused = 0
    try:
        rounds = Rounds(0.7)
        while rounds.more(enough=refused and seen):
            try:
                seen.add(folder.read("d/a.md", 100).data)
                tree = folder.walk()
                assert all(file.stamp.size == 4 for file in tree.files)
            except RefusedFileError:
                refused += 1
    finally:
        stop.set()
        thread.join()
    assert seen <= {b"good"}
    assert refused
    assert folder.read("d/a.md", 100).data == b"good"


def test_no_descriptor_is_lost(root: Path) -> None:
    (root / "sub").mkdir()
    (root / "sub" / "a.md").write_text("a")
    (root / "link").symlink_to(root)
    folder = Folder(root)
    before = open_descriptors()
    for _ in range(20):
        folder.walk()
        folder.read("sub/a.md", 10)
        for wrong in ("link/a.md", "sub", "sub/b.md", "sub/a.md/b"):
            with pytest.raises(RefusedFileError):
                folder.read(wrong, 10)
        with pytest.raises(TooLarge):
            folder.walk(Limits(tree_files=1))
        with pytest.raises(RefusedFileError):
            folder.walk(below="link")
    wait_until(lambda: open_descriptors() <= before)  # another thread may just hold one


def test_ignored() -> None:
    assert is_never_served(".env.production")
    assert is_never_served("__pycache__")
    assert not is_never_served(".hidden")
