"""The skills an agent may use, from its directories and servers, each under a unique name.

A skill is what its source and its URI say; its name is for people and models. Nothing of a skill is
read before it is loaded, and nothing that was read is given away before it is what was listed.

What was read is held against what its source listed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, TypeAlias

from fast_agent.resources.problem import shown
from fast_agent.resources.skill.frontmatter import read_head
from fast_agent.resources.skill.snapshot import digest_of
from fast_agent.resources.skill_client.entry import MAX_BYTES, SkillError, head_uri
from fast_agent.resources.skill_client.source import NamedSkill
from fast_agent.resources.skill_client.text import folded_line, skills_block

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable

    from fast_agent.resources.skill_client.entry import SkillEntry, SkillResource
    from fast_agent.resources.skill_client.source import SkillSource
    from fast_agent.text.json_value import JsonValue

MAX_SUGGESTIONS = 10
Admit: TypeAlias = "Callable[[NamedSkill], Awaitable[None]]"
"""Asks whether a skill may be loaded; raises SkillError where it may not."""


class SkillCatalog:
    """The skills of one agent.

    Args:
        sources: Where they come from, local ones first.
    """

    def __init__(self, sources: Sequence[SkillSource]) -> None:
        self._sources = tuple(sources)
        self._seen: tuple[Sequence[SkillEntry], ...] = ()
        self._skills: tuple[NamedSkill, ...] = ()
        self._block = ""
        self._loaded: dict[tuple[bool, str, str], NamedSkill] = {}

    @property
    def skills(self) -> tuple[NamedSkill, ...]:
        """The skills as of the last check, local ones first."""
        return self._skills

    def block(self) -> str:
        """Return the block of a prompt as of the last check; empty if there are no skills."""
        return self._block

    async def scan(self) -> tuple[NamedSkill, ...]:
        """List the skills of all sources.

        Returns:
            The same tuple while nothing changed.
        """
        now = tuple([await source.skills() for source in self._sources])
        same = len(now) == len(self._seen) and all(map(_is, now, self._seen))
        if not same:
            self._seen = now
            self._skills = _named(self._sources, now)
            self._block = skills_block(self._skills)
        return self._skills

    async def has_unlisted(self) -> bool:
        """Return whether a source may have skills that it does not list."""
        return any([await source.has_unlisted() for source in self._sources])

    async def load(self, name: str, admit: Admit | None = None) -> tuple[NamedSkill, bytes]:
        """Read a skill.

        Args:
            name: Its name here, `source/name`, or its URI.
            admit: Asks whether it may be loaded; raises SkillError where it may not. None lets
                every skill through.

        Returns:
            The skill with its inventory, and its verified `SKILL.md`.

        Raises:
            SkillError: There is no such skill, it may not be loaded, or its source returned
                not what it lists.
            ToolError: Its server cannot be reached.
        """
        skill = await self._find(name)
        listed = skill.entry
        skill = replace(skill, entry=await skill.source.complete(listed, fresh=False))
        if admit is not None:
            await admit(skill)
        try:
            data = await _read_head(skill)
        except MismatchError as problem:
            skill, data = await self._load_again(skill, admit, problem)
        self._loaded[skill.key] = skill
        return skill, data

    async def read(self, name: str, path: str) -> tuple[NamedSkill, SkillResource, bytes]:
        """Read a file of a skill that was loaded.

        Args:
            name: As for `load`.
            path: The file's path in the skill, or its URI.

        Raises:
            SkillError: The skill was not loaded or has no such file, or the file is not what was
                listed when it was.
            ToolError: Its server cannot be reached.
        """
        skill = await self._find(name)
        held = self._loaded.get(skill.key)
        if held is None:
            raise SkillError(
                f"the skill `{skill.name}` is not loaded", hint="load it first with `load_skill`"
            )
        self._check_source(held, path)
        file = held.entry.file(path)
        try:
            return held, file, await _read_file(held, file)
        except MismatchError as problem:
            fresh = await _refreshed(held, problem)
            if fresh.entry.fingerprint == held.entry.fingerprint:
                raise SkillError(
                    f"{_reader_name(held)} does not return what it lists: {problem}"
                ) from None
            if held.local:
                self._loaded[held.key] = fresh
                file = fresh.entry.file(path)
                return fresh, file, await _read_file(fresh, file)
            del self._loaded[held.key]
            raise SkillError(
                f"the skill `{held.name}` changed since it was loaded; it needs approval again",
                hint="load it again with `load_skill`",
            ) from None

    async def read_all(self, skill: NamedSkill) -> Mapping[str, bytes]:
        """Read all files of a skill that was loaded, by their paths in it.

        Raises:
            SkillError: A file is not what was listed.
            ToolError: Its server cannot be reached.
        """
        files = skill.entry.files or {}
        return {path: await _read_file(skill, file) for path, file in files.items()}

    async def _load_again(
        self, skill: NamedSkill, admit: Admit | None, problem: MismatchError
    ) -> tuple[NamedSkill, bytes]:
        """Load a skill that was not as listed by what its source says of it now."""
        fresh = await _refreshed(skill, problem)
        other = fresh.entry.fingerprint is None or fresh.entry != skill.entry
        if other and admit is not None:
            await admit(fresh)
        try:
            return fresh, await _read_head(fresh)
        except MismatchError as still:
            raise SkillError(
                f"{_reader_name(skill)} does not return what it lists: {still}"
            ) from None

    async def _find(self, name: str) -> NamedSkill:
        skills = await self.scan()
        for skill in skills:
            if skill.name == name:
                return skill
        found = [skill for skill in skills if name in _further_names(skill)]
        if not found and "://" in name:
            found = [skill async for skill in self._unlisted(name)]
        if len(found) == 1:
            return found[0]
        if found:
            raise SkillError(
                f"there are {len(found)} skills `{shown(name)}`",
                hint=f"name one of {_names(found)}",
            )
        raise SkillError(f"there is no skill `{shown(name)}`", hint=_did_you_mean(name, skills))

    async def _unlisted(self, name: str) -> AsyncIterator[NamedSkill]:
        """Ask the sources for a skill by its URI, or `source/uri` if it starts with a source."""
        for source in self._sources:
            uri = name.removeprefix(f"{source.label}/")
            if "/" in uri.partition("://")[0]:
                continue
            known = next((one for one in self._loaded.values() if _is_at(one, source, uri)), None)
            if known is not None:
                yield known
                continue
            try:
                uri = head_uri(uri).text
            except SkillError as problem:
                raise SkillError(f"`{shown(name)}` names no skill: {problem.message}") from None
            entry = await source.unlisted(uri)
            if entry is not None:
                yield NamedSkill(f"{source.label}/{entry.uri}", entry, source)

    def _check_source(self, skill: NamedSkill, path: str) -> None:
        """Refuse a URI that is another source's: a skill reads only where it comes from."""
        if "://" not in path:
            return
        for other in self._skills:
            if other.source is not skill.source and path.startswith(
                other.entry.uri.removesuffix("SKILL.md")
            ):
                try:
                    skill.entry.file(path)
                except SkillError:
                    raise SkillError(
                        f"the skill `{skill.name}` of {_source_name(skill)} may not read"
                        f" `{shown(path)}` of {_source_name(other)}",
                        hint=f"load `{other.name}` if the task needs it",
                    ) from None


