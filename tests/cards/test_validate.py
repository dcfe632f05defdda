from __future__ import annotations

import pathlib
from typing import TYPE_CHECKING, Any

import pytest

from fast_agent.cards.agent_config import (
    AgentConfig,
    ChildHistory,
    McpConnect,
    RequestParams,
    UsageLimits,
)
from fast_agent.cards.document import read_markdown, read_yaml
from fast_agent.cards.validate import Origin, name_fault, validate_card
from fast_agent.text.environment import VariableNames
from fast_agent.text.source import Source

if TYPE_CHECKING:
    from fast_agent.cards.card import Card
    from fast_agent.diagnostics.diagnostic import Diagnostic

FILE = pathlib.Path("/cards/x.md")


def check(
    text: str, environ: dict[str, str] | None = None, *, remote: str | None = None
) -> tuple[Card, list[Diagnostic]]:
    source = Source("x.md", text)
    reading = (read_markdown if text.startswith("---\n") else read_yaml)(source, multi_card=False)
    (document,) = reading.documents
    origin = Origin("x", None if remote else FILE, remote)
    card, found = validate_card(document, origin, environ or {})
    assert card.sound == (not any(one.severity == "error" for one in found))
    return card, found


def config(text: str, environ: dict[str, str] | None = None) -> AgentConfig:
    card, found = check(text, environ)
    assert found == []
    return card.config


def agent(fields: str, environ: dict[str, str] | None = None) -> AgentConfig:
    return config(f"{fields}\ninstruction: Hi\n", environ)


def faults(fields: str) -> list[Diagnostic]:
    return check(f"{fields}\ninstruction: Hi\n")[1]


def code_and_text(found: Diagnostic) -> tuple[str, str]:
    """The code of a problem and the text it points at."""
    assert found.span is not None
    assert found.source_line is not None
    start, end = found.span.start, found.span.end
    width = end.column - start.column if end.line == start.line else None
    at = start.column - 1
    return found.code, found.source_line[at : None if width is None else at + width]


def fixed(found: Diagnostic) -> str | None:
    return None if found.fix is None else found.fix.replacement


def test_problems_are_reported_from_top_to_bottom() -> None:
    # What is missing is found last, and shown at the type.
    found = check("type: chain\nname: 3\nsevrers: [a]\n")[1]
    assert [one.span.start.line for one in found if one.span is not None] == [1, 2, 3]


@pytest.mark.parametrize("name", ["retries", "retry_seconds"])
@pytest.mark.parametrize(("value", "codes"), [("0", []), ("1", []), ("-1", ["FA103"])])
def test_bounds_of_retries(name: str, value: str, codes: list[str]) -> None:
    assert [one.code for one in faults(f"request_params: {{{name}: {value}}}")] == codes


@pytest.mark.parametrize(
    ("text", "places"),
    [
        ("---\nmodel: m\n---\n", [(1, 3)]),
        ("---\n\n# c\nmodel: m\n---\nx\n", [(1, 3)]),
        ("model: m\n", [(1, 8)]),
        ("# c\nmodel: m\n", [(1, 3)]),
        ("---\nmodel: m\n--- \nmodel: n\n", [(1, 3), (3, 4)]),
    ],
)
def test_the_place_of_a_whole_card_is_its_fence_or_first_line(
    text: str, places: list[tuple[int, int]]
) -> None:
    is_markdown = text.count("\n---\n") == 1
    reading = (read_markdown if is_markdown else read_yaml)(Source("x", text), multi_card=True)
    starts = [document.start() for document in reading.documents]
    assert [(at.start.line, at.end.column - at.start.column) for at in starts] == places


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("---\nmodel: m\n---\nx\n", (4, 1, 2)),
        ("---\nmodel: m\n---\n\n \nLong line\ny\n", (6, 1, 10)),
        ("---\nmodel: m\n---\n", (4, 1, 2)),
    ],
)
def test_the_place_of_an_instruction_is_its_first_line(
    text: str, place: tuple[int, int, int]
) -> None:
    (document,) = read_markdown(Source("x", text), multi_card=False).documents
    span = document.body_span()
    assert (span.start.line, span.start.column, span.end.column) == place


