"""Every example of a workflow runs, with a scripted model, by the real command."""

from __future__ import annotations

import io
import json
import os
import runpy
import shutil
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import yaml

from fast_agent.cards.fields import CARD_TYPES
from fast_agent.cards.load import load_cards
from fast_agent.cards.load_set import LoadSet, check_set
from fast_agent.cli.main import main

if TYPE_CHECKING:
    from collections.abc import Callable

EXAMPLES = Path(__file__).parents[2] / "examples"
DEMO = runpy.run_path(str(EXAMPLES / "workflows.py"))
RUNS: dict[str, str] = DEMO["RUNS"]
ANSWERS = {
    "chain": "Search now finds umlauts, and exports are twice as fast.",
    "parallel": (
        "Give a source for the longest bridge. Say who finished it early, in the active voice."
        " Nobody has looked at the risks yet."
    ),
    "router": "A quarter of the fare. Send us the number of your ticket.",
    "evaluator-optimizer": "The library now lends ladders",
    "orchestrator": (
        "Settled: the street is closed from noon, six stalls are asked, the poster is written.\n"
        "Open: the permit for music.\n"
    ),
    "iterative-planner": "Lind wrote it: he was one of two keepers there, and the hand is his.",
    "maker": "1 A C",
}


@pytest.fixture(autouse=True)
def _home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FAST_AGENT_HOME", str(tmp_path / "home"))


@pytest.fixture(name="facts_of")
def _facts_of(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> Callable[[str], dict[str, Any]]:
    """Run an example in this process and give the facts of its answer."""

    def run(example: str) -> dict[str, Any]:
        monkeypatch.chdir(EXAMPLES / example)
        monkeypatch.setattr(sys, "stdin", io.StringIO())
        given = DEMO["command"](RUNS[example], DEMO["SCRIPT"])[1:]
        with pytest.raises(SystemExit) as ended:
            main([*given, "--format", "json"])
        done = capsys.readouterr()
        assert ended.value.code == 0, done.err
        return json.loads(done.out)

    return run


def test_there_is_an_example_of_every_type() -> None:
    types = {one for one in CARD_TYPES if one not in {"agent", "smart"}}
    assert {name.replace("-", "_").lower() for name in RUNS} == {one.lower() for one in types}
    for example in RUNS:
        cards = load_cards([EXAMPLES / example], environ={}, cwd=EXAMPLES).cards
        assert check_set(cards) == ()
        name = LoadSet.of(cards).default
        kinds = {card.config.name: card.config.type for card in cards}
        assert name is not None
        assert kinds[name].lower() == example.replace("-", "_")


@pytest.mark.spec("FLOW-OUT-2")
@pytest.mark.parametrize("example", RUNS)
def test_an_example_answers_and_tells_what_was_done(
    facts_of: Callable[[str], dict[str, Any]], example: str
) -> None:
    facts = facts_of(example)
    assert facts["text"] == ANSWERS[example]
    assert facts["workflow"]
    if example == "router":
        assert facts["workflow"]["agent"] == "billing"
    elif example == "parallel":
        branches = facts["workflow"]["branches"]
        assert [one["agent"] for one in branches] == ["facts", "language", "risks"]
        assert branches[2]["error"] == "the line was busy"
    elif example == "evaluator-optimizer":
        assert [one["rating"] for one in facts["workflow"]["ratings"]] == ["FAIR", "EXCELLENT"]
    elif example == "maker":
        assert facts["workflow"]["converged"]


@pytest.mark.spec("LOOP-1")
def test_they_run_from_a_plain_script_with_members_that_wait(tmp_path: Path) -> None:
    for example in RUNS:
        place = tmp_path / example
        shutil.copytree(EXAMPLES / example, place)
        script = place / "script.yaml"
        content: dict[str, Any] = yaml.safe_load(script.read_text(encoding="utf-8"))
        agents: dict[str, list[dict[str, Any]]] = content.get("agents", {})
        for steps in (*agents.values(), content.get("steps", [])):
            for step in steps:
                step["delay"] = 0.001
        script.write_text(yaml.safe_dump(content, sort_keys=False), encoding="utf-8")
    done = subprocess.run(
        [sys.executable, Path(__file__).with_name("run_all.py"), tmp_path],
        input=json.dumps(RUNS),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "Traceback" not in done.stderr
    assert "never awaited" not in done.stderr
    assert {name: text.strip() for name, text in json.loads(done.stdout).items()} == {
        name: text.strip() for name, text in ANSWERS.items()
    }


def test_the_demo_runs_one_after_another_and_says_what_it_runs() -> None:
    code = "import runpy, sys; d = runpy.run_path(sys.argv[1]); d['RUNS'].pop('maker');"
    code += "[d['RUNS'].pop(n) for n in list(d['RUNS'])[2:]]; d['main']([])"
    environ = {**os.environ, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}
    done = subprocess.run(
        [sys.executable, "-c", code, EXAMPLES / "workflows.py"],
        env=environ,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "$ fast-agent go --card . --model 'scripted?file=script.yaml'" in done.stdout
    assert ANSWERS["chain"] in done.stdout
    assert "review: branch `risks` failed: the line was busy" in done.stdout
