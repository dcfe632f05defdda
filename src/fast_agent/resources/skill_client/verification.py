"""Holding what was read of a skill against what its source listed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from fast_agent.resources.problem import shown
from fast_agent.resources.skill.frontmatter import read_head
from fast_agent.resources.skill.snapshot import digest_of
from fast_agent.resources.skill_client.entry import MAX_BYTES, SkillError
from fast_agent.resources.skill_client.text import folded_line

if TYPE_CHECKING:
    from fast_agent.resources.skill_client.entry import SkillEntry, SkillResource
    from fast_agent.text.json_value import JsonValue


class MismatchError(SkillError):
    """What was read is not what was listed."""


def most_bytes(file: SkillResource) -> int:
    """Return how many bytes a read of a file may return."""
    return MAX_BYTES if file.size is None else file.size


def verify_file(file: SkillResource, data: bytes) -> None:
    """Compare a file with its entry; without details in the entry there is only a bound.

    Raises:
        MismatchError: Its size or its digest differs.
    """
    name = shown(file.uri.text)
    if len(data) > most_bytes(file):
        raise MismatchError(f"`{name}` has more than the {most_bytes(file):,} bytes it may have")
    if file.size is not None and len(data) != file.size:
        raise MismatchError(f"`{name}` has {len(data):,} bytes; {file.size:,} are listed")
    if file.digest is not None and digest_of(data) != file.digest:
        raise MismatchError(f"`{name}` is not the file that is listed: its digest differs")


def verify_head(entry: SkillEntry, data: bytes) -> None:
    """Hold the frontmatter of a `SKILL.md` against what was listed of it, field by field.

    Raises:
        MismatchError: A field differs, or there is no frontmatter to compare.
    """
    name = shown(entry.uri)
    fields = read_head(data, name, None).frontmatter
    if fields is None:
        raise MismatchError(f"`{name}` has no frontmatter that can be read")
    if entry.frontmatter is not None:
        for field in dict.fromkeys((*entry.frontmatter, *fields)):
            if field not in fields or field not in entry.frontmatter:
                raise MismatchError(f"`{name}`: only one of listing and file has `{shown(field)}`")
            if not _same(entry.frontmatter[field], fields[field]):
                raise MismatchError(f"`{name}`: `{shown(field)}` differs from what is listed")
        return
    # Servers that know only the older convention list a name and a description.
    for field, listed in (("name", entry.name), ("description", entry.description)):
        said = fields.get(field)
        if listed and (not isinstance(said, str) or folded_line(said) != folded_line(listed)):
            raise MismatchError(f"`{name}`: `{field}` differs from what is listed")


def _same(one: JsonValue, other: JsonValue) -> bool:
    """Compare JSON values; unlike in Python, `true` is not `1`."""
    if isinstance(one, Mapping) and isinstance(other, Mapping):
        return one.keys() == other.keys() and all(_same(one[key], other[key]) for key in one)
    if isinstance(one, str) or isinstance(other, str):
        return one == other
    if isinstance(one, Sequence) and isinstance(other, Sequence):
        return len(one) == len(other) and all(map(_same, one, other))
    return isinstance(one, bool) == isinstance(other, bool) and one == other
