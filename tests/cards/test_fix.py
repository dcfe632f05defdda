from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from fast_agent.cards.fix import apply_fixes, fix_text
from fast_agent.diagnostics.diagnostic import Diagnostic, Fix
from fast_agent.errors import CardError
from fast_agent.text.span import Position, Span

if TYPE_CHECKING:
    from pathlib import Path


def problem(
    line: int,
    column: int,
    width: int,
    replacement: str,
    path: str = "a.yaml",
    source_line: str | None = None,
) -> Diagnostic:
    span = Span.at(line, column, width)
    return Diagnostic(
        "FA101", "wrong", path, span, fix=Fix(span, replacement), source_line=source_line
    )


def test_fixes_keep_line_ends_mark_and_permissions(tmp_path: Path) -> None:
    file = tmp_path / "a.yaml"
    file.write_bytes(b"\xef\xbb\xbfnaem: \xc3\xa9\r\nmodle: gpt\r\n")
    file.chmod(0o640)
    first = problem(1, 1, 4, "name", source_line="naem: é")
    second = problem(2, 1, 5, "model")
    hopeless = replace(first, fix=None)
    report = apply_fixes([second, hopeless, first], root=tmp_path)
    assert file.read_bytes() == b"\xef\xbb\xbfname: \xc3\xa9\r\nmodel: gpt\r\n"
    assert file.stat().st_mode & 0o777 == 0o640
    assert report.changed == ("a.yaml",)
    assert report.fixed == (second, first)
    assert report.left == (hopeless,)
    assert list(tmp_path.iterdir()) == [file]


def test_a_replacement_takes_the_line_ends_of_the_file() -> None:
    insert = problem(2, 1, 0, "b: 2\n")
    assert fix_text("a: 1\r\nc: 3\r\n", [insert])[0] == "a: 1\r\nb: 2\r\nc: 3\r\n"
    assert fix_text("a: 1\nc: 3\n", [insert])[0] == "a: 1\nb: 2\nc: 3\n"
    assert fix_text("a: 1\r\nc: 3\n", [insert])[0] == "a: 1\r\nb: 2\nc: 3\n"
    assert fix_text("a: 1\n", [insert])[0] == "a: 1\nb: 2\n"


def test_a_fix_may_span_lines() -> None:
    span = Span(Position(1, 1), Position(3, 1))
    drop = Diagnostic("FA101", "wrong", "a.yaml", span, fix=Fix(span, ""))
    assert fix_text("a: 1\r\nb: 2\r\nc: 3", [drop])[0] == "c: 3"


def test_overlapping_fixes_wait_for_another_pass() -> None:
    inner, outer = problem(1, 3, 2, "X"), problem(1, 1, 4, "Y")
    text, done = fix_text("abcdef", [inner, outer])
    assert (text, done) == ("Yef", [outer])
    touching = problem(1, 5, 1, "Z")
    assert fix_text("abcdef", [touching, outer]) == ("YZf", [outer, touching])
    same = [problem(1, 1, 1, "Q"), problem(1, 1, 1, "Q")]
    assert fix_text("abc", same) == ("Qbc", same)
    inserts = [problem(1, 1, 0, "P"), problem(1, 1, 0, "R")]
    assert fix_text("abc", inserts) == ("Pabc", inserts[:1])


@pytest.mark.parametrize(
    "stale",
    [
        problem(1, 1, 3, "x", source_line="other"),
        problem(9, 1, 3, "x"),
        problem(1, 4, 9, "x"),
        problem(1, 1, 1, "x", path="gone.yaml"),
        problem(1, 1, 1, "x", path="latin.yaml"),
        problem(1, 1, 1, "x", path="https://example.com/a.yaml"),
    ],
)
def test_what_does_not_match_is_left(tmp_path: Path, stale: Diagnostic) -> None:
    (tmp_path / "a.yaml").write_text("abc\n")
    (tmp_path / "latin.yaml").write_bytes(b"\xe9\n")
    report = apply_fixes([stale], root=tmp_path)
    assert report.changed == report.fixed == ()
    assert report.left == (stale,)
    assert (tmp_path / "a.yaml").read_text() == "abc\n"


@pytest.mark.parametrize("name", ["a.yaml", "a.md"])
def test_a_fix_that_breaks_the_file_is_not_written(tmp_path: Path, name: str) -> None:
    head = "naem: x\nmodel: y\n"
    text, line = (f"---\n{head}---\nBe brief.\n", 2) if name == "a.md" else (head, 1)
    (tmp_path / name).write_text(text)
    good, bad = problem(line, 1, 4, "name", name), problem(line + 1, 8, 1, "[y", name)
    report = apply_fixes([good, bad], root=tmp_path)
    assert report.fixed == (good,)
    assert report.left == (bad,)
    assert (tmp_path / name).read_text() == text.replace("naem", "name")
    again = apply_fixes([bad], root=tmp_path)
    assert (again.changed, again.left) == ((), (bad,))


def test_fixes_that_break_the_file_only_together_are_not_written(tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_text("a: 1\nb: 2\n")
    first, second = problem(1, 1, 1, "c"), problem(2, 1, 1, "c")  # a key given twice
    report = apply_fixes([first, second], root=tmp_path)
    assert (report.changed, report.left) == ((), (first, second))
    assert (tmp_path / "a.yaml").read_text() == "a: 1\nb: 2\n"


def test_a_fix_of_an_unreadable_file_is_written(tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_text("naem: x\nmodel: [y\n")
    done = problem(1, 1, 4, "name")
    assert apply_fixes([done], root=tmp_path).fixed == (done,)


def test_a_file_that_is_gone_or_is_not_text_is_left(tmp_path: Path) -> None:
    (tmp_path / "b.yaml").write_bytes(b"naem: \xff\n")
    gone, binary = problem(1, 1, 4, "name"), problem(1, 1, 4, "name", path="b.yaml")
    report = apply_fixes([gone, binary], root=tmp_path)
    assert (report.fixed, report.left) == ((), (gone, binary))


def test_a_file_that_cannot_be_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "a.yaml").write_text("abc\n")

    def refuse(path: Path, data: bytes) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr("fast_agent.cards.fix.write_atomic", refuse)
    with pytest.raises(CardError, match=r"cannot write .*permission denied"):
        apply_fixes([problem(1, 1, 1, "x")], root=tmp_path)
    assert (tmp_path / "a.yaml").read_text() == "abc\n"
