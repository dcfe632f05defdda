"""Exporting cards, and importing them again."""

from __future__ import annotations

import os
import random
import re
import tomllib
from collections import defaultdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from fast_agent.cards.agent_config import AgentConfig, McpConnect, RequestParams
from fast_agent.cards.card import Card
from fast_agent.cards.document import read_markdown
from fast_agent.cards.load import load_cards
from fast_agent.cards.placeholder import parse_template
from fast_agent.cards.validate import Origin, validate_card
from fast_agent.formats.assembly import ImportTarget, assemble
from fast_agent.formats.export import Target, export_cards, write_toml
from fast_agent.formats.reading import read_foreign
from fast_agent.formats.servers import SERVERS_FIELD, SERVERS_FILE, tool_name
from fast_agent.mcp.server import connect_name
from fast_agent.models.spec import parse_model_spec
from fast_agent.text.environment import VariableNames
from fast_agent.text.json_value import as_object
from fast_agent.text.source import Source
from fast_agent.text.yaml_document import parse_yaml

if TYPE_CHECKING:
    from collections.abc import Iterable

_MODELS: dict[Target, tuple[str | tuple[str, ...] | None, ...]] = {
    "claude": (None, "sonnet", "haiku.high", "anthropic.claude-opus-4-8"),
    "copilot": (None, "sonnet", "gpt-5.high", ("sonnet", "gpt-5"), ("sonnet", "o3", "gpt-5.high")),
    "opencode": (None, "sonnet", "gpt", "vertex.gemini-2.5-pro", "bedrock.us.x.y", "hf.a/b"),
    "gemini": (None, "gemini"),
    "codex": (None, "gpt-5.high", "gpt"),
    "docker-agent": (None, "sonnet", "gpt", "bedrock.us.x.y"),
    "crewai": (None, "sonnet", "gpt", "google.gemini-2.5-pro", "vertex.gemini-2.5-pro", "hf.a/b"),
}


def config_of(text: str, name: str) -> AgentConfig:
    (document,) = read_markdown(Source("", text), multi_card=True).documents
    made, problems = validate_card(document, Origin(name), {})
    assert [one for one in problems if one.severity == "error"] == []
    return made.config


def reread(
    target: Target, configs: Iterable[AgentConfig]
) -> tuple[dict[str, AgentConfig], dict[str, set[str]]]:
    """Export and import cards; return them by name, and of each the fields that were reported."""
    files, found = export_cards([Card(one, path=one.name) for one in configs], target)
    folder = {"copilot": ".github", "docker-agent": ".", "crewai": "."}.get(target, f".{target}")
    read = [
        one
        for name, text in files.items()
        if (one := read_foreign(Source.of(f"{folder}/agents/{name}", text), "none"))
    ]
    around = ImportTarget(output=Path("out"), project=Path("none"), servers=("docs",))
    again: dict[str, AgentConfig] = {}
    for card in assemble(read, around):
        again[card.name] = config_of(card.text, card.name)
    reports: dict[str, set[str]] = defaultdict(set)
    for one in found:
        reports[one.path] |= set(re.findall(r"`(\w+)`", one.message))
        reports[one.path] |= {"model"} if "effort" in one.message else set()
    return again, reports


def models_of(config: AgentConfig) -> list[str]:
    models = (config.model,) if isinstance(config.model, str) else config.model or ()
    return [parse_model_spec(one).text for one in models]


_WORDS = (
    "{{env}}", "\\{{x}}", "a", "---", "---USER", '"""', "${HOME}", "$${X}", "a: b #c", "- x", "'",
    "\\", "```", "{single}", "{{{x}}}", "é", "日本", "🚀", "#", "key: |", "\t", "  ", "%", "@", "!",
)  # fmt: skip
TOTAL = int(os.environ.get("EXPORTED_CARDS", "2000"))
"""Cards over all targets; `make fuzz` takes ten thousand."""


def some_text(dice: random.Random) -> str:
    words = [dice.choice(_WORDS) for _ in range(dice.randint(1, 9))]
    return "".join(word + dice.choice((" ", "\n", "\n\n", "")) for word in words).strip() or "x"