@pytest.mark.spec(
    "CARD-1", "CARD-6", "CARD-36", "CARD-49", "CARD-62", "CARD-63", "FIELD-4", "FIELD-6"
)
def test_every_field_of_an_agent() -> None:
    made = agent(
        """\
type: agent
name: Größe & Maß
description: ""
default: true
schema_version: 1
model: passthrough
use_history: false
request_params:
  maxTokens: 100
  temperature: 0
  stop_sequences: [".", ""]
  usageLimits: {max_requests: 3, maxToolCalls: 0}
  extra_body: {a: [1, null]}
human_input: true
api_key: key
messages: history.md
servers: [time, git]
tools: {time: [get_*]}
resources: {time: []}
prompts: {}
mcp_connect:
  - https://example.com/mcp
  - {target: npx server, name: other, env: {A: b}}
skills: []
resource_tools: true
function_tools: tools.py:add
tool_hooks: {before_llm_call: hooks.py:a, after_tool_call: [hooks.py:b, hooks.py:c]}
shell: true
cwd: work
tool_input_schema: {type: object, properties: {q: {type: string}}, required: [q]}
agents: [child]
history_source: child
history_merge_target: cumulative
child_history: {child: {source: none}}
max_parallel: 2
child_timeout_sec: 1.5
max_display_instances: 0"""
    )
    assert made == AgentConfig(
        name="Größe & Maß",
        instruction="Hi",
        description="",
        default=True,
        model="passthrough",
        use_history=False,
        request_params=RequestParams(
            max_tokens=100,
            temperature=0,
            stop_sequences=(".", ""),
            usage_limits=UsageLimits(max_requests=3, max_tool_calls=0),
            extra_body={"a": [1, None]},
        ),
        human_input=True,
        api_key="key",
        messages=("history.md",),
        servers=("time", "git"),
        tools={"time": ("get_*",)},
        resources={"time": ()},
        prompts={},
        mcp_connect=(
            McpConnect(target="https://example.com/mcp"),
            McpConnect(target="npx server", name="other", env={"A": "b"}),
        ),
        skills=(),
        resource_tools=True,
        function_tools=("tools.py:add",),
        tool_hooks={
            "before_llm_call": ("hooks.py:a",),
            "after_tool_call": ("hooks.py:b", "hooks.py:c"),
        },
        shell=True,
        cwd="work",
        tool_input_schema={
            "type": "object",
            "properties": {"q": {"type": "string"}},
            "required": ["q"],
        },
        agents=("child",),
        history_source="child",
        history_merge_target="cumulative",
        child_history={"child": ChildHistory(source="none")},
        max_parallel=2,
        child_timeout_sec=1.5,
        max_display_instances=0,
        source=FILE,
    )


@pytest.mark.spec("FIELD-3", "FIELD-4")
def test_null_is_unset() -> None:
    unset = agent("model: null\nskills:\nagents: ~\nrequest_params: {temperature: null}")
    assert unset == AgentConfig(
        name="x", instruction="Hi", request_params=RequestParams(), source=FILE
    )
    assert unset.skills is None


@pytest.mark.spec("FIELD-8")
@pytest.mark.parametrize(
    ("written", "card_type"),
    [
        ("Agent", "agent"),
        ("maker", "MAKER"),
        ("Evaluator-Optimizer", "evaluator_optimizer"),
        ("ITERATIVEPLANNER", "iterative_planner"),
        ("Smart", "smart"),
    ],
)
def test_types_in_other_spellings(written: str, card_type: str) -> None:
    fields = "generator: a\nevaluator: b\nworker: c\nagents: [d]"
    card, _ = check(f"type: {written}\n{fields}\ninstruction: Hi\n")
    assert card.config.type == card_type


@pytest.mark.spec("FIELD-10")
@pytest.mark.parametrize(
    "text",
    [
        "type: chain\nsequence: [a]\n",
        "type: parallel\nfan_out: [a]\n",
        "type: evaluator_optimizer\ngenerator: a\nevaluator: b\n",
        "type: MAKER\nworker: a\n",
    ],
)
def test_workflows_that_ask_no_model_need_no_instruction(text: str) -> None:
    assert config(text).instruction is None


