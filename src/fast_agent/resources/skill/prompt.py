"""Skills as text for models: escaped, on one line each, bounded."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

    from fast_agent.resources.skill.set import Skill

_BLANKS = re.compile(r"\s+")
_HIDDEN = re.compile(
    "[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\xad\u061c\u180e\u200b-\u200f\u202a-\u202e\u2060-\u206f"
    "\ud800-\udfff\ufeff\ufff9-\uffff\U000e0000-\U000e0fff]"
)
_ENTITIES = str.maketrans({"&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;", "'": "&apos;"})


def escaped(text: str) -> str:
    """Make text safe inside XML, between tags and in quotes.

    What cannot be seen (control characters, tag characters, marks of direction) is left out.
    """
    return _HIDDEN.sub("", text).translate(_ENTITIES)


def one_line(text: str, most: int | None = None) -> str:
    """Fold text onto one line, without invisible characters.

    Args:
        text: Any text.
        most: Characters after which it is cut with an ellipsis; None for all.
    """
    line = _BLANKS.sub(" ", _HIDDEN.sub("", text)).strip()
    if most is not None and len(line) > most:
        return line[: most - 1].rstrip() + "…"
    return line


def prompt_xml(skills: Iterable[Skill]) -> str:
    """Write the block that a host may put into a system prompt.

    Args:
        skills: Those to name.
    """
    blocks = [
        "  <skill>\n"
        f"    <name>{escaped(skill.name)}</name>\n"
        f"    <description>{escaped(one_line(skill.description))}</description>\n"
        f"    <uri>{escaped(skill.head_uri.text)}</uri>\n"
        f"    <location>{escaped(skill.head_uri.text)}</location>\n"
        "  </skill>\n"
        for skill in skills
    ]
    return f"<available_skills>\n{''.join(blocks)}</available_skills>\n"
