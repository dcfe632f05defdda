"""Sample: one answer drawn for a vote."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, TypeAlias

if TYPE_CHECKING:
    from fast_agent.errors import FastAgentError

Flag: TypeAlias = Literal["empty", "too_long", "cut_short", "refused", "unparseable", "failed"]
"""Why an answer does not vote."""


@dataclass(frozen=True, slots=True)
class Sample:
    """An answer, and what it votes for.

    Args:
        text: The answer as it was given.
        key: What it votes for; answers with the same key count as the same.
        value: The value of a structured answer, or None.
        flag: Why it does not vote, or None.
        failure: What went wrong, where no answer came at all.
    """

    text: str
    key: str
    value: object = None
    flag: Flag | None = None
    failure: FastAgentError | None = None

    @classmethod
    def failed(cls, failure: FastAgentError) -> Sample:
        """Make the sample of a draw that gave no answer."""
        return cls("", "", flag="failed", failure=failure)
