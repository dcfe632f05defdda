"""Reading one file of another tool: its text, its format, its agents and servers."""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import PurePath
from typing import TYPE_CHECKING, cast

from fast_agent.diagnostics import rules
from fast_agent.formats.detection import (
    MARKDOWN,
    format_of_json,
    format_of_markdown,
    format_of_yaml,
    is_crew_of_tasks,
)
from fast_agent.formats.draft import Draft
from fast_agent.formats.foreign import ForeignFile
from fast_agent.formats.loose import Head, read_head, read_lines
from fast_agent.formats.readers.claude import read_claude
from fast_agent.formats.readers.codex import read_codex
from fast_agent.formats.readers.copilot import read_copilot
from fast_agent.formats.readers.crewai import read_crew_agents, read_crew_tasks
from fast_agent.formats.readers.docker_agent import read_docker_agent
from fast_agent.formats.readers.gemini import read_gemini
from fast_agent.formats.readers.opencode import agent_name, read_opencode, read_opencode_json
from fast_agent.formats.readers.peer import read_peer
from fast_agent.formats.servers import read_server_file
from fast_agent.text.yaml_document import YamlDocument, YamlError, parse_yaml

if TYPE_CHECKING:
    from fast_agent.formats.detection import Format
    from fast_agent.formats.draft import ToolChoice
    from fast_agent.formats.servers import Server
    from fast_agent.text.json_value import JsonValue
    from fast_agent.text.source import Source

_COMMENT = re.compile(
    r'("(?:[^"\\\n]|\\.)*")|(//[^\n]*|/\*.*?\*/)|,(?=\s*(?://[^\n]*\s*)*[}\]])', re.DOTALL
)
_AGENT_SUFFIX = re.compile(r"\.(?:agent|chatmode)$")


@dataclass(slots=True)
class ForeignAgents:
    """What one file holds.

    Args:
        file: The file, with what became of its values.
        drafts: Its agents.
        servers: Its MCP servers, for the configuration.
    """

    file: ForeignFile
    drafts: list[Draft] = field(default_factory=list[Draft])
    servers: list[Server] = field(default_factory=list["Server"])


def read_foreign(
    source: Source, choice: ToolChoice, wanted: Format | None = None
) -> ForeignAgents | None:
    """Read a file.

    Args:
        source: Its text.
        choice: What an agent gets that names no tools.
        wanted: Its format; None to find out.

    Returns:
        Its agents and servers; None where it holds neither. A file that cannot be read has none,
        and says why.
    """
    name = PurePath(source.path).name.lower()
    if name.endswith(MARKDOWN):
        return _markdown(source, choice, wanted)
    if name.endswith(".toml"):
        return _toml(source, choice, wanted)
    if name.endswith((".json", ".jsonc")):
        return _json(source, choice, wanted)
    return _yaml(source, choice, wanted)


def _markdown(source: Source, choice: ToolChoice, wanted: Format | None) -> ForeignAgents | None:
    head = read_head(source.text)
    if head is None:
        by_place = wanted or format_of_markdown(source.path, {})
        if by_place is None:
            return None
        head = Head({}, source.text, None, ("the file has no frontmatter", 1))
    kind = wanted or format_of_markdown(source.path, head.values)
    if kind is None:
        return None
    file = ForeignFile(source, kind, head.values, head.body, head.yaml)
    if head.problem is not None:
        message, line = head.problem
        file.note(
            rules.LOOSE_FRONTMATTER,
            f"the frontmatter is not YAML (line {line}: {message}); it was read line by line",
            (),
            "put the text of such a value in quotes",
        )
    readers = {
        "claude": read_claude,
        "copilot": read_copilot,
        "opencode": read_opencode,
        "gemini": read_gemini,
    }
    reader = readers.get(kind)
    drafts = read_peer(file) if reader is None else reader(file, choice)
    for draft in drafts:
        draft.name = draft.name or _named_by_file(source.path, kind)
    return ForeignAgents(file, drafts)