@pytest.mark.spec("CARD-24", "FIELD-10")
@pytest.mark.parametrize(
    ("text", "replacement", "line"),
    [
        ("---\ntype: agent\n---\n", "You are a helpful agent.\n", 4),
        ("---\ntype: smart\n---", "\nYou are a helpful agent.\n", 3),
        ("---\ntype: router\nagents: [a]\n---\n \n\n", "You are a helpful agent.\n", 7),
        ("agents: [a]\n", 'instruction: "You are a helpful agent."\n', 2),
        ("agents: [a]", '\ninstruction: "You are a helpful agent."\n', 1),
    ],
)
def test_a_missing_instruction_has_a_fix(text: str, replacement: str, line: int) -> None:
    _, (found,) = check(text)
    assert found.code == "FA105"
    assert found.fix is not None
    assert found.fix.replacement == replacement
    assert found.fix.span.start == found.fix.span.end
    assert found.fix.span.start.line == line
    lines = text.split("\n")
    at = sum(len(one) + 1 for one in lines[: line - 1]) + found.fix.span.start.column - 1
    config(text[:at] + replacement + text[at:])


@pytest.mark.parametrize("text", ["", "\n", "# only a comment\n"])
def test_a_file_without_a_field_is_placed_at_its_first_line(text: str) -> None:
    _, (found,) = check(text)
    assert found.code == "FA105"
    assert found.span is not None
    assert found.span.start.line == 1


def test_a_blank_instruction_is_a_missing_one() -> None:
    _, (found,) = check('agents: [a]\ninstruction: " "\n')
    assert code_and_text(found) == ("FA105", '" "')
    assert fixed(found) == '"You are a helpful agent."'


@pytest.mark.spec("CARD-14", "CARD-33", "CARD-47", "FIELD-11", "FIELD-12", "PLACE-7")
@pytest.mark.parametrize(
    ("body", "instruction"),
    [
        ("Hi", "Hi"),
        ("\n\n  Hi  \n\n\n", "  Hi  "),
        ("---SYSTEM\nHi\n", "Hi"),
        ("\n ---SYSTEM\nHi\n", " ---SYSTEM\nHi"),
        ("\n---SYSTEM\n\nHi\n---SYSTEM\n", "Hi\n---SYSTEM"),
        ("# A\n\n---\n\nB `{x}` ${HOME}\n", "# A\n\n---\n\nB `{x}` ${HOME}"),
        ("a\rb\n", "a\rb"),
        ("---USERS\n", "---USERS"),
        ("```\n---USER\n```\n", "```\n---USER\n```"),
    ],
)
def test_bodies(body: str, instruction: str) -> None:
    assert config(f"---\ntype: agent\n---\n{body}").instruction == instruction


@pytest.mark.spec("CARD-30", "CARD-32", "CARD-46")
def test_the_instruction_field_is_kept_but_for_line_breaks_at_its_end() -> None:
    assert config("instruction: |\n\n  Hi\n\n").instruction == "\nHi"
    assert config("instruction: |+\n  Hi \n\n\n").instruction == "Hi "
    assert config("---\ninstruction: Hi\n---\n \n\n").instruction == "Hi"


@pytest.mark.spec("CARD-25", "CARD-46")
def test_two_instructions() -> None:
    _, (found,) = check("---\ninstruction: Hi\n---\nHo\n")
    assert code_and_text(found) == ("FA106", "instruction")


@pytest.mark.spec("CARD-48", "FIELD-11")
def test_history_in_the_body() -> None:
    _, found = check("---\ntype: agent\n---\nHi\n---USER\n```\n---USER\n```\n---RESOURCE \n")
    assert [code_and_text(one) for one in found] == [("FA121", "---USER"), ("FA121", "---RESOURCE")]
    assert [one.span.start.line for one in found if one.span] == [5, 9]
    assert all("`messages`" in str(one.hint) for one in found)


