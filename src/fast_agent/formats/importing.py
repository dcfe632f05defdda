"""Importing: agents of other tools, found below a path, become cards in a directory."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from fast_agent.cards.directory_writer import write_directory
from fast_agent.cards.load import load_cards
from fast_agent.config.load import CONFIG_NAMES
from fast_agent.diagnostics import rules
from fast_agent.diagnostics.diagnostic import Diagnostic
from fast_agent.errors import CardError
from fast_agent.formats.assembly import ImportedCard, ImportTarget, assemble, file_name_of
from fast_agent.formats.detection import FORMATS, foreign_files, is_agent_place
from fast_agent.formats.reading import ForeignAgents, read_foreign
from fast_agent.text.frozen import frozen
from fast_agent.text.source import SourceError, read_source
from fast_agent.text.yaml_document import YamlError, parse_yaml
from fast_agent.text.yaml_writer import write_yaml

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from fast_agent.formats.detection import Format
    from fast_agent.formats.draft import ToolChoice
    from fast_agent.formats.servers import Server
    from fast_agent.text.json_value import JsonValue

_TOOL_FOLDERS = (".claude", ".github", ".opencode", ".gemini", ".codex", ".vscode", ".fast-agent")
_SERVER_FILES = (".mcp.json", ".vscode/mcp.json")
_OUR_FOLDER = ".fast-agent"


@dataclass(slots=True)
class Import:
    """What an import would write, and everything to know of it.

    Args:
        output: The directory of the cards.
        files: The files that hold agents or servers.
        cards: The cards.
        unread: Problems of files that could not be read.
        config_path: The configuration file the servers go into.
        servers: The servers, and the text of that file.
    """

    output: Path
    files: list[ForeignAgents] = field(default_factory=list[ForeignAgents])
    cards: list[ImportedCard] = field(default_factory=list[ImportedCard])
    unread: list[Diagnostic] = field(default_factory=list[Diagnostic])
    config_path: Path | None = None
    servers: ServersAdded = field(default_factory=lambda: ServersAdded(None))

    def diagnostics(self) -> list[Diagnostic]:
        """Return everything to know, file by file."""
        found = [*self.unread, *(note for one in self.files for note in one.file.diagnostics())]
        if self.servers.block:
            found.append(
                Diagnostic(
                    rules.CONFIG_UNCHANGED.code,
                    "the servers could not be added to this configuration",
                    str(self.config_path),
                    severity=rules.CONFIG_UNCHANGED.severity,
                    hint=f"add them yourself:\n{self.servers.block}",
                )
            )
        return found


def plan_import(
    paths: Sequence[Path],
    output: Path,
    *,
    choice: ToolChoice,
    cwd: Path,
    wanted: Format | None = None,
) -> Import:
    """Read the agents and servers below some paths; nothing is written.

    Args:
        paths: Files and directories.
        output: The directory the cards will be in.
        choice: What an agent gets that names no tools.
        cwd: The working directory.
        wanted: The format of all files; None to find out for each.

    Returns:
        What would be written.

    Raises:
        CardError: A path is missing, or holds nothing to import.
    """
    plan = Import(output)
    for path in _listed(paths):
        _read(plan, path, choice, wanted, named=path in paths)
    if not plan.files and not any(one.severity == "error" for one in plan.unread):
        listed = "; ".join(FORMATS.values())
        raise CardError(
            f"`{paths[0]}` holds no agents of another tool",
            hint=f"these are known: {listed}; `--from FORMAT` says what a file is",
        )
    project = _project_of(paths[0])
    plan.config_path = _configuration(output, cwd)
    there = _text_of(plan.config_path)
    servers = [server for one in plan.files for server in one.servers]
    servers += _servers_beside(plan, project, choice)
    plan.servers = add_servers(there, _first_of_each(servers))
    old = load_cards([output], optional=[output]).cards if output.is_dir() else ()
    target = ImportTarget(
        output=output,
        project=project,
        servers=(*known_servers(there), *(server.name for server in servers)),
        taken=[one.config.name for one in old if not _is_own_file(one.path, one.config.name)],
        has_default=False,
    )
    plan.cards = assemble(plan.files, target)
    return plan


def write_import(plan: Import, *, force: bool) -> list[Path]:
    """Write what was planned.

    Args:
        plan: The plan.
        force: Whether existing files may be overwritten.

    Returns:
        The files that were written; a file that had the same text already is not among them.

    Raises:
        CardError: A file is there, or cannot be written. Nothing was written.
    """
    files = {card.file_name: card.text.encode() for card in plan.cards}
    changed = {name: data for name, data in files.items() if _bytes_of(plan.output / name) != data}
    there = [plan.output / name for name in changed if os.path.lexists(plan.output / name)]
    if there and not force:
        more = f" and {len(there) - 1} more" if len(there) > 1 else ""
        raise CardError(
            f"`{there[0]}`{more} already exists, so nothing was written",
            hint="`--force` overwrites them; `--output DIR` names another directory",
        )
    written = write_directory(plan.output, changed) if changed else []
    if plan.servers.text is not None and plan.config_path is not None:
        directory = plan.config_path.parent
        written += write_directory(directory, {plan.config_path.name: plan.servers.text.encode()})
    return written


def _listed(paths: Sequence[Path]) -> Iterable[Path]:
    seen: set[Path] = set()
    for path in paths:
        if not path.exists():
            raise CardError(f"`{path}` does not exist", hint="name a file or a directory")
        for one in foreign_files(path) if path.is_dir() else [path]:
            if one not in seen:
                seen.add(one)
                yield one


def _read(
    plan: Import, path: Path, choice: ToolChoice, wanted: Format | None, *, named: bool
) -> None:
    try:
        source = read_source(path)
    except SourceError as error:
        plan.unread.append(
            Diagnostic(
                rules.UNREADABLE_FOREIGN.code,
                error.message,
                str(path),
                span=error.span,
                severity=rules.UNREADABLE_FOREIGN.severity,
                hint=error.hint,
            )
        )
        return
    found = read_foreign(source, choice, wanted)
    if found is not None and (found.drafts or found.servers or found.file.notes):
        plan.files.append(found)
    elif named:
        plan.unread.append(
            Diagnostic(
                rules.UNREADABLE_FOREIGN.code,
                "the file is not an agent of a tool that is known",
                str(path),
                severity=rules.UNREADABLE_FOREIGN.severity,
                hint=f"`--from {'|'.join(FORMATS)}` says what it is",
            )
        )
    elif is_agent_place(str(path.parent)):
        plan.unread.append(
            Diagnostic(
                rules.SKIPPED_FOREIGN.code,
                "the file is next to agents, but is not one, and was skipped",
                str(path),
                severity=rules.SKIPPED_FOREIGN.severity,
                hint="an agent starts with `---`, its fields and `---`",
            )
        )


def _project_of(path: Path) -> Path:
    """Return the directory the other tool was used in."""
    whole = path.absolute()
    for one in (whole, *whole.parents):
        if one.name in _TOOL_FOLDERS:
            return one.parent
    return whole if whole.is_dir() else whole.parent


def _servers_beside(plan: Import, project: Path, choice: ToolChoice) -> list[Server]:
    """Return the servers of the project that the agents name, where its files were not named."""
    read = {Path(one.file.path).absolute() for one in plan.files}
    drafts = [draft for one in plan.files for draft in one.drafts]
    wanted = {name.casefold() for draft in drafts for name in draft.servers}
    wanted |= {name.casefold() for draft in drafts for name, _, _ in draft.unknown_tools}
    found: list[Server] = []
    for name in _SERVER_FILES if wanted else ():
        path = project / name
        if path in read or not path.is_file():
            continue
        try:
            beside = read_foreign(read_source(path), choice, "mcp")
        except SourceError:
            continue
        if beside is not None:
            found += [one for one in beside.servers if one.name.casefold() in wanted]
    return found


def _first_of_each(servers: Iterable[Server]) -> list[Server]:
    return list({server.name: server for server in reversed(list(servers))}.values())[::-1]


def _configuration(output: Path, cwd: Path) -> Path:
    """Return the configuration that holds for cards of a directory: one that is there, or new."""
    whole = Path(os.path.normpath(cwd / output))
    start = next((one.parent for one in (whole, *whole.parents) if one.name == _OUR_FOLDER), None)
    if start is None:
        start = cwd if whole.is_relative_to(cwd) else whole
    found = next((start / name for name in CONFIG_NAMES if (start / name).is_file()), None)
    return found or start / CONFIG_NAMES[0]


def _text_of(path: Path) -> str | None:
    try:
        return read_source(path).text
    except SourceError:
        return None


def _bytes_of(path: Path) -> bytes | None:
    try:
        return path.read_bytes()
    except OSError:
        return None


def _is_own_file(path: str, name: str) -> bool:
    return Path(path).name == file_name_of(name)


_INDENT = re.compile(r"^( *)\S")


@frozen
class ServersAdded:
    """A configuration with servers added.

    Args:
        text: The whole file; None where nothing was added, or nothing could be.
        added: The names of the servers that were added.
        kept: The names of those that were there, and stay as they were.
        block: What to add by hand, where the file could not be changed; else empty.
    """

    text: str | None
    added: tuple[str, ...] = ()
    kept: tuple[str, ...] = ()
    block: str = ""


def known_servers(text: str | None) -> tuple[str, ...]:
    """Return the names of the MCP servers of a configuration; none where it cannot be read."""
    value = _value(text or "")
    return tuple(_servers(value)) if value is not None else ()


def add_servers(text: str | None, servers: Sequence[Server]) -> ServersAdded:
    """Add servers to a configuration; comments and everything else in it stay.

    Args:
        text: The file; None where there is none.
        servers: The servers.

    Returns:
        The new file.
    """
    there = known_servers(text)
    wanted = {server.name: server for server in servers if server.name not in there}
    kept = tuple(server.name for server in servers if server.name in there)
    if not wanted:
        return ServersAdded(None, kept=kept)
    entries: dict[str, JsonValue] = {name: one.settings for name, one in wanted.items()}
    block = write_yaml({"mcp": {"servers": entries}})
    if text is None or not text.strip():
        return ServersAdded(block, tuple(wanted), kept)
    changed = _inserted(text, entries, block)
    value = None if changed is None else _value(changed)
    if value is None or not wanted.keys() <= _servers(value).keys():
        return ServersAdded(None, kept=kept, block=block)
    return ServersAdded(changed, tuple(wanted), kept)


def _inserted(text: str, entries: dict[str, JsonValue], block: str) -> str | None:
    value = _value(text)
    if value is None:
        return None
    if "mcp" not in value:
        return f"{text.rstrip()}\n\n{block}"
    document = parse_yaml(text)
    if not _servers(value):
        return None
    lines = text.split("\n")
    first = next(iter(_servers(value)))
    at = document.span_of(("mcp", "servers", first), key=True).start
    head = lines[at.line - 1]
    found = _INDENT.match(head)
    if found is None or len(found[1]) != at.column - 1:
        return None  # the servers are in braces
    added = [f"{found[1]}{line}" for line in write_yaml(entries).rstrip("\n").split("\n")]
    return "\n".join([*lines[: at.line - 1], *added, *lines[at.line - 1 :]])


def _value(text: str) -> Mapping[str, JsonValue] | None:
    try:
        value = parse_yaml(text).value
    except YamlError:
        return None
    if value is None:
        return {}
    return value if isinstance(value, Mapping) else None


def _servers(value: Mapping[str, JsonValue]) -> Mapping[str, JsonValue]:
    mcp = value.get("mcp")
    servers = mcp.get("servers") if isinstance(mcp, Mapping) else None
    return servers if isinstance(servers, Mapping) else {}
