from __future__ import annotations

import os
import subprocess
from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fast_agent.tools.files.tree import glob_pattern, walk

if TYPE_CHECKING:
    from pathlib import Path

NAMES = st.sampled_from(["a", "b", "ab", "a.txt", "b.log", "build", "x y", "#c"])
PARTS = st.sampled_from(["a", "b", "*", "**", "a*", "*.txt", "?", "[ab]", "build", "x y", "*.log"])
PATHS = st.lists(NAMES, min_size=1, max_size=3).map("/".join)
LINES = st.tuples(
    st.sampled_from(["", "!", "/"]),
    st.lists(PARTS, min_size=1, max_size=3).map("/".join),
    st.sampled_from(["", "/"]),
).map("".join)


def files_of(root: Path, start: str = "", *, glob: str | None = None) -> list[str]:
    return [
        f"{folder.path}/{name}" if folder.path else name
        for folder in walk(str(root), start, everything=False, glob=glob)
        for name in folder.files
    ]


def make(root: Path, paths: list[str]) -> None:
    for path in paths:
        place = root / path
        if not any(one.is_file() for one in place.parents) and not place.exists():
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_text("x")


@pytest.mark.spec("FILES-3")
@settings(max_examples=60, deadline=None)
@given(st.lists(PATHS, max_size=8), st.lists(LINES, max_size=4), st.lists(LINES, max_size=2))
def test_what_git_ignores_is_passed_over(
    tmp_path_factory: pytest.TempPathFactory, paths: list[str], top: list[str], inner: list[str]
) -> None:
    root = tmp_path_factory.mktemp("tree")
    make(root, paths)
    (root / ".gitignore").write_text("\n".join(top))
    if (root / "a").is_dir():
        (root / "a/.gitignore").write_text("\n".join(inner))
    subprocess.run(["git", "init", "-q"], cwd=root, check=True)
    listing = ["git", "ls-files", "--others", "--exclude-standard", "-z"]
    listed = subprocess.run(listing, cwd=root, check=True, capture_output=True, text=True)
    wanted = [one for one in listed.stdout.split("\0") if one and ".gitignore" not in one]
    assert sorted(files_of(root)) == sorted(wanted)


@pytest.mark.spec("FILES-3")
def test_hidden_files_and_rules_above_count(tmp_path: Path) -> None:
    subprocess.run(["git", "init", "-q"], cwd=tmp_path, check=True)
    (tmp_path / ".gitignore").write_text("*.log\nsub/out/\n")
    make(tmp_path, ["sub/a.py", "sub/b.log", "sub/out/c.py", "sub/.hidden/d.py", "sub/deep/e.py"])
    assert files_of(tmp_path / "sub") == ["a.py", "deep/e.py"]
    assert files_of(tmp_path, "sub") == ["sub/a.py", "sub/deep/e.py"]
    assert files_of(tmp_path, glob="*.log") == ["sub/b.log"]


def test_links_are_not_followed(tmp_path: Path) -> None:
    make(tmp_path, ["out/secret.txt", "tree/a.txt"])
    (tmp_path / "tree/link").symlink_to(tmp_path / "out")
    (tmp_path / "tree/file.txt").symlink_to(tmp_path / "out/secret.txt")
    os.mkfifo(tmp_path / "tree/pipe")
    assert files_of(tmp_path / "tree") == ["a.txt"]


@pytest.mark.parametrize(
    ("glob", "fits", "fails"),
    [
        ("*.py", ["a.py", "d/e/a.py"], ["a.pyc", "py"]),
        ("src/*.{ts,tsx}", ["src/a.ts", "src/a.tsx"], ["src/a.js", "src/d/a.ts", "x/src/a.ts"]),
        ("**/test_*.py", ["test_a.py", "d/test_b.py"], ["d/a_test.py"]),
        ("docs/**", ["docs/a", "docs/b/c"], ["docs", "x/docs/a"]),
        ("a?[!b]", ["axc"], ["axb", "a/c"]),
    ],
)
def test_globs(glob: str, fits: list[str], fails: list[str]) -> None:
    pattern = glob_pattern(glob)
    assert [one for one in fits if not pattern.fullmatch(one)] == []
    assert [one for one in fails if pattern.fullmatch(one)] == []
