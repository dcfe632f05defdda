from __future__ import annotations

import subprocess
from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fast_agent.errors import ToolError
from fast_agent.tools.files.file_tools import replaced
from fast_agent.tools.tool import unified_diff

if TYPE_CHECKING:
    from pathlib import Path

LINES = st.lists(st.sampled_from(["a", "b", "c", "", "def f():"]), max_size=12)


@pytest.mark.spec("FILES-5")
def test_a_part_is_replaced_where_it_is_once() -> None:
    assert replaced("one two", "two", "2", everywhere=False) == ("one 2", 1)
    assert replaced("a a", "a", "b", everywhere=True) == ("b b", 2)
    assert replaced("a\r\nb\r\n", "a\nb", "c\nd", everywhere=False)[0] == "c\r\nd\r\n"


@pytest.mark.spec("FILES-5")
@pytest.mark.parametrize(
    ("text", "old", "new", "said", "hint"),
    [
        ("a a", "a", "b", "2 times", "`replace_all`"),
        ("x", "y", "z", "not in the file", "read the file"),
        ("  x = 1\n", "x =  1", "z", "not in the file", "other whitespace"),
        ("def f():\n  1\n", "def f():\n  2", "z", "not in the file", "line 1"),
        ("x", "", "z", "empty", "`write_file`"),
        ("x", "x", "x", "the same", ""),
    ],
)
def test_what_is_not_there_once_is_refused(
    text: str, old: str, new: str, said: str, hint: str
) -> None:
    with pytest.raises(ToolError) as caught:
        replaced(text, old, new, everywhere=False)
    assert said in caught.value.message
    assert hint in (caught.value.hint or "")


@pytest.mark.spec("FILES-5")
@settings(max_examples=40, deadline=None)
@given(LINES, LINES, LINES, LINES)
def test_patch_takes_a_difference(
    tmp_path_factory: pytest.TempPathFactory,
    head: list[str],
    old: list[str],
    new: list[str],
    tail: list[str],
) -> None:
    before = "".join(f"{line}\n" for line in (*head, *old, *tail))
    after = "".join(f"{line}\n" for line in (*head, *new, *tail))
    diff = unified_diff(before, after, "f.txt")
    assert bool(diff) == (before != after)
    if diff:
        place: Path = tmp_path_factory.mktemp("patch")
        (place / "f.txt").write_text(before)
        patch = ["git", "apply", "--unidiff-zero", "-p0", "-"]
        subprocess.run(patch, cwd=place, input=diff, text=True, check=True)
        assert (place / "f.txt").read_text() == after
