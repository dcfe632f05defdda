"""Telling a person what went wrong, on standard error."""

from __future__ import annotations

import os
import sys
from contextlib import suppress
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import TextIO

    from fast_agent.diagnostics.diagnostic import Diagnostic
    from fast_agent.errors import FastAgentError


def wants_color(stream: TextIO) -> bool:
    """Whether a stream shows colours: a terminal, and NO_COLOR is not set."""
    return stream.isatty() and not os.environ.get("NO_COLOR")


def report_error(error: FastAgentError) -> None:
    """Print an error: its located problems where it has some, else its message and hint."""
    report_errors((error,))


def report_errors(errors: Iterable[FastAgentError]) -> None:
    """Print several errors, those without a place first; a problem they share is printed once."""
    located: dict[Diagnostic, None] = {}
    for error in errors:
        located.update(dict.fromkeys(error.diagnostics))
        if not error.diagnostics:
            sys.stderr.write(f"error: {_printable(error.message)}\n")
            if error.hint:
                sys.stderr.write(f"hint: {_printable(error.hint)}\n")
    if located:
        report_diagnostics(located)


def report_system_error(error: OSError) -> None:
    """Print what the system refused, such as writing to a full disk."""
    where = f"`{_printable(str(error.filename))}`: " if error.filename is not None else ""
    reason = (error.strerror or str(error)).lower()
    # What could not be written must not be tried again when the program ends.
    with suppress(OSError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    sys.stderr.write(f"error: {where}{reason}\n")


def report_diagnostics(diagnostics: Iterable[Diagnostic]) -> None:
    """Print located problems."""
    from fast_agent.diagnostics.render_human import render_human

    sys.stderr.write(render_human(diagnostics, color=wants_color(sys.stderr)))


def report_note(text: str) -> None:
    """Print a line a person should know of."""
    sys.stderr.write(f"{_printable(text)}\n")


def _printable(text: str) -> str:
    from fast_agent.diagnostics.visible import visible

    return "\n".join(visible(line) for line in text.split("\n"))
