"""`fast-agent go`: what is printed of a run, for users and for programs."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

import anyio
import pytest

from fast_agent.agents.events import ModelRequested, Origin, TextStreamed
from fast_agent.cli.running.progress import Progress

if TYPE_CHECKING:
    from collections.abc import Callable

    from conftest import Ran
    from tests.card_writer import WriteCard

    Run: TypeAlias = Callable[..., Ran]

PASS = ("--model", "passthrough")


class TestOutput:
    @pytest.mark.spec("OUT-1")
    def test_progress_goes_to_standard_error(self, run: Run, write_card: WriteCard) -> None:
        write_card("ann.md", "function_tools: [tools.py:one]", "history_mode: scratch")
        Path("tools.py").write_text("def one() -> int:\n    print('from the tool')\n    return 1\n")
        done = run("go", "--card", "ann.md", *PASS, "-m", "***CALL_TOOL one {}")
        assert "ann: one {}" in done.err
        assert "FA123" in done.err
        assert "from the tool\n" in done.err
        assert done.out == "1\n"

    @pytest.mark.spec("OUT-1")
    def test_quiet_prints_the_answer_alone(self, spawn: Run, write_card: WriteCard) -> None:
        write_card("ann.md", "function_tools: [tools.py:bad]", "history_mode: scratch")
        Path("tools.py").write_text("def bad() -> int:\n    return 1 // 0\n")
        done = spawn("go", "--card", "ann.md", *PASS, "-m", "***CALL_TOOL bad {}", "--quiet")
        assert "ZeroDivisionError" in done.out
        assert done.err == ""

    def test_an_answer_cut_short_says_so(self, run: Run, write_card: WriteCard) -> None:
        write_card(
            "ann.md", "function_tools: [tools.py:one]", "request_params: {max_iterations: 1}"
        )
        Path("tools.py").write_text("def one() -> int:\n    return 1\n")
        done = run("go", "--card", "ann.md", *PASS, "-m", "***CALL_TOOL one {}")
        assert done.code == 0
        assert "the answer ended early: maxIterations" in done.err

    def test_a_model_that_does_not_begin_to_answer_is_named_again_and_again(
        self, run: Run, write_card: WriteCard, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr("fast_agent.cli.running.progress.SILENT_SECONDS", 0.05)
        write_card("ann.md")
        slow = "slow?seconds=1.5"
        done = run("go", "--card", "ann.md", "--model", slow, "-m", "hi")
        waited = [line for line in done.err.splitlines() if "still waiting" in line]
        assert waited[:2] == [
            f"ann: still waiting for `slow`, for {seconds} s now" for seconds in (0.05, 0.1)
        ]
        assert len(waited) < 7
        assert done.out == "hi\n"

    @pytest.mark.anyio
    async def test_a_request_that_is_made_again_is_waited_for_once(
        self, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
    ) -> None:
        monkeypatch.setattr("fast_agent.cli.running.progress.SILENT_SECONDS", 0.01)
        listener = Progress(quiet=False, stream=False).listener
        assert listener is not None
        origin = Origin("ann", "turn", None)
        for event in (*2 * (ModelRequested(origin, "m", 1),), TextStreamed(origin, "hi")):
            listener(event)
        await anyio.sleep(0.1)
        assert "still waiting" not in capsys.readouterr().err

    def test_an_empty_answer_says_so(self, run: Run, write_card: WriteCard) -> None:
        write_card("ann.md", "function_tools: [tools.py:none]")
        Path("tools.py").write_text("def none() -> None:\n    return None\n")
        done = run("go", "--card", "ann.md", *PASS, "-m", "***CALL_TOOL none {}")
        assert (done.code, done.out) == (0, "\n")
        assert "the answer is empty\n" in done.err

    @pytest.mark.spec("MODEL-6")
    def test_a_malformed_command_of_passthrough_fails_at_once(self, run: Run) -> None:
        done = run("go", *PASS, "-m", '***CALL_TOOL one {"a"')
        assert (done.code, done.out) == (1, "")
        assert "`***CALL_TOOL one`" in done.err

    def test_an_interrupted_write_of_results_is_reported_before_the_turn(
        self, run: Run, write_card: WriteCard
    ) -> None:
        write_card("ann.md", "function_tools: [tools.py:one]")
        Path("tools.py").write_text("import pathlib\ndef one(): pathlib.Path('ran').touch()\n")
        done = run("go", "--card", "ann.md", *PASS, "-m", "***CALL_TOOL one {}",
                   "--results", "nope/out.json")  # fmt: skip
        assert done.code == 1
        assert "there is no directory" in done.err
        assert not Path("ran").exists()


def test_it_streams_to_a_terminal(project: Path) -> None:
    """A terminal sees the answer come piece by piece, once."""
    import pty
    import subprocess

    script = project / "script.yaml"
    script.write_text("steps: [{pieces: [one, ' two', ' three']}]")
    ours, theirs = pty.openpty()
    command = Path(sys.executable).with_name("fast-agent")
    process = subprocess.Popen(
        [command, "go", "--model", "scripted?file=script.yaml", "-m", "hi"],
        stdout=theirs,
        stderr=subprocess.DEVNULL,
        cwd=project,
    )
    os.close(theirs)
    seen = b""
    with os.fdopen(ours, "rb", buffering=0) as terminal:
        while True:
            try:
                piece = terminal.read(1024)
            except OSError:  # the other end is closed
                break
            if not piece:
                break
            seen += piece
    assert process.wait() == 0
    assert seen.replace(b"\r\n", b"\n") == b"one two three\n"


@pytest.mark.spec("T-J2.1", "T-J2.2", "T-J2.3")
def test_every_event_is_a_line_that_fits_its_schema(run: Run, write_card: WriteCard) -> None:
    import jsonschema

    write_card("ann.md", "agents: [bob]", "default: true")
    write_card("bob.md", "max_parallel: 1")
    script = (
        "agents:\n  ann:\n  - thinking: hm\n"
        "    call: {name: agent__bob, arguments: {message: hi}}\n"
        "  - text: done\n  bob:\n  - text: hello\n"
    )
    Path("script.yaml").write_text(script)
    cards = ("--card", "ann.md", "--card", "bob.md", "--model", "scripted?file=script.yaml")
    done = run("go", *cards, "-m", "go", "--format", "events", "--session")
    assert done.code == 0, done.err
    schema = run("schema", "events").json
    jsonschema.Draft202012Validator.check_schema(schema)
    checker = jsonschema.Draft202012Validator(schema)
    lines = [json.loads(line) for line in done.out.splitlines()]
    for line in lines:
        checker.validate(line)  # pyright: ignore[reportUnknownMemberType]
    assert [line["seq"] for line in lines] == list(range(1, len(lines) + 1))
    names = [line["event"] for line in lines]
    assert names[0] == "session.opened"
    assert names[1] == "turn.started"
    assert names[-2:] == ["turn.finished", "result"]
    for name in ("thinking", "text", "model.answered", "tool.started", "child.started",
                 "child.finished", "tool.finished"):  # fmt: skip
        assert name in names
    (child,) = [line for line in lines if line["event"] == "turn.started" and line["parent"]]
    assert child["agent"].startswith("bob")
    facts = {key: value for key, value in lines[-1].items() if key not in {"v", "seq", "time"}}
    del facts["event"]
    as_json = run("go", *cards, "-m", "go", "--format", "json").json
    assert facts == as_json


@pytest.mark.spec("T-J2.4")
def test_quiet_events_leave_text_out(run: Run) -> None:
    done = run("go", *PASS, "-m", "hello", "--format", "events", "--quiet")
    names = [json.loads(line)["event"] for line in done.out.splitlines()]
    assert names == [
        "turn.started", "model.requested", "model.answered", "turn.finished", "result",
    ]  # fmt: skip


@pytest.mark.spec("T-J2.5")
def test_the_schema_of_events_is_that_of_the_classes() -> None:
    from dataclasses import fields
    from typing import get_args

    from fast_agent.agents.events import Event
    from fast_agent.cli.running.event_lines import EVENT_NAMES, events_schema

    kinds = events_schema()["oneOf"]
    by_name = {kind["properties"]["event"]["const"]: kind for kind in kinds}
    assert {type_.__name__ for type_ in EVENT_NAMES} == {
        getattr(one, "__forward_arg__", getattr(one, "__name__", "")) for one in get_args(Event)
    }
    common = {"v", "seq", "time", "event", "agent", "turn", "parent"}
    for type_, name in EVENT_NAMES.items():
        expected = {one.name for one in fields(type_)} - {"origin"}
        assert set(by_name[name]["properties"]) - common == expected


@pytest.mark.spec("T-J2.6")
def test_a_closed_pipe_ends_the_turn(project: Path) -> None:
    import subprocess

    from tests.cli.terminal import COMMAND
    from tests.patience import PATIENCE

    # More than a pipe holds: the program waits to write when its reader leaves.
    pieces = json.dumps(["x" * 20_000] * 50)
    (project / "script.yaml").write_text(f"steps:\n- pieces: {pieces}\n")
    model = "scripted?file=script.yaml"
    process = subprocess.Popen(
        [COMMAND, "go", "--model", model, "-m", "hi", "--format", "events"],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    )
    assert process.stdout is not None
    assert b"turn.started" in process.stdout.readline()
    process.stdout.close()
    assert process.wait(PATIENCE) == 1
