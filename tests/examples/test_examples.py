"""Every example runs, with a scripted model, by the real command."""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import pytest

from fast_agent.cli.main import main

if TYPE_CHECKING:
    from collections.abc import Callable

    Go: TypeAlias = Callable[..., dict[str, Any]]

EXAMPLES = Path(__file__).parents[2] / "examples"
SCRIPT = "scripted?file=script.yaml"
BIN = str(Path(sys.executable).parent)


@pytest.fixture(autouse=True)
def _surroundings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FAST_AGENT_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("PATH", os.pathsep.join((BIN, os.environ["PATH"])))


@pytest.fixture(name="go")
def _go(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Go:
    """Run an example in this process, as the command does, and give its facts."""

    def go(example: str, *arguments: str | Path, stdin: str = "") -> dict[str, Any]:
        monkeypatch.chdir(EXAMPLES / example)
        monkeypatch.setattr(sys, "stdin", io.StringIO(stdin))
        with pytest.raises(SystemExit) as ended:
            main(["go", *map(str, arguments), "--format", "json"])
        done = capsys.readouterr()
        assert ended.value.code == 0, done.err
        return {**json.loads(done.out), "told": done.err}

    return go


def history(path: Path) -> list[dict[str, Any]]:
    return json.loads(path.read_text(encoding="utf-8"))["messages"]


@pytest.mark.spec("CARD-69", "MODEL-7")
@pytest.mark.parametrize(
    ("example", "message", "answer"),
    [
        ("basic", "Der Hafen misst 2 km.", "The harbour measures 2 km."),
        (
            "functions",
            "How long is this, and how long until spring?",
            "Nine words, and 119 days; I was not allowed to count the text with a password.",
        ),
    ],
)
def test_as_a_process(example: str, message: str, answer: str) -> None:
    done = subprocess.run(
        ["fast-agent", "go", "--card", ".", "--model", SCRIPT, "--message", message],
        cwd=EXAMPLES / example,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stdout) == (0, f"{answer}\n"), done.stderr


@pytest.mark.spec("CARD-69")
def test_basic_with_the_other_agent(go: Go, tmp_path: Path) -> None:
    script = tmp_path / "script.yaml"
    script.write_text("agents: {sizer: [{expect: bicycle, text: 1.8 m}]}")
    facts = go("basic", "--card", ".", "--agent", "sizer", "--model", f"scripted?file={script}",
               "--message", "a bicycle")  # fmt: skip
    assert (facts["agent"], facts["text"]) == ("sizer", "1.8 m")


@pytest.mark.spec("CARD-71", "CARD-55", "CARD-49", "CARD-50")
def test_with_history(go: Go, tmp_path: Path) -> None:
    results = tmp_path / "results.json"
    facts = go("with-history", "--card", ".", "--model", SCRIPT, "--message", "And in April?",
               "--results", results)  # fmt: skip
    assert facts["text"] == "April has no figure yet; March closed at 46,144 riders."
    reported = history(results)
    assert [message["role"] for message in reported] == ["user", "assistant", "user", "assistant"]
    assert reported[0]["is_template"] is True
    assert "ferry line" in reported[0]["content"][0]["text"]
    assert "42" not in reported[1]["content"][0]["text"]


@pytest.mark.spec("CARD-73", "CARD-82", "CARD-9")
def test_tool_only(go: Go) -> None:
    facts = go("tool-only", "--model", SCRIPT, "--message", "Add two numbers.")
    assert facts["agent"] == "writer"
    assert facts["text"] == "Here it is: def add(a, b): return a + b"
    assert facts["usage"]["requests"] == 3
    assert "agent__code_formatter" in facts["told"]


@pytest.mark.spec("CARD-70", "CARD-63", "TOOL-2")
def test_project_reports(go: Go, tmp_path: Path) -> None:
    results = tmp_path / "results.json"
    facts = go("project-reports", "--card", ".", "-c", "fastagent.config.yaml", "--model", SCRIPT,
               "--message", "The report, please.", "--results", results)  # fmt: skip
    assert facts["text"].startswith("# Oslo\nThe quay stands; the reading room is open.")
    assert facts["usage"]["tool_calls"] == 6
    called, answered = history(results)[1:3]
    by_name = {
        f"{call['params']['name']} {json.dumps(call['params']['arguments'])}": answered[
            "tool_results"
        ][call_id]
        for call_id, call in called["tool_calls"].items()
    }
    texts = {name: result["content"][0]["text"] for name, result in by_name.items()}
    assert texts['agent__oslo-desk {"message": "library"}'] == "The reading room is open."
    assert (
        "T" in json.loads(texts['time__get_current_time {"timezone": "Europe/Oslo"}'])["datetime"]
    )
    assert "quieter rails" in texts['news__search_headlines {"project": "tramway"}']
    refused = by_name['news__delete_headlines {"project": "tramway"}']
    assert refused["isError"] is True


def test_demo_tools(go: Go) -> None:
    when = {"source_timezone": "Europe/Oslo", "time": "08:30", "target_timezone": "Asia/Tokyo"}
    calls = [
        '***CALL_TOOL word_count {"text": "one two three"}',
        '***CALL_TOOL agent__guide {"message": "Ferries were added."}',
        "***CALL_TOOL time__convert_time " + json.dumps(when),
    ]
    facts = go("demo", "--card", "cards", "-c", "fastagent.config.yaml", "--agent", "clerk",
               "--model", "passthrough", "--message", "-", stdin="\n".join(calls))  # fmt: skip
    first, second, *rest = facts["text"].splitlines()
    assert (first, second) == ("3", "Ferries were added.")
    assert "16:30" in "".join(rest) or "15:30" in "".join(rest)


@pytest.mark.spec("RUN-18")
def test_two_workers_one_of_which_is_killed() -> None:
    demo = EXAMPLES / "cluster" / "demo.py"
    done = subprocess.run(
        [sys.executable, demo, "24"], text=True, capture_output=True, timeout=300, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "24 answers" in done.stdout
    assert "24 orders booked, 0 of them twice" in done.stdout
    assert "48 of them needed" in done.stdout


def test_every_example_is_checked_and_run(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(EXAMPLES.parent)
    with pytest.raises(SystemExit) as ended:
        main(["check", "examples", "--format", "json"])
    assert ended.value.code == 0
    found = json.loads(capsys.readouterr().out)
    assert [one for one in found["diagnostics"] if one["severity"] != "info"] == []
    there = {path.name for path in EXAMPLES.iterdir() if path.is_dir()}
    there.remove("tracing")  # it shows the trace of another example
    tests = Path(__file__).parent.glob("test_*.py")
    text = "".join([path.read_text(encoding="utf-8") for path in tests])
    assert {name for name in there if f'"{name}"' not in text} == set()
    assert {Path(card["path"]).parts[1] for card in found["cards"]} == there
