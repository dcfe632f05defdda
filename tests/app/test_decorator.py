from __future__ import annotations

import dataclasses
import inspect
from datetime import date
from typing import TYPE_CHECKING, Any, TypeAlias

import pytest

from fast_agent import FastAgent, agent_fields
from fast_agent.cards.agent_config import (
    AgentConfig,
    ChildHistory,
    Compaction,
    McpConnect,
    RequestParams,
    UsageLimits,
)
from fast_agent.cards.fields import CARD_TYPES, FIELDS_OF
from fast_agent.errors import CardError

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from fast_agent.cards.agent_config import CardType

    NewProgram: TypeAlias = Callable[..., FastAgent]

SCHEMA = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
FIELDS: dict[str, Any] = {
    "description": "What it does.",
    "default": True,
    "tool_only": False,
    "agents": ["bob"],
    "servers": ["time", "news"],
    "tools": {"time": ["get_*"]},
    "resources": {"time": ["note://*"]},
    "prompts": {"news": ["*"]},
    "skills": ["skills"],
    "resource_tools": True,
    "model": "passthrough",
    "use_history": False,
    "request_params": {"max_tokens": 7, "temperature": 0.5},
    "human_input": True,
    "api_key": "a key",
    "messages": ["one.md", "two.json"],
    "function_tools": ["tools.py:add"],
    "tool_hooks": ["hooks.py:around"],
    "shell": True,
    "cwd": "work",
    "tool_input_schema": SCHEMA,
    "confirm": ["execute", "web__*"],
    "history_source": "none",
    "history_merge_target": "none",
    "max_parallel": 3,
    "child_timeout_sec": 1.5,
    "max_display_instances": 4,
    "queue": "gpu",
}


def config_of(program: FastAgent, name: str) -> AgentConfig:
    return program.load_set.cards[name].config


@pytest.mark.spec("CARD-1", "CARD-10", "PY-4")
@pytest.mark.parametrize("field", sorted(FIELDS))
def test_a_decorator_makes_what_a_card_makes(
    new_program: NewProgram, tmp_path: Path, field: str
) -> None:
    import json

    servers = "mcp: {servers: {time: {url: 'http://h/mcp'}, news: {url: 'http://h/n'}}}"
    (tmp_path / "one.md").write_text("hello")
    (tmp_path / "two.json").write_text('{"messages": []}')
    (tmp_path / "tools.py").write_text("def add(a: int) -> int: return a")
    (tmp_path / "hooks.py").write_text("async def around(ctx, args, call_next): ...")
    (tmp_path / "work").mkdir()
    (tmp_path / "skills").mkdir()
    value = FIELDS[field]
    extra = {"servers": FIELDS["servers"]} if field in {"tools", "resources", "prompts"} else {}
    fields = {**extra, field: value}

    in_code = new_program(servers)
    in_code.agent("ann", "Be brief.", **fields)
    in_code.agent("bob", "Be short.")
    card = {"name": "ann", "instruction": "Be brief.", **fields}
    (tmp_path / "ann.yaml").write_text(json.dumps(card))
    (tmp_path / "bob.md").write_text("---\nname: bob\n---\nBe short.")
    in_files = new_program()
    in_files.load_agents(tmp_path)

    made, loaded = config_of(in_code, "ann"), config_of(in_files, "ann")
    assert made.source is None
    assert loaded.source == tmp_path / "ann.yaml"
    for name in (one.name for one in dataclasses.fields(AgentConfig)):
        if name != "source":
            assert getattr(made, name) == getattr(loaded, name), name
    default = AgentConfig(name="ann", instruction="Be brief.")
    if field not in {"tool_only", "history_source", "history_merge_target"}:
        assert getattr(made, field) != getattr(default, field)


