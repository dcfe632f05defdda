"""A member that is odd in every way, in every place of every type: what comes of it, and histories.

`kid` does the odd thing wherever it is asked, and everybody else what they should. What is expected
is a table: `answer` where the workflow answers all the same, else the beginning of the error.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
from tests.workflows.one_of_each import PLACES, help_out, lead
from tests.workflows.scripted_world import World, agent

from fast_agent.errors import FastAgentError
from fast_agent.messages.history import check_validity
from fast_agent.models.script import Call, Fail, Say

if TYPE_CHECKING:
    from fast_agent.models.script import Step
    from fast_agent.text.json_value import JsonObject

pytestmark = pytest.mark.anyio

ODD: dict[str, Step] = {
    "fails": Fail("gone"),
    "says nothing": Say(" \n"),
    "says ten megabytes": Say("y" * 10_000_000),
    "calls itself": Call("agent__kid", {"message": "again"}),
    "calls nobody": Call("agent__zed", {"message": "hello"}),
    "says nonsense": Say('{"rating": [], "agent": {}, "steps": 3, "tasks": "x"}'),
    "says what has no end": Say('{"a":' * 5000),
}

ERRORS: dict[str, dict[str, str]] = {
    "fails": dict.fromkeys(
        ("chain", "end of a chain", "fan_in", "router", "generator", "evaluator", "MAKER"), "gone"
    ),
    "says nothing": {
        "chain": "chain `top` stopped: agent `kid` returned an empty answer",
        "MAKER": "none of the 6 answers of `kid` could vote: 6 empty",
    },
    "calls itself": {"MAKER": "none of the 6 answers of `kid` could vote: 6 cut short"},
    "calls nobody": {"MAKER": "none of the 6 answers of `kid` could vote: 6 cut short"},
}
"""What does not end with an answer."""

UNFINISHED = {"iterative", "iterative_planner"}
"""Where the model never says that all is done."""


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("odd", ODD)
async def test_an_odd_member_ends_in_an_answer_or_a_clear_error(odd: str, place: str) -> None:
    world = World({"top": lead, "pal": help_out, "kid": lambda _: ODD[odd]})
    wanted = ERRORS.get(odd, {}).get(place, "answer")
    record: JsonObject = {}
    came = "answer"
    async with world.runtime(PLACES[place], agent("kid"), agent("pal")) as runtime:
        try:
            record = (await runtime.agent("top").generate("go")).workflow or {}
        except FastAgentError as error:
            came = error.message
        for name in ("top", "kid", "pal"):
            assert check_validity(runtime.agent(name).history) == []
    assert came.startswith(wanted)
    assert came != "answer" or wanted == "answer"
    assert len(json.dumps(record)) < 100_000
    if place in UNFINISHED:
        assert record["stopped"] in {"plan_iterations", "fruitless"}
    assert len(world.seen) < 50


@pytest.mark.parametrize("odd", sorted(ODD.keys() - {"fails", "calls itself", "calls nobody"}))
async def test_a_router_that_says_no_choice_is_asked_again_and_then_an_error(odd: str) -> None:
    world = World({"top": lambda _: ODD[odd], "kid": help_out, "pal": help_out})
    async with world.runtime(PLACES["router"], agent("kid"), agent("pal")) as runtime:
        with pytest.raises(FastAgentError, match="`top` returned an invalid structured answer"):
            await runtime.agent("top").generate("go")
        assert len(runtime.agent("top").history) == 0
    assert [one.agent for one in world.seen] == ["top", "top"]