@pytest.mark.spec("CARD-11", "CARD-27", "CARD-28", "CARD-56", "CARDS-3", "FIELD-5", "FIELD-6")
@pytest.mark.parametrize(
    ("field", "code", "at", "fix"),
    [
        ("instruktion: x", "FA101", "instruktion", None),
        ("sevrers: [a]", "FA101", "sevrers", "servers"),
        ("useHistory: true", "FA101", "useHistory", "use_history"),
        ("sequence: [a]", "FA101", "sequence", None),
        ("request_params: {maxTokns: 1}", "FA101", "maxTokns", "max_tokens"),
        (
            "request_params: {usage_limits: {max_reqests: 1}}",
            "FA101",
            "max_reqests",
            "max_requests",
        ),
        ("child_history: {a: {sorce: none}}", "FA101", "sorce", "source"),
        ("tool_hooks: {before_llmcall: a.py:b}", "FA101", "before_llmcall", "before_llm_call"),
        ("mcp_connect: [{target: a, nam: b}]", "FA101", "nam", "name"),
        ('use_history: "no"', "FA102", '"no"', "false"),
        ("use_history: yes", "FA102", "yes", "true"),
        ("use_history: 1", "FA102", "1", "true"),
        ("use_history: maybe", "FA102", "maybe", None),
        ("max_parallel: two", "FA102", "two", None),
        ('max_parallel: "3"', "FA102", '"3"', "3"),
        ("max_parallel: 3.0", "FA102", "3.0", "3"),
        ("max_parallel: true", "FA102", "true", None),
        ("child_timeout_sec: '1.5'", "FA102", "'1.5'", "1.5"),
        ("child_timeout_sec: false", "FA102", "false", None),
        ("model: 3", "FA102", "3", '"3"'),
        ("model: {a: b}", "FA102", "{a: b}", None),
        ("servers: time", "FA102", "time", "[time]"),
        ("servers: time, git", "FA102", "time, git", "[time, git]"),
        ("servers: {time: a}", "FA102", "{time: a}", None),
        ("agents: [a, 3]", "FA102", "3", '"3"'),
        ("agents: [a, null]", "FA102", "null", None),
        ("tools: [a]", "FA102", "[a]", None),
        ("tools: {time: get}", "FA102", "get", "[get]"),
        ("tools: {time: }", "FA102", "", None),
        ("request_params: 3", "FA102", "3", None),
        ("request_params: {stop_sequences: x}", "FA102", "x", "[x]"),
        ("mcp_connect: [3]", "FA102", "3", None),
        ("tool_input_schema: x", "FA102", "x", None),
        ("type: 3", "FA102", "3", None),
        ("name: 3", "FA102", "3", '"3"'),
        ("schema_version: '1'", "FA102", "'1'", "1"),
        ("model: ' '", "FA103", "' '", None),
        ("max_parallel: 0", "FA103", "0", None),
        ("child_timeout_sec: 0", "FA103", "0", None),
        ("request_params: {temperature: -0.1}", "FA103", "-0.1", None),
        ("request_params: {top_p: 1.5}", "FA103", "1.5", None),
        ("history_source: childs", "FA103", "childs", "child"),
        ("history_source: Child", "FA103", "Child", "child"),
        ("history_source: elsewhere", "FA103", "elsewhere", None),
        ("function_tools: [tools.py]", "FA103", "tools.py", None),
        ("function_tools: [tools.py:a-b]", "FA103", "tools.py:a-b", None),
        ("tool_input_schema: {type: array}", "FA103", "array", None),
        ("tool_input_schema: {type: object, properties: []}", "FA103", "[]", None),
        ("mcp_connect: [{name: a}]", "FA104", "{name: a}", None),
        ("schema_version: 2", "FA109", "2", None),
    ],
)
def test_a_wrong_field(field: str, code: str, at: str, fix: str | None) -> None:
    _, (found,) = check(f"{field}\ninstruction: Hi\n")
    assert code_and_text(found) == (code, at)
    assert fixed(found) == fix
    assert found.path == "x.md"
    assert found.message[0] in "`abcdefghijklmnopqrstuvwxyz"
    assert not found.message.endswith(".")