WORKFLOWS: dict[CardType, dict[str, Any]] = {
    "chain": {"sequence": ["bob", "ann"], "cumulative": True, "continue_with_final": False},
    "parallel": {"fan_out": ["bob"], "fan_in": "ann", "include_request": False},
    "evaluator_optimizer": {
        "generator": "bob", "evaluator": "ann", "min_rating": "FAIR", "max_refinements": 0,
        "refinement_instruction": "Shorter.",
    },
    "router": {"agents": ["ann", "bob"], "use_history": True, "human_input": True},
    "orchestrator": {
        "agents": ["bob"], "plan_type": "iterative", "plan_iterations": -1,
        "history_source": "child", "request_params": {"temperature": 0},
    },
    "iterative_planner": {"agents": ["bob"], "plan_iterations": 2, "api_key": "a key"},
    "MAKER": {
        "worker": "bob", "k": "auto", "max_samples": 9, "match_strategy": "structured",
        "red_flag_max_length": 80, "steps": 7, "target_success": 0.9, "calibration_samples": 5,
    },
}  # fmt: skip


@pytest.mark.spec("CARD-1", "PY-4")
@pytest.mark.parametrize("card_type", WORKFLOWS)
def test_a_workflow_of_a_decorator_is_one_of_a_card(
    new_program: NewProgram, tmp_path: Path, card_type: CardType
) -> None:
    import json

    fields = {**WORKFLOWS[card_type], "description": "Several.", "default": True}
    in_code = new_program()
    for name in ("ann", "bob"):
        in_code.agent(name, "Be short.")
        (tmp_path / f"{name}.yaml").write_text(f"name: {name}\ninstruction: Be short.\n")
    getattr(in_code, card_type.lower())("flow", "Work together.", **fields)
    card = {"type": card_type, "name": "flow", "instruction": "Work together.", **fields}
    (tmp_path / "flow.yaml").write_text(json.dumps(card))
    in_files = new_program()
    in_files.load_agents(tmp_path)
    made, loaded = config_of(in_code, "flow"), config_of(in_files, "flow")
    for name in (one.name for one in dataclasses.fields(AgentConfig)):
        if name != "source":
            assert getattr(made, name) == getattr(loaded, name), name
    default = AgentConfig(name="flow", type=card_type)
    assert all(getattr(made, name) != getattr(default, name) for name in WORKFLOWS[card_type])
    assert in_code.load_set.default == "flow"


@pytest.mark.spec("CARD-36", "CARD-45")
@pytest.mark.parametrize("card_type", CARD_TYPES)
def test_a_decorator_takes_every_field_of_its_type(card_type: CardType) -> None:
    taken = dict(inspect.signature(getattr(FastAgent, card_type.lower())).parameters)
    del taken["self"]
    fields = taken.pop("fields")
    offered = getattr(agent_fields, fields.annotation.removeprefix("Unpack[").removesuffix("]"))
    named = {*taken, *offered.__annotations__}
    # Only in files: what says which file it is, and what is deprecated.
    left_out = {"type", "schema_version", "history_mode"}
    several_fields = {"agents_as_tools_options"}
    assert named - several_fields == set(FIELDS_OF[card_type]) - left_out
    assert (named >= several_fields) == ("history_source" in FIELDS_OF[card_type])


def test_what_only_python_has_is_no_field_of_a_card() -> None:
    for code_only in ("instruction_or_kwarg", "elicitation_handler", "tool_runner_hooks"):
        assert code_only not in FIELDS_OF["agent"]


def test_a_decorated_function_stays_what_it_is(new_program: NewProgram) -> None:
    program = new_program()

    @program.agent("ann", "Be brief.", default=True)
    @program.agent("bob")
    async def main() -> int:
        return 7

    assert inspect.iscoroutinefunction(main)
    assert program.names() == ["ann", "bob"]
    assert program.load_set.default == "ann"


def test_without_an_instruction_there_is_a_plain_one(new_program: NewProgram) -> None:
    program = new_program()
    program.agent()
    assert "{{currentDate}}" in (config_of(program, "default").instruction or "")


