"""What becomes of each field of each format: a row a field, with the card's or the diagnostic's."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from fast_agent.cards.load import load_cards
from fast_agent.cards.load_set import check_set
from fast_agent.cards.records import PEER_SERVER_FIELDS, of_peer
from fast_agent.formats.importing import Import, plan_import, write_import

if TYPE_CHECKING:
    from pathlib import Path

FILES = {
    "claude": (".claude/agents/one.md", "name: one\ndescription: d\ntools: Read"),
    "copilot": (".github/agents/one.agent.md", "name: one\ndescription: d\ntools: [search]"),
    "opencode": (".opencode/agent/one.md", "description: d\nmode: all\npermission: {edit: deny}"),
    "gemini": (".gemini/agents/one.md", "name: one\ndescription: d\ntools: [read_file]"),
}


def imported(root: Path, name: str, line: str) -> Import:
    """Import an agent of a format with a line in its frontmatter, instead of the line it has."""
    place, usual = FILES[name]
    key = line.partition(":")[0]
    kept = [one for one in usual.splitlines() if not one.startswith(f"{key}:")]
    path = root / place
    path.parent.mkdir(parents=True)
    path.write_text("\n".join(["---", *kept, line, "---", "Do it."]), encoding="utf-8")
    return plan_import([root], root / "out", choice="none", cwd=root)


@pytest.mark.spec("FMT-22", "FMT-2")
@pytest.mark.parametrize(
    ("name", "line", "fields"),
    [
        ("claude", "maxTurns: 5", "request_params:\n  max_iterations: 5\n"),
        ("claude", "model: opus", "model: opus\n"),
        ("claude", "permissionMode: default", "confirm: [execute, write_file, edit_file]\n"),
        ("claude", "disallowedTools: Read", ""),
        ("claude", "mcpServers: {x: {command: y}}", "mcp_connect:\n"),
        ("copilot", "model: [gpt-5, sonnet]", "model: [gpt-5, sonnet]\n"),
        ("copilot", "user-invocable: false", "tool_only: true\n"),
        ("copilot", "mcp-servers: {x: {command: y}}", "mcp_connect:\n"),
        ("opencode", "mode: primary", "default: true\n"),
        ("opencode", "mode: subagent", "tool_only: true\n"),
        ("opencode", "hidden: true", "tool_only: true\n"),
        ("opencode", "temperature: 0.3", "request_params:\n  temperature: 0.3\n"),
        ("opencode", "top_p: 0.4", "request_params:\n  top_p: 0.4\n"),
        ("opencode", "steps: 4", "request_params:\n  max_iterations: 4\n"),
        ("opencode", "maxSteps: 4", "request_params:\n  max_iterations: 4\n"),
        ("opencode", "permission: {bash: ask}", "confirm: [execute]\n"),
        ("gemini", "max_turns: 4", "request_params:\n  max_iterations: 4\n"),
        ("gemini", "temperature: 0.1", "request_params:\n  temperature: 0.1\n"),
        ("gemini", "mcp_servers: {x: {command: y}}", "mcp_connect:\n"),
    ],
)
def test_fields_that_cards_have(tmp_path: Path, name: str, line: str, fields: str) -> None:
    plan = imported(tmp_path, name, line)
    [card] = plan.cards
    assert fields in card.text
    assert not [one for one in plan.diagnostics() if one.code in {"FA831", "FA833", "FA835"}]


@pytest.mark.spec("FMT-23", "FMT-2")
@pytest.mark.parametrize(
    ("name", "line"),
    [
        *(
            ("claude", line)
            for line in (
                "hooks: {PreToolUse: []}",
                "memory: user",
                "background: true",
                "effort: high",
                "isolation: worktree",
                "color: red",
                "initialPrompt: hi",
                "allowedTools: Read",
                "permissionMode: acceptEdits",
                "permissionMode: bypassPermissions",
                "skills: [absent]",
                "mcpServers: [absent]",
                "vibe: calm",
            )
        ),
        *(
            ("copilot", line)
            for line in (
                "argument-hint: x",
                "handoffs: [{label: a, agent: b, prompt: c, send: true}]",
                "target: vscode",
                "hooks: {a: []}",
                "infer: false",
                "advancedOptions: {a: 1}",
                "github: {a: 1}",
                "agents: ['*']",
            )
        ),
        *(
            ("opencode", line)
            for line in (
                "variant: high",
                "color: red",
                "hidden_from_cycle: true",
                "options: {a: 1}",
                "permissions: {bash: ask}",
                "permission: {bash: {'git *': allow, '*': ask}}",
                "permission: {task: {absent: allow}}",
            )
        ),
        *(
            ("gemini", line)
            for line in ("display_name: X", "timeout_mins: 3", "auth: {type: none}")
        ),
    ],
)
def test_fields_that_cards_do_not_have(tmp_path: Path, name: str, line: str) -> None:
    plan = imported(tmp_path, name, line)
    key = line.partition(":")[0]
    lost = [one for one in plan.diagnostics() if one.code in {"FA831", "FA833"}]
    assert lost
    for one in lost:
        assert one.span is not None
        assert key in (one.source_line or "")
        assert one.hint or (name == "copilot" and key == "advancedOptions")


@pytest.mark.spec("FMT-23")
@pytest.mark.parametrize(
    ("name", "line", "message"),
    [
        ("opencode", "disable: true", "the agent `one` is switched off"),
        ("opencode", "disabled: true", "the agent `one` is switched off"),
        ("gemini", "kind: remote", "an agent of kind `remote` runs elsewhere"),
    ],
)
def test_agents_that_become_no_card(tmp_path: Path, name: str, line: str, message: str) -> None:
    plan = imported(tmp_path, name, line)
    assert not plan.cards
    assert any(message in one.message for one in plan.diagnostics())


@pytest.mark.spec("FMT-24")
def test_a_team_of_docker_agent(tmp_path: Path) -> None:
    team = """\
