from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
from tests.workflows.scripted_world import World, agent, card

from fast_agent.cards.agent_config import RequestParams, UsageLimits
from fast_agent.errors import LimitError
from fast_agent.workflows.plan import MAX_TASKS, Step, Task
from fast_agent.workflows.planning import ALL_TOGETHER, MAX_RESULT_CHARACTERS, Progress, Result

if TYPE_CHECKING:
    from fast_agent.cards.agent_config import AgentConfig
    from fast_agent.models.model import ModelRequest


DIG = Task("ann", "dig")


def test_results_are_written_with_their_step_agent_and_task() -> None:
    progress = Progress()
    progress.add(
        Step("", (DIG, DIG)), [Result(DIG, "a hole"), Result(DIG, "no spade", failed=True)]
    )
    progress.give_up([Step("", (DIG,))])
    progress.add(Step("", (DIG,)), [Result(DIG, "")])
    done = '<result step="1" agent="ann" task="dig">\na hole\n</result>'
    failed = '<failure step="1" agent="ann" task="dig">\nno spade\n</failure>'
    silent = '<result step="2" agent="ann" task="dig">\n[no text]\n</result>'
    assert progress.written(failures=True) == f"{done}\n{failed}\n{silent}"
    assert progress.written(failures=False) == f"{done}\n{silent}"


def test_one_result_is_cut_at_its_bound() -> None:
    progress = Progress()
    progress.add(Step("", (DIG,)), [Result(DIG, "x" * 10_000_000)])
    assert (
        MAX_RESULT_CHARACTERS < len(progress.written(failures=True)) < MAX_RESULT_CHARACTERS + 200
    )


def test_many_results_are_cut_to_a_bound_for_all() -> None:
    progress = Progress()
    for _ in range(100):
        progress.add(Step("", (DIG,)), [Result(DIG, "x" * MAX_RESULT_CHARACTERS)])
    written = progress.written(failures=True)
    assert ALL_TOGETHER < len(written) < ALL_TOGETHER * 1.1
    assert written.count("<result ") == written.count("</result>") == 100


def test_nothing_done_is_nothing_written() -> None:
    progress = Progress()
    assert (progress.written(failures=True), progress.has_tried_task, progress.has_done_task) == (
        "",
        False,
        False,
    )
    progress.add(Step("", (DIG,)), [Result(DIG, "no spade", failed=True)])
    assert (progress.has_tried_task, progress.has_done_task) == (True, False)


def test_the_record_is_short_and_complete() -> None:
    progress = Progress()
    progress.add(Step("s", (DIG,)), [Result(DIG, "x" * 100_000)])
    progress.give_up([Step("t", (DIG,))])
    first, second = progress.record()
    assert len(str(first)) < 3_000
    task = {"agent": "ann", "description": "dig", "status": "not_run"}
    assert second == {"description": "t", "tasks": [task]}


pytestmark = pytest.mark.anyio


def thought(what: str | None, *, complete: bool = False) -> str:
    tasks = [] if what is None else [{"agent": "ann", "description": what}]
    return json.dumps({"description": "on we go", "tasks": tasks, "is_complete": complete})


def planner(**fields: object) -> AgentConfig:
    return card("boss", "iterative_planner", agents=("ann",), **fields)


@pytest.mark.spec("PLAN-8")
async def test_it_plans_step_by_step_until_the_request_is_met() -> None:
    thoughts = [*[thought(f"dig {at}") for at in range(8)], thought(None, complete=True), "a hole"]
    world = World({"boss": thoughts, "ann": [f"{at} feet" for at in range(8)]})
    async with world.runtime(planner(), agent("ann")) as runtime:
        result = await runtime.agent("boss").generate("dig a hole")
    world.finish()
    assert result.text == "a hole"
    assert result.workflow is not None
    assert result.workflow["type"] == "iterative_planner"
    assert (result.workflow["plans"], result.workflow["stopped"]) == (9, "complete")
    asked = world.asked("boss")
    assert ["7 feet" in one.text for one in asked[-3:]] == [False, True, True]
    assert "at most" not in asked[0].text


@pytest.mark.spec("PLAN-8", "PLAN-5")
async def test_plan_iterations_is_its_budget() -> None:
    world = World({"boss": [thought("dig"), thought("fill"), "a hole"]})
    async with world.runtime(planner(plan_iterations=2), agent("ann")) as runtime:
        result = await runtime.agent("boss").generate("dig a hole")
    world.finish()
    assert result.workflow is not None
    assert result.workflow["stopped"] == "plan_iterations"


@pytest.mark.spec("PLAN-8")
async def test_a_usage_limit_is_its_budget_too() -> None:
    count = 0

    def think(_: object) -> str:
        nonlocal count
        count += 1
        return thought(f"dig {count}")

    world = World({"boss": think})
    limits = RequestParams(usage_limits=UsageLimits(max_requests=20))
    async with world.runtime(planner(request_params=limits), agent("ann")) as runtime:
        with pytest.raises(LimitError, match="`boss` reached its usage limit `max_requests` of 20"):
            await runtime.agent("boss").send("dig")
    assert len(world.seen) == 20


@pytest.mark.spec("PLAN-8")
async def test_a_model_that_never_has_enough_is_given_so_many_tasks_and_no_more() -> None:
    count, refused = 0, 0

    def think(request: ModelRequest) -> str:
        nonlocal count, refused
        if request.output_schema is None:
            return "a hole"
        refused += "200 at most can be done" in request.messages[-1].text
        many = MAX_TASKS // 5 if refused else 2 * MAX_TASKS // 5
        first, count = count, count + many
        tasks = [{"agent": "ann", "description": f"dig {at}"} for at in range(first, count)]
        return json.dumps({"description": "on we go", "tasks": tasks, "is_complete": False})

    world = World({"boss": think, "ann": lambda _: "dug"})
    async with world.runtime(planner(), agent("ann")) as runtime:
        result = await runtime.agent("boss").generate("dig a hole")
    assert result.text == "a hole"
    assert result.workflow is not None
    assert (result.workflow["plans"], result.workflow["stopped"]) == (3, "most_tasks")
    assert len(world.asked("ann")) == MAX_TASKS
    assert refused == 1
    assert any("1,000 tasks are the maximum for one request" in one for one in world.warnings)
    assert "say what is missing" in world.asked("boss")[-1].text


async def test_the_instruction_leads_the_model() -> None:
    world = World({"boss": [thought("dig", complete=True), "a hole"]})
    config = planner(instruction="Be thrifty.\n\n{{agents}}\n\nThat is all.")
    async with world.runtime(config, agent("ann", description="digs")) as runtime:
        await runtime.agent("boss").send("dig")
    system = world.asked("boss")[0].system
    assert system.startswith("Be thrifty.")
    assert system.count('<agent name="ann">digs</agent>') == 1
    assert "You lead the agents" in system
