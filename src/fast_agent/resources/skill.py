"""`skill://`: folders of skills served as resources, in the seed's convention and the extension's.

A skill is known by its folder's listing and the head of its `SKILL.md`; supporting files are read
when they are asked for and hashed when an inventory is.
"""

from __future__ import annotations

from dataclasses import dataclass
from threading import RLock
from time import time_ns
from typing import TYPE_CHECKING

from fast_agent.resources.changes import Change
from fast_agent.resources.encoding import encode
from fast_agent.resources.media_type import is_textual, media_type
from fast_agent.resources.problem import NotFound, TooLarge, Unavailable
from fast_agent.resources.provider import Document
from fast_agent.resources.resource import Resource, ResourceContent, ResourceTemplate
from fast_agent.resources.skill_files import DEFAULT_SKILL_LIMITS, HEAD, SkillLimits, SkillRoot
from fast_agent.resources.skill_reads import KeptReads
from fast_agent.resources.skill_set import (
    INDEX,
    MANIFEST,
    PROMPT,
    SCHEME,
    NamePolicy,
    Skill,
    SkillSet,
    build,
)
from fast_agent.resources.uri import Uri
from fast_agent.text.safe_file import RefusedFileError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
    from pathlib import Path

    from fast_agent.diagnostics.diagnostic import Diagnostic
    from fast_agent.resources.skill_snapshot import Hashes, SkillSnapshot

FILE_TEMPLATE = "skill://{name}/{+path}"
NESTED_TEMPLATE = "skill://{+skillFilePath}"
INDEX_SCHEMA = "https://schemas.agentskills.io/discovery/0.2.0/schema.json"
_JSON = "application/json"
_MARKDOWN = "text/markdown"
_KEPT_BYTES = 2 << 20
_PATIENCE = 20
_TRIES = 5


@dataclass(frozen=True, slots=True)
class SkillOptions:
    """How skills are served.

    Args:
        name_policy: What wrong names lead to.
        limits: Bounds.
        list_files: Whether `resources/list` has supporting files too.
        load_skill: Whether the tools `load_skill` and `read_skill_file` are offered.
        embed_catalog: Whether the tool says which skills there are.
    """

    name_policy: NamePolicy = "frontmatter"
    limits: SkillLimits = DEFAULT_SKILL_LIMITS
    list_files: bool = False
    load_skill: bool = True
    embed_catalog: bool = True


DEFAULT_OPTIONS = SkillOptions()


