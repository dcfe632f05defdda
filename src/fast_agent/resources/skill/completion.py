"""Completions of skill URIs, and URIs close to one that reads nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fast_agent.resources.problem import NotFound
from fast_agent.resources.skill.files import HEAD
from fast_agent.resources.skill.set import MANIFEST
from fast_agent.text.suggestion import closest

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from fast_agent.resources.skill.set import Skill, SkillSet
    from fast_agent.resources.uri import Uri

_IN_TEMPLATES = str.maketrans({"%": "%25", "?": "%3F", "#": "%23"})
"""A value is put into a template as it is, so what cannot stand in a URI comes encoded."""


def complete(
    skills: SkillSet, template: str, argument: str, value: str, given: Mapping[str, str]
) -> list[str]:
    """Complete an argument of a template of skills; the rest is as for `Provider.complete`."""
    if template == "skill://{name}/{+path}" and argument == "name":
        names = [skill.path for skill in skills.skills if len(skill.uri.segments) == 1]
        return _matching(names, value)
    if template == "skill://{name}/{+path}" and argument == "path":
        name = given.get("name")
        if name is None:
            owners: Iterable[Skill] = skills.skills
        else:
            owner = skills.by_path.get(name)
            owners = () if owner is None else (owner,)
        paths = dict.fromkeys(path for skill in owners for path in _paths(skill))
        return [one.translate(_IN_TEMPLATES) for one in _matching(paths, value)]
    if template == "skill://{+skillFilePath}" and argument == "skillFilePath":
        found = _matching(_all_paths(skills, value), value)
        return [one.translate(_IN_TEMPLATES) for one in found]
    raise NotFound(template, what=f"argument `{argument}` of the template")


def close_to(skills: SkillSet, uri: Uri, skill: Skill | None) -> list[str]:
    """Find URIs that may have been meant by one that reads nothing, the likeliest first."""
    if skill is None:
        *above, last = uri.segments
        near = closest(above[-1] if above and last == HEAD else uri.segments[0], skills.by_name)
        return [] if near is None else [one.head_uri.text for one in skills.by_name[near]]
    rest = uri.text[len(skill.uri.text) + 1 :]
    near = closest(rest, skill.files)
    last = rest.rpartition("/")[2]
    alike = [path for path in skill.files if path.rpartition("/")[2] == last]
    chosen = dict.fromkeys([*([near] if near else ()), *alike])
    return [skill.file_uri(path).text for path in chosen] or [skill.uri.child(MANIFEST).text]


def _paths(skill: Skill) -> Iterator[str]:
    yield HEAD
    if MANIFEST not in skill.files:
        yield MANIFEST
    yield from (path for path in skill.files if path != HEAD)


def _all_paths(skills: SkillSet, value: str) -> dict[str, None]:
    """Paths with their skill's; supporting files only where the skill is written already."""
    found: dict[str, None] = {}
    for skill in skills.skills:
        found[f"{skill.path}/{HEAD}"] = None
    for skill in skills.skills:
        if value.startswith(f"{skill.path}/"):
            found |= dict.fromkeys(f"{skill.path}/{path}" for path in _paths(skill))
    return found


def _matching(values: Iterable[str], written: str) -> list[str]:
    """Those that begin with what is written, then those that hold it."""
    if not written:
        return list(values)
    low = written.lower()
    begin = [one for one in values if one.startswith(written)]
    hold = [one for one in values if low in one.lower() and not one.startswith(written)]
    return begin + hold