async def _read_head(skill: NamedSkill) -> bytes:
    data = await _read_file(skill, skill.entry.head)
    verify_head(skill.entry, data)
    return data


async def _read_file(skill: NamedSkill, file: SkillResource) -> bytes:
    data = await skill.source.read(file)
    verify_file(file, data)
    return data


async def _refreshed(skill: NamedSkill, problem: MismatchError) -> NamedSkill:
    try:
        return replace(skill, entry=await skill.source.complete(skill.entry, fresh=True))
    except SkillError as error:
        raise SkillError(f"{problem}; {error}") from None


def _named(
    sources: Sequence[SkillSource], listed: Sequence[Sequence[SkillEntry]]
) -> tuple[NamedSkill, ...]:
    """Return every skill under a unique name.

    A skill of a directory keeps its own; one of a server keeps it where no other skill has it.
    """
    pairs = [
        (source, entry)
        for source, entries in sorted(
            zip(sources, listed, strict=True), key=lambda pair: not pair[0].local
        )
        for entry in entries
    ]
    names = Counter(entry.name for _, entry in pairs)
    own = Counter((source.label, source.local, entry.name) for source, entry in pairs)
    taken: set[str] = set()
    found: list[NamedSkill] = []
    for source, entry in pairs:
        alone = own[source.label, source.local, entry.name] == 1
        choices: list[str] = []
        if names[entry.name] == 1 or (source.local and alone):
            choices.append(entry.name)
        if not source.local and alone:
            choices.append(f"{source.label}/{entry.name}")
        path = "/".join(entry.head.uri.segments[:-1])
        choices += [path if source.local else f"{source.label}/{path}"]
        name = next((one for one in choices if one not in taken), f"{source.label}/{entry.uri}")
        taken.add(name)
        found.append(NamedSkill(name, entry, source))
    return tuple(found)