class SkillProvider:
    """The resources of `skill://`.

    Args:
        roots: Folders that hold skills, or are one. Those of earlier roots win.
        options: How they are served.
        report: Told each problem once, when it is first seen; None for a log on standard error.
        now: The time in nanoseconds since 1970.
    """

    scheme = SCHEME

    def __init__(
        self,
        roots: Iterable[Path | str],
        options: SkillOptions = DEFAULT_OPTIONS,
        *,
        report: Callable[[Diagnostic], None] | None = None,
        now: Callable[[], int] = time_ns,
    ) -> None:
        self.options = options
        self.limits = options.limits
        self.roots = tuple(SkillRoot(root, str(root), options.limits, now) for root in roots)
        self._report = report or _log
        self._reported: frozenset[Diagnostic] = frozenset()
        self._now = now
        self._lock = RLock()
        self._looked_at = 0
        self._look_cost = 0
        self._dirty = False
        self._set = SkillSet((), ())
        self._keys: list[tuple[object, ...]] = []
        self._resources: tuple[Resource, ...] | None = ()
        self._revision = 0
        self._snapshots: dict[Skill, SkillSnapshot] = {}
        self._hashes: Hashes | None = None
        self._kept = KeptReads(_KEPT_BYTES)
        self.look()

    @property
    def revision(self) -> int:
        """Grows when a list would differ; the disk is looked at unless that was done just now."""
        self._look_if_due()
        return self._revision

    @property
    def skills(self) -> SkillSet:
        """The skills as they were last looked at."""
        return self._set

    def resources(self) -> Sequence[Resource]:
        """`SKILL.md` and the manifest of every skill, and the block for prompts."""
        found = self._resources
        if found is None:
            with self._lock:
                skills = self._set.skills
                entries = [one for skill in skills for one in self._entries(skill)]
                found = self._resources = (*entries, _PROMPT_ENTRY) if skills else ()
        return found

    def templates(self) -> Sequence[ResourceTemplate]:
        """How supporting files are named."""
        if not self._set.skills:
            return ()
        template = ResourceTemplate(
            FILE_TEMPLATE,
            "skill-file",
            "A file of a skill",
            "A supporting file of a skill; `_manifest` as the path lists them all with sizes and"
            " SHA-256 hashes.",
        )
        if not self._set.nested:
            return (template,)
        nested = ResourceTemplate(
            NESTED_TEMPLATE,
            "nested-skill-file",
            "A file of any skill",
            "A file of a skill whose path has several segments.",
        )
        return template, nested

    def look(self) -> bool:
        """Look at the disk now.

        Returns:
            Whether anything served differs.
        """
        with self._lock:
            began = self._now()
            self._dirty = False
            changed = [root.look() for root in self.roots]
            if any(changed) or self._looked_at == 0:
                self._swap(build(self.roots, self.options.name_policy, self.limits, self._set))
            self._looked_at = self._now()
            self._look_cost = max(self._looked_at - began, 0)
            return any(changed)

    def read(self, uri: Uri) -> Sequence[ResourceContent]:
        """Read a file of a skill, its manifest, the index or the block for prompts."""
        known = self._kept.get(uri.text)
        if known is not None:
            return known
        for attempt in range(_TRIES):
            found = self._set.owner(uri)
            if found is not None and found[1] in found[0].files:
                if (contents := self._read_file(uri, *found)) is not None:
                    return contents
            elif found is not None and found[1] == MANIFEST:
                data = self.snapshot(found[0].uri).manifest()
                return (ResourceContent.of_bytes(uri, _JSON, data),)
            elif uri.segments == (INDEX,):
                return (ResourceContent.of_bytes(uri, _JSON, self._index()),)
            elif uri.segments == (PROMPT,):
                return (self._prompt(uri),)
            elif attempt or not self._may_differ(uri, found[0] if found else None):
                raise NotFound(uri.text, self._close_to(uri, found[0] if found else None))
            self.look()
        raise Unavailable(uri.text, "keeps changing while it is read")

    def complete(
        self, template: str, argument: str, value: str, given: Mapping[str, str]
    ) -> Iterable[str]:
        """Complete the skill's name, or the path of a file in it."""
        from fast_agent.resources.skill_completion import complete

        return complete(self._set, template, argument, value, given)

    def documents(self) -> Iterator[Document]:
        """Every file of a skill that is text."""
        seen: set[str] = set()
        for skill in self._set.skills:
            for path, place in skill.files.items():
                uri = skill.file_uri(path)
                if uri.text in seen or not is_textual(media_type(path)):
                    continue
                seen.add(uri.text)
                title = f"{skill.name}: {path}" if path != HEAD else skill.name
                stamp = skill.root.folder.stamp(place)
                yield Document(uri, title, repr(stamp), _text_of(self, uri))

    def places(self) -> Sequence[str]:
        """The roots."""
        return tuple(root.path for root in self.roots)

    def fingerprint(self, uri: Uri) -> str:
        """Hash what a read answers; files are hashed once for each of their states."""
        from fast_agent.errors import ResourceError
        from fast_agent.resources.skill_snapshot import StaleError

        found = self._set.owner(uri)
        try:
            if found is not None and found[1] in found[0].files:
                skill, path = found
                place = skill.files[path]
                stamp = skill.root.folder.stamp(place)
                if stamp is not None and stamp.size <= self._most(path):
                    return self.hashes.of(skill.root, place, stamp, self._most(path))
            return _digest(b"".join(content.bytes for content in self.read(uri)))
        except (ResourceError, StaleError):
            return ""

    def refresh(self) -> Change:
        """Look at the disk, because a watcher saw a change."""
        before, tools = self._revision, self._tool_state()
        self.look()
        return Change(
            resources=self._revision != before,
            tools=self.options.load_skill and self._tool_state() != tools,
        )

    @property
    def hashes(self) -> Hashes:
        """The known hashes of files."""
        if self._hashes is None:
            from fast_agent.resources.skill_snapshot import Hashes

            self._hashes = Hashes()
        return self._hashes

    def snapshot(self, uri: Uri) -> SkillSnapshot:
        """Take a snapshot of a skill as it is on disk now.

        Args:
            uri: The skill's root.

        Raises:
            NotFound: There is no such skill (any more).
            Unavailable: It changes faster than it is read.
        """
        from fast_agent.resources.skill_snapshot import StaleError, take

        if self._may_differ(uri, self._set.by_path.get(uri.path)):
            self.look()
        for _ in range(_TRIES):
            skill = self._set.by_path.get(uri.path)
            if skill is None:
                raise NotFound(uri.text, what="skill")
            try:
                one = take(skill, self._snapshots.get(skill), self.hashes, self.limits)
            except (StaleError, RefusedFileError):
                self.look()
            else:
                self._snapshots[skill] = one
                return one
        raise Unavailable(uri.text, "keeps changing while it is read")

    def snapshots(self) -> list[SkillSnapshot]:
        """Take snapshots of all skills, sorted by URI."""
        self.look()
        from fast_agent.resources.skill_snapshot import StaleError, take

        taken: list[SkillSnapshot] = []
        for skill in self._set.skills:
            try:
                one = take(skill, self._snapshots.get(skill), self.hashes, self.limits)
                self._snapshots[skill] = one
            except (StaleError, RefusedFileError):
                try:
                    one = self.snapshot(skill.uri)
                except (NotFound, Unavailable):
                    continue
            taken.append(one)
        return taken

    def _look_if_due(self) -> None:
        """Look unless that would take more than a small part of the time."""
        waited = self._now() - self._looked_at
        if self._dirty or not 0 <= waited < self._look_cost * _PATIENCE:
            self.look()

    def _may_differ(self, uri: Uri, skill: Skill | None) -> bool:
        """Whether another look may find what was not found; costs less than a look."""
        if skill is not None:
            return not skill.root.is_fresh(skill.parts)
        waited = self._now() - self._looked_at
        if self._dirty or not 0 <= waited < self._look_cost:
            return True
        return any(root.may_hold(uri.segments) for root in self.roots)

    def _swap(self, skills: SkillSet) -> None:
        """Take a new set, and notice whether lists differ."""
        keys = [self._key(skill) for skill in skills.skills]
        if keys != self._keys:
            self._revision += 1
            self._keys = keys
            self._resources = None
        served = frozenset(skills.skills)
        self._snapshots = {one: old for one, old in self._snapshots.items() if one in served}
        self._set = skills
        if self._hashes is not None:
            places = {(one.root.path, place) for one in served for place in one.files.values()}
            self._hashes.keep(places)
        for problem in skills.problems:
            if problem not in self._reported:
                self._report(problem)
        self._reported = frozenset(skills.problems)

    def _key(self, skill: Skill) -> tuple[object, ...]:
        if self.options.list_files:
            return *skill.listing_key, tuple(skill.files)
        return skill.listing_key

    def _entries(self, skill: Skill) -> Iterator[Resource]:
        uri = skill.head_uri
        yield Resource(uri, skill.name, None, skill.description, _MARKDOWN, skill.head.size)
        if not skill.has_manifest_file:
            about = f"The files of the skill `{skill.name}` with sizes and SHA-256 hashes."
            yield Resource(
                skill.uri.child(MANIFEST), f"{skill.name}/{MANIFEST}", None, about, _JSON
            )
        if self.options.list_files:
            for path in skill.files:
                if path != HEAD:
                    uri = skill.file_uri(path)
                    yield Resource(uri, f"{skill.name}/{path}", None, None, media_type(path))

    def _most(self, path: str) -> int:
        """How many bytes a file may have."""
        most = self.limits.core.file_bytes
        return max(most, self.limits.head_bytes) if path == HEAD else most

    def _read_file(self, uri: Uri, skill: Skill, path: str) -> Sequence[ResourceContent] | None:
        """Read a file, or None where the disk differs from what was looked at."""
        place = skill.files[path]
        folder = skill.root.folder
        stamp = folder.stamp(place)
        if stamp is None:
            return None
        most = self._most(path)
        if stamp.size > most:
            raise TooLarge(uri.text, stamp.size, most)
        try:
            read = folder.read(place, most)
        except RefusedFileError as refusal:
            if folder.stamp(place) != stamp:
                return None
            raise Unavailable(uri.text, refusal.message) from None
        mime_type = _MARKDOWN if path == HEAD else media_type(path)
        contents = (ResourceContent.of_bytes(uri, mime_type, read.data),)
        if path == HEAD and read.stamp != skill.head.stamp:
            self._dirty = True
        if read.stamp == stamp:
            self._kept.keep(uri.text, skill, place, stamp, contents)
        return contents

    def _index(self) -> bytes:
        entries = [one.index_entry() for one in self.snapshots() if one.skill.listed]
        return encode({"$schema": INDEX_SCHEMA, "skills": entries})

    def _prompt(self, uri: Uri) -> ResourceContent:
        from fast_agent.resources.skill_prompt import prompt_xml

        self._look_if_due()
        return ResourceContent(uri, "application/xml", prompt_xml(self._set.skills))

    def _close_to(self, uri: Uri, skill: Skill | None) -> Sequence[str]:
        from fast_agent.resources.skill_completion import close_to

        return close_to(self._set, uri, skill)

    def _tool_state(self) -> list[tuple[str, str]]:
        return [(one.path, one.description) for one in self._set.skills]


_PROMPT_ENTRY = Resource(
    Uri.of(SCHEME, (PROMPT,)),
    PROMPT,
    None,
    "All skills as an XML block for a system prompt.",
    "application/xml",
)


def _text_of(provider: SkillProvider, uri: Uri) -> Callable[[], str | None]:
    def text() -> str | None:
        from fast_agent.errors import ResourceError

        try:
            return provider.read(uri)[0].text
        except ResourceError:
            return None

    return text


def _digest(data: bytes) -> str:
    from hashlib import sha256

    return sha256(data).hexdigest()


def _log(problem: Diagnostic) -> None:
    from logging import getLogger

    line = f":{problem.span.start.line}" if problem.span else ""
    getLogger("fast_agent.resources.skill").warning(
        "%s%s: %s %s", problem.path, line, problem.code, problem.message
    )
