"""The program answers as it did when its answers were recorded, except where that was changed."""

from __future__ import annotations

import pytest
from tests.golden.answers import Change, problems_of, read_changes, read_recorded
from tests.golden.play import play
from tests.golden.stage import read_stage, stage_names
from tests.golden.world import Program


@pytest.mark.spec("GOLDEN-1", "GOLDEN-3")
@pytest.mark.parametrize("name", stage_names())
def test_answers_are_those_that_were_recorded(name: str) -> None:
    played = play(read_stage(name), Program())
    problems = problems_of(name, played, read_recorded(name), read_changes())
    assert not problems, "\n".join(problems)


@pytest.mark.spec("GOLDEN-2")
@pytest.mark.parametrize(
    ("now", "entry", "problem"),
    [
        ("old", None, None),
        ("new", None, '- "old"'),
        ("new", "new", None),
        ("new", "other", "not as changed.yaml says"),
        ("old", "new", "the recorded answer is given again"),
        ("old", "old", "changed.yaml gives the recorded answer"),
        (1, None, '- "old"'),
    ],
)
def test_an_entry_has_to_be_right_and_needed(
    now: object, entry: str | None, problem: str | None
) -> None:
    changes = [] if entry is None else [Change("stage", "a", 1, "why", [entry])]
    found = problems_of("stage", {"a": [[now]]}, {"a": [["old"]]}, changes)
    assert len(found) == (problem is not None)
    assert problem is None or problem in found[0]


@pytest.mark.spec("GOLDEN-2")
def test_an_entry_for_a_step_that_is_not_there_is_a_problem() -> None:
    change = Change("stage", "a", 2, "why", ["new"])
    assert "there is not" in problems_of("stage", {"a": [[1]]}, {"a": [[1]]}, [change])[0]
    assert problems_of("stage", {"a": [[True]]}, {"a": [[1]]}, []) != []
    assert problems_of("stage", {"a": [[1], [2]]}, {"a": [[1]]}, []) != []
    assert problems_of("stage", {"b": [[1]]}, {"a": [[1]]}, []) != []


def test_every_change_is_of_a_stage_and_says_why() -> None:
    changes = read_changes()
    assert {one.stage for one in changes} <= set(stage_names())
    assert all(one.reason.strip() for one in changes)
    places = [(one.stage, one.exchange, one.step) for one in changes]
    assert len(places) == len(set(places))
