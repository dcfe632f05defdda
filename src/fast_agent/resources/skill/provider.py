"""`skill://`: folders of skills served as resources, in the seed's convention and the extension's.

A skill is known by its folder's listing and the head of its `SKILL.md`; supporting files are read
when they are asked for and hashed when an inventory is.
"""

from __future__ import annotations

from collections import OrderedDict
from threading import Lock, RLock
from time import time_ns
from typing import TYPE_CHECKING

from fast_agent.resources.problem import NotFound, TooLarge, UnavailableResource
from fast_agent.resources.provider import Document
from fast_agent.resources.resource import ResourceContent, is_textual, media_type
from fast_agent.resources.session import Change
from fast_agent.resources.skill.files import DEFAULT_OPTIONS, HEAD, SkillOptions, SkillRoot
from fast_agent.resources.skill.listing import entries, prompt_xml, templates
from fast_agent.resources.skill.set import INDEX, MANIFEST, PROMPT, SCHEME, Skill, SkillSet, build
from fast_agent.rpc.message import encode
from fast_agent.text.safe_file import RefusedFileError
from fast_agent.text.wording import closest

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
    from pathlib import Path

    from fast_agent.diagnostics.diagnostic import Diagnostic
    from fast_agent.resources.resource import Resource, ResourceTemplate
    from fast_agent.resources.skill.set import Skill
    from fast_agent.resources.skill.snapshot import Hashes, SkillSnapshot
    from fast_agent.resources.uri import Uri
    from fast_agent.text.safe_file import FileStamp

INDEX_SCHEMA = "https://schemas.agentskills.io/discovery/0.2.0/schema.json"
_JSON = "application/json"
_MARKDOWN = "text/markdown"
_KEPT_BYTES = 8 << 20
_PATIENCE = 20
_RECENT_NS = 50_000_000
_TRIES = 5


_IN_TEMPLATES = str.maketrans({"%": "%25", "?": "%3F", "#": "%23"})
"""A value is put into a template as it is, so what cannot stand in a URI comes encoded."""


