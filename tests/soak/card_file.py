"""Card file: a card on disk that is written the ways people and programs write files."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path
    from random import Random


def card_text(
    description: str, *, name: str = "", model: str = "passthrough", more: str = ""
) -> str:
    """Return the text of a card.

    Args:
        description: How the agent is described to clients.
        name: Its name; empty is that of its file.
        model: Its model.
        more: More lines of frontmatter.
    """
    own = f"name: {name}\n" if name else ""
    return f"---\n{own}description: {description}\nmodel: {model}\n{more}---\nBe brief.\n"


def replace_file(path: Path, text: str) -> None:
    """Write a file beside and put it in place, so that nobody sees half of it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    beside = path.with_name(f".{path.name}.new")
    beside.write_text(text, encoding="utf-8")
    beside.replace(path)


def write_somehow(path: Path, text: str, draw: Random) -> None:
    """Write a file at once, in place, or in two pieces with a moment between them."""
    way = draw.randrange(3)
    if way == 0:
        replace_file(path, text)
    elif way == 1:
        path.write_text(text, encoding="utf-8")
    else:
        half = draw.randrange(len(text))
        with path.open("w", encoding="utf-8") as file:
            file.write(text[:half])
            file.flush()
            time.sleep(draw.random() * 0.03)
            file.write(text[half:])