def _named_by_file(path: str, kind: str) -> str:
    if kind == "opencode":
        return agent_name(path)
    return _AGENT_SUFFIX.sub("", PurePath(path).stem)


def _toml(source: Source, choice: ToolChoice, wanted: Format | None) -> ForeignAgents | None:
    values: dict[str, JsonValue]
    problem: str | None = None
    try:
        values = cast("dict[str, JsonValue]", tomllib.loads(source.text))
    except tomllib.TOMLDecodeError as error:
        problem, values = str(error), {}
    is_role = "developer_instructions" in (values or source.text)
    if wanted in {None, "mcp"} and not is_role and isinstance(values.get("mcp_servers"), Mapping):
        settings = ForeignFile(source, "mcp", values)
        return ForeignAgents(settings, [], read_server_file(settings))
    if wanted is None and not is_role and ".codex" not in PurePath(source.path).parts:
        return None
    if problem is None and wanted is None and not is_role and "description" not in values:
        return None  # another file of Codex
    file = ForeignFile(source, "codex", values)
    if problem is not None:
        return _unreadable(file, f"the file is not TOML: {problem}")
    drafts = read_codex(file, choice)
    for draft in drafts:
        draft.name = draft.name or PurePath(source.path).stem
    return ForeignAgents(file, drafts)


def _json(source: Source, choice: ToolChoice, wanted: Format | None) -> ForeignAgents | None:
    try:
        value = cast("JsonValue", json.loads(source.text))
    except ValueError:
        try:
            value = cast("JsonValue", json.loads(_COMMENT.sub(_blank, source.text)))
        except ValueError as error:
            known = {".mcp.json", "mcp.json", "opencode.json", "opencode.jsonc"}
            if wanted is None and PurePath(source.path).name.lower() not in known:
                return None
            return _unreadable(ForeignFile(source, "mcp", {}), f"the file is not JSON: {error}")
    kind = wanted or format_of_json(source.path, value)
    if kind is None or not isinstance(value, Mapping):
        return None
    text = _COMMENT.sub(_blank, source.text).replace("\t", " ")
    file = ForeignFile(source, kind, value, yaml=YamlDocument(text, 1, value))
    drafts = read_opencode_json(file, choice) if kind == "opencode" else []
    return ForeignAgents(file, drafts, read_server_file(file))


def _blank(match: re.Match[str]) -> str:
    """Replace a comment or an extra comma by blanks, so that positions stay."""
    if match[1] is not None:
        return match[1]
    return re.sub(r"[^\n]", " ", match[0])


def _yaml(source: Source, choice: ToolChoice, wanted: Format | None) -> ForeignAgents | None:
    text, first_line = source.text, 1
    if text.startswith(("#!", "---\n")):
        text, first_line = text.partition("\n")[2], 2
    problem: str | None = None
    try:
        yaml = parse_yaml(text, first_line=first_line)
        value = yaml.value
    except YamlError as error:
        # Other tools take the last of two equal keys; what could be read is read.
        yaml, problem = error.document, error.message
        value = read_lines(text) if yaml is None else yaml.value
    kind = wanted or format_of_yaml(value)
    if kind is None or not isinstance(value, Mapping):
        return None
    file = ForeignFile(source, kind, value, yaml=yaml)
    if problem is not None:
        if yaml is None:
            return _unreadable(file, f"the file is not YAML: {problem}")
        file.note(rules.LOOSE_FRONTMATTER, f"the file is not valid YAML: {problem}", ())
    if kind == "docker-agent":
        drafts = read_docker_agent(file)
    elif kind == "crewai":
        drafts = read_crew_tasks(file) if is_crew_of_tasks(value) else read_crew_agents(file)
    elif kind == "opencode":
        drafts = read_opencode_json(file, choice)
    else:
        drafts = read_peer(file)
        for draft in drafts:
            draft.name = draft.name or PurePath(source.path).stem
    return ForeignAgents(file, drafts)


def _unreadable(file: ForeignFile, message: str) -> ForeignAgents:
    file.note(rules.UNREADABLE_FOREIGN, message, (), "fix the file, and import it again")
    return ForeignAgents(file)
