"""Which files are agents of other tools, and of which."""

from __future__ import annotations

import os
from collections.abc import Mapping
from itertools import pairwise
from pathlib import PurePath
from typing import TYPE_CHECKING, Final, Literal, TypeAlias

from fast_agent.cards.fields import CARD_TYPES, PEER_FIELDS
from fast_agent.config.home import FOREIGN_PLACES

if TYPE_CHECKING:
    from pathlib import Path

    from fast_agent.text.json_value import JsonObject, JsonValue

Format: TypeAlias = Literal[
    "claude", "copilot", "opencode", "gemini", "codex", "docker-agent", "crewai", "peer", "mcp"
]

FORMATS: Final[Mapping[Format, str]] = {
    "claude": "Claude Code agents (`.claude/agents/*.md`)",
    "copilot": "VS Code and Copilot agents (`.agent.md`, `.chatmode.md`)",
    "opencode": "OpenCode agents (`.opencode/agent/*.md`, `opencode.json`)",
    "gemini": "Gemini CLI agents (`.gemini/agents/*.md`)",
    "codex": "Codex roles (`.codex/agents/*.toml`)",
    "docker-agent": "docker-agent teams (YAML with `agents`)",
    "crewai": "CrewAI crews (`agents.yaml`, `tasks.yaml`)",
    "peer": "cards of fast-agent-mcp, with its additional fields",
    "mcp": "MCP servers (`.mcp.json`, `.vscode/mcp.json`, `.codex/config.toml` and others)",
}
"""The formats that can be imported, with what each is."""

MARKDOWN: Final = (".md", ".markdown", ".mdc")
_SUFFIXES: Final = (*MARKDOWN, ".toml", ".yaml", ".yml", ".json", ".jsonc")
_PLACES: Final[tuple[tuple[str, Format], ...]] = (
    (".claude", "claude"),
    (".opencode", "opencode"),
    ("opencode", "opencode"),
    (".gemini", "gemini"),
    (".codex", "codex"),
    (".github", "copilot"),
)
_SKIPPED: Final = frozenset(
    {"node_modules", "__pycache__", "venv", "target", "dist", "build", "skills", "commands"}
)
_OPENED: Final = frozenset(
    {".claude", ".opencode", ".gemini", ".codex", ".github", ".vscode", ".config", ".agents"}
)
_DOCUMENTS: Final = frozenset(
    {"readme.md", "license.md", "skill.md", "agents.md", "claude.md", "gemini.md"}
)
_NEVER: Final = _DOCUMENTS | frozenset(
    {
        "changelog.md",
        "contributing.md",
        "security.md",
        "code_of_conduct.md",
        "package.json",
        "package-lock.json",
        "tsconfig.json",
        "pyproject.toml",
        "settings.json",
        "settings.local.json",
        "plugin.json",
        "marketplace.json",
    }
)
_HOMES_OF_AGENTS: Final = frozenset({"agent", "agents", "chatmodes"})
_GENERATED: Final = frozenset({"node_modules", "__pycache__"})
_MAX_DEPTH: Final = 12
_MAX_FILES: Final = 20_000
_CARD_WORDS: Final = frozenset(
    {*(name.lower() for name in CARD_TYPES), "basic", "custom", "a2a", "iterative_planner"}
)
_MODES: Final = frozenset({"primary", "subagent", "all"})


def found_here(project: Path) -> list[str]:
    """Return the places of a project where agents of other tools are."""
    return [name for name in FOREIGN_PLACES if (project / name).is_dir()]


def foreign_files(place: Path) -> list[Path]:
    """List the files of a directory that may hold agents or servers of other tools.

    Args:
        place: A directory; of hidden ones below it only those of known tools are entered.

    Returns:
        The files, sorted by path.
    """
    found: list[Path] = []
    for directory, folders, names in os.walk(place):
        depth = len(PurePath(directory).parts) - len(place.parts)
        # An agent may be called `security` or stand in a folder `build`.
        skipped = _GENERATED if is_agent_place(directory) else _SKIPPED
        never = _DOCUMENTS if is_agent_place(directory) else _NEVER
        folders[:] = sorted(
            name
            for name in folders
            if depth < _MAX_DEPTH
            and name not in skipped
            and (not name.startswith(".") or name in _OPENED)
        )
        for name in sorted(names):
            lower = name.lower()
            if lower.endswith(_SUFFIXES) and lower not in never and not _is_hidden(lower):
                found.append(place.__class__(directory) / name)
        if len(found) > _MAX_FILES:
            break
    return sorted(found)


