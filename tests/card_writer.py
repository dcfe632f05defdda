"""Cards of some fields, written for a test."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TypeAlias

WriteCard: TypeAlias = Callable[..., Path]
"""Called with a file's name and lines of frontmatter, and perhaps a `body`; gives the file."""


def card_writer(directory: Path) -> WriteCard:
    """Write cards into a directory."""

    def write(name: str, *fields: str, body: str = "Be brief.") -> Path:
        path = directory / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("\n".join(("---", *fields, "---", body)), encoding="utf-8")
        return path

    return write