def _further_names(skill: NamedSkill) -> tuple[str, ...]:
    entry, label = skill.entry, skill.label
    path = "/".join(entry.head.uri.segments[:-1])
    return (
        entry.name,
        entry.uri,
        entry.head.sent,
        f"{label}/{entry.name}",
        f"{label}/{path}",
        f"{label}/{entry.uri}",
    )


def _is_at(skill: NamedSkill, source: SkillSource, uri: str) -> bool:
    return skill.source is source and uri in (skill.entry.uri, skill.entry.head.sent)


def _did_you_mean(name: str, skills: Sequence[NamedSkill]) -> str:
    from fast_agent.text.wording import closest

    near = closest(name, [skill.name for skill in skills])
    if near is not None:
        return f"did you mean `{near}`?"
    return f"the skills are {_names(skills)}" if skills else "there are none"


def _names(skills: Sequence[NamedSkill]) -> str:
    named = ", ".join(f"`{skill.name}`" for skill in skills[:MAX_SUGGESTIONS])
    more = len(skills) - MAX_SUGGESTIONS
    return f"{named} and {more:,} more" if more > 0 else named


def _source_name(skill: NamedSkill) -> str:
    return "this machine" if skill.local else f"server `{skill.label}`"


def _reader_name(skill: NamedSkill) -> str:
    return "the disk" if skill.local else f"server `{skill.label}`"


def _is(one: object, other: object) -> bool:
    return one is other


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
            if not _is_same_json(entry.frontmatter[field], fields[field]):
                raise MismatchError(f"`{name}`: `{shown(field)}` differs from what is listed")
        return
    # Servers that know only the older convention list a name and a description.
    for field, listed in (("name", entry.name), ("description", entry.description)):
        said = fields.get(field)
        if listed and (not isinstance(said, str) or folded_line(said) != folded_line(listed)):
            raise MismatchError(f"`{name}`: `{field}` differs from what is listed")


def _is_same_json(one: JsonValue, other: JsonValue) -> bool:
    """Compare JSON values; unlike in Python, `true` is not `1`."""
    if isinstance(one, Mapping) and isinstance(other, Mapping):
        return one.keys() == other.keys() and all(
            _is_same_json(one[key], other[key]) for key in one
        )
    if isinstance(one, str) or isinstance(other, str):
        return one == other
    if isinstance(one, Sequence) and isinstance(other, Sequence):
        return len(one) == len(other) and all(map(_is_same_json, one, other))
    return isinstance(one, bool) == isinstance(other, bool) and one == other
