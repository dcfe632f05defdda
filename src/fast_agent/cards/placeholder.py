"""Placeholders: what `{{…}}` in an instruction means, parsed once per text."""

from __future__ import annotations

import re
from typing import Final

from fast_agent.text.frozen import frozen

PLAIN: Final = (
    "currentDate",
    "hostPlatform",
    "pythonVer",
    "workspaceRoot",
    "env",
    "agentName",
    "agentType",
    "agentCardPath",
    "agentCardDir",
    "serverInstructions",
    "agentSkills",
    "agentInternalResources",
    "agents",
    "projectInstructions",
)
"""Placeholders that stand alone, as `{{currentDate}}`."""

PROJECT_FILES: Final = ("AGENTS.md", "CLAUDE.md")
"""Files of the workspace that `{{projectInstructions}}` includes, where they are there."""

WITH_ARGUMENT: Final = ("file", "file_silent", "url", "internal")
"""Placeholders that name something, as `{{file:notes.md}}`."""

_MARK = re.compile(r"\\\{\{|\{\{([^{}\n]*)\}\}")
_MEANT = re.compile(r"\s*[A-Za-z_][\w.\-]*\s*(?::.*)?")


@frozen
class Placeholder:
    """A placeholder and where it stands in its text.

    Args:
        name: Such as `currentDate` or `file`.
        argument: What stands after the colon, without white space around it; empty for none.
        start: Offset of the first brace.
        end: Offset after the last.
    """

    name: str
    argument: str
    start: int
    end: int

    def __str__(self) -> str:
        argument = f":{self.argument}" if self.argument else ""
        return f"{{{{{self.name}{argument}}}}}"


@frozen
class Template:
    r"""An instruction taken apart.

    Args:
        text: The text as written.
        segments: Its parts in order: plain text, with `\{{` already made `{{`, and placeholders.
        unknown: What looks like a placeholder and is none; it is also in the plain text.
    """

    text: str
    segments: tuple[str | Placeholder, ...]
    unknown: tuple[Placeholder, ...] = ()

    @property
    def placeholders(self) -> tuple[Placeholder, ...]:
        """The placeholders in order."""
        return tuple([part for part in self.segments if isinstance(part, Placeholder)])

    def uses(self, name: str) -> bool:
        """Return whether the text contains a placeholder of this name."""
        return any(placeholder.name == name for placeholder in self.placeholders)


def parse_template(text: str) -> Template:
    r"""Find the placeholders of an instruction.

    Args:
        text: The instruction as written. A placeholder is `{{name}}` or `{{name:argument}}` on one
            line, spelled exactly; `\{{` is a literal `{{`; all other braces are plain text.

    Returns:
        Its parts. What looks like a placeholder but is not known stays in the plain text.
    """
    if "{{" not in text:
        return Template(text, (text,) if text else ())
    segments: list[str | Placeholder] = []
    unknown: list[Placeholder] = []
    plain: list[str] = []
    at = 0
    for found in _MARK.finditer(text):
        plain.append(text[at : found.start()])
        at = found.end()
        inside: str | None = found[1]
        if inside is None:
            plain.append("{{")
            continue
        name, _, argument = inside.partition(":")
        placeholder = Placeholder(name, argument.strip(), *found.span())
        if _is_known(placeholder, inside):
            segments += _text_of(plain)
            segments.append(placeholder)
            continue
        if _MEANT.fullmatch(inside):
            unknown.append(placeholder)
        plain.append(found[0])
    plain.append(text[at:])
    segments += _text_of(plain)
    return Template(text, tuple(segments), tuple(unknown))


def _is_known(placeholder: Placeholder, inside: str) -> bool:
    if placeholder.name in WITH_ARGUMENT:
        return bool(placeholder.argument)
    return inside in PLAIN


def _text_of(plain: list[str]) -> list[str]:
    text = "".join(plain)
    plain.clear()
    return [text] if text else []
