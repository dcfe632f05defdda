"""`file.py:name`: how a card names a Python function, finding the file, and what can be wrong."""

from __future__ import annotations

from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Literal, TypeAlias

from fast_agent.diagnostics.diagnostic import Diagnostic, Fix
from fast_agent.diagnostics.rules import (
    FUNCTION_FILE_MISSING,
    FUNCTION_FILE_OUTSIDE,
    FUNCTION_FILE_SYNTAX,
    FUNCTION_NAME_MISSING,
    FUNCTION_SPELLING,
)
from fast_agent.errors import CardError
from fast_agent.text.frozen import frozen
from fast_agent.text.span import Position, Span
from fast_agent.text.wording import closest

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from fast_agent.diagnostics.diagnostic import Severity

Role: TypeAlias = Literal["tool", "tool_hook", "turn_hook"]
"""What a card uses a function as."""
HOOK_PARAMETERS: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {"tool_hook": ("ctx", "args", "call_next"), "turn_hook": ("ctx",)}
)
"""What a hook function is called with, by role and position."""


@frozen
class FunctionPath:
    """A function's file, as written, and its name."""

    file: str
    name: str

    def __str__(self) -> str:
        return f"{self.file}:{self.name}"


def parse_function_path(text: str) -> FunctionPath:
    """Take `file.py:name` apart.

    Args:
        text: As the card has it.

    Returns:
        The file and the name.

    Raises:
        CardError: It is not of that form.
    """
    file, colon, name = text.rpartition(":")
    if colon and file.endswith(".py") and name.isidentifier() and file.isprintable():
        return FunctionPath(file, name)
    if text.endswith(".py"):
        hint = f"add the function's name: `{text}:name`"
    elif colon and not file.endswith(".py"):
        hint = "the file must end in `.py`: `tools.py:name`"
    else:
        hint = "write `tools.py:name`"
    raise function_error(FUNCTION_SPELLING, f"`{text}` is not `file.py:name`", hint=hint)


def find_function_file(path: FunctionPath, directory: Path, workspace: Path) -> Path:
    """Find the file of a function.

    A relative path starts from the card's directory and may lead out of it, through `..` or a link,
    but not out of the workspace. An absolute path may lead anywhere.

    Args:
        path: The function.
        directory: The card's directory.
        workspace: The directory the program works in.

    Returns:
        The file, links followed.

    Raises:
        CardError: It is outside, or there is no such file.
    """
    written = Path(path.file)
    found = (directory / written).resolve()
    if not written.is_absolute() and not any(
        found.is_relative_to(root.resolve()) for root in (directory, workspace)
    ):
        msg = f"`{path.file}` leads out of the card's directory and the workspace"
        raise function_error(FUNCTION_FILE_OUTSIDE, msg, hint="move the file next to the card")
    if not found.is_file():
        near = closest(written.name, _files_in((directory / written).parent))
        meant = str(written.with_name(near)) if near else None
        what = "is a directory" if found.is_dir() else "does not exist"
        raise function_error(
            FUNCTION_FILE_MISSING,
            f"the file `{path.file}` {what}",
            hint=f"did you mean `{meant}`?" if meant else f"it is searched for in `{directory}`",
            replacement=f"{meant}:{path.name}" if meant else None,
        )
    return found


def missing_name(path: FunctionPath, known: list[str]) -> CardError:
    """Make the error for a name its file does not define."""
    near = closest(path.name, known)
    if near:
        hint = f"did you mean `{near}`?"
    elif known:
        hint = "it defines " + ", ".join(f"`{name}`" for name in known[:10])
    else:
        hint = "it defines no functions"
    return function_error(
        FUNCTION_NAME_MISSING,
        f"`{path.file}` does not define `{path.name}`",
        hint=hint,
        replacement=f"{path.file}:{near}" if near else None,
    )


def _files_in(directory: Path) -> Iterable[str]:
    try:
        return sorted(file.name for file in directory.iterdir() if file.suffix == ".py")
    except OSError:
        return ()


NOWHERE = Span(Position(0, 0), Position(0, 0))
"""Replaced by the place in the card that names the function, until that is known."""


def function_error(
    code: str,
    message: str,
    *,
    hint: str | None = None,
    path: str = "",
    span: Span | None = None,
    source_line: str | None = None,
    replacement: str | None = None,
) -> CardError:
    """Make the error for one function of a card.

    Args:
        code: The rule.
        message: What is wrong.
        hint: What to do, or None.
        path: The file it is wrong in; empty for the card's own.
        span: The place in that file, or None.
        source_line: The line at that place, or None.
        replacement: What the card should have instead of the function, or None.

    Returns:
        The error, with one diagnostic. Where `path` is empty, the caller knows the place.
    """
    fix = None if replacement is None else Fix(NOWHERE, replacement)
    severity: Severity = "error"
    diagnostic = Diagnostic(code, message, path, span, severity, hint, fix, source_line=source_line)
    return CardError(message, hint=hint, diagnostics=(diagnostic,))


def syntax_error(problem: SyntaxError, path: str) -> CardError:
    """Make the error for a Python file that cannot be parsed.

    Args:
        problem: What the compiler says.
        path: The file, as it is to be shown.

    Returns:
        The error, at the line and column of the Python file.
    """
    span: Span | None = None
    line: str | None = None
    if problem.lineno is not None:
        column = max(1, problem.offset or 1)
        end_line, end = problem.end_lineno, problem.end_offset
        width = end - column if end and end_line == problem.lineno and end > column else 1
        span = Span.at(problem.lineno, column, width)
        line = problem.text.rstrip("\r\n") if problem.text else None
    message = f"`{path}` is not valid Python: {problem.msg}"
    return function_error(FUNCTION_FILE_SYNTAX, message, path=path, span=span, source_line=line)
