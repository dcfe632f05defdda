"""What stops a dump, and the error that says all of it."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from fast_agent.diagnostics.diagnostic import Diagnostic
from fast_agent.errors import CardError

if TYPE_CHECKING:
    from collections.abc import Sequence


class DumpProblem(NamedTuple):
    """One reason not to dump.

    Args:
        code: The rule.
        message: What is wrong.
        hint: What to do.
        path: The card it is about, as the user named it; empty where there is none.
    """

    code: str
    message: str
    hint: str
    path: str = ""


def refuse(problems: Sequence[DumpProblem]) -> None:
    """Raise one error for all problems, if there are any.

    Args:
        problems: What was found.

    Raises:
        CardError: There is at least one; its diagnostics hold them all.
    """
    if problems:
        raise CardError(
            problems[0].message,
            hint=problems[0].hint,
            diagnostics=[
                Diagnostic(problem.code, problem.message, problem.path, hint=problem.hint)
                for problem in problems
            ],
        )