def is_agent_place(directory: str) -> bool:
    """Return whether a directory is one in which tools keep agents, such as `.claude/agents`."""
    parts = PurePath(directory).parts
    tools = {folder for folder, _ in _PLACES}
    return any(folder in tools and home in _HOMES_OF_AGENTS for folder, home in pairwise(parts))


def _is_hidden(name: str) -> bool:
    return name.startswith(".") and name != ".mcp.json"


def format_of_markdown(path: str, values: JsonObject) -> Format | None:
    """Return the format of an agent in a Markdown file, by its place and its fields.

    Args:
        path: Its path.
        values: Its frontmatter.

    Returns:
        The format; None if it is not an agent.
    """
    lower = path.lower()
    if lower.endswith((".agent.md", ".chatmode.md")):
        return "copilot"
    if lower.endswith((".prompt.md", ".instructions.md")):
        return None
    kind = values.get("type")
    if isinstance(kind, str) and kind.lower().replace("-", "_") in _CARD_WORDS:
        return "peer"
    parts = PurePath(path).parts[:-1]
    by_place: Format | None = next((name for folder, name in _PLACES if folder in parts), None)
    if by_place is not None and (values or by_place == "opencode"):
        return by_place
    of_cards = {"function_tools", "mcp_connect"}
    if (PEER_FIELDS.keys() | of_cards) & values.keys() and "tools" not in values:
        return "peer"
    return _by_fields(values)


def _by_fields(values: JsonObject) -> Format | None:
    keys = values.keys()
    if {"max_turns", "timeout_mins", "display_name", "agent_card_url"} & keys or values.get(
        "kind"
    ) in {"local", "remote"}:
        return "gemini"
    if {"argument-hint", "user-invocable", "mcp-servers", "handoffs", "chatmode"} & keys:
        return "copilot"
    if values.get("mode") in _MODES or {"permission", "steps", "maxSteps"} & keys:
        return "opencode"
    if isinstance(values.get("tools"), Mapping):
        return "opencode"
    if "description" in keys and ("name" in keys or "tools" in keys or "model" in keys):
        return "claude"
    return None


def format_of_yaml(value: JsonValue) -> Format | None:
    """Return the format of a YAML file of agents, by its fields; None for anything else."""
    if not isinstance(value, Mapping):
        return None
    kind = value.get("type")
    if isinstance(kind, str) and kind.lower().replace("-", "_") in _CARD_WORDS:
        return "peer"
    agents = value.get("agents")
    if isinstance(agents, Mapping) and any(_is_team_member(one) for one in agents.values()):
        return "docker-agent"
    if value and all(_is_crew_part(one) for one in value.values()):
        return "crewai"
    if "instruction" in value and "name" in value:
        return "peer"
    return None


def _is_team_member(value: JsonValue) -> bool:
    return isinstance(value, Mapping) and bool(
        {"model", "instruction", "toolsets", "sub_agents"} & value.keys()
    )


def _is_crew_part(value: JsonValue) -> bool:
    if not isinstance(value, Mapping):
        return False
    agent = {"role", "goal"} <= value.keys() or {"role", "backstory"} <= value.keys()
    return agent or {"description", "expected_output"} <= value.keys()


def is_crew_of_tasks(values: JsonObject) -> bool:
    """Return whether a CrewAI file contains tasks, not agents."""
    return any(
        isinstance(value, Mapping) and "expected_output" in value for value in values.values()
    )


def format_of_json(path: str, value: JsonValue) -> Format | None:
    """Return the format of a JSON file of agents or servers; None for anything else."""
    if not isinstance(value, Mapping):
        return None
    name = PurePath(path).name.lower()
    if name.startswith("opencode.json") or "opencode.ai" in str(value.get("$schema", "")):
        return "opencode"
    if isinstance(value.get("mcpServers"), Mapping):
        return "mcp"
    servers = value.get("servers")
    if isinstance(servers, Mapping) and all(_is_server(one) for one in servers.values()):
        return "mcp"
    groups = (value.get("agent"), value.get("mode"))
    if any(isinstance(group, Mapping) for group in groups):
        return "opencode"
    return None


def _is_server(value: JsonValue) -> bool:
    return isinstance(value, Mapping) and bool({"command", "url", "type"} & value.keys())