def test_an_instruction_is_taken_as_it_is(new_program: NewProgram) -> None:
    text = "---\nname: x\n---\n${HOME} {braces} {{file:x}} ---USER\n# comment: 'quote'"
    program = new_program()
    program.agent("ann", text)
    assert config_of(program, "ann").instruction == text


def test_request_parameters_may_be_a_value(new_program: NewProgram) -> None:
    params = RequestParams(max_tokens=9, usage_limits=UsageLimits(max_requests=2))
    program = new_program()
    program.agent("ann", request_params=params)
    assert config_of(program, "ann").request_params == params


def test_functions_may_be_callables_and_hooks_may_be_by_point(new_program: NewProgram) -> None:
    def add(a: int, b: int) -> int:
        return a + b

    async def around(ctx: Any, args: Any, call_next: Any) -> Any:
        return await call_next(ctx, args)

    async def after(ctx: Any) -> None: ...

    program = new_program()
    program.agent("ann", function_tools=[add, "tools.py:sub"], tool_hooks=[around])
    program.agent("bob", tool_hooks={"after_turn_complete": after})
    assert config_of(program, "ann").function_tools == (add, "tools.py:sub")
    assert config_of(program, "ann").tool_hooks == (around,)
    assert config_of(program, "bob").tool_hooks == {"after_turn_complete": (after,)}


def test_records_may_be_values_or_mappings(new_program: NewProgram) -> None:
    program = new_program()
    histories = {"bob": ChildHistory(source="child")}
    compaction = Compaction(share=0.5, native=False)
    server = McpConnect(target="http://h/mcp", name="h")
    program.agent(
        "ann", agents=["bob"], child_history=histories, compaction=compaction, mcp_connect=[server]
    )
    mappings: dict[str, Any] = {
        "child_history": {"bob": {"source": "child"}},
        "compaction": {"share": 0.5, "native": False},
        "mcp_connect": {"h": {"target": "http://h/mcp"}},
    }
    program.agent("cid", agents=["bob"], **mappings)
    for name in ("ann", "cid"):
        config = config_of(program, name)
        assert config.child_history == histories
        assert config.compaction == compaction
        assert config.mcp_connect == (server,)


def test_a_value_of_a_record_is_checked_as_a_mapping_is(new_program: NewProgram) -> None:
    with pytest.raises(CardError, match=r"`request_params\.max_tokens` must be a whole"):
        new_program().agent("ann", request_params=RequestParams(max_tokens=0))


@pytest.mark.spec("CARD-11", "PY-7")
@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"use_history": "no"}, "`use_history` must be `true` or `false`, not the string `no`"),
        (
            {"max_parallel": 0},
            "`max_parallel` must be a whole number of at least 1, not the n",
        ),
        ({"model": 3}, "`model` must be a string or a list of strings, not the number `3`"),
        ({"servers": "time"}, "`servers` must be a list of strings, not the string `time`"),
        ({"request_params": {"max_tokns": 1}}, "`request_params` has no field `max_tokns`"),
        ({"history_source": "chidl"}, "`chidl`"),
        ({"tool_input_schema": {"type": "objec"}}, "objec"),
        ({"tools": {"time": object()}}, "`tools.time` must be a list of strings"),
        ({"function_tools": [3]}, "function_tools"),
    ],
)
def test_a_wrong_argument_is_a_card_error(
    new_program: NewProgram, fields: dict[str, Any], message: str
) -> None:
    program = new_program()
    with pytest.raises(CardError) as raised:
        program.agent("ann", "Be brief.", **fields)
    assert message in raised.value.message
    assert "agent `ann`" in raised.value.message
    assert "ann" not in program.load_set.cards


def test_every_wrong_argument_is_reported(new_program: NewProgram) -> None:
    with pytest.raises(CardError) as raised:
        new_program().agent("ann", use_history="no", max_parallel=0, model=3)  # pyright: ignore[reportArgumentType]
    codes = [found.code for found in raised.value.diagnostics]
    assert set(codes) == {"FA102", "FA103"}
    assert len(codes) == 3
    assert [found.hint for found in raised.value.diagnostics if "`model`" in found.message] == [
        'write `"3"`'
    ]


