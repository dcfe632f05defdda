"""What became of each file of an import, for programs and for people."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from fast_agent.formats.foreign import Keys
    from fast_agent.formats.importing import Import
    from fast_agent.formats.reading import ForeignAgents


def report_json(plan: Import, written: Sequence[Path]) -> str:
    """Render an import as one JSON object.

    Args:
        plan: The import.
        written: The files that were written.

    Returns:
        `files` with their cards and fields, `written`, and `diagnostics` as `check` prints them.
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
        "written": [str(path) for path in written],
        "diagnostics": found["diagnostics"],
    }
    return json.dumps(report, indent=2) + "\n"


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
        for note in notes:
            place = f"line {note.span.start.line}: " if note.span is not None else ""
            hint = f" — {note.hint}" if note.hint else ""
            lines.append(f"- {note.severity} {note.code}, {place}{note.message}{hint}")
    if plan.unread:
        lines += ["", "## Not read", ""]
        lines += [f"- {one.path}: {one.message}" for one in plan.unread]
    return "\n".join(lines) + "\n"


def _cards_of(plan: Import, one: ForeignAgents) -> list[str]:
    return [card.name for card in plan.cards if card.draft.file is one.file]


def _dotted(keys: Keys) -> str:
    return ".".join(str(key) for key in keys)