@pytest.mark.parametrize(
    ("fields", "at"),
    [
        ("k: 4\nmax_samples: 3", "3"),
        ("k: 51", "51"),
        ("max_samples: 2", "2"),
        ("k: 3\nmax_samples: 3", None),
        ("k: auto\nmax_samples: 1", None),
    ],
)
def test_a_vote_that_cannot_be_won(fields: str, at: str | None) -> None:
    _, found = check(f"type: MAKER\nworker: a\n{fields}\n")
    assert [code_and_text(one) for one in found] == ([] if at is None else [("FA103", at)])
    if found:
        assert "votes ahead" in found[0].message
        assert "`max_samples`" in (found[0].hint or "")


@pytest.mark.spec("CARDS-3")
@pytest.mark.parametrize(
    "field",
    [
        "sevrers: [a]",
        'use_history: "no"',
        'max_parallel: "3"',
        "model: 3",
        "servers: time, git",
        "history_source: Child",
        "request_params: {maxTokns: 1}",
    ],
)
def test_a_fix_leaves_no_problem(field: str) -> None:
    text = f"{field}\ninstruction: Hi\n"
    _, (found,) = check(text)
    assert found.fix is not None
    start, end = found.fix.span.start.column - 1, found.fix.span.end.column - 1
    config(text[:start] + found.fix.replacement + text[end:])


@pytest.mark.spec("CARD-2", "CARD-11")
@pytest.mark.parametrize(
    ("fields", "hint"),
    [
        ("sequence: [a]", "`sequence` is a field of `chain`"),
        ("temperature: 1", "write `temperature` inside `request_params`"),
        ("colour: red", "`fast-agent schema agent` lists the fields"),
        ("sevrers: [a]", "did you mean `servers`?"),
    ],
)
def test_hints_for_unknown_fields(fields: str, hint: str) -> None:
    (found,) = faults(fields)
    assert found.hint == hint


@pytest.mark.spec("CARDS-2")
def test_all_problems_at_once_in_file_order() -> None:
    found = faults("nam: x\nuse_history: 'no'\nmax_parallel: two\nmodel: 3\nname: a/b")
    assert [one.span.start.line for one in found if one.span] == [1, 2, 3, 4, 5]
    assert [one.code for one in found] == ["FA101", "FA102", "FA102", "FA102", "FA108"]
    assert found[0].fix is None  # `name` is there already


def test_an_unsound_card_keeps_what_is_right() -> None:
    card, _ = check("name: y\nagents: [a]\nmodel: 3\ninstruction: Hi\n")
    assert not card.sound
    assert (card.config.name, card.config.agents, card.config.model) == ("y", ("a",), None)


def test_a_misspelt_field_is_not_missing_too() -> None:
    assert [one.code for one in check("instruktion: Hi\n")[1]] == ["FA101"]
    assert [one.code for one in check("type: chain\nsequenze: [a]\n")[1]] == ["FA101"]
    assert [one.code for one in check("tpye: chain\nsequence: [a]\n")[1]] == ["FA101"]


def test_both_spellings_of_a_parameter() -> None:
    (found,) = faults("request_params: {maxTokens: 1, max_tokens: 2}")
    assert code_and_text(found) == ("FA102", "max_tokens")
    assert "twice" in found.message


def test_an_unknown_type_still_has_its_fields_checked() -> None:
    found = faults("type: rooter\nagents: [a]\nfan_out: [b]\nfoo: 1\nmax_parallel: x")
    assert [code_and_text(one) for one in found] == [
        ("FA107", "rooter"),
        ("FA101", "foo"),
        ("FA102", "x"),
    ]
    assert fixed(found[0]) == "router"


@pytest.mark.spec("FIELD-9")
@pytest.mark.parametrize(
    ("name", "fault"),
    [
        ("a/b", "holds `/`"),
        ("a\\b", "holds `\\`"),
        (".a", "starts with `.`"),
        ("a\x1bb", "holds a control character"),
        ("a\u2028b", "holds a control character"),
        (" ", "is empty"),
        ("a b", None),
        (" a ", None),
        ("Größe.v2 (漢字)", None),
        ("a\u200db", None),
    ],
)
def test_names(name: str, fault: str | None) -> None:
    assert name_fault(name) == fault


