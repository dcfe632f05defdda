from __future__ import annotations

from dataclasses import fields

import pytest

from fast_agent.cards.agent_config import AgentConfig, CardType
from fast_agent.cards.fields import CARD_TYPES, FIELD_NAMED, FIELDS, FIELDS_OF

EVERY = {"type", "name", "instruction", "description", "default", "tool_only", "schema_version"}
MODEL = {"model", "use_history", "request_params", "human_input", "api_key"}
SERVERS = {"servers", "tools", "resources", "prompts"}
CHILDREN = {"history_source", "history_merge_target", "child_history"}
AGENT = (
    EVERY
    | MODEL
    | SERVERS
    | CHILDREN
    | {"agents", "skills", "history_mode", "max_parallel", "child_timeout_sec"}
    | {
        "max_display_instances",
        "queue",
        "function_tools",
        "tool_hooks",
        "shell",
        "files",
        "fetch",
        "cwd",
        "messages",
    }
    | {"tool_input_schema", "mcp_connect", "resource_tools", "confirm"}
    | {"trim_tool_history", "compaction"}
)
ALLOWED: dict[CardType, set[str]] = {
    "agent": AGENT,
    "smart": AGENT,
    "chain": EVERY | {"sequence", "cumulative", "continue_with_final"},
    "parallel": EVERY | {"fan_out", "fan_in", "include_request"},
    "evaluator_optimizer": EVERY
    | {"generator", "evaluator", "min_rating", "max_refinements", "refinement_instruction"}
    | {"messages"},
    "router": EVERY | MODEL | SERVERS | {"agents", "messages", "hand_off"},
    "orchestrator": EVERY
    | MODEL
    | CHILDREN
    | {"agents", "plan_type", "plan_iterations", "messages"},
    "iterative_planner": EVERY
    | CHILDREN
    | {"agents", "model", "request_params", "api_key", "plan_iterations", "messages"},
    "MAKER": EVERY
    | {"worker", "k", "max_samples", "match_strategy", "red_flag_max_length", "messages"}
    | {"steps", "target_success", "calibration_samples"},
}


@pytest.mark.spec(
    "CARD-2",
    "CARD-16",
    "CARD-36",
    "CARD-37",
    "CARD-38",
    "CARD-39",
    "CARD-40",
    "CARD-41",
    "CARD-42",
    "CARD-43",
    "CARD-44",
    "CARD-60",
    "FIELD-1",
)
@pytest.mark.parametrize("card_type", CARD_TYPES)
def test_each_type_has_exactly_its_fields(card_type: CardType) -> None:
    assert set(FIELDS_OF[card_type]) == ALLOWED[card_type]


def test_every_field_but_the_deprecated_ones_is_in_the_configuration() -> None:
    held = {one.name for one in fields(AgentConfig)} - {"source", "remote", "grant"}
    assert {one.name for one in FIELDS if one.deprecated is None} == held


@pytest.mark.spec("CARD-20", "CARD-21", "CARD-26", "CARD-57", "FIELD-7")
def test_defaults_are_those_of_the_configuration() -> None:
    """But where a type has its own default: the configuration then says unset."""
    made = AgentConfig(name="x")
    for field in FIELDS:
        if field.deprecated is None and field.default is not None and not field.default_of:
            assert getattr(made, field.name) == field.default, field.name


@pytest.mark.spec("FIELD-7")
def test_defaults_that_differ_by_type() -> None:
    history, plans = FIELD_NAMED["use_history"], FIELD_NAMED["plan_iterations"]
    assert history.default_for("agent") is True
    assert history.default_for("router") is True
    assert history.default_for("orchestrator") is False
    assert plans.default_for("orchestrator") == 5
    assert plans.default_for("iterative_planner") == -1
    assert FIELD_NAMED["skills"].default_for("agent") is None


def test_every_field_has_a_line_about_it_and_its_own_name() -> None:
    assert len(FIELD_NAMED) == len(FIELDS)
    for field in FIELDS:
        assert field.doc, field.name
        assert field.required <= field.types, field.name