class SkillProvider:
    """The resources of `skill://`.

    Args:
        roots: Folders that hold skills, or are one. Those of earlier roots win.
        options: How they are served.
        report: Called once with each problem, when first seen; None logs to standard error.
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
        self._resources: Mapping[str, Resource] | None = None
        self._revision = 0
        self._judged: object = None
        self._refused: tuple[FileStamp | None, ...] | None = None
        self._snapshots: dict[Skill, SkillSnapshot] = {}
        self._hashes: Hashes | None = None
        self._kept = ReadCache(_KEPT_BYTES)
        self.scan()

    @property
    def revision(self) -> int:
        """Grows when a list would differ; the disk is checked unless that was done just now."""
        self._rescan_if_due()
        return self._revision

    @property
    def skills(self) -> SkillSet:
        """The skills as of the last check."""
        return self._set

    def resources(self) -> Mapping[str, Resource]:
        """`SKILL.md` and the manifest of every skill, and the block for prompts."""
        found = self._resources
        if found is None:
            with self._lock:
                listed = entries(self._set, list_files=self.options.list_files)
                found = {one.uri.text: one for one in listed}
                self._resources = found
        return found

    def templates(self) -> Sequence[ResourceTemplate]:
        """How supporting files are named."""
        self._rescan_if_due()
        return templates(self._set)

    def scan(self) -> bool:
        """Look at the disk now.

        Returns:
            Whether anything served differs.
        """
        with self._lock:
            began = self._now()
            self._dirty = False
            changed = [root.scan() for root in self.roots]
            changed += [self._has_new_verdicts(), self._refused_changed()]
            if any(changed) or self._looked_at == 0:
                policy, judge = self.options.name_policy, self.options.judge
                self._judged = None if judge is None else judge.stamp()
                self._swap(build(self.roots, policy, self.limits, self._set, judge))
                self._refused = self._refused_state()
            self._looked_at = self._now()
            self._look_cost = max(self._looked_at - began, 0)
            return any(changed)

    def read(self, uri: Uri) -> Sequence[ResourceContent]:
        """Read a file of a skill, its manifest, the index or the block for prompts."""
        if self._has_new_verdicts():
            self.scan()
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
                raise NotFound(uri.text, self.close_to(uri))
            self.scan()
        raise UnavailableResource(uri.text, "keeps changing while it is read")

    def complete(
        self, template: str, argument: str, value: str, given: Mapping[str, str]
    ) -> Iterable[str]:
        """Complete the skill's name, or the path of a file in it."""
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
        from fast_agent.resources.skill.snapshot import StaleError

        found = self._set.owner(uri)
        try:
            if found is not None and found[1] in found[0].files:
                skill, path = found
                place = skill.files[path]
                stamp = skill.root.folder.stamp(place)
                if stamp is not None and stamp.size <= self._max_bytes(path):
                    return self.hashes.of(skill.root, place, stamp, self._max_bytes(path)) or ""
            return _digest(b"".join(content.bytes for content in self.read(uri)))
        except (ResourceError, StaleError):
            return ""

    def refresh(self) -> Change:
        """Look at the disk, because a watcher saw a change."""
        before, tools = self._revision, self._tool_state()
        self.scan()
        return Change(
            resources=self._revision != before,
            tools=self.options.load_skill and self._tool_state() != tools,
        )

    @property
    def hashes(self) -> Hashes:
        """The known hashes of files."""
        if self._hashes is None:
            from fast_agent.resources.skill.snapshot import Hashes

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
        from fast_agent.resources.skill.snapshot import StaleError, take

        if self._may_differ(uri, self._set.by_path.get(uri.path)):
            self.scan()
        for _ in range(_TRIES):
            skill = self._set.by_path.get(uri.path)
            if skill is None:
                raise NotFound(uri.text, what="skill")
            try:
                one = take(skill, self._snapshots.get(skill), self.hashes, self.limits)
            except (StaleError, RefusedFileError):
                self.scan()
                continue
            if self.refuses(skill):
                raise NotFound(uri.text, what="skill")
            return self._remember(one)
        raise UnavailableResource(uri.text, "keeps changing while it is read")

    def snapshot_or_none(self, skill: Skill) -> SkillSnapshot | None:
        """Take a snapshot of a skill of a fresh look; None where it is gone by now."""
        from fast_agent.resources.skill.snapshot import StaleError, take

        try:
            one = take(skill, self._snapshots.get(skill), self.hashes, self.limits)
        except (StaleError, RefusedFileError):
            try:
                return self.snapshot(skill.uri)
            except (NotFound, UnavailableResource):
                return None
        return self._remember(one)

    def fresh(self) -> Sequence[Skill]:
        """All skills as they are on disk now, sorted by URI."""
        self.scan()
        return self._set.skills

    def owner(self, uri: Uri) -> tuple[Skill, str] | None:
        """Find the skill of a URI in its current state on disk; otherwise like `SkillSet.owner`."""
        found = self._set.owner(uri)
        if self._may_differ(uri, found[0] if found else None):
            self.scan()
            found = self._set.owner(uri)
        return found

    def size_of(self, skill: Skill, path: str) -> int | None:
        """Return the size of a file; None if a read would not return it."""
        stamp = skill.root.folder.stamp(skill.files[path])
        return None if stamp is None or stamp.size > self._max_bytes(path) else stamp.size

    def close_to(self, uri: Uri) -> Sequence[str]:
        """Return URIs similar to one that reads nothing."""
        found = self._set.owner(uri)
        return close_to(self._set, uri, found[0] if found else None)

    def _remember(self, snapshot: SkillSnapshot) -> SkillSnapshot:
        with self._lock:
            if self._set.by_path.get(snapshot.skill.path) is snapshot.skill:
                self._snapshots[snapshot.skill] = snapshot
        return snapshot

    def _rescan_if_due(self) -> None:
        """Look unless that would take more than a small part of the time."""
        waited = self._now() - self._looked_at
        if self._dirty or self._has_new_verdicts() or not 0 <= waited < self._look_cost * _PATIENCE:
            self.scan()

    def _has_new_verdicts(self) -> bool:
        """Return whether the judge may decide otherwise than at the last look."""
        judge = self.options.judge
        return judge is not None and judge.stamp() != self._judged

    def _refused_changed(self) -> bool:
        """Return whether files of skills that were left out may have changed since.

        The judge hashes files, and a file's content changes without its folder changing.
        """
        return self._refused is None or self._refused != self._refused_state()

    def _refused_state(self) -> tuple[FileStamp | None, ...] | None:
        """Return the state of each file of the skills left out; None if too recent to compare."""
        states = [
            root.folder.stamp(listing.prefix + name)
            for root, folder in self._set.refused
            for listing in root.below(folder)
            for name in listing.files
        ]
        youngest = max((one.mtime_ns for one in states if one is not None), default=0)
        return None if self._now() - youngest < _RECENT_NS else tuple(states)

    def refuses(self, skill: Skill) -> bool:
        """Return whether a skill is left out as its files are now, whatever the last look found."""
        judge = self.options.judge
        folder = f"{skill.root.folder.path}/{skill.folder}".removesuffix("/")
        return judge is not None and judge.refuses(folder, skill.head.frontmatter)

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
        self._kept.keep_only(served)
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

    def _max_bytes(self, path: str) -> int:
        """How many bytes a file may have."""
        most = self.limits.core.file_bytes
        return max(most, self.limits.head_bytes) if path == HEAD else most

    def _read_file(self, uri: Uri, skill: Skill, path: str) -> Sequence[ResourceContent] | None:
        """Read a file, or None if the disk differs from the last check."""
        place = skill.files[path]
        folder = skill.root.folder
        stamp = folder.stamp(place)
        if stamp is None:
            return None
        most = self._max_bytes(path)
        if stamp.size > most:
            raise TooLarge(uri.text, stamp.size, most)
        try:
            read = folder.read(place, most)
        except RefusedFileError as refusal:
            if folder.stamp(place) != stamp:
                return None
            raise UnavailableResource(uri.text, refusal.message) from None
        # Judged after it was read, so that what changed since the look is not given away.
        if self.refuses(skill):
            raise NotFound(uri.text, what="skill")
        mime_type = _MARKDOWN if path == HEAD else media_type(path)
        contents = (ResourceContent.of_bytes(uri, mime_type, read.data),)
        if path == HEAD and read.stamp != skill.head.stamp:
            self._dirty = True
        if read.stamp == stamp:
            self._kept.keep(uri.text, skill, place, stamp, contents)
        return contents

    def _index(self) -> bytes:
        taken = [self.snapshot_or_none(skill) for skill in self.fresh() if skill.listed]
        entries = [one.index_entry() for one in taken if one is not None]
        return encode({"$schema": INDEX_SCHEMA, "skills": entries})

    def _prompt(self, uri: Uri) -> ResourceContent:
        self._rescan_if_due()
        return ResourceContent(uri, "application/xml", prompt_xml(self._set.skills))

    def _tool_state(self) -> list[tuple[str, str]]:
        return [(one.path, one.description) for one in self._set.skills]


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


