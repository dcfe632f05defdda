"""`fast-agent go` with workflows: the answer, what was done on the way, and progress."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, TypeAlias

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from conftest import Ran
    from tests.card_writer import WriteCard

    Run: TypeAlias = Callable[..., Ran]


@pytest.fixture(autouse=True)
def cards(write_card: WriteCard, project: Path) -> None:
    write_card("cards/one.md", "model: passthrough", "tool_only: true")
    write_card("cards/two.md", "model: passthrough", "tool_only: true")
    write_card("cards/line.md", "type: chain", "sequence: [one, two]", body="")
    write_card("cards/fan.md", "type: parallel", "fan_out: [one, line]", body="")
    write_card(
        "cards/front.md", "type: router", "agents: [one, two]", "model: scripted?file=s.json"
    )
    route = {"agent": "two", "confidence": "high", "reasoning": "it is the second"}
    (project / "cards/s.json").write_text(json.dumps({"steps": [{"text": json.dumps(route)}]}))


def test_an_agent_that_fails_as_a_tool_is_reported_once(
    run: Run, write_card: WriteCard, project: Path
) -> None:
    write_card("cards/boss.md", "model: passthrough", "agents: [kid, one]")
    write_card("cards/kid.md", "model: scripted?file=kid.json")
    (project / "cards/kid.json").write_text(json.dumps({"steps": [{"fail": "no pencil"}]}))
    call = '***CALL_TOOL agent__kid {"message": "draw"}'
    done = run("go", "--card", "cards", "--agent", "boss", "-m", call)
    assert (done.code, done.out) == (0, "agent `kid` failed: no pencil\n")
    assert done.err == 'boss: agent__kid {"message": "draw"}\nboss: agent `kid` failed: no pencil\n'
    wrong = run("go", "--card", "cards", "--agent", "boss", "-m", call.replace("kid", "nobody"))
    assert "boss: agent__nobody failed: unknown tool `agent__nobody`" in wrong.err


@pytest.mark.spec("CHILD-6")
@pytest.mark.parametrize(("shown", "message"), [(0, 0), (1, 2), (2, 4)])
def test_the_first_runs_of_called_agents_are_shown_in_full(
    shown: int, message: int, run: Run, write_card: WriteCard, project: Path
) -> None:
    """Each call of `kid` calls `flow`, whose members report a step each."""
    write_card(
        "cards/boss.md",
        "model: scripted?file=boss.json",
        "agents: [kid]",
        f"max_display_instances: {shown}",
    )
    write_card("cards/kid.md", "model: passthrough", "agents: [line]")
    call = {
        "name": "agent__kid",
        "arguments": {"message": '***CALL_TOOL agent__line {"message": "x"}'},
    }
    steps = [{"calls": [call]}, {"calls": [call]}, {"text": "done"}]
    (project / "cards/boss.json").write_text(json.dumps({"steps": steps}))
    done = run("go", "--card", "cards", "--agent", "boss", "-m", "go")
    assert (done.code, done.out) == (0, "done\n")
    lines = done.err.splitlines()
    assert sum(line.startswith("boss: agent__kid") for line in lines) == 2
    assert sum(line.startswith("kid: agent__line") for line in lines) == shown
    assert sum(line.startswith("line: step") for line in lines) == message
    assert len(lines) == 2 + shown + message


@pytest.mark.spec("FLOW-OUT-2", "OUT-1")
def test_a_chain_answers_on_standard_output_and_tells_its_steps_beside(run: Run) -> None:
    done = run("go", "--card", "cards", "--agent", "line", "-m", "hello")
    assert (done.code, done.out) == (0, "hello\n")
    assert done.err == (
        "line: step 1 of 2: `one` answered: hello\nline: step 2 of 2: `two` answered: hello\n"
    )
    quiet = run("go", "--card", "cards", "--agent", "line", "-m", "hello", "--quiet")
    assert (quiet.out, quiet.err) == ("hello\n", "")


@pytest.mark.spec("FLOW-OUT-2", "OUT-2")
@pytest.mark.parametrize(
    ("agent", "text", "workflow"),
    [
        (
            "line",
            "hi",
            {"type": "chain", "steps": [{"agent": "one", "text": "hi"},
                                        {"agent": "two", "text": "hi"}]},
        ),
        (
            "fan",
            "## one\n\nhi\n\n## line\n\nhi",
            {"type": "parallel", "branches": [{"agent": "one", "text": "hi"},
                                              {"agent": "line", "text": "hi"}]},
        ),
        (
            "front",
            "hi",
            {"type": "router", "agent": "two", "confidence": "high",
             "reasoning": "it is the second"},
        ),
    ],
)  # fmt: skip
def test_what_a_workflow_did_is_json(run: Run, agent: str, text: str, workflow: Any) -> None:
    done = run("go", "--card", "cards", "--agent", agent, "-m", "hi", "--format", "json")
    assert (done.code, done.json["text"], done.json["workflow"]) == (0, text, workflow)
    assert done.json["usage"]["requests"] == {"line": 2, "fan": 3, "front": 2}[agent]


def test_a_workflow_that_fails_is_an_error(run: Run, project: Path) -> None:
    (project / "cards/s.json").write_text(json.dumps({"steps": [{"text": "who?", "repeat": 2}]}))
    done = run("go", "--card", "cards", "--agent", "front", "-m", "hi")
    assert (done.code, done.out) == (1, "")
    assert "agent `front` returned an invalid structured answer" in done.err
    assert "hint: say in its instruction how to answer" in done.err
    # The card is not at fault where its model cannot choose at all.
    done = run("go", "--card", "cards", "--agent", "front", "-m", "hi", "--model", "passthrough")
    assert (done.code, done.out) == (1, "")
    assert "hint: its model only repeats the message" in done.err


@pytest.mark.spec("FLOW-CHAIN-3")
@pytest.mark.parametrize(("extra", "receiver"), [((), "two"), (("--agent", "line"), "line")])
def test_a_resumed_conversation_goes_on_with_the_last_agent_of_the_chain(
    run: Run, project: Path, extra: tuple[str, ...], receiver: str
) -> None:
    run("go", "--card", "cards", "--agent", "line", "-m", "hello", "--session")
    done = run(
        "go", "--card", "cards", "--resume", *extra, "-m", "and now?",
        "--format", "json", "--results", "all.json",
    )  # fmt: skip
    assert (done.code, done.json["agent"], done.json["text"]) == (0, receiver, "and now?")
    reported = json.loads((project / "all.json").read_text())["messages"]
    texts = [message["content"][0]["text"] for message in reported]
    assert texts == ["hello", "hello", "and now?", "and now?"]


def test_a_chain_that_stays_is_talked_to_again(run: Run, project: Path) -> None:
    card = project / "cards/line.md"
    card.write_text(card.read_text().replace("type:", "continue_with_final: false\ntype:"))
    run("go", "--card", "cards", "--agent", "line", "-m", "hello", "--session")
    done = run("go", "--card", "cards", "--resume", "-m", "and now?", "--format", "json")
    assert done.json["agent"] == "line"
