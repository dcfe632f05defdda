"""Changing files as diagnostics propose: what `check --fix` does."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from fast_agent.errors import CardError, os_reason
from fast_agent.text.frozen import frozen
from fast_agent.text.safe_file import leads_away, write_atomic

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Sequence

    from fast_agent.diagnostics.diagnostic import Diagnostic, Fix
    from fast_agent.text.span import Position

_BOM = b"\xef\xbb\xbf"


@frozen
class FixReport:
    """What became of the problems.

    Args:
        changed: The files written, as the diagnostics name them, in their order.
        fixed: The problems whose fix is now in its file.
        left: The problems still there: without a fix, overlapping another fix (another pass may
            fix them), or in a file that is gone or has changed since it was checked.
        linked: The files that were not written since they are links out of their directory.
    """

    changed: tuple[str, ...]
    fixed: tuple[Diagnostic, ...]
    left: tuple[Diagnostic, ...]
    linked: tuple[str, ...] = ()


def apply_fixes(
    diagnostics: Iterable[Diagnostic], *, root: Path | None = None, named: Collection[str] = ()
) -> FixReport:
    """Write the fixes of some problems into their files.

    Line ends, a byte order mark and permissions stay as they are; each file is replaced at once.
    A fix that would make a readable file unreadable is not written.

    Args:
        diagnostics: Problems of one check; those without a fix are passed through.
        root: Directory relative paths start from; the working directory when None.
        named: The paths a user named. A file that was found in a directory is not written where
            it is a link out of it.

    Returns:
        What was changed and what is left.

    Raises:
        CardError: A file cannot be written; files written before it stay written.
    """
    found = list(diagnostics)
    by_path: dict[str, list[Diagnostic]] = {}
    for problem in found:
        if problem.fix is not None and problem.path and "://" not in problem.path:
            by_path.setdefault(problem.path, []).append(problem)
    changed: list[str] = []
    fixed: set[int] = set()
    linked: list[str] = []
    for path, problems in by_path.items():
        file = (root or Path()) / path
        if path not in named and leads_away(file):
            linked.append(path)
            continue
        done = _fix_file(file, problems)
        if done:
            changed.append(path)
            fixed.update(map(id, done))
    return FixReport(
        changed=tuple(changed),
        fixed=tuple(problem for problem in found if id(problem) in fixed),
        left=tuple(problem for problem in found if id(problem) not in fixed),
        linked=tuple(linked),
    )


def fix_text(text: str, diagnostics: Iterable[Diagnostic]) -> tuple[str, list[Diagnostic]]:
    """Apply fixes to a text.

    Args:
        text: The whole text of a file, line ends as they are, without a byte order mark.
        diagnostics: Problems of that text.

    Returns:
        The changed text, and the problems whose fix is in it.
    """
    lines = _Lines(text)
    planned: list[tuple[int, int, str, Diagnostic]] = []
    for problem in diagnostics:
        fix = problem.fix
        if fix is None or not lines.agree(problem):
            continue
        start, end = lines.offset(fix.span.start), lines.offset(fix.span.end)
        if start is not None and end is not None and start <= end:
            planned.append((start, end, _with_line_ends(fix, lines), problem))
    planned.sort(key=lambda plan: plan[:3])
    parts: list[str] = []
    done: list[Diagnostic] = []
    at = 0
    last: tuple[int, int, str] | None = None
    for start, end, replacement, problem in planned:
        if (start, end, replacement) == last:  # two rules asking for one change
            done.append(problem)
            continue
        if last is not None and (start < at or start == last[0]):
            continue
        parts += text[at:start], replacement
        at, last = end, (start, end, replacement)
        done.append(problem)
    return "".join([*parts, text[at:]]), done


def _fix_file(file: Path, problems: Sequence[Diagnostic]) -> list[Diagnostic]:
    try:
        data = file.read_bytes()
        text = data.removeprefix(_BOM).decode()
    except (OSError, ValueError):
        return []
    fixed, done = _checked(file, text, problems)
    if not done or fixed == text:
        return []
    mark = _BOM if data.startswith(_BOM) else b""
    try:
        write_atomic(file, mark + fixed.encode())
    except OSError as error:
        reason = os_reason(error)
        raise CardError(f"cannot write `{file}`: {reason}") from error
    return done


def _checked(file: Path, text: str, problems: Sequence[Diagnostic]) -> tuple[str, list[Diagnostic]]:
    """Apply the fixes that leave a readable file readable."""
    fixed, done = fix_text(text, problems)
    if _reads(file, fixed) or not _reads(file, text):
        return fixed, done
    safe = [one for one in problems if _reads(file, fix_text(text, [one])[0])]
    fixed, done = fix_text(text, safe)
    # Two fixes that are fine alone can still break a file together.
    return (fixed, done) if _reads(file, fixed) else (text, [])


def _reads(file: Path, text: str) -> bool:
    """Return whether the YAML of a file, or of its frontmatter, can be parsed."""
    from fast_agent.cards.document import read_markdown, read_yaml
    from fast_agent.text.source import Source

    suffix = file.suffix.lower()
    if suffix not in (".md", ".yaml", ".yml"):
        return True
    read = read_markdown if suffix == ".md" else read_yaml
    found = read(Source(file.name, text.replace("\r\n", "\n")), multi_card=True).diagnostics
    return not any(one.severity == "error" for one in found)


def _with_line_ends(fix: Fix, lines: _Lines) -> str:
    return fix.replacement.replace("\n", lines.line_end)


class _Lines:
    """The lines of a text, with positions as diagnostics count them."""

    __slots__ = ("_starts", "_text", "line_end")

    def __init__(self, text: str) -> None:
        self._text = text
        self._starts = [0]
        at = text.find("\n")
        while at >= 0:
            self._starts.append(at + 1)
            at = text.find("\n", at + 1)
        crlf = text.count("\r\n")
        self.line_end = "\r\n" if crlf * 2 > len(self._starts) - 1 else "\n"

    def offset(self, position: Position) -> int | None:
        """Return the index of a position; None beyond its line or the last one."""
        if not 1 <= position.line <= len(self._starts):
            return None
        start = self._starts[position.line - 1]
        offset = start + position.column - 1
        return offset if start <= offset <= start + len(self._line(position.line)) else None

    def agree(self, problem: Diagnostic) -> bool:
        """Whether the line a problem was found on is still what it was."""
        if problem.source_line is None or problem.span is None:
            return True
        number = problem.span.start.line
        return number <= len(self._starts) and self._line(number) == problem.source_line

    def _line(self, number: int) -> str:
        start = self._starts[number - 1]
        end = self._starts[number] - 1 if number < len(self._starts) else len(self._text)
        return (
            self._text[start:end].removesuffix("\r")
            if end < len(self._text)
            else self._text[start:end]
        )
