"""What `resources/list` and `resources/templates/list` say of skills."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fast_agent.resources.media_type import media_type
from fast_agent.resources.resource import Resource, ResourceTemplate
from fast_agent.resources.skill.files import HEAD
from fast_agent.resources.skill.set import MANIFEST, PROMPT, SCHEME
from fast_agent.resources.uri import Uri

if TYPE_CHECKING:
    from collections.abc import Iterator

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
    return (_FILE, _NESTED) if skills.nested else (_FILE,)


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
