"""What `fast-agent trust` says of cards that bring code."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from fast_agent.errors import FastAgentError
from fast_agent.text.visible import visible

if TYPE_CHECKING:
    from collections.abc import Iterable

    from fast_agent.app import FastAgent
    from fast_agent.registry.approvals import Standing
    from fast_agent.registry.card_code import CardCode

_MOST_FILES = 12


def described(code: CardCode, standing: Standing) -> str:
    """Say in a line what a card file brings."""
    names = ", ".join(f"`{name}`" for name in code.agents)
    fields = ", ".join(f"`{field}`" for field in code.fields)
    files = _files(code.files, Path(code.path).parent)
    changed = " (changed since it was approved)" if standing == "changed" else ""
    line = f"{code.shown}{changed}: {names} by {fields}"
    return visible(f"{line}; it may run {files}" if files else line)


def render_approvals(program: FastAgent) -> str:
    """Write every approval as a line: how it stands, and the card file."""
    lines = [
        f"{_stands(program, path):<8}  {visible(path)}\n"
        for path in sorted(program.approvals.all())
    ]
    return "".join(lines) or "no card is approved\n"


def _stands(program: FastAgent, path: str) -> str:
    if not Path(path).is_file():
        return "gone"
    try:
        codes = program.code_in(path, multi_card=True)
    except FastAgentError:
        return "changed"
    # A card that brings nothing any more needs no approval.
    return program.approvals.standing(codes[0]) if codes else "unneeded"


def _files(files: Iterable[str], directory: Path) -> str:
    shown = [_shown(Path(file), directory) for file in files]
    more = len(shown) - _MOST_FILES
    return ", ".join(shown[:_MOST_FILES]) + (f" and {more} more" if more > 0 else "")


def _shown(file: Path, directory: Path) -> str:
    return str(file.relative_to(directory)) if file.is_relative_to(directory) else str(file)