def complete(
    skills: SkillSet, template: str, argument: str, value: str, given: Mapping[str, str]
) -> list[str]:
    """Complete an argument of a template of skills; otherwise like `Provider.complete`."""
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
    """Those that start with the typed text, then those that contain it."""
    if not written:
        return list(values)
    low = written.lower()
    begin = [one for one in values if one.startswith(written)]
    hold = [one for one in values if low in one.lower() and not one.startswith(written)]
    return begin + hold


class ReadCache:
    """A bounded memory of reads by URI; each is checked against the state of its file.

    Args:
        most: About how many bytes to keep.
    """

    def __init__(self, most: int) -> None:
        self._max_bytes = most
        self._bytes = 0
        self._kept: OrderedDict[str, tuple[Skill, str, FileStamp, tuple[ResourceContent, ...]]] = (
            OrderedDict()
        )
        self._lock = Lock()

    def get(self, uri: str) -> tuple[ResourceContent, ...] | None:
        """Return what was read, unless the file has changed."""
        found = self._kept.get(uri)
        if found is None:
            return None
        skill, place, stamp, contents = found
        if skill.root.folder.stamp(place) == stamp:
            return contents
        self._drop(uri)
        return None

    def keep(
        self,
        uri: str,
        skill: Skill,
        place: str,
        stamp: FileStamp,
        contents: tuple[ResourceContent, ...],
    ) -> None:
        """Keep a read, and drop the oldest where there are too many."""
        if stamp.size * 8 > self._max_bytes:
            return
        self._drop(uri)
        with self._lock:
            self._kept[uri] = skill, place, stamp, contents
            self._bytes += stamp.size * 2 + 1000
            while self._bytes > self._max_bytes:
                _, old = self._kept.popitem(last=False)
                self._bytes -= old[2].size * 2 + 1000

    def keep_only(self, skills: Collection[Skill]) -> None:
        """Forget the files of all skills but these."""
        with self._lock:
            gone = [uri for uri, kept in self._kept.items() if kept[0] not in skills]
        for uri in gone:
            self._drop(uri)

    def _drop(self, uri: str) -> None:
        with self._lock:
            if (found := self._kept.pop(uri, None)) is not None:
                self._bytes -= found[2].size * 2 + 1000