models:
  best: {provider: anthropic, model: claude-sonnet-4-0, temperature: 0.2}
agents:
  root:
    model: best
    description: Leads.
    instruction: Lead.
    sub_agents: [helper]
    add_date: true
  helper:
    model: best
    description: Helps.
    instruction: Help.
    toolsets: [{type: shell}, {type: think}]
"""
    (tmp_path / "team.yaml").write_text(team)
    plan = plan_import([tmp_path], tmp_path / "out", choice="none", cwd=tmp_path)
    root, helper = (card.text for card in plan.cards)
    assert "default: true" in root
    assert "agents: [helper]" in root
    assert "{{currentDate}}" in root
    assert "temperature: 0.2" in root
    assert "shell: true" in helper
    assert "default" not in helper
    assert any("think" in one.message for one in plan.diagnostics())


@pytest.mark.spec("FMT-24")
def test_a_crew(tmp_path: Path) -> None:
    (tmp_path / "agents.yaml").write_text(
        "writer:\n  role: Writer\n  goal: Write on {topic}\n  backstory: Long years.\n"
    )
    (tmp_path / "tasks.yaml").write_text(
        "draft:\n  description: Draft it.\n  expected_output: A page.\n  agent: writer\n"
        "polish:\n  description: Polish it.\n  expected_output: A good page.\n  agent: writer\n"
    )
    plan = plan_import([tmp_path], tmp_path / "out", choice="none", cwd=tmp_path)
    cards = {card.name: card.text for card in plan.cards}
    assert all(one in cards["writer"] for one in ("Writer", "Write on", "Long years."))
    assert "type: chain" in cards["crew"]
    assert cards["crew"].index("draft") < cards["crew"].index("polish")
    assert any("topic" in one.message for one in plan.diagnostics())


@pytest.mark.spec("FMT-25")
@pytest.mark.parametrize(
    "line",
    [
        "subagents: true",
        "subagent_model: sonnet",
        "harness_tools: true",
        "save_trajectory: true",
        "lifecycle_hooks: {on_start: a.py:f}",
        "commands: {a: b}",
        "variables: {a: b}",
    ],
)
def test_fields_of_the_peer(tmp_path: Path, line: str) -> None:
    text = f"---\ntype: agent\nname: one\ntrim_tool_history: true\n{line}\n---\nDo it.\n"
    (tmp_path / "one.md").write_text(text)
    plan = plan_import([tmp_path], tmp_path / "out", choice="none", cwd=tmp_path)
    [card] = plan.cards
    assert "trim_tool_history: true" in card.text
    [lost] = [one for one in plan.diagnostics() if one.code == "FA831"]
    assert lost.hint
    assert line.partition(":")[0] in (lost.source_line or "")


@pytest.mark.spec("FMT-25")
def test_servers_of_the_peer(tmp_path: Path) -> None:
    (tmp_path / "one.md").write_text("""---
