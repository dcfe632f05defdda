"""`fast-agent maker plan`: k by formula, or of a worker that is asked."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, TypeAlias

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from conftest import Ran

    Run: TypeAlias = Callable[..., Ran]

FORMULA = ("maker", "plan", "--p", "0.9978", "--steps", "1048575")
SCRIPT = """\
agents:
  judge:
    - {text: seven, repeat: 18, usage: {input_tokens: 30, output_tokens: 2}}
    - {text: eight, usage: {input_tokens: 30, output_tokens: 2}}
    - {text: "", usage: {input_tokens: 30, output_tokens: 2}}
"""


@pytest.fixture(name="vote")
def _vote(project: Path) -> tuple[str, ...]:
    """Cards of a vote, and a worker that is right 18 of 20 times, empty once."""
    (project / "vote.yaml").write_text(
        "type: MAKER\nname: vote\nworker: judge\nk: auto\nsteps: 8\ntarget_success: 0.9\n"
    )
    (project / "judge.yaml").write_text("name: judge\ninstruction: Count.\n")
    (project / "script.yaml").write_text(SCRIPT)
    model = "scripted?file=script.yaml"
    return ("maker", "plan", "vote.yaml", "judge.yaml", "--model", model, "-m", "how many?")


@pytest.mark.spec("MAKER-8")
def test_the_formula_as_json(run: Run) -> None:
    done = run(*FORMULA, "--target", "0.95", "--format", "json")
    assert done.json == {
        "k": 3,
        "p_full": pytest.approx(0.98882368),
        "draws_per_step": pytest.approx(3.01325827),
        "draws_total": pytest.approx(3159627.29),
    }
    assert (done.code, done.err) == (0, "")


@pytest.mark.spec("MAKER-8")
def test_answers_thrown_away_are_asked_for_again(run: Run) -> None:
    done = run(*FORMULA, "--valid", "0.5", "--format", "json")
    assert done.json["k"] == 3
    assert done.json["draws_per_step"] == pytest.approx(6.02651654)


def test_the_formula_for_people_aims_at_95_percent(run: Run) -> None:
    done = run(*FORMULA)
    assert done.out.splitlines() == [
        "k                3 votes ahead",
        "all steps right  98.88% likely",
        "answers a step   3.01",
        "answers in all   3,159,627",
    ]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            ("--p", "0.5", "--steps", "3"),
            "no vote can be planned where an answer is right with a probability of 0.5",
        ),
        (
            ("--p", "nan", "--steps", "3"),
            "no vote can be planned where an answer is right with a probability of nan",
        ),
        (("--p", "0.9", "--steps", "0"), "a task cannot have 0 steps"),
        (("--p", "0.9", "--steps", "3", "--target", "1"), "no vote can aim at a success of 1"),
        (("--p", "0.9", "--steps", "3", "--valid", "0"), "a share of 0 valid answers"),
    ],
)
def test_numbers_nothing_can_be_planned_with(
    run: Run, arguments: tuple[str, ...], message: str
) -> None:
    done = run("maker", "plan", *arguments)
    assert (done.code, done.out) == (1, "")
    assert done.err.startswith(f"error: {message}")
    assert "\nhint: " in done.err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((), "pass either --p or the cards of a worker to measure"),
        (("--p", "0.9", "cards"), "pass either --p or the cards of a worker to measure"),
        (("--p", "0.9"), "--p requires --steps"),
        (("--p", "0.9", "--steps", "3", "-m", "x"), "--message goes with cards, not with --p"),
        (("cards", "--valid", "1"), "--valid requires --p"),
        (("--p", "0.9", "--steps", "3", "--samples", "9"), "--samples goes with cards"),
        (("--p", "0.9", "--steps", "3", "--config-path", "x"), "--config-path goes with cards"),
        (("cards", "-m", "a", "-m", "b", "--right", "c"), "pass --right as often as --message"),
        (("cards", "-m", " "), "pass a typical step of the task with --message TEXT"),
        (("cards",), "pass a typical step of the task with --message TEXT"),
    ],
)
def test_options_that_do_not_go_together(
    run: Run, arguments: tuple[str, ...], message: str
) -> None:
    done = run("maker", "plan", *arguments)
    assert done.code == 2
    assert message in done.err


@pytest.mark.spec("MAKER-7")
def test_a_worker_is_measured_and_its_cost_foretold(run: Run, vote: tuple[str, ...]) -> None:
    done = run(*vote, "--format", "json")
    plan = done.json
    assert (plan["p"], plan["samples"], plan["discarded_samples"]) == (18 / 19, 20, 1)
    assert (plan["p_low"], plan["p_high"]) == pytest.approx((0.7536, 0.9906), abs=1e-4)
    assert plan["k"] == 4
    assert plan["requests_total"] == pytest.approx(plan["draws_total"])
    assert plan["input_tokens_total"] == pytest.approx(30 * plan["draws_total"])
    assert plan["output_tokens_total"] == pytest.approx(2 * plan["draws_total"])


@pytest.mark.spec("MAKER-7")
def test_what_was_measured_for_people(run: Run, vote: tuple[str, ...]) -> None:
    done = run(*vote)
    assert done.out.splitlines() == [
        "measured on      20 answers, 1 of them discarded",
        "right answers    94.7%, at 95 % confidence 75.4% to 99.1%",
        "k                4 votes ahead",
        "all steps right  99.99% likely",
        "answers a step   4.71",
        "answers in all   38",
        "tokens in all    1,129 in, 75 out",
    ]


def test_options_win_over_the_card(run: Run, vote: tuple[str, ...]) -> None:
    done = run(*vote, "--steps", "1000000", "--target", "0.99", "--samples", "20", "--format=json")
    assert done.json["k"] == 17


def test_with_the_right_answer_known_agreeing_is_not_enough(
    run: Run, vote: tuple[str, ...]
) -> None:
    done = run(*vote, "--right", "eight")
    assert (done.code, done.out) == (1, "")
    assert done.err.startswith("error: only 1 of 19 answers count as right")


def test_several_steps_are_measured_together(
    run: Run, vote: tuple[str, ...], project: Path
) -> None:
    (project / "script.yaml").write_text(
        "agents:\n  judge:\n"
        "    - {expect: one, text: seven, repeat: 10}\n"
        "    - {expect: two, text: eight, repeat: 9}\n    - {expect: two, text: nine}\n"
    )
    words = (*vote[:-1], "one", "-m", "two", "--samples", "19", "--format", "json")
    done = run(*words)
    assert (done.json["p"], done.json["samples"]) == (19 / 20, 20)
    done = run(*words, "--right", "seven", "--right", "nine")
    assert "only 11 of 20 answers count as right" in done.err


def test_the_card_to_measure_must_be_clear(run: Run, vote: tuple[str, ...], project: Path) -> None:
    done = run("maker", "plan", "judge.yaml", "-m", "x")
    assert "no cards of type `MAKER` were loaded" in done.err
    (project / "other.yaml").write_text("type: MAKER\nname: other\nworker: judge\n")
    done = run(*vote, "other.yaml")
    assert "2 cards of type `MAKER` were loaded" in done.err
    assert "choose with --agent from `vote`, `other`" in done.err
    assert run(*vote, "other.yaml", "--agent", "vote", "--format", "json").json["k"] == 4
    done = run(*vote, "other.yaml", "--agent", "judge")
    assert "`judge` is not a card of type `MAKER`" in done.err


def test_go_prints_the_vote(run: Run, vote: tuple[str, ...], project: Path) -> None:
    (project / "vote.yaml").write_text("type: MAKER\nname: vote\nworker: judge\nk: 2\n")
    (project / "script.yaml").write_text(
        "agents: {judge: [{text: a}, {text: b}, {text: a, repeat: 2}]}"
    )
    cards = ("--card", "vote.yaml", "--card", "judge.yaml")
    done = run("go", *cards, "--model", vote[5], "-m", "x", "--format", "json", "-q")
    assert json.loads(done.out)["workflow"]["votes"] == {"a": 3, "b": 1}
    done = run("go", *cards, "--model", vote[5], "-m", "x")
    assert done.out == "a\n"
    assert done.err.splitlines() == [
        "vote: draw 1 says `a`, which has 1 vote and is 1 ahead",
        "vote: draw 2 says `b`, which has 1 vote; no answer is ahead",
        "vote: draw 3 says `a`, which has 2 votes and is 1 ahead",
        "vote: draw 4 says `a`, which has 3 votes and is 2 ahead",
    ]