def some_card(dice: random.Random, name: str, target: Target, helpers: list[str]) -> AgentConfig:
    has_server = dice.random() < 0.5
    own = some_servers(dice, target)
    filtered = ["docs"] * has_server + [connect_name(one) for one in own]
    tools = {name: ("search", "get") for name in filtered if dice.random() < 0.5}
    return AgentConfig(
        name=name,
        instruction=some_text(dice),
        description=some_text(dice),
        model=dice.choice(_MODELS[target]),
        shell=dice.random() < 0.5,
        files=dice.choice((None, "read", "write")),
        fetch=dice.random() < 0.5,
        human_input=dice.random() < 0.5,
        agents=tuple(dice.sample(helpers, dice.randint(0, min(2, len(helpers))))),
        servers=("docs",) if has_server else (),
        mcp_connect=own,
        tools=tools or None,
        tool_only=dice.random() < 0.3,
        confirm=dice.choice(((), ("execute",), ("write_file", "edit_file"))),
        request_params=RequestParams(
            max_iterations=dice.choice((None, 1, 7, 500)),
            temperature=dice.choice((None, 0, 0.3, 2)),
            top_p=dice.choice((None, 0.5)),
        ),
    )


def some_servers(dice: random.Random, target: Target) -> tuple[McpConnect, ...]:
    """Choose servers of a card's own, where the tool can describe them."""
    servers = (
        McpConnect(target="uvx mcp-server-time --local-timezone 'New York'", name="clock"),
        McpConnect(target="uvx mcp-server-time", env={"TZ": "UTC", "LANG": "C"}),
        McpConnect(target="https://example.com/mcp", name="site", headers={"X-Team": "blue"}),
        McpConnect(target="https://example.com/mcp"),
    )
    return tuple(dice.sample(servers, dice.randint(0, 2))) if target in SERVERS_FIELD else ()


def differences(config: AgentConfig, back: AgentConfig, lost: set[str], target: Target) -> set[str]:
    """Return the fields that came back otherwise although nothing was said about them."""
    plain = "".join(map(str, parse_template(config.instruction or "").segments)).strip()
    found: set[str] = set()
    again = parse_template(back.instruction or "")
    if "".join(map(str, again.segments)).strip() != plain or again.placeholders:
        found.add("instruction")
    if (back.description or "").strip() != (config.description or "").strip():
        found.add("description")
    names = ("agents", "servers", "tools", "tool_only", "human_input", "fetch", "confirm")
    if target != "codex":  # a sandbox that writes has the shell too
        names += ("shell", "files")
    found |= {name for name in names if getattr(back, name) != getattr(config, name)}
    connected = {(one.target, connect_name(one)) for one in config.mcp_connect}
    if {(one.target, one.name) for one in back.mcp_connect} != connected:
        found.add("mcp_connect")
    for name in ("env", "headers"):
        given = [getattr(one, name) for one in config.mcp_connect]
        if [getattr(one, name) for one in back.mcp_connect] != given:
            found.add("mcp_connect")
    if models_of(config) != models_of(back):
        found.add("model")
    for name in ("max_iterations", "temperature", "top_p"):
        wanted = getattr(config.request_params, name)
        if wanted is not None and getattr(back.request_params, name, None) != wanted:
            found.add(name)
    return found - lost