type: agent
name: one
mcp_connect:
  - target: https://one.example/mcp
    headers: {X-Team: blue}
    access_token: ${TOKEN}
    management: provider
    auth: {oauth: true}
  - target: "@scope/server --port 1"
    name: two
    description: Text.
  - "@scope/three"
  - {name: four, connector_id: connector_four, defer_loading: true}
---
Do it.
""")
    named = "mcp_connect: {five: {target: x, odd: 1}, six: '@scope/six', seven: uvx y}"
    (tmp_path / "two.md").write_text(f"---\ntype: agent\nname: two\n{named}\n---\nDo it.\n")
    plan = plan_import([tmp_path], tmp_path / "out", choice="none", cwd=tmp_path)
    write_import(plan, force=False)
    load = load_cards([tmp_path / "out"], environ={"TOKEN": "t"})
    assert load.diagnostics == ()
    one, two = (card.config.mcp_connect for card in load.cards)
    assert [(server.name, server.target) for server in one] == [
        (None, "https://one.example/mcp"),
        ("two", "npx -y @scope/server --port 1"),
        (None, "npx -y @scope/three"),
    ]
    assert one[0].headers == {"X-Team": "blue", "Authorization": "Bearer t"}
    assert [(server.name, server.target) for server in two] == [
        ("five", "x"),
        ("six", "npx -y @scope/six"),
        ("seven", "uvx y"),
    ]
    lost = [one for one in plan.diagnostics() if one.code == "FA831"]
    fields = ["management", "auth", "description", "connector_id", "defer_loading"]
    assert [one.message.split("`")[1] for one in lost] == fields
    assert any("`odd` is not a field of a server" in one.message for one in plan.diagnostics())


@pytest.mark.parametrize("field", PEER_SERVER_FIELDS)
def test_a_field_of_the_peer_in_a_server_has_its_own_hint(tmp_path: Path, field: str) -> None:
    card = f"---\nname: one\nmcp_connect: [{{target: x, {field}: y}}]\n---\nDo it.\n"
    (tmp_path / "one.md").write_text(card)
    (found,) = load_cards([tmp_path]).diagnostics
    assert found.code == "FA101"
    assert found.hint == of_peer(*PEER_SERVER_FIELDS[field])


@pytest.mark.spec("FMT-26")
def test_paths_of_a_card_lead_from_its_new_place(tmp_path: Path) -> None:
    old = tmp_path / "old"
    (old / "skills").mkdir(parents=True)
    (old / "tools.py").write_text("def count(text: str) -> int:\n    return len(text)\n")
    fields = (
        "type: agent\nname: one\nfunction_tools: [tools.py:count]\nskills: [skills]\n"
        "tool_hooks: {before_tool_call: tools.py:count}\n"
    )
    (old / "one.md").write_text(f"---\n{fields}---\nCount.\n")
    output = tmp_path / "new" / "cards"
    plan = plan_import([old], output, choice="none", cwd=tmp_path)
    write_import(plan, force=False)
    [card] = load_cards([output]).cards
    text = plan.cards[0].text
    assert 'function_tools:\n  - "../../old/tools.py:count"' in text
    assert 'before_tool_call: "../../old/tools.py:count"' in text
    assert 'skills:\n  - "../../old/skills"' in text
    assert not [one for one in check_set([card]) if one.severity == "error"]
    assert {one.code for one in plan.diagnostics()} == {"FA832"}
