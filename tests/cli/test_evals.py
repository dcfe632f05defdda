"""Evals beside cards: judges, repeats, data, models side by side, reports, pytest."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias
from xml.etree import ElementTree as ET

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable

    from conftest import Ran

    Run: TypeAlias = Callable[..., Ran]


COIN = '''\
from pathlib import Path

def flip() -> str:
    """Flip a coin that lands on each side in turn."""
    with Path("flips").open("a") as file:
        file.write("x")
        return "heads" if file.tell() % 2 else "tails"
'''


def judge(*scores: float) -> str:
    verdicts = [json.dumps({"score": score, "reason": f"it is {score}"}) for score in scores]
    return "steps:\n" + "".join(f"- text: {json.dumps(one)}\n" for one in verdicts)


@pytest.fixture(autouse=True)
def _cards(project: Path) -> None:
    (project / "cards").mkdir()
    (project / "cards/writer.md").write_text(
        "---\ntype: agent\nmodel: passthrough\ndefault: true\nfunction_tools: [coin.py:flip]\n"
        "---\nYou write.\n"
    )
    (project / "cards/coin.py").write_text(COIN)
    (project / "cards/verdicts.yaml").write_text(judge(0.75))
    (project / "cards/judge.md").write_text(
        "---\ntype: agent\nmodel: scripted?file=verdicts.yaml\n---\nYou judge.\n"
    )


def cases(text: str) -> None:
    Path("cards/writer.test.yaml").write_text(f"cases:\n{text}")


@pytest.mark.spec("CASES-1")
def test_a_judge_scores_the_answer_and_its_verdict_is_recorded(run: Run) -> None:
    cases(
        "- name: polite\n  message: hello\n"
        "  expect: {judge: {agent: judge, criteria: it greets, threshold: 0.8}}\n"
    )
    Path("cards/verdicts.yaml").write_text(judge(0.9))
    assert run("test", "cards", "--record").code == 0
    Path("cards/verdicts.yaml").write_text(judge(0.1))
    replayed = run("test", "cards")  # the verdict comes from the recording
    assert replayed.code == 0, replayed.out
    assert "score 0.90" in replayed.out
    low = run("test", "cards", "--record-all")
    assert low.code == 1
    assert "judge: the score is 0.10, 0.8 or more is expected: `it is 0.1`" in low.out


@pytest.mark.spec("CASES-1")
def test_a_judge_that_is_none_is_named(run: Run) -> None:
    cases(
        "- name: a\n  message: hi\n  live: true\n  expect: {judge: {agent: jugde, criteria: c}}\n"
    )
    done = run("test", "cards")
    assert done.code == 1
    assert "the judge `jugde` of the case `a` is not an agent" in done.out


@pytest.mark.spec("CASES-2")
def test_a_case_may_pass_in_a_share_of_its_runs(run: Run) -> None:
    text = (
        "- name: a\n  message: '***CALL_TOOL flip {}'\n  live: true\n  repeats: 4\n"
        "  pass_rate: RATE\n  expect: {text: heads, judge: {agent: judge, criteria: c}}\n"
    )
    cases(text.replace("RATE", "0.5"))
    done = run("test", "cards")
    assert done.code == 0, done.out
    assert "2/4 runs, score 0.75" in done.out
    cases(text.replace("RATE", "0.6"))
    done = run("test", "cards", "--format", "json")
    (case,) = done.json["cases"]
    assert done.code == 1
    assert (case["runs"], case["passes"], case["score"]) == (4, 2, 0.75)
    assert case["problems"][0] == "2 of 4 runs passed, 60% are expected"


@pytest.mark.spec("CASES-3")
def test_a_case_is_run_for_each_line_of_its_data(run: Run) -> None:
    Path("cards/rows.jsonl").write_text('{"word": "tea", "n": 2}\n\n{"word": "milk", "n": 1}\n')
    cases(
        "- name: says\n  message: 'say {{word}} {{n}}'\n  live: true\n  data: rows.jsonl\n"
        "  expect: {text: 'say {{word}} {{ n }}'}\n"
    )
    done = run("test", "cards")
    assert done.code == 0, done.out
    assert "says [1]" in done.out
    assert "says [3]" in done.out
    assert "1 passed, 0 failed" in run("test", "cards", "-k", "says [3]").out
    for text, said in (
        ("{}", "line 1 of `rows.jsonl` has no `word`, which the case `says` uses"),
        ("[]", "line 1 of `rows.jsonl` is not a JSON object"),
        ("{", "line 1 of `rows.jsonl` is not JSON"),
        ("", "has 0 lines"),
    ):
        Path("cards/rows.jsonl").write_text(text)
        done = run("test", "cards")
        assert done.code == 1
        assert said in done.out
    Path("cards/rows.jsonl").unlink()
    assert "cannot be read" in run("test", "cards").out


def test_wrong_data_fail_the_case_that_uses_them(run: Run) -> None:
    Path("cards/rows.jsonl").write_text("{}\n")
    cases(
        "- name: says\n  message: '{{word}}'\n  live: true\n  data: rows.jsonl\n"
        "- name: other\n  message: tea\n  live: true\n  expect: {text: tea}\n"
    )
    done = run("test", "cards")
    assert "1 passed, 1 failed" in done.out
    assert "1 passed, 0 failed" in run("test", "cards", "-k", "other").out
    for chosen in ("says", "says [1]"):
        done = run("test", "cards", "-k", chosen)
        assert (done.code, "0 passed, 1 failed" in done.out) == (1, True)


@pytest.mark.spec("CASES-4")
def test_models_are_compared_in_a_table_and_on_a_page(run: Run) -> None:
    cases(
        "- name: <b>one</b>\n  message: hello\n"
        "  expect: {text: hello, judge: {agent: judge, criteria: c}}\n"
    )
    done = run("test", "cards", "--model", "passthrough,slow?seconds=0", "--html", "report.html")
    assert done.code == 0, done.out
    table = done.out.splitlines()
    assert [line.split()[:2] for line in table if line.startswith("all")] == [["all", "1"]]
    assert any("passthrough" in line and "slow?seconds=0" in line for line in table)
    page = Path("report.html").read_text()
    assert "<b>one</b>" not in page
    assert "&lt;b&gt;one" in page
    assert "http" not in page  # nothing is loaded from elsewhere
    for part in page.split("<svg")[1:]:
        ET.fromstring("<svg" + part.partition("</svg>")[0] + "</svg>")
    assert page.count("<svg") == 3
    assert run("test", "cards", "--model", "a", "--record").code == 2
    assert run("test", "cards", "--html", "none/report.html").code == 2


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("- {name: a, message: b, repeats: 2}\n", "only a live case is repeated"),
        ("- {name: a, message: b, live: true, repeats: 101}\n", "repeats"),
        ("- {name: a, message: b, pass_rate: 2}\n", "pass_rate"),
        ("- {name: a, message: b, expect: {judge: {agent: x}}}\n", "criteria"),
    ],
)
def test_wrong_keys_are_reported_with_their_place(run: Run, text: str, said: str) -> None:
    cases(text)
    done = run("test", "cards")
    assert done.code == 1
    assert said in done.err
    assert "cards/writer.test.yaml:2" in done.err


@pytest.mark.spec("CASES-5")
def test_pytest_runs_the_cases(project: Path) -> None:
    cases(
        "- {name: good, message: hello, live: true, expect: {text: hello}}\n"
        "- {name: bad, message: hello, live: true, expect: {text: bye}}\n"
    )
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "cards", "--rootdir", "."]
    plugin = [] if _is_registered() else ["-p", "fast_agent.cli.card_test.plugin"]
    off = subprocess.run([*command, *plugin], capture_output=True, text=True, cwd=project)
    assert "no tests ran" in off.stdout
    on = subprocess.run(
        [*command, *plugin, "--fast-agent"], capture_output=True, text=True, cwd=project
    )
    assert "1 failed, 1 passed" in on.stdout, on.stdout + on.stderr
    assert "bad: text: expected `bye`, got `hello`" in on.stdout
    assert "Traceback" not in on.stdout


def _is_registered() -> bool:
    from importlib.metadata import entry_points

    return any(one.name == "fast_agent" for one in entry_points(group="pytest11"))
