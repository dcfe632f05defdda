"""Telling a person what went wrong, on standard error."""

from __future__ import annotations

import os
from contextlib import suppress
from typing import TYPE_CHECKING

from fast_agent.cli.output import standard_error
from fast_agent.errors import UnapprovedError, os_reason

if TYPE_CHECKING:
    from collections.abc import Iterable

    from fast_agent.diagnostics.diagnostic import Diagnostic
    from fast_agent.errors import FastAgentError


def report_error(error: FastAgentError) -> None:
    """Print an error: its located problems where it has some, else its message and hint."""
    report_errors((error,))


def report_errors(errors: Iterable[FastAgentError]) -> None:
    """Print several errors, those without a place first; a problem they share is printed once."""
    located: dict[Diagnostic, None] = {}
    for error in errors:
        located.update(dict.fromkeys(error.diagnostics))
        if not error.diagnostics:
            code = "" if error.code is None else f"[{error.code}]"
            out = standard_error()
            write = out.write_whole if isinstance(error, UnapprovedError) else out.write
            write(f"error{code}: {_printable(error.message)}\n")
            if error.hint:
                write(f"hint: {_printable(error.hint)}\n")
    if located:
        report_diagnostics(located)


def report_system_error(error: OSError) -> None:
    """Print what the system refused, such as writing to a full disk."""
    where = f"`{_printable(str(error.filename))}`: " if error.filename is not None else ""
    reason = os_reason(error)
    # What could not be written must not be tried again when the program ends.
    with suppress(OSError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    standard_error().line(f"error: {where}{reason}")


def report_diagnostics(diagnostics: Iterable[Diagnostic]) -> None:
    """Print located problems."""
    from fast_agent.diagnostics.render_human import render_human

    out = standard_error()
    out.write_painted(render_human(diagnostics, color=out.wants_color))


def report_note(text: str) -> None:
    """Print a line a person should know of."""
    standard_error().line(_printable(text))


def report_left_out(text: str) -> None:
    """Print a line on what waits for an approval: nothing of it is hidden, so that it is read."""
    standard_error().write_whole(f"{_printable(text)}\n")


def _printable(text: str) -> str:
    from fast_agent.text.visible import visible

    return "\n".join(visible(line) for line in text.split("\n"))