@pytest.mark.spec("FMT-15")
@pytest.mark.parametrize("target", sorted(_MODELS))
def test_exported_cards_come_back(target: Target) -> None:
    dice = random.Random(f"cards for {target}")
    size = 100
    for _ in range(TOTAL // len(_MODELS) // size + 1):
        configs: dict[str, AgentConfig] = {}
        for number in range(size):
            name = f"agent-{number}"
            configs[name] = some_card(dice, name, target, [*configs][-4:])
        again, reports = reread(target, configs.values())
        for name, config in configs.items():
            assert differences(config, again[name], reports[name], target) == set(), name


def test_an_agent_of_a_crew_is_described_as_it_was() -> None:
    crew = (
        "reader:\n  role: Reader of {topic}\n  goal: Know it all.\n"
        "  backstory: You read.\n\n    A lot.\n"
        "quiet:\n  role: Mute\n  goal: ''\n  backstory: ''\n"
        "own:\n  role: own\n  goal: Win.\n  backstory: ''\n  system_template: Just win.\n"
        '  prompt_template: "{{ .Prompt }}"\n  response_template: "{{ .Response }}"\n'
    )
    read = read_foreign(Source.of("agents.yaml", crew), "none")
    assert read is not None
    around = ImportTarget(output=Path("out"), project=Path("none"), servers=())
    configs = [config_of(card.text, card.name) for card in assemble([read], around)]
    assert configs[2].instruction == "Just win."
    files, found = export_cards([Card(one, path=one.name) for one in configs], "crewai")
    assert found == []
    assert parse_yaml(files["agents.yaml"]).value == parse_yaml(crew).value


def test_a_template_of_a_crew_takes_in_what_describes_the_agent() -> None:
    crew = (
        "a:\n  role: A\n  goal: B\n  backstory: C\n"
        "  system_template: 'Be kind. {{ .System }} Be brief.'\n  prompt_template: 'Ask: x'\n"
        "b:\n  role: A\n  goal: B\n  backstory: C\n  system_template: 'Be kind.'\n"
    )
    read = read_foreign(Source.of("agents.yaml", crew), "none")
    assert read is not None
    around = ImportTarget(output=Path("out"), project=Path("none"), servers=())
    first, second = (config_of(one.text, one.name) for one in assemble([read], around))
    assert first.instruction == "Be kind. You are A.\n\nC\n\nYour goal: B Be brief."
    assert second.instruction == "Be kind."
    reported = [(one.rule.code, one.message.split("`")[1]) for one in read.file.notes]
    assert reported == [("FA831", "prompt_template"), ("FA832", "system_template")]


@pytest.mark.spec("FMT-14")
def test_what_does_not_fit_is_reported_with_its_place(tmp_path: Path) -> None:
    path = tmp_path / "a.md"
    path.write_text(
        "---\ntype: agent\nname: a\nmodel: gpt-5\nfunction_tools: tools.py:f\n"
        "use_history: false\nrequest_params:\n  seed: 3\n---\nToday is {{currentDate}}.\n"
    )
    (tmp_path / "b.yaml").write_text("type: chain\nname: b\nsequence: [a]\n")
    files, found = export_cards(load_cards([path, tmp_path / "b.yaml"]).cards, "claude")
    assert list(files) == ["a.md"]
    places = {(one.message.split("`")[1], one.span.start.line if one.span else 0) for one in found}
    assert places == {
        ("gpt-5", 4),
        ("function_tools", 5),
        ("use_history", 6),
        ("seed", 8),
        ("{{currentDate}}", 10),
        ("chain", 1),
    }


_CONNECTED = """---
type: agent
name: a
description: Tells the time.
mcp_connect:
  - target: uvx mcp-server-time
    env: {TZ: '${ZONE}', LANG: '${LANG}'}
  - target: https://example.com/${PART}
    name: web.2
    headers: {Authorization: 'Bearer ${TOKEN}', X-Team: '${TEAM}', X-All: 'all ${TEAM}'}
tools:
  mcp-server-time: ['get_*', convert_time]
---
Tell it.
"""
_CLOCK = {"command": "uvx", "args": ["mcp-server-time"]}
_ENV = {"env": {"TZ": "${ZONE}", "LANG": "${LANG}"}}
_HEADERS = {
    "Authorization": "Bearer ${TOKEN}",
    "X-Team": "${TEAM}",
    "X-All": "all ${TEAM}",
}
_WEB = {"type": "http", "url": "https://example.com/${PART}", "headers": _HEADERS}
_KEPT = "nothing replaces {} of `{}` there; it stays as text"
_UNNAMED = "`get_*` of `mcp-server-time` cannot be named there"


@pytest.mark.parametrize(
    ("target", "values", "messages"),
    [
        # What each tool accepts was tried with the tool itself, but for docker-agent, which has a
        # schema.
        (
            "claude",
            {
                "tools": ["mcp__mcp-server-time__convert_time", "mcp__web_2"],
                "mcpServers": [{"mcp-server-time": {**_CLOCK, **_ENV}}, {"web.2": _WEB}],
            },
            [
                _KEPT.format("`${ZONE}`, `${LANG}`", "mcp-server-time"),
                _KEPT.format("`${PART}`, `${TOKEN}`, `${TEAM}`", "web.2"),
                _UNNAMED,
            ],
        ),
        (
            "copilot",
            {
                "tools": ["mcp-server-time/convert_time", "web.2/*"],
                "mcp-servers": {
                    "mcp-server-time": {"type": "local", **_CLOCK, **_ENV, "tools": ["*"]},
                    "web.2": {**_WEB, "tools": ["*"]},
                },
            },
            [_UNNAMED],
        ),
        (
            "gemini",
            {
                "tools": [],
                "mcp_servers": {
                    "mcp-server-time": {**_CLOCK, **_ENV, "include_tools": ["convert_time"]},
                    "web.2": _WEB,
                },
            },
            [_UNNAMED, _KEPT.format("`${PART}`", "web.2")],
        ),
        (
            "codex",
            {
                "mcp_servers": {
                    "mcp-server-time": {
                        **_CLOCK,
                        "env_vars": ["LANG"],
                        "env": {"TZ": "${ZONE}"},
                        "enabled_tools": ["convert_time"],
                    },
                    "web-2": {
                        "url": "https://example.com/${PART}",
                        "bearer_token_env_var": "TOKEN",
                        "env_http_headers": {"X-Team": "TEAM"},
                        "http_headers": {"X-All": "all ${TEAM}"},
                    },
                }
            },
            [
                _KEPT.format("`${ZONE}`", "mcp-server-time"),
                _UNNAMED,
                _KEPT.format("`${PART}`, `${TEAM}`", "web.2"),
            ],
        ),
        (
            "docker-agent",
            {
                "toolsets": [
                    {
                        "type": "mcp",
                        "name": "mcp-server-time",
                        **_CLOCK,
                        "env": {"TZ": "${env.ZONE}", "LANG": "${env.LANG}"},
                        "tools": ["convert_time"],
                    },
                    {
                        "type": "mcp",
                        "name": "web.2",
                        "remote": {
                            "url": "https://example.com/${PART}",
                            "headers": {
                                name: value.replace("${", "${env.")
                                for name, value in _HEADERS.items()
                            },
                        },
                    },
                ]
            },
            [_UNNAMED, _KEPT.format("`${PART}`", "web.2")],
        ),
    ],
)
def test_servers_are_described_as_the_tool_reads_them(
    tmp_path: Path, target: Target, values: dict[str, Any], messages: list[str]
) -> None:
    (tmp_path / "a.md").write_text(_CONNECTED)
    names = VariableNames(dict.fromkeys(("ZONE", "LANG", "PART", "TOKEN", "TEAM"), "secret"))
    load = load_cards([tmp_path / "a.md"], environ=names)
    assert load.diagnostics == ()
    files, found = export_cards(load.cards, target)
    (text,) = files.values()
    read: Any
    if target == "codex":
        read = tomllib.loads(text)
    elif target == "docker-agent":
        read = as_object(as_object(as_object(parse_yaml(text).value)["agents"])["a"])
    else:
        read = as_object(parse_yaml(text.split("---\n")[1]).value)
    assert {name: read[name] for name in values} == values
    assert [one.message for one in found] == messages
    assert "secret" not in text


@pytest.mark.parametrize(
    ("target", "server", "pattern", "name"),
    [
        ("claude", "docs", "*", "mcp__docs"),
        ("claude", "my docs.2", "get it", "mcp__my_docs_2__get_it"),
        ("claude", "docs", "get_?", None),
        ("copilot", "my.docs", "*", "my.docs/*"),
        ("copilot", "docs", "[gs]et", None),
        ("gemini", "docs", "*", "mcp_docs_*"),
        ("gemini", "my_docs", "*", None),
        ("gemini", "my_docs", "get", "mcp_my_docs_get"),
        ("gemini", "docs", "get it", None),
        ("gemini", "docs", "get_*", None),
        ("opencode", "my.docs", "get_*", "my_docs_get_*"),
        ("opencode", "docs", "[gs]et", None),
    ],
)
def test_names_of_tools_of_servers(
    target: Target, server: str, pattern: str, name: str | None
) -> None:
    assert tool_name(target, server, pattern) == name


def test_servers_of_the_configuration_are_to_be_defined_there_too(tmp_path: Path) -> None:
    (tmp_path / "a.md").write_text(
        "---\nname: a\nservers: [docs, my_news]\ntools: {my_news: [get]}\n---\nRead.\n"
    )
    cards = load_cards([tmp_path / "a.md"]).cards
    found = {
        target: [(one.code, one.message) for one in export_cards(cards, target)[1]]
        for target in _MODELS
    }
    lost = [("FA831", "`servers` has no counterpart there")]
    lost.append(("FA831", "`tools` has no counterpart there"))
    for target in ("codex", "docker-agent", "crewai"):
        assert found[target] == lost
    for target, file in SERVERS_FILE.items():
        text = f"define `docs`, `my_news` in `{file}`, where that tool searches for servers"
        assert found[target] == [("FA832", text)]


@pytest.mark.parametrize(
    ("model", "name"),
    [
        ("anthropic.claude-sonnet-4-5", "claude-sonnet-4.5"),
        ("anthropic.claude-opus-4-1-20250805", "claude-opus-4-1-20250805"),
        ("gpt-5", "gpt-5"),
        ("anthropic.claude-sonnet-5", "claude-sonnet-5"),
    ],
)
def test_copilot_has_names_of_its_own_for_models(model: str, name: str) -> None:
    config = AgentConfig(name="a", instruction="x", model=model)
    ((_, text),) = export_cards([Card(config, path="a.md")], "copilot")[0].items()
    assert f"model: {name}\n" in text


@pytest.mark.parametrize(
    ("target", "model", "name"),
    [
        ("opencode", "bedrock.us.x.y", "amazon-bedrock/us.x.y"),
        ("opencode", "google.gemini-2.5-pro", "google/gemini-2.5-pro"),
        ("docker-agent", "bedrock.us.x.y", "amazon-bedrock/us.x.y"),
        ("crewai", "google.gemini-2.5-pro", "gemini/gemini-2.5-pro"),
        ("crewai", "openai.gpt-4.1", "openai/gpt-4.1"),
    ],
)
def test_providers_are_named_as_the_tool_names_them(target: Target, model: str, name: str) -> None:
    config = AgentConfig(name="a", instruction="x", model=model)
    ((_, text),) = export_cards([Card(config, path="a.md")], target)[0].items()
    assert f"{name}\n" in text


@pytest.mark.spec("FMT-18")
@pytest.mark.parametrize("target", sorted(_MODELS))
def test_instructions_of_the_project_are_left_to_tools_that_add_them(
    tmp_path: Path, target: Target
) -> None:
    (tmp_path / "a.md").write_text(
        "---\ntype: agent\nname: a\n---\nBe good. \\{{projectInstructions}}\n\n"
        "{{projectInstructions}}\n"
    )
    files, found = export_cards(load_cards([tmp_path / "a.md"]).cards, target)
    (text,) = files.values()
    adds_them = target not in {"docker-agent", "crewai"}
    assert text.count("{{projectInstructions}}") == (1 if adds_them else 2)
    assert [one.code for one in found] == ([] if adds_them else ["FA831"])


@pytest.mark.parametrize(
    "text", ['"', '""" x """', 'ends "', "a\\b", "\x00\x7f\t", "ü\n\n🚀", "\n"]
)
def test_toml(text: str) -> None:
    values = {"plain": text, "lines": f"a\n{text}", "t": {"a b": [text], "n": {"x": True, "y": 1}}}
    assert tomllib.loads(write_toml(values)) == values