def test_a_bad_name_is_placed() -> None:
    (found,) = faults('name: "a/b"')
    assert code_and_text(found) == ("FA108", '"a/b"')


@pytest.mark.spec("CARD-61", "FIELD-2")
@pytest.mark.parametrize(
    ("mode", "source", "target"),
    [("scratch", "none", "none"), ("fork", "child", "none"), ("fork_and_merge", "child", "child")],
)
def test_history_mode_is_an_older_spelling(mode: str, source: str, target: str) -> None:
    text = f"agents: [a]\nhistory_mode: {mode}\ninstruction: Hi\n"
    card, (found,) = check(text)
    assert (card.config.history_source, card.config.history_merge_target) == (source, target)
    assert (found.code, found.severity) == ("FA123", "warning")
    assert found.fix is not None
    fixed = text.replace(f"history_mode: {mode}", found.fix.replacement)
    assert config(fixed) == card.config


@pytest.mark.spec("FIELD-2")
def test_history_mode_beside_its_successors() -> None:
    (found,) = faults("history_mode: fork\nhistory_source: child")
    assert code_and_text(found) == ("FA124", "history_mode")


@pytest.mark.spec("FIELD-12")
def test_variables() -> None:
    environ = {"MODEL": "local", "N": "3", "FLAG": "true", "SECRET": "12345"}
    made = agent(
        "model: ${MODEL}\nmax_parallel: ${N}\nuse_history: ${FLAG}\nchild_timeout_sec: ${T:0.5}\n"
        "api_key: ${SECRET}\ndescription: a ${MODEL} $${x}\nrequest_params: {temperature: '${N}'}",
        environ,
    )
    assert (made.model, made.max_parallel, made.use_history) == ("local", 3, True)
    assert (made.child_timeout_sec, made.api_key) == (0.5, "12345")
    assert made.description == "a local ${x}"
    assert made.request_params == RequestParams(temperature=3)
    assert type(made.model) is str


@pytest.mark.parametrize(
    ("written", "value"),
    [("${A}", 1), ("${NO:7}", 7), ("${A}${B}", None), ("${A}2", None), ("${A}}", None)],
)
def test_only_a_whole_variable_takes_the_type_of_its_field(written: str, value: object) -> None:
    card, found = check(
        f"max_parallel: '{written}'\ndescription: '{written}'\ninstruction: Hi\n",
        {"A": "1", "B": "2"},
    )
    if value is None:
        (problem,) = found
        assert code_and_text(problem) == ("FA102", f"'{written}'")
    else:
        assert (card.config.max_parallel, found) == (value, [])


def test_k_out_of_a_variable() -> None:
    assert config("type: MAKER\nworker: a\nk: ${K}\n", {"K": "4"}).k == 4
    assert config("type: MAKER\nworker: a\nk: ${K}\n", {"K": "auto"}).k == "auto"


def test_what_k_auto_aims_at_lies_between_0_and_1() -> None:
    made = config("type: MAKER\nworker: a\nk: auto\ntarget_success: 0.999\nsteps: 1023\n")
    assert (made.target_success, made.steps, made.calibration_samples) == (0.999, 1023, None)
    for wrong in ("0", "1", "1.5"):
        _, found = check(f"type: MAKER\nworker: a\ntarget_success: {wrong}\n")
        assert [one.message for one in found] == [
            f"`target_success` must be a number above 0 and below 1, not the number `{wrong}`"
        ]


@pytest.mark.spec("FIELD-12")
def test_an_unset_variable_is_reported_once_at_its_value() -> None:
    _, found = check("type: chain\nsequence: [a, '${NO}']\nname: ${NO:y}\n")
    assert [code_and_text(one) for one in found] == [("FA122", "'${NO}'")]


