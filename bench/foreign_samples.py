"""Agent files in the shapes of other tools, written for this project: forty a format.

Each format has a table of its fields with values at their borders. File number N takes from each
field the value N, N+1, … of its list, with lists of different lengths, so that forty files hold
very different mixtures; `None` leaves a field out.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

COUNT = 40

_DESCRIPTIONS = (
    "Reviews changes before they are merged.",
    "Use this agent when: a build fails and nobody knows why",
    "'quoted' and \"double quoted\"",
    "Schreibt über Größen und Maße, 日本語 🚀",
    "Reads {{files}} and ${HOME}, costs 5 # five",
    "x" * 400,
)
_BODIES = (
    "You review changes.\n\n- Be short.\n- Name the line.\n",
    "# Role\n\nAnswer with `{{placeholder}}` and {{currentDate}} as they are, \\{{this}} too.\n",
    "---SYSTEM\nBegin.\n\n---USER\nhello\n",
    "```yaml\n---\ntype: agent\n---\n```\n\n---\n\nafter a line\n",
    "${NAME} stays, {single} stays, {{{triple}}} stays.\n",
    "Tabs\tand trailing blanks   \r\nand line ends.\r\n",
    "",
)
_MARKDOWN: Mapping[str, Mapping[str, Sequence[str | None]]] = {
    "claude": {
        "description": [f"{json.dumps(one)}" for one in _DESCRIPTIONS] + [_DESCRIPTIONS[1]],
        "model": [None, "sonnet", "inherit", "opus", "haiku", "claude-sonnet-4-5", "nonsense"],
        "tools": [
            "Read, Grep, Glob, Bash",
            None,
            "[Read, Write, Edit, WebFetch]",
            "Bash(git diff:*), Bash(git log:*), Read",
            "Task, mcp__docs__search, mcp__unknown",
            "Agent(claude-1, nobody), Skill, TodoWrite, NoSuchTool",
            '"*"',
            "",
        ],
        "disallowedTools": [None, None, "Write, Bash(rm *)", "[mcp__docs__write]"],
        "permissionMode": [None, None, "plan", "acceptEdits", "default", "bypassPermissions"],
        "maxTurns": [None, "12", "0", "many"],
        "skills": [None, None, None, "[pdf, no-such-skill]"],
        "mcpServers": [None, None, "[docs]", "{own: {command: npx, args: [-y, thing]}}", "[gone]"],
        "hooks": [None, None, None, "{PostToolUse: [{matcher: Bash}]}"],
        "memory": [None, "project", None],
        "effort": [None, "high", "max", None, None],
        "color": ["red", None],
        "emoji": ['"🐳"', None, None],
        "vibe": [None, "Ships: it", None],
        "allowedTools": [None, None, None, "Read"],
        "background": [None, "true"],
        "isolation": [None, None, "worktree"],
        "initialPrompt": [None, None, None, "Go."],
    },
    "copilot": {
        "description": [f"{json.dumps(one)}" for one in _DESCRIPTIONS],
        "tools": [
            "['search', 'edit', 'execute/runInTerminal', 'web/fetch']",
            "['search/codebase', 'edit/editFiles', 'runCommands', 'docs/*']",
            None,
            "['read', 'agent', 'todo', 'github/search_issues']",
            '["*"]',
            "codebase, editFiles, fetch",
            "[]",
            "['vscode/askQuestions', 'extensions', 'thing']",
        ],
        "model": [None, "GPT-5 (copilot)", "['Claude Sonnet 4.5', 'GPT-5']", "Auto", "Strange One"],
        "argument-hint": [None, "what to do"],
        "agents": [None, None, "['copilot-3', 'nobody']", "*", "[]"],
        "handoffs": [None, None, "[{label: Start, agent: copilot-1, prompt: Go, send: false}]"],
        "user-invocable": [None, "false", "true", None, None],
        "disable-model-invocation": [None, None, "true"],
        "mcp-servers": [
            None,
            None,
            "{own: {type: local, command: npx, args: [x], tools: ['*'], env: {A: $COPILOT_A}}}",
            "{web: {type: http, url: 'https://a.example/mcp', tools: [one, two]}}",
        ],
        "reasoning-effort": [None, None, "high"],
        "mode": [None, None, None, "agent"],
        "hidden": [None, None, None, "true"],
        "target": [None, "vscode"],
        "infer": [None, None, None, None, "false"],
        "license": [None, None, None, "MIT"],
    },
    "opencode": {
        "description": [f"{json.dumps(one)}" for one in _DESCRIPTIONS],
        "mode": ["subagent", "primary", "all", None, "other"],
        "model": [
            None,
            "anthropic/claude-sonnet-4-20250514",
            "github-copilot/gpt-5",
            "openrouter/anthropic/claude-3.5-haiku",
            "who/knows",
        ],
        "temperature": [None, "0.1", "2", "warm"],
        "top_p": [None, "0.9", None, "4"],
        "steps": [None, "5", None],
        "tools": [
            None,
            "{write: false, edit: false, bash: false}",
            "{read: true, bash: true, webfetch: true}",
            "{'docs_*': true, todowrite: false}",
        ],
        "permission": [
            None,
            "{edit: ask, bash: {'git *': allow, '*': ask}, webfetch: deny}",
            "{edit: deny, bash: deny}",
            "ask",
            "{task: {'*': deny, opencode-3: allow}}",
            "{task: allow, external_directory: ask}",
        ],
        "permissions": [None, None, "{bash: ask}"],
        "hidden": [None, None, "true"],
        "disable": [None] * 12 + ["true"],
        "color": [None, '"#ff0000"'],
        "category": [None, None, "core"],
        "version": [None, "1.2"],
        "tags": [None, None, "[a, b]"],
        "variant": [None, None, None, "fast"],
        "reasoningEffort": [None, None, None, "high"],
    },
    "gemini": {
        "kind": ["local", None],
        "description": [f"{json.dumps(one)}" for one in _DESCRIPTIONS],
        "display_name": [None, "A Name"],
        "tools": [
            "[read_file, grep_search, list_directory]",
            None,
            "[run_shell_command, write_file, replace, web_fetch]",
            "[google_web_search, write_todos, ask_user, activate_skill]",
            "['*']",
            "[mcp_docs_search, 'mcp_*', unknown_tool]",
        ],
        "mcp_servers": [
            None,
            None,
            "{own: {httpUrl: 'https://a.example/mcp', headers: {Authorization: $TOKEN}}}",
            "{own: {command: uvx, args: [thing], trust: true, timeout: 5000, cwd: .}}",
        ],
        "model": [None, "gemini-2.5-pro", "inherit"],
        "temperature": [None, "0.2", "1"],
        "max_turns": [None, "10"],
        "timeout_mins": [None, "5"],
    },
}


def write_samples(root: Path) -> dict[str, list[Path]]:
    """Write forty files of each format below a directory.

    Args:
        root: The directory; it becomes a project in which all the tools were used.

    Returns:
        The files by format.
    """
    files: dict[str, list[Path]] = {}
    places = {
        "claude": ".claude/agents/claude-{}.md",
        "copilot": ".github/agents/copilot-{}.agent.md",
        "opencode": ".opencode/agent/opencode-{}.md",
        "gemini": ".gemini/agents/gemini-{}.md",
    }
    for name, fields in _MARKDOWN.items():
        texts = [_markdown(name, number, fields) for number in range(COUNT)]
        files[name] = [
            _write(root / places[name].format(number), text) for number, text in enumerate(texts)
        ]
    for name, place, make in (
        ("codex", ".codex/agents/codex-{}.toml", _codex),
        ("docker-agent", "teams/team-{}.yaml", _team),
        ("crewai", "crews/{}/agents.yaml", _crew_agents),
    ):
        files[name] = [_write(root / place.format(number), make(number)) for number in range(COUNT)]
    for number in range(COUNT):
        files["crewai"].append(_write(root / f"crews/{number}/tasks.yaml", _crew_tasks(number)))
    files["peer"] = [
        _write(root / f"cards/peer-{number}.md", _peer(number)) for number in range(COUNT)
    ]
    servers = {"docs": {"type": "http", "url": "https://docs.example/mcp"}}
    files["mcp"] = [_write(root / ".mcp.json", json.dumps({"mcpServers": servers}))]
    _write(root / ".claude/skills/pdf/SKILL.md", "---\nname: pdf\ndescription: PDFs.\n---\nRead.\n")
    return files


def _write(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8", newline="")
    return path


def _pick(values: Sequence[str | None], number: int) -> str | None:
    return values[number % len(values)]


def _markdown(name: str, number: int, fields: Mapping[str, Sequence[str | None]]) -> str:
    lines = [f"name: {name}-{number}"] if name != "opencode" else []
    for at, (field, values) in enumerate(fields.items()):
        value = _pick(values, number + number // 7 * at)
        if value is not None:
            lines.append(f"{field}: {value}")
    head = "\n".join(lines)
    return f"---\n{head}\n---\n\n{_pick(_BODIES, number)}"


def _codex(number: int) -> str:
    lines = [
        f'name = "codex-{number}"',
        f"description = {json.dumps(_pick(_DESCRIPTIONS, number), ensure_ascii=False)}",
    ]
    extras = (
        'model = "gpt-5"',
        'model_reasoning_effort = "high"',
        'sandbox_mode = "read-only"',
        'approval_policy = "never"',
        'nickname_candidates = ["A", "B"]',
        'sandbox_mode = "workspace-write"',
        'model_reasoning_effort = "xhigh"',
    )
    chosen = {extras[(number * 3 + at) % len(extras)].partition(" ")[0]: at for at in range(4)}
    lines += [extras[(number * 3 + at) % len(extras)] for at in chosen.values()]
    body = (_pick(_BODIES, number) or "x").replace("\\", "\\\\").replace("\r", "")
    lines.append(f'developer_instructions = """\n{body}"""')
    if number % 3 == 0:
        lines += ["[mcp_servers.own]", 'command = "npx"', 'args = ["-y", "thing"]']
    if number % 4 == 0:
        lines += ["[mcp_servers.web]", 'url = "https://a.example/mcp"', "tool_timeout_sec = 9"]
        lines += ['bearer_token_env_var = "WEB_TOKEN"']
    return "\n".join(lines) + "\n"


def _team(number: int) -> str:
    toolsets = (
        {"type": "think"},
        {"type": "filesystem", "tools": ["read_file", "list_directory"]},
        {"type": "filesystem"},
        {"type": "shell"},
        {"type": "fetch", "timeout": 5},
        {"type": "mcp", "ref": "docker:duckduckgo"},
        {"type": "mcp", "command": "uvx", "args": ["mcp-time"], "tools": ["now"]},
        {"type": "mcp", "remote": {"url": "https://a.example/sse", "transport_type": "sse"}},
        {"type": "script", "shell": {"hello": {"cmd": "echo"}}},
        {"type": "memory", "path": "m.db"},
    )
    worker: dict[str, object] = {
        "model": ("openai/gpt-5", "anthropic/claude-sonnet-4-0", "fast")[number % 3],
        "description": _pick(_DESCRIPTIONS, number),
        "instruction": _pick(_BODIES, number) or "Work.",
        "toolsets": [toolsets[(number + at) % len(toolsets)] for at in range(1 + number % 3)],
    }
    root: dict[str, object] = {
        "model": "fast",
        "description": "Leads.",
        "instruction": "Lead the others.",
        "sub_agents": ["worker"] if number % 2 else ["worker", "nobody"],
    }
    extras: tuple[dict[str, object], ...] = (
        {"add_date": True},
        {"welcome_message": "Hello"},
        {"commands": {"plan": "Make a plan"}},
        {"handoffs": ["worker"]},
        {"num_history_items": 5, "code_mode_tools": True},
        {"rag": ["docs"]},
        {"max_iterations": 30, "add_environment_info": True},
        {"structured_output": {"name": "x", "schema": {}}},
        {"unknown_field": 1},
    )
    root |= extras[number % len(extras)]
    team: dict[str, object] = {
        "version": "2",
        "agents": {"root": root, "worker": worker},
        "models": {
            "fast": {"provider": "openai", "model": "gpt-5-mini", "max_tokens": 4000},
            "spare": {"provider": "dmr", "model": "ai/qwen3", "base_url": "http://localhost"},
        },
    }
    if number % 4 == 0:
        team["permissions"] = {"ask": ["shell"], "deny": ["shell:cmd=rm*"]}
    return json.dumps(team, indent=2, ensure_ascii=False)


def _crew_agents(number: int) -> str:
    extras = ("verbose: true", "allow_delegation: false", "max_iter: 5", "llm: openai/gpt-5")
    lines: list[str] = []
    for name in ("researcher", "writer")[: 1 + number % 2]:
        lines += [
            f"{name}_{number}:",
            "  role: >",
            f"    {{topic}} {name}",
            "  goal: >",
            "    Find what is new about {topic}",
            "  backstory: >",
            f"    {_pick(_DESCRIPTIONS, number)}",
            f"  {extras[number % len(extras)]}",
            f"  tools: [search_{number}]" if number % 5 == 0 else "  cache: true",
        ]
    return "\n".join(lines) + "\n"


def _crew_tasks(number: int) -> str:
    lines: list[str] = []
    for at in range(1 + number % 3):
        lines += [
            f"task_{number}_{at}:",
            "  description: >",
            f"    Do part {at} of {{topic}}",
            "  expected_output: >",
            "    Ten points",
            f"  agent: researcher_{number}",
        ]
        lines += [f"  context: [task_{number}_{at - 1}]"] if at else []
        lines += ["  output_file: report.md"] if number % 4 == 0 else []
    return "\n".join(lines) + "\n"


def _peer(number: int) -> str:
    extras = (
        "use_history: false",
        "save_trajectory: true",
        "subagents: [a]",
        "harness_tools: [shell]",
        "commands: {x: y}",
        "trim_tool_history: true",
        "variables: {topic: x}",
        "lifecycle_hooks: {on_start: hooks.py:start}",
    )
    return (
        f"---\ntype: agent\nname: peer-{number}\nmodel: sonnet\n{extras[number % len(extras)]}\n"
        f"{extras[(number + 3) % len(extras)]}\n---\nToday is {{{{currentDate}}}}.\n"
    )
