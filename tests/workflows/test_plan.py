from __future__ import annotations

import json
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fast_agent.workflows.plan import MAX_TASKS, NextStep, Plan, Step, Task, WholePlan

AGENTS = ("writer", "critic")
TASK = {"agent": "writer", "description": "write"}
EMPTY: list[str] = []
NOTHING: dict[str, str] = {}
STEP = {"description": "first", "tasks": [TASK]}


def whole(value: object, *, may_be_empty: bool = False) -> Plan:
    return WholePlan(AGENTS, may_be_empty=may_be_empty).parse(json.dumps(value))


def following(value: object, *, may_be_empty: bool = False) -> Plan:
    return NextStep(AGENTS, may_be_empty=may_be_empty).parse(json.dumps(value))


def test_a_whole_plan_is_read() -> None:
    second = {"tasks": [TASK, {"agent": " critic ", "description": " judge "}]}
    plan = whole({"steps": [STEP, second], "more": 1})
    write, judge = Task("writer", "write"), Task("critic", "judge")
    assert plan == Plan((Step("first", (write,)), Step("", (write, judge))))


def test_a_next_step_is_read() -> None:
    assert following(STEP) == Plan((Step("first", (Task("writer", "write"),)),))
    assert following({**STEP, "is_complete": True}).is_complete
    done = following({"tasks": EMPTY, "is_complete": True}, may_be_empty=True)
    assert done == Plan((), is_complete=True)


@pytest.mark.parametrize(
    ("value", "problem"),
    [
        ({"steps": EMPTY}, "the plan has no step"),
        (NOTHING, "`steps` must be a list"),
        ({"steps": "write"}, "`steps` must be a list"),
        ({"steps": ["write"]}, "`steps[0]` must be an object"),
        ({"steps": [{"description": "x"}]}, "`steps[0].tasks` must be a list"),
        ({"steps": [{"tasks": EMPTY}]}, "`steps[0].tasks` must have at least one task"),
        ({"steps": [{"tasks": ["write"]}]}, "`steps[0].tasks[0]` must be an object"),
        (
            {"steps": [{"tasks": [{"agent": "writer"}]}]},
            "`steps[0].tasks[0].description` must say what to do",
        ),
        (
            {"steps": [{"tasks": [{**TASK, "agent": "Writer"}]}]},
            "no agent is named `Writer` (did you mean `writer`?); use one of `writer`, `critic`",
        ),
        (
            {"steps": [{"tasks": [{**TASK, "agent": ["writer"]}]}]},
            "`steps[0].tasks[0].agent`: no agent is named ``; use one of",
        ),
        ({"steps": [{"tasks": [TASK] * (MAX_TASKS + 1)}]}, "the plan has 1,001 tasks"),
    ],
)
def test_what_is_wrong_with_a_plan_is_reported(value: object, problem: str) -> None:
    with pytest.raises(ValueError, match=re.escape(problem)):
        whole(value)


@pytest.mark.parametrize(
    ("value", "problem"),
    [
        ({"description": "x", "is_complete": False}, "`tasks` is empty"),
        ({"tasks": EMPTY, "is_complete": True}, "nothing was done yet"),
        ({**STEP, "is_complete": "no"}, "`is_complete` must be true or false"),
        ({"tasks": "write"}, "`tasks` must be a list"),
        ({"tasks": [{**TASK, "agent": "nobody"}]}, "`tasks[0].agent`: no agent is named `nobody`"),
    ],
)
def test_what_is_wrong_with_a_next_step_is_reported(value: object, problem: str) -> None:
    with pytest.raises(ValueError, match=re.escape(problem)):
        following(value)


def test_every_mistake_is_reported_at_once() -> None:
    tasks = [{"agent": f"agent {at}", "description": "x"} for at in range(12)]
    with pytest.raises(ValueError, match="agent 0") as caught:
        whole({"steps": [{"tasks": tasks}]})
    lines = str(caught.value).splitlines()
    assert "agent 9" in lines[9]
    assert lines[10:] == ["and 2 more"]


def test_a_plan_may_be_empty_where_work_was_done() -> None:
    assert whole({"steps": EMPTY}, may_be_empty=True) == Plan(())


def test_the_model_is_given_the_names_of_the_agents() -> None:
    for shape in (WholePlan, NextStep):
        schema = shape(AGENTS, may_be_empty=False).schema.schema
        assert '"enum": ["writer", "critic"]' in json.dumps(schema)


SCALARS = st.sampled_from([None, True, 0, "", "write", *AGENTS])
TASKS = st.lists(
    SCALARS | st.fixed_dictionaries({"agent": SCALARS, "description": SCALARS}), max_size=3
)
STEPS = st.fixed_dictionaries(
    {}, optional={"description": SCALARS, "tasks": SCALARS | TASKS, "is_complete": SCALARS}
)


@given(
    SCALARS
    | STEPS
    | st.fixed_dictionaries({"steps": SCALARS | st.lists(STEPS | SCALARS, max_size=3)})
)
def test_anything_is_a_plan_or_a_value_error(value: object) -> None:
    for read in (whole, following):
        try:
            plan = read(value)
        except ValueError:
            continue
        assert all(task.agent in AGENTS for step in plan.steps for task in step.tasks)
        assert all(step.tasks for step in plan.steps)
