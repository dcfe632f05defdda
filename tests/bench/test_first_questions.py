"""How answers to first questions are judged."""

from __future__ import annotations

import pytest
from bench.local_eval.first_questions import FIRST_QUESTIONS, FirstQuestion, Judged

SKY = FirstQuestion("Why is the sky blue?", ("sky", "light", "scatter"))


@pytest.mark.parametrize(
    ("answer", "reason", "faults"),
    [
        ("The sky scatters light.", "endTurn", ()),
        ("Light.\n\nThe sky.", "repetition", ()),
        ("A sky, a sky.", "endTurn", ("off its subject",)),
        ("Skylight.", "endTurn", ("off its subject",)),
        ("", "endTurn", ("off its subject",)),
        ("Sky light.\n  Sky light.", "endTurn", ("says twice: Sky light.",)),
        ("The light of the sky", "maxTokens", ("ended by maxTokens",)),
    ],
)
def test_faults(answer: str, reason: str, faults: tuple[str, ...]) -> None:
    assert Judged(SKY, answer, reason, 5).faults == faults


def test_there_are_twenty_questions() -> None:
    assert len({one.text for one in FIRST_QUESTIONS}) == 20
    assert all(one.needed <= len(one.subject) for one in FIRST_QUESTIONS)
    assert FIRST_QUESTIONS[0].text == SKY.text