def test_the_value_of_a_variable_is_in_no_message() -> None:
    environ = {"SECRET": "hunter2"}
    fields = "max_parallel: ${SECRET}\nservers: ${SECRET}\n"
    fields += "history_source: a${SECRET}\ncwd: '${SECRET}'\nk: 1"
    _, found = check(f"{fields}\ninstruction: Hi\n", environ)
    assert len(found) == 4
    assert "hunter2" not in repr(found)


def test_what_was_written_is_kept_beside_what_it_means() -> None:
    card, _ = check("api_key: ${SECRET}\ninstruction: Hi\n", {"SECRET": "hunter2"})
    assert card.config.api_key == "hunter2"
    assert card.written == {"api_key": "${SECRET}", "instruction": "Hi"}


def remote(text: str) -> list[Diagnostic]:
    return check(text, {"A": "b"}, remote="https://example.com/x.md")[1]


def test_servers_of_a_card_may_stand_under_their_names() -> None:
    card, found = check(
        "mcp_connect:\n  a: uvx x\n  b: {target: 'https://b.example/mcp'}\n"
        "  c: {target: npx y, name: d}\ninstruction: Hi\n"
    )
    assert found == []
    targets = {one.name: one.target for one in card.config.mcp_connect}
    assert targets == {"a": "uvx x", "b": "https://b.example/mcp", "d": "npx y"}


@pytest.mark.spec("FILE-14")
@pytest.mark.parametrize(
    ("field", "at"),
    [
        ("messages: a.md", "messages"),
        ("function_tools: [a.py:b]", "function_tools"),
        ("tool_hooks: [a.py:b]", "tool_hooks"),
        ("shell: true", "shell"),
        ("mcp_connect: [npx server]", "npx server"),
        ("mcp_connect: {a: 'https://a/b', b: {target: npx server}}", "{target: npx server}"),
    ],
)
def test_remote_cards_may_not_reach_into_the_machine(field: str, at: str) -> None:
    (found,) = remote(f"{field}\ninstruction: Hi\n")
    assert code_and_text(found) == ("FA125", at)


@pytest.mark.spec("FILE-14")
@pytest.mark.parametrize(
    "placeholder", ["{{file:/etc/passwd}}", "{{ file_silent: x }}", "{{file:x"]
)
def test_remote_cards_may_not_include_files(placeholder: str) -> None:
    (found,) = remote(f"---\ntype: agent\n---\nHi\nsee {placeholder}\n")
    assert code_and_text(found) == ("FA125", placeholder)
    assert found.span is not None
    assert found.span.start.line == 5
    (found,) = remote(f"instruction: |\n  see {placeholder}\n")
    assert found.code == "FA125"


def test_remote_cards_see_no_variables() -> None:
    card, found = check(
        "model: ${A}\nshell: false\nmcp_connect: [https://a/b]\ninstruction: Hi\n",
        {"A": "secret"},
        remote="https://example.com/x.md",
    )
    assert found == []
    assert card.config.model == "${A}"
    assert (card.config.remote, card.config.source) == ("https://example.com/x.md", None)


def test_places_of_a_card() -> None:
    card, _ = check("---\ntools: {time: [a, b]}\n---\n\nHi\n")
    place: Any = card.span_of("tools", "time", 1)
    assert (place.start.line, place.start.column) == (2, 19)
    assert card.span_of("model") is None
    body = card.span_of("instruction")
    assert body is not None
    assert body.start.line == 5
    assert card.source_line(5) == "Hi"


def test_of_variables_whose_names_alone_are_known_only_text_is_read() -> None:
    text = "model: ${MODEL}\nmax_parallel: ${MANY}\nservers: ['${ONE}']\ninstruction: Hi ${X}\n"
    (document,) = read_yaml(Source("x.yaml", text), multi_card=False).documents
    environ = VariableNames({"MODEL": "secret", "MANY": "3", "ONE": "time", "X": "y"})
    card, found = validate_card(document, Origin("x", FILE, None), environ)
    assert found == []
    assert card.config.model == "${MODEL}"
    assert card.config.servers == ("${ONE}",)
    assert card.config.max_parallel == AgentConfig(name="x").max_parallel
