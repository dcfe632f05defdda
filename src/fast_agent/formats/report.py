"""What became of each file of an import, for programs and for people."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from fast_agent.diagnostics.diagnostic import Diagnostic
    from fast_agent.formats.foreign import Keys
    from fast_agent.formats.importing import Import
    from fast_agent.formats.reading import ForeignAgents


def report_json(plan: Import, written: Sequence[Path]) -> str:
    """Render an import as one JSON object.

    Args:
        plan: The import.
        written: The files that were written.

    Returns:
        `files` with their cards and fields, `planned`, `written`, and `diagnostics` as `check`
        prints them.
    """
    from fast_agent.diagnostics.render_json import render_json

    found = json.loads(render_json((), plan.diagnostics()))
    report = {
        "files": [
            {
                "path": one.file.path,
                "format": one.file.format,
                "cards": _cards_of(plan, one),
                "servers": [server.name for server in one.servers],
                "mapped": sorted(_dotted(keys) for keys in one.file.mapped),
                "reported": sorted({_dotted(note.keys) for note in one.file.notes if note.keys}),
            }
            for one in plan.files
        ],
        "planned": [str(path) for path in planned_files(plan)],
        "written": [str(path) for path in written],
        "diagnostics": found["diagnostics"],
    }
    return json.dumps(report, indent=2) + "\n"


def planned_files(plan: Import) -> list[Path]:
    """Return the files an import is about, whether or not they are there already."""
    files = [plan.output / card.file_name for card in plan.cards]
    if plan.servers.text is not None and plan.config_path is not None:
        files.append(plan.config_path)
    return files


def export_report_json(
    target: str, written: Sequence[Path], found: Sequence[Diagnostic], *, dry_run: bool
) -> str:
    """Render an export as one JSON object.

    Args:
        target: The format.
        written: The files that were written; with `dry_run` those that would be.
        found: What of the cards does not fit.
        dry_run: Whether nothing was written.

    Returns:
        `format`, `planned`, `written`, and `diagnostics` as `check` prints them.
    """
    from fast_agent.diagnostics.render_json import render_json

    files = [str(path) for path in written]
    report = {
        "format": target,
        "planned": files,
        "written": [] if dry_run else files,
        "diagnostics": json.loads(render_json((), found))["diagnostics"],
    }
    return json.dumps(report, indent=2) + "\n"


def export_report_markdown(
    target: str, written: Sequence[Path], found: Sequence[Diagnostic], *, dry_run: bool
) -> str:
    """Render an export as Markdown: the files, then a section a card with what does not fit."""
    verb = "would be written" if dry_run else "written"
    lines = [f"# Export to {target}", "", f"{len(written)} files {verb}."]
    lines += [""] if written else []
    lines += [f"- `{path}`" for path in written]
    for path in dict.fromkeys(one.path for one in found):
        lines += ["", f"## {path}", ""]
        lines += [_line(one) for one in found if one.path == path]
    return "\n".join(lines) + "\n"


def _line(note: Diagnostic) -> str:
    place = f"line {note.span.start.line}: " if note.span is not None else ""
    hint = f" — {note.hint}" if note.hint else ""
    return f"- {note.severity} {note.code}, {place}{note.message}{hint}"


def report_markdown(plan: Import, written: Sequence[Path]) -> str:
    """Render an import as Markdown: a section a file, a line for each thing to know.

    Args:
        plan: The import.
        written: The files that were written.

    Returns:
        The text, with a final line end.
    """
    lines = ["# Import", ""]
    lines += [f"{len(plan.files)} files, {len(plan.cards)} cards, {len(written)} files written."]
    for one in plan.files:
        lines += ["", f"## {one.file.path}", "", f"Format: {one.file.format}."]
        cards = ", ".join(f"`{name}`" for name in _cards_of(plan, one))
        lines += [f"Cards: {cards}."] if cards else []
        mapped = ", ".join(f"`{_dotted(keys)}`" for keys in sorted(one.file.mapped, key=str))
        lines += [f"Mapped: {mapped}."] if mapped else []
        notes = one.file.diagnostics()
        lines += [""] if notes else []
        lines += [_line(note) for note in notes]
    if plan.unread:
        lines += ["", "## Not read", ""]
        lines += [f"- {one.path}: {one.message}" for one in plan.unread]
    return "\n".join(lines) + "\n"


def _cards_of(plan: Import, one: ForeignAgents) -> list[str]:
    return [card.name for card in plan.cards if card.draft.file is one.file]


def _dotted(keys: Keys) -> str:
    return ".".join(str(key) for key in keys)
