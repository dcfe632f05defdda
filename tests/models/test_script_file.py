from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from fast_agent.errors import ModelError
from fast_agent.messages.message import Message
from fast_agent.models.model import ModelRequest, Usage
from fast_agent.models.script import (
    Call,
    Choose,
    Delay,
    Fail,
    Say,
    ScriptedModel,
    Step,
    Together,
)
from fast_agent.models.script_file import ScriptBook, read_script_file

if TYPE_CHECKING:
    from pathlib import Path


def book(tmp_path: Path, text: str, seed: int | None = None) -> ScriptBook:
    path = tmp_path / "script.yaml"
    path.write_text(text, encoding="utf-8")
    return read_script_file(path, shown="script.yaml", seed=seed)


def steps(tmp_path: Path, text: str) -> list[Step]:
    return list(book(tmp_path, text).script_of("any").steps)


@pytest.mark.spec("MODEL-7")
def test_every_kind_of_step(tmp_path: Path) -> None:
    made = steps(
        tmp_path,
        """\
steps:
  - text: hello
    expect: hi
    delay: 0.5
    thinking: hm
  - pieces: [he, llo]
  - call: {name: add, arguments: {a: 1, deep: ['${NOT_A_VARIABLE}']}}
  - calls: [{name: x}, {name: y}]
    text: both
  - fail: overloaded
  - fail: {message: overloaded, hint: wait}
  - delay: 2
  - text: cut
    stop_reason: maxTokens
    usage: {input_tokens: 5}
    repeat: 3
  - choose: [{text: a, weight: 9}, {call: {name: b}}]
    repeat: forever
""",
    )
    assert made == [
        Say("hello", expect="hi", delay=0.5, thinking="hm"),
        Say("hello", pieces=("he", "llo")),
        Call("add", {"a": 1, "deep": ["${NOT_A_VARIABLE}"]}),
        Together((Call("x"), Call("y")), Say("both")),
        Fail("overloaded"),
        Fail("overloaded", hint="wait"),
        Delay(2),
        Say("cut", stop_reason="maxTokens", usage=Usage(input_tokens=5, requests=1), times=3),
        Choose(((9, Say("a")), (1, Call("b"))), times=None),
    ]


def test_json_is_read_too(tmp_path: Path) -> None:
    text = json.dumps({"steps": [{"text": "a", "expect": {"regex": "^x$"}}]}, indent=1)
    (step,) = steps(tmp_path, text)
    assert isinstance(step, Say)
    assert not isinstance(step.expect, str)
    assert step.expect is not None
    assert step.expect.pattern == "^x$"


@pytest.mark.parametrize(
    ("text", "line", "expected"),
    [
        ("steps:\n  - txt: a\n", 2, "has no key `txt`"),
        ("steps:\n  - text: 3\n", 2, "must be a string, not a whole number"),
        ("steps:\n  - {}\n", 2, "a step has no answer"),
        ("steps:\n  - {text: a, fail: b}\n", 2, "cannot have an answer as well"),
        ("steps:\n  - {text: a, pieces: [b]}\n", 2, "either `text` or `pieces`"),
        ("steps:\n  - {text: a, choose: [{text: b}]}\n", 2, "no answer of its own"),
        ("steps:\n  - choose: []\n", 2, "nothing to choose from"),
        ("steps:\n  - choose:\n    - {weight: 0, text: a}\n", 3, "must be a number above 0"),
        (
            "steps:\n  - {text: a, expect: {regex: '('}}\n",
            2,
            "`regex` is not a valid regular expression",
        ),
        ("steps:\n  - {text: a, repeat: forever}\n  - text: b\n", 2, "nothing after a step"),
        ("steps:\n  - {text: a, repeat: 0}\n", 2, "must be a whole number of at least 1"),
        ("steps:\n  - call: {}\n", 2, "needs `name`"),
        ("steps:\n  - {text: a, stop_reason: tired}\n", 2, "must be one of `endTurn`"),
        ("steps: []\n", 1, "the script has no steps"),
        ("{}\n", 1, "the script has no steps"),
        ("- text: a\n", 1, "the script must be a mapping of its fields, not a list"),
        ("agents:\n  a:\n    - {}\n", 3, "a step has no answer"),
        ("steps: [\n", 1, "not valid YAML"),
    ],
)
def test_what_is_wrong_is_placed(tmp_path: Path, text: str, line: int, expected: str) -> None:
    with pytest.raises(ModelError) as caught:
        book(tmp_path, text)
    (problem,) = caught.value.diagnostics
    assert problem.code == "FA510"
    assert problem.path == "script.yaml"
    assert expected in problem.message
    assert problem.span is not None
    assert problem.span.start.line in {line, line + 1}


def test_every_problem_is_reported(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match=r"(?m)\(and 1 more\)$") as caught:
        book(tmp_path, "steps:\n  - {}\n  - {fail: a, text: b}\n")
    assert len(caught.value.diagnostics) == 2


def test_a_missing_file_is_another_rule(tmp_path: Path) -> None:
    with pytest.raises(ModelError) as caught:
        read_script_file(tmp_path / "none.yaml")
    assert caught.value.diagnostics[0].code == "FA509"


AGENTS = """\
agents:
  cook: [{text: soup}, {text: salad}]
  waiter: [{text: served}]
"""


@pytest.mark.anyio
async def test_each_agent_has_its_own_steps_which_its_instances_share(tmp_path: Path) -> None:
    scripts = book(tmp_path, AGENTS)

    async def ask(agent: str) -> str:
        model = ScriptedModel(scripts.script_of(agent))
        return (await model.request(ModelRequest("", [Message.user("go")]))).message.text

    assert [await ask("cook"), await ask("waiter"), await ask("cook")] == [
        "soup",
        "served",
        "salad",
    ]
    scripts.finish()


@pytest.mark.spec("MODEL-8")
def test_agents_never_asked_are_named_when_it_ends(tmp_path: Path) -> None:
    scripts = book(tmp_path, AGENTS)
    with pytest.raises(ModelError) as caught:
        scripts.finish()
    assert caught.value.message == (
        "`script.yaml` was not used up: step 1 of `cook` (line 2): says `soup`; "
        "step 2 of `cook` (line 2): says `salad`; step 1 of `waiter` (line 3): says `served`"
    )


def test_an_agent_without_steps_gets_a_suggestion(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match="no steps for the agent `wiater`") as caught:
        book(tmp_path, AGENTS).script_of("wiater")
    assert caught.value.hint == "did you mean `waiter`?"


def test_steps_are_for_agents_without_their_own(tmp_path: Path) -> None:
    scripts = book(tmp_path, AGENTS + "steps: [{text: anyone}]\n")
    assert scripts.script_of("a") is scripts.script_of("b")
    assert scripts.script_of("cook") is not scripts.script_of("a")


@pytest.mark.anyio
async def test_the_seed_of_the_spec_goes_before_that_of_the_file(tmp_path: Path) -> None:
    text = "seed: 1\nsteps:\n  - choose: [{text: a}, {text: b}]\n    repeat: 64\n"

    async def drawn(seed: int | None) -> str:
        model = ScriptedModel(book(tmp_path, text, seed).script_of("x"))
        request = ModelRequest("", [Message.user("go")])
        return "".join([(await model.request(request)).message.text for _ in range(64)])

    assert await drawn(None) == await drawn(1)
    assert await drawn(None) != await drawn(2)
