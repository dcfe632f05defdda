"""Lists of skills: the entries of `resources/list`, and the XML block for prompts."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from fast_agent.resources.resource import Resource, ResourceTemplate, media_type
from fast_agent.resources.skill.files import HEAD
from fast_agent.resources.skill.set import MANIFEST, PROMPT, SCHEME
from fast_agent.resources.uri import Uri

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from fast_agent.resources.skill.set import Skill, SkillSet


FILE_TEMPLATE = "skill://{name}/{+path}"
NESTED_TEMPLATE = "skill://{+skillFilePath}"

_PROMPT_ENTRY = Resource(
    Uri.of(SCHEME, (PROMPT,)),
    PROMPT,
    None,
    "All skills as an XML block for a system prompt.",
    "application/xml",
)
_FILE = ResourceTemplate(
    FILE_TEMPLATE,
    "skill-file",
    "A file of a skill",
    "A supporting file of a skill; `_manifest` as the path lists them all with sizes and SHA-256"
    " hashes.",
)
_NESTED = ResourceTemplate(
    NESTED_TEMPLATE,
    "nested-skill-file",
    "A file of any skill",
    "A file of a skill whose path has several segments.",
)


def templates(skills: SkillSet) -> tuple[ResourceTemplate, ...]:
    """Return the templates of files; the one for nested paths only if there are any."""
    if not skills.skills:
        return ()
    return (_FILE, _NESTED) if skills.has_nested else (_FILE,)


def entries(skills: SkillSet, *, list_files: bool) -> tuple[Resource, ...]:
    """Return the resources worth listing.

    Args:
        skills: The skills.
        list_files: Whether supporting files are.
    """
    if not skills.skills:
        return ()
    found = [one for skill in skills.skills for one in _entries(skill, list_files=list_files)]
    return (*found, _PROMPT_ENTRY)


def _entries(skill: Skill, *, list_files: bool) -> Iterator[Resource]:
    yield head_entry(skill)
    if not skill.has_manifest_file:
        about = f"The files of the skill `{skill.name}` with sizes and SHA-256 hashes."
        uri = skill.file_uri(MANIFEST)
        yield Resource(uri, f"{skill.name}/{MANIFEST}", None, about, "application/json")
    if list_files:
        for path in skill.files:
            if path != HEAD:
                uri = skill.file_uri(path)
                yield Resource(uri, f"{skill.name}/{path}", None, None, media_type(path))


def head_entry(skill: Skill) -> Resource:
    """Describe a skill's `SKILL.md`."""
    size = skill.head.size
    return Resource(skill.head_uri, skill.name, None, skill.description, "text/markdown", size)


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
