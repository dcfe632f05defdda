"""Rating: how good an evaluator finds an answer, and what it wants changed."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal, TypeAlias, cast, get_args

from fast_agent.models.model import OutputSchema
from fast_agent.workflows.json_answer import object_in

if TYPE_CHECKING:
    from collections.abc import Mapping

    from fast_agent.text.json_value import JsonValue

Grade: TypeAlias = Literal["POOR", "FAIR", "GOOD", "EXCELLENT"]

GRADES: tuple[Grade, ...] = get_args(Grade)
"""The grades, from the worst to the best."""

MOST_AREAS: Final = 100
"""Most things to change that are taken from one evaluation."""

RATING_SCHEMA: Mapping[str, JsonValue] = {
    "title": "rating",
    "type": "object",
    "properties": {
        "rating": {"type": "string", "enum": list(GRADES), "description": "how good it is"},
        "feedback": {"type": "string", "description": "what is good and what is not"},
        "needs_improvement": {
            "type": "boolean",
            "description": "whether it is worth writing it again",
        },
        "focus_areas": {
            "type": "array",
            "items": {"type": "string"},
            "description": "what to change, the most important first",
        },
    },
    "required": ["rating", "feedback", "needs_improvement", "focus_areas"],
    "additionalProperties": False,
}


@dataclass(frozen=True, slots=True)
class Rating:
    """What an evaluator says of an answer.

    Args:
        grade: How good it is.
        feedback: What is good and what is not.
        needs_improvement: Whether it is worth writing it again.
        focus_areas: What to change, the most important first.
        problem: Why the evaluation could not be read and counts as `POOR`; None where it could.
    """

    grade: Grade
    feedback: str = ""
    needs_improvement: bool = True
    focus_areas: tuple[str, ...] = ()
    problem: str | None = None

    def reaches(self, wanted: Grade) -> bool:
        """Whether it is at least as good as `wanted`."""
        return GRADES.index(self.grade) >= GRADES.index(wanted)

    def beats(self, other: Rating) -> bool:
        """Whether it is better; of two equal grades, one that asks for no change is."""
        return self._rank > other._rank

    @property
    def _rank(self) -> tuple[int, bool]:
        return GRADES.index(self.grade), not self.needs_improvement


class RatingShape:
    """The shape of one evaluation, as an evaluator is asked for it.

    The first text that is no rating is an error, so that it is asked for once more; the second one
    counts as `POOR`, with the text as the feedback.

    Attributes:
        problem: What was wrong with the last text, or None.
    """

    def __init__(self) -> None:
        self.problem: str | None = None

    @property
    def schema(self) -> OutputSchema:
        """What the model is told."""
        return OutputSchema("rating", RATING_SCHEMA)

    def parse(self, text: str) -> Rating:
        """Read a rating.

        Raises:
            ValueError: It is the first text, and no rating.
        """
        try:
            return read_rating(text)
        except ValueError as error:
            again, self.problem = self.problem is not None, str(error)
            if not again:
                raise
            return Rating("POOR", text.strip(), problem=self.problem)


def read_rating(text: str) -> Rating:
    """Read a rating from the JSON in an answer.

    Text around the JSON object does not matter, nor does the case of the grade. `feedback` and
    `focus_areas` may be missing, and of very many areas the first are taken; without
    `needs_improvement`, all but `EXCELLENT` needs it.

    Raises:
        ValueError: There is no such rating in it; the error says what is wrong.
    """
    value = object_in(text)
    grade = _grade(value.get("rating"))
    feedback = value.get("feedback") or ""
    if not isinstance(feedback, str):
        raise _wrong("`feedback` must be a text")
    needed = value.get("needs_improvement")
    if needed is None:
        needed = grade != "EXCELLENT"
    if not isinstance(needed, bool):
        raise _wrong("`needs_improvement` must be true or false")
    areas = value.get("focus_areas") or []
    areas = [areas] if isinstance(areas, str) else areas
    if not isinstance(areas, list) or not all(isinstance(area, str) for area in areas):
        raise _wrong("`focus_areas` must be a list of texts")
    return Rating(grade, feedback.strip(), needed, tuple(cast("list[str]", areas[:MOST_AREAS])))


def _grade(value: JsonValue) -> Grade:
    if isinstance(value, str) and (found := value.strip().upper()) in GRADES:
        return found
    known = ", ".join(f"`{grade}`" for grade in GRADES)
    given = json.dumps(value, ensure_ascii=False)[:60]
    raise _wrong(f"`rating` must be one of {known}, but is `{given}`")


def _wrong(reason: str) -> ValueError:
    return ValueError(reason)
