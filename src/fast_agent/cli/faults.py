"""Faults: problems of a command's arguments, collected to report all of them at once."""

from __future__ import annotations

import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING, Self

import click

from fast_agent.errors import FastAgentError, TrustError

if TYPE_CHECKING:
    from collections.abc import Generator
    from types import TracebackType


class ErrorCollector:
    """Gathers errors: `with Faults() as faults:`, and each step in `with faults.kept():`.

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
        """Report the collected faults; wrong usage found later does not hide them."""
        if not self._errors or not (error is None or isinstance(error, click.UsageError)):
            return
        # A project that may not act may be refused in several steps; each says the same.
        if len(self._errors) == 1 or all(isinstance(one, TrustError) for one in self._errors):
            raise self._errors[-1]
        from fast_agent.cli.report import report_errors

        report_errors(self._errors)
        sys.exit(1)

    @contextmanager
    def kept(self) -> Generator[None]:
        """Collect the error of a step, so that the next one is checked too."""
        try:
            yield
        except FastAgentError as error:
            self._errors.append(error)
