"""Telling a person what went wrong, on standard error; all errors of a command together."""

from __future__ import annotations

import os
import sys
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Self

import click

from fast_agent.cli.output import standard_error
from fast_agent.errors import FastAgentError, TrustError, UnapprovedError, os_reason

if TYPE_CHECKING:
    from collections.abc import Generator, Iterable
    from types import TracebackType

    from fast_agent.diagnostics.diagnostic import Diagnostic


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


class ErrorCollector:
    """Gathers errors: `with ErrorCollector() as errors:`, and each step in `with errors.kept():`.

    At the end of the block a single error is raised as it is, and so is the last one where all are
    refusals of a project; others are reported together, and the command ends with status 1.
    """

    def __init__(self) -> None:
        self._errors: list[FastAgentError] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Report the collected errors; wrong usage found later does not hide them."""
        if not self._errors or not (error is None or isinstance(error, click.UsageError)):
            return
        # A project that may not act may be refused in several steps; each says the same.
        if len(self._errors) == 1 or all(isinstance(one, TrustError) for one in self._errors):
            raise self._errors[-1]
        report_errors(self._errors)
        sys.exit(1)

    @contextmanager
    def kept(self) -> Generator[None]:
        """Collect the error of a step, so that the next one is checked too."""
        try:
            yield
        except FastAgentError as error:
            self._errors.append(error)