@pytest.mark.parametrize("name", ["", ".hidden", "a/b", "a\\b", "a\nb"])
def test_a_name_that_is_none(new_program: NewProgram, name: str) -> None:
    with pytest.raises(CardError, match="name"):
        new_program().agent(name)


def test_a_name_given_twice(new_program: NewProgram) -> None:
    program = new_program()
    program.agent("ann")
    with pytest.raises(CardError, match="two agents called `ann`"):
        program.agent("ann")
    assert program.names() == ["ann"]


def test_an_argument_there_is_not_is_a_card_error_with_a_suggestion(
    new_program: NewProgram,
) -> None:
    with pytest.raises(CardError, match="`agent` has no field `elicitation_handler`"):
        new_program().agent("ann", elicitation_handler=print)  # pyright: ignore[reportCallIssue]
    with pytest.raises(CardError) as raised:
        new_program().agent("ann", modle="passthrough")  # pyright: ignore[reportCallIssue]
    assert raised.value.hint == "did you mean `model`?"


def test_a_workflow_without_its_members_is_a_card_error(new_program: NewProgram) -> None:
    with pytest.raises(CardError, match="`chain` needs `sequence`"):
        new_program().chain("flow")  # pyright: ignore[reportCallIssue]


@pytest.mark.spec("CARD-23")
def test_a_tool_only_default_is_found_when_all_are_checked(new_program: NewProgram) -> None:
    program = new_program()
    program.agent("ann", tool_only=True, default=True)
    with pytest.raises(CardError, match="tool_only"):
        program.load_agents()


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"function_tools": ["gone.py:look"]}, "the file `gone.py` does not exist"),
        ({"function_tools": [print]}, "`*args` of `print` cannot be given by name"),
        ({"function_tools": [dict]}, "`dict` is a class, not a function"),
        ({"function_tools": [len, 5]}, "`5` is not a function"),
        ({"servers": ["gone"]}, "the configuration defines no MCP server `gone`"),
        ({"agents": ["gone"]}, "no agent is named `gone`"),
        ({"model": "gone.model"}, "unknown model `gone.model`"),
        ({"messages": ["gone.json"]}, "cannot be read"),
    ],
)
@pytest.mark.anyio
async def test_what_is_wrong_with_an_agent_names_it_before_anything_runs(
    new_program: NewProgram, fields: dict[str, Any], message: str
) -> None:
    program = new_program()
    program.agent("ann", model="passthrough", default=True)
    given: dict[str, Any] = {"model": "passthrough", **fields}
    program.agent("bob", **given)
    with pytest.raises(CardError) as raised:
        async with program.run():
            pass
    assert raised.value.message.startswith("agent `bob`: ")
    assert message in raised.value.message


def test_an_instruction_may_be_a_file(new_program: NewProgram, tmp_path: Path) -> None:
    written = tmp_path / "desk.md"
    written.write_text("\ufeffYou answer.\r\nToday is {{currentDate}}.\n", encoding="utf-8")
    fast = new_program()
    fast.agent("desk", written)
    assert fast.load_set.cards["desk"].config.instruction == (
        "You answer.\nToday is {{currentDate}}."
    )
    with pytest.raises(CardError, match=r"agent `other`: instruction `.*none.md` cannot be read"):
        fast.agent("other", tmp_path / "none.md")
    assert list(fast.load_set.cards) == ["desk"]


def test_a_value_no_card_could_hold_is_called_by_its_type(new_program: NewProgram) -> None:
    fields: dict[str, Any] = {"servers": date(2026, 1, 1)}
    with pytest.raises(CardError, match="`servers` must be a list of strings, not a `date`"):
        new_program().agent("desk", **fields)
