"""`fast-agent test`, and `go --record` and `--replay`."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

import pytest
from tests.patience import wait_until

if TYPE_CHECKING:
    from collections.abc import Callable

    from conftest import Ran

    Run: TypeAlias = Callable[..., Ran]

CARD = """\
---
type: agent
model: passthrough
function_tools: [dice.py:roll]
---
You write. Today is {{currentDate}}.
"""
DICE = '''\
import random
from pathlib import Path

def roll() -> int:
    """Roll a die."""
    with Path("rolled").open("a") as file:
        file.write("x")
    return random.randrange(10**9)
'''
CASES = """\
cases:
  - name: says it back
    message: hello
    expect: {text: hello, contains: [he, lo], lacks: bye, calls: [], usage: {max_requests: 1}}
  - name: rolls
    message: "***CALL_TOOL roll {}"
    expect: {matches: '^\\d+$', calls: roll, json_schema: {type: integer}, stop_reason: endTurn}
"""


@pytest.fixture(autouse=True)
def _cards(project: Path) -> None:
    (project / "writer.md").write_text(CARD)
    (project / "dice.py").write_text(DICE)
    (project / "writer.test.yaml").write_text(CASES)


@pytest.mark.spec("REPLAY-1", "REPLAY-2")
def test_a_recorded_run_is_replayed_without_its_tools(run: Run) -> None:
    asked = ("go", "--card", "writer.md", "-m", "***CALL_TOOL roll {}", "--format", "json", "-q")
    recorded = run(*asked, "--record", "run.jsonl")
    replayed = run(*asked, "--replay", "run.jsonl")
    assert recorded.code == replayed.code == 0
    assert recorded.out == replayed.out
    assert Path("rolled").read_text() == "x"
    assert run(*asked).out != recorded.out


@pytest.mark.spec("REPLAY-4", "REPLAY-5")
def test_a_replay_of_something_else_is_refused(run: Run) -> None:
    asked = ("go", "--card", "writer.md", "-q")
    assert run(*asked, "-m", "hello", "--record", "run.jsonl").code == 0
    other = run(*asked, "-m", "good bye", "--replay", "run.jsonl")
    assert (other.code, other.out) == (1, "")
    assert "-    text: hello\n+    text: good bye\n" in other.err
    lines = Path("run.jsonl").read_text().splitlines()
    entry = next(line for line in lines if '"kind": "model"' in line)
    more = json.loads(entry) | {"number": 2}
    Path("run.jsonl").write_text("\n".join([*lines[:-1], json.dumps(more), lines[-1], ""]))
    again = run(*asked, "-m", "hello", "--replay", "run.jsonl")
    assert (again.code, again.out) == (0, "hello\n")
    assert "1 answers of the recording run.jsonl were not asked for: model of `writer`" in again.err


@pytest.mark.parametrize(
    ("text", "what"),
    [
        (None, "cannot be read: no such file"),
        ("", "is empty"),
        ('{"cassette": 1}', "holds no whole line"),
        (
            '{"cassette": 9}\n',
            "line 1 of the recording `run.jsonl` cannot be used: its format is 9",
        ),
        ('{"cassette": 1}\n{"kind": "model"}\n', "line 2 of the recording `run.jsonl` cannot be"),
        ('{"cassette": 1}\n{"kind": "wish", "gave": 1}\n', "an entry of kind 'wish'"),
        ('{"cassette": 1}\n[]\n', "it holds no object"),
        ('{"cassette": 1}\n{"kin\n', "line 2"),
        ("\udcff\n", "line 1 of the recording `run.jsonl` cannot be used: not UTF-8 text"),
    ],
)
@pytest.mark.spec("REPLAY-7")
def test_a_recording_that_is_none(run: Run, text: str | None, what: str) -> None:
    if text is not None:
        Path("run.jsonl").write_bytes(text.encode("utf-8", "surrogateescape"))
    ran = run("go", "--card", "writer.md", "-m", "hello", "--replay", "run.jsonl")
    assert (ran.code, ran.out) == (1, "")
    assert what in ran.err
    assert "hint: record it again with `--record`" in ran.err


@pytest.mark.parametrize(
    "options",
    [
        ("-m", "hello", "--record", "a", "--replay", "b"),
        ("--dump", "out", "--record", "a"),
        ("--dump", "out", "--replay", "a"),
    ],
)
def test_options_that_do_not_go_together(run: Run, options: tuple[str, ...]) -> None:
    assert run("go", "--card", "writer.md", *options).code == 2
    assert not Path("a").exists()


def test_a_recording_that_cannot_be_written(run: Run) -> None:
    ran = run("go", "--card", "writer.md", "-m", "hello", "--record", "no/such/place")
    assert ran.code == 1
    assert "error: the recording `no/such/place` cannot be written: no such file" in ran.err


@pytest.mark.spec("TEST-1", "TEST-2", "TEST-4", "TEST-5")
def test_cases_are_recorded_once_and_then_replayed(run: Run) -> None:
    missing = run("test")
    assert missing.code == 1
    assert "there is no recording `recordings/writer/rolls.jsonl`" in missing.out
    assert "`fast-agent test --record` makes it" in missing.out
    made = run("test", "--record")
    assert (made.code, made.out.splitlines()[-1]) == (0, "2 passed, 0 failed")
    assert "ok     rolls (recorded)" in made.out
    before = Path("recordings/writer/rolls.jsonl").read_text()
    again = run("test", "--record", "--format", "json").json
    assert (again["passed"], again["failed"]) == (2, 0)
    assert [case["recorded"] for case in again["cases"]] == [False, False]
    assert Path("rolled").read_text() == "x"
    assert Path("recordings/writer/rolls.jsonl").read_text() == before
    assert run("test", "-k", "ROLLS", "--record-all").code == 0
    assert Path("recordings/writer/rolls.jsonl").read_text() != before
    assert run("test", "-k", "says").out.splitlines()[-1] == "1 passed, 0 failed"


@pytest.mark.spec("TEST-1", "REPLAY-4")
def test_a_changed_card_fails_its_cases(run: Run) -> None:
    assert run("test", "--record").code == 0
    Path("writer.md").write_text(CARD.replace("You write.", "You write well."))
    ran = run("test")
    assert (ran.code, ran.out.splitlines()[-1]) == (1, "0 passed, 2 failed")
    assert "-system: You write. Today is" in ran.out
    assert "+system: You write well. Today is" in ran.out


@pytest.mark.spec("TEST-2")
@pytest.mark.parametrize(
    ("expect", "problem"),
    [
        ("text: good bye", "text: expected `good bye`, got `hello`"),
        ("contains: [he, bye]", "contains: `bye` is not in `hello`"),
        ("lacks: ell", "lacks: `ell` is in `hello`"),
        ("matches: '^b'", "matches: `^b` is not found in `hello`"),
        ("json_schema: {type: object}", "json_schema: the answer is not JSON"),
        ("stop_reason: maxTokens", "stop_reason: expected `maxTokens`, got `endTurn`"),
        ("calls: [roll, roll]", "calls: expected `roll 2 times`, got none"),
        ("workflow: {agent: billing}", 'workflow: expected `{"agent": "billing"}` in `null`'),
        ("usage: {max_requests: 0}", "usage: `max_requests` is 0, and 1 were used"),
        ("usage: {max_total_tokens: 3}", "usage: `max_total_tokens` is 3, and 4 were used"),
        ("error: too busy", "error: expected one with `too busy`, and there was none"),
    ],
)
def test_what_is_not_as_expected_is_reported(run: Run, expect: str, problem: str) -> None:
    Path("writer.test.yaml").write_text(
        f"cases:\n  - {{name: one, message: hello, live: true, expect: {{{expect}}}}}\n"
    )
    ran = run("test", "--format", "json")
    assert ran.code == 1
    assert [one.split(":")[0] for one in ran.json["cases"][0]["problems"]] == [
        problem.partition(":")[0]
    ]
    assert problem in ran.json["cases"][0]["problems"][0]


@pytest.mark.spec("TEST-2")
def test_an_error_can_be_expected_and_recorded(run: Run) -> None:
    Path("writer.test.yaml").write_text(
        'cases:\n  - {name: one, message: "***CALL_TOOL", expect: {error: names no tool}}\n'
    )
    assert run("test", "--record").code == 0
    assert run("test").code == 0
    Path("writer.test.yaml").write_text('cases:\n  - {name: one, message: "***CALL_TOOL"}\n')
    ran = run("test")
    assert ran.code == 1
    assert "`***CALL_TOOL` names no tool" in ran.out


@pytest.mark.spec("TEST-2")
def test_the_route_of_a_workflow(run: Run, project: Path) -> None:
    (project / "desk.yaml").write_text(
        "type: router\nmodel: scripted?file=route.script\nagents: [writer, other]\n"
        "instruction: Choose.\ndefault: true\n"
    )
    (project / "other.md").write_text("---\ntype: agent\nmodel: passthrough\n---\nOther.\n")
    (project / "route.script").write_text(
        'steps:\n  - text: \'{"agent": "other", "confidence": "high", "reasoning": "because"}\'\n'
    )
    (project / "desk.test.yaml").write_text(
        "cards: [desk.yaml, writer.md, other.md]\ncases:\n"
        "  - {name: other, message: hi, expect: {text: hi, workflow: {agent: other}}}\n"
        "  - {name: writer, message: hi, expect: {workflow: {agent: writer}}}\n"
    )
    assert run("test", "desk.test.yaml", "--record").code == 1
    ran = run("test", "desk.test.yaml", "--format", "json").json
    assert [case["passed"] for case in ran["cases"]] == [True, False]
    assert '"agent": "other"' in ran["cases"][1]["problems"][0]


@pytest.mark.spec("TEST-3")
@pytest.mark.parametrize(
    ("text", "codes", "message"),
    [
        ("cases: [", ["FA921"], "writer.test.yaml:1"),
        ("[]", ["FA923"], "the test file must be"),
        ("{}", ["FA923"], "the test file needs `cases`"),
        ("", ["FA923"], "the test file is empty"),
        ("# nothing yet\n", ["FA923"], "the test file is empty"),
        ("cases: []", ["FA923"], "the test file has no cases"),
        ("case: []", ["FA922", "FA923"], "did you mean `cases`?"),
        ("cases: [{name: a}]", ["FA923"], "`cases[0]` needs `messages`"),
        ("cases: [{name: a, message: b, expect: {tex: c}}]", ["FA922"], "did you mean `text`?"),
        ("cases: [{name: a, message: 3}]", ["FA923"], "must be a string, not a whole number"),
        ("cases: [{name: a, messages: []}]", ["FA923"], "the case sends no message"),
        (
            "cases: [{name: a, message: b}, {name: a, message: c}]",
            ["FA923"],
            "there are two cases `a`",
        ),
        (
            "cases: [{name: a, message: b, expect: {matches: '('}}]",
            ["FA923"],
            "is not a valid regular expression",
        ),
        (
            "cases: [{name: a, message: b, expect: {json_schema: {type: nubmer}}}]",
            ["FA923"],
            "the schema of `json_schema` is not valid",
        ),
        (
            "cases: [{name: a, message: b, live: true, recording: x}]",
            ["FA923"],
            "a live case has no recording",
        ),
        ("cases: [{name: a, message: b, network: true}]", ["FA923"], "never uses the network"),
        (
            "cases: [{name: a, message: b, expect: {error: c, text: d}}]",
            ["FA923"],
            "has no answer to check",
        ),
    ],
)
def test_a_test_file_is_checked(run: Run, text: str, codes: list[str], message: str) -> None:
    Path("writer.test.yaml").write_text(text)
    ran = run("test")
    assert (ran.code, ran.codes) == (1, codes), ran.err
    assert message in ran.err
    assert "writer.test.yaml" in ran.err


@pytest.mark.spec("TEST-1")
def test_a_file_is_about_the_card_of_its_name_wherever_it_is_run_from(
    run: Run, project: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (project / "other.md").write_text(
        "---\ntype: agent\nmodel: passthrough\ndefault: true\n---\nOther.\n"
    )
    Path("writer.test.yaml").write_text("cases: [{name: one, message: hello}]\n")
    assert run("test", "--record").code == 0
    recording = Path("recordings/writer/one.jsonl").read_text()
    assert '"turn": "writer:' in recording
    assert str(project) not in recording
    monkeypatch.chdir(tmp_path)
    assert run("test", "work").code == 0


@pytest.mark.spec("REPLAY-7")
def test_a_recording_of_a_killed_run_is_read_up_to_where_it_broke_off(
    run: Run, project: Path
) -> None:
    (project / "slow.yaml").write_text("type: chain\nsequence: [writer, sleeper]\nname: slow\n")
    (project / "sleeper.md").write_text("---\ntype: agent\nmodel: slow?seconds=600\n---\nS.\n")
    arguments = ["go", "--card", ".", "--agent", "slow", "-m", "hello", "--record", "run.jsonl"]
    program = Path(sys.executable).with_name("fast-agent")
    recording = project / "run.jsonl"
    with subprocess.Popen([program, *arguments], cwd=project) as process:
        wait_until(lambda: recording.exists() and "sleeper" in recording.read_text())
        process.kill()
    text = recording.read_text()
    assert '"kind": "model", "turn": "slow:' in text
    assert '"end"' not in text
    recording.write_text(text[:-5])
    ran = run("go", "--card", ".", "--agent", "slow", "-m", "hello", "--replay", "run.jsonl")
    assert (ran.code, ran.out) == (1, "")
    assert "model request 1 of a turn of agent `sleeper` is not in the recording" in ran.err
    assert "hint: the recording is incomplete" in ran.err


@pytest.mark.spec("TEST-4")
def test_nothing_to_run_is_wrong_usage(run: Run) -> None:
    assert run("test", "-k", "nowhere").code == 2
    Path("writer.test.yaml").unlink()
    assert "there are no `*.test.yaml` files" in run("test").err
    assert run("test", "nowhere").code == 1
    assert "its name must end in `.test.yaml`" in run("test", "writer.md").err


def test_cards_that_cannot_be_loaded_fail_their_cases(run: Run) -> None:
    Path("writer.md").write_text("---\ntype: agnet\n---\nHelp.\n")
    ran = run("test")
    assert (ran.code, ran.out.splitlines()[-1]) == (1, "0 passed, 2 failed")
    assert "agnet" in ran.out


def test_a_test_file_is_no_card(run: Run) -> None:
    ran = run("check", ".")
    assert (ran.code, "writer.test.yaml" in ran.out + ran.err) == (0, False)


@pytest.mark.spec("TEST-6")
def test_a_live_case_is_kept_off_the_network(run: Run) -> None:
    Path("dice.py").write_text(
        "import socket\n\n\ndef roll() -> str:\n"
        '    """Ask far away."""\n'
        "    try:\n        socket.create_connection(('127.0.0.1', 9), timeout=1)\n"
        "    except PermissionError as error:\n        return str(error)\n"
        "    except OSError:\n        return 'tried'\n    return 'reached'\n"
    )
    case = 'name: one, message: "***CALL_TOOL roll {}", live: true'
    Path("writer.test.yaml").write_text(f"cases:\n  - {{{case}}}\n")
    closed = run("test", "--format", "json")
    assert closed.code == 1
    assert "it tried to reach the network: 127.0.0.1" in closed.json["cases"][0]["problems"][0]
    Path("writer.test.yaml").write_text(
        f"cases:\n  - {{{case}, network: true, expect: {{text: tried}}}}\n"
    )
    assert run("test").code == 0


@pytest.mark.spec("TR-F1.3")
def test_cards_of_tests_that_nobody_named_run_no_code(run: Run, project: Path) -> None:
    (project.parent / "home/fastagent.config.yaml").unlink()
    refused = run("test", "--record")
    assert refused.code == 3
    assert "may not act yet; nothing was started" in refused.out
    assert not (project / "rolled").exists()
    # `test PATH` names the file.
    assert run("test", "writer.test.yaml", "--record").code == 0
    assert (project / "rolled").exists()


@pytest.mark.spec("REPLAY-8")
class TestSoftReplay:
    def test_a_changed_instruction_is_shown_and_the_recorded_answer_holds(
        self, run: Run, project: Path
    ) -> None:
        assert run("test", "--record").code == 0
        (project / "writer.md").write_text(CARD.replace("You write.", "You write well."))
        assert run("test").code == 1
        (project / "rolled").unlink()
        done = run("test", "--soft")
        assert done.code == 0
        assert "drifted: 1 request is not the recorded one" in done.out
        assert "+system: You write well." in done.out
        assert not (project / "rolled").exists()

    def test_a_changed_message_takes_the_next_answer_of_the_agent(
        self, run: Run, project: Path
    ) -> None:
        assert run("test", "--record").code == 0
        cases = CASES.replace("message: hello", "message: hullo")
        (project / "writer.test.yaml").write_text(cases)
        found = run("test", "--soft", "--format", "json").json
        assert [one["passed"] for one in found["cases"]] == [True, True]
        [drift] = found["cases"][0]["drifted"]
        assert "hullo" in drift
        assert found["cases"][1]["drifted"] == []

    def test_what_the_recording_does_not_have_still_fails(self, run: Run, project: Path) -> None:
        assert run("test", "--record").code == 0
        cases = CASES.replace("message: hello", "messages: [hello, again]")
        (project / "writer.test.yaml").write_text(cases)
        done = run("test", "--soft", "-k", "says it back")
        assert done.code == 1
        assert "again" in done.out
