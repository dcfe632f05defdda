"""A folder of skills on disk: checked again cheaply, read without following links.

A look compares the state of every folder and every `SKILL.md` with what it was; only what differs
listed or parsed again. A state too young to distinguish from the next edit is not trusted.

`SkillOptions` says how skills are served: names, bounds, what is offered in addition.
"""

from __future__ import annotations

import os
from contextlib import suppress
from itertools import islice
from time import time_ns
from typing import TYPE_CHECKING, Literal, NamedTuple, Protocol, TypeAlias

from fast_agent.config.home import is_never_served
from fast_agent.resources.folder import Folder, SkippedEntry
from fast_agent.resources.resource import DEFAULT_LIMITS, Limits
from fast_agent.resources.skill.frontmatter import SkillHead, read_head, unreadable_skill
from fast_agent.text.safe_file import (
    FileBytes,
    FileStamp,
    RefusedFileError,
    open_root,
    read_below,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from pathlib import Path

    from fast_agent.text.json_value import JsonObject

HEAD = "SKILL.md"
_RECENT_NS = 50_000_000


class SkillLimits(NamedTuple):
    """Bounds of skills, in addition to those of all resources.

    Args:
        head_bytes: Most bytes of a `SKILL.md`.
        files: Most files of one skill, those of skills inside it counted too.
        skill_bytes: Most bytes of all files of one skill.
        folders: Most folders of one root.
        core: The bounds of all resources, of files, folders and pages.
    """

    head_bytes: int = 256 << 10
    files: int = 512
    skill_bytes: int = 16 << 20
    folders: int = 50_000
    core: Limits = DEFAULT_LIMITS


DEFAULT_SKILL_LIMITS = SkillLimits()


class Listing(NamedTuple):
    """One folder as it was listed.

    Args:
        path: Below the root, as the disk spells it; empty for the root.
        stamp: The folder's state; None where it is to be listed again at the next look.
        files: Names of regular files, sorted.
        folders: Names of folders, sorted.
        skipped: What is not served.
        clash: Two names that would be one on some disks, or None.
        size: Bytes of its files when it was listed.
    """

    path: str
    stamp: FileStamp | None
    files: tuple[str, ...]
    folders: tuple[str, ...]
    skipped: tuple[SkippedEntry, ...]
    clash: tuple[str, str] | None
    size: int

    @property
    def prefix(self) -> str:
        """What goes before a name in this folder."""
        return f"{self.path}/" if self.path else ""


class SkillRoot:
    """A folder that holds skills, at any depth.

    Args:
        path: Where it is. It may be a link, and may appear later.
        shown: What diagnostics call it.
        limits: Bounds.
        now: The time in nanoseconds since 1970.
    """

    def __init__(
        self,
        path: Path | str,
        shown: str,
        limits: SkillLimits,
        now: Callable[[], int] = time_ns,
    ) -> None:
        self.path = os.path.abspath(path)  # noqa: PTH100  (pathlib is slow to import)
        self.shown = shown
        self.listings: dict[str, Listing] = {}
        self.heads: dict[str, SkillHead] = {}
        self.problem: str | None = None
        self.wary: set[str] = set()
        """Folders that every look lists again."""
        self._limits = limits
        self._now = now
        self._folder: Folder | None = None
        self._began = 0
        self._beside: dict[str, SkillHead] = {}
        """By folder, heads that were read while it was listed."""

    @property
    def folder(self) -> Folder:
        """The folder, resolved.

        Raises:
            RefusedFileError: It is missing or unreadable.
        """
        if self._folder is None:
            self._folder = Folder(self.path, self.shown)
        return self._folder

    def scan(self) -> bool:
        """Look at the disk again.

        Returns:
            Whether any folder, `SKILL.md` or problem differs from the last look.
        """
        before = self.listings, self.heads, self.problem
        self._began = self._now()
        self._beside = {}
        try:
            base = self.folder.path
            self.listings = self._list_all(base)
            self.heads = {
                listing.path: self._head(base, listing.path)
                for listing in self.listings.values()
                if HEAD in listing.files
            }
            self.problem = None
        except RefusedFileError as refusal:
            self.listings, self.heads, self.problem = {}, {}, refusal.message
        except _TooManyError as error:
            self.listings, self.heads, self.problem = {}, {}, str(error)
        return not _same(before, (self.listings, self.heads, self.problem))

    def below(self, path: str) -> Iterator[Listing]:
        """Yield the listings of a folder and of all inside it, parents first."""
        pending = [path]
        while pending:
            listing = self.listings.get(pending.pop())
            if listing is not None:
                yield listing
                prefix = listing.prefix
                pending.extend(prefix + name for name in reversed(listing.folders))

    def watch_sizes(self, path: str) -> None:
        """List a folder and all inside it at every check.

        A file may grow or shrink while the state of its folder stays.
        """
        self.wary.update(listing.path for listing in self.below(path))

    def is_fresh(self, parts: Iterable[Listing]) -> bool:
        """Return whether folders are unchanged since the last check."""
        base = self.folder.path
        for part in parts:
            known = self.listings.get(part.path)
            if known is None or known.stamp is None:
                return False
            if _stamp(f"{base}/{part.path}") != known.stamp:
                return False
        return True

    def may_hold(self, names: Sequence[str]) -> bool:
        """Return whether a folder on the way down to a path changed since the last check."""
        if self.problem is not None:
            return self._folder is None and os.path.isdir(self.path)  # noqa: PTH112
        places = ("/".join(names[:end]) for end in range(len(names) + 1))
        return not self.is_fresh(one for one in map(self.listings.get, places) if one is not None)

    def place(self, path: str) -> str:
        """Name a path below the root for diagnostics."""
        return f"{self.shown}/{path}" if path else self.shown

    def _list_all(self, base: str) -> dict[str, Listing]:
        known = self.listings
        found: dict[str, Listing] = {}
        limits = self._limits
        pending, files = [""], 0
        while pending:
            path = pending.pop()
            listing = self._listing(base, path, known.get(path))
            if listing is None:
                continue
            found[path] = listing
            files += len(listing.files)
            if len(found) > limits.folders or files > limits.core.tree_files:
                raise self._too_many()
            if listing.folders:
                prefix = listing.prefix
                pending.extend(prefix + name for name in reversed(listing.folders))
        return found

    def _too_many(self) -> _TooManyError:
        folders, files = self._limits.folders, self._limits.core.tree_files
        return _TooManyError(f"holds more than {folders:,} folders or {files:,} files")

    def _listing(self, base: str, path: str, old: Listing | None) -> Listing | None:
        place = f"{base}/{path}" if path else base
        known = None if old is None or path in self.wary else old.stamp
        if known is not None and _stamp(place) == known:
            return old
        try:
            new = self._list(place, path)
        except RefusedFileError as refusal:
            if not path:
                raise
            if refusal.missing:
                return None
            new = Listing(path, None, (), (), (SkippedEntry(path, refusal.message),), None, 0)
        except OSError:
            return None  # gone while it was listed
        return old if old is not None and old == new else new

    def _list(self, place: str, path: str) -> Listing:
        directory = open_root(place)
        try:
            stamp = FileStamp.of(os.fstat(directory))
            most = self._limits.core.tree_files
            with os.scandir(directory) as entries:
                found = list(islice(entries, most + 1))
            if len(found) > most:
                raise self._too_many()
            found = [entry for entry in found if not is_never_served(entry.name)]
            prefix = f"{path}/" if path else ""
            files, folders, skipped, size = _sort_entries(found, prefix)
            if HEAD in files:
                self._read_beside(directory, path)
        finally:
            os.close(directory)
        if folders and prefix.count("/") >= self._limits.core.tree_depth:
            skipped += [SkippedEntry(prefix + name, "is nested too deeply") for name in folders]
            folders = []
        clash = _clash([*files, *folders])
        files.sort()
        folders.sort()
        skipped.sort()
        trusted = None if self._began - stamp.mtime_ns < _RECENT_NS else stamp
        return Listing(path, trusted, tuple(files), tuple(folders), tuple(skipped), clash, size)

    def _read_beside(self, directory: int, path: str) -> None:
        """Read the head in a folder that is open anyway; what is refused is asked again later."""
        with suppress(RefusedFileError):
            read = read_below(os.dup(directory), (HEAD,), self._limits.head_bytes)
            self._beside[path] = self._parsed(path, read)

    def _head(self, base: str, path: str) -> SkillHead:
        """Return the head in a folder, read again if its file changed."""
        old = self.heads.get(path)
        new = self._beside.pop(path, None)
        place = f"{path}/{HEAD}" if path else HEAD
        if new is None:
            if old is not None and old.stamp is not None and old.stamp == self.folder.stamp(place):
                return old
            try:
                parts = tuple(place.split("/"))
                read = read_below(open_root(base), parts, self._limits.head_bytes)
                new = self._parsed(path, read)
            except RefusedFileError as refusal:
                message = f"the file {refusal.message}"
                problem = unreadable_skill(self.place(place), message, None, None, None)
                # Without a stamp it is read again: the file may be another one by now.
                new = SkillHead(None, problems=(problem,))
        return old if old is not None and old == new else new

    def _parsed(self, path: str, read: FileBytes) -> SkillHead:
        old = self.heads.get(path)
        if old is not None and old.stamp == read.stamp:
            return old
        shown = self.place(f"{path}/{HEAD}" if path else HEAD)
        young = self._began - read.stamp.mtime_ns < _RECENT_NS
        return read_head(read.data, shown, None if young else read.stamp)


class _TooManyError(ValueError):
    """The root holds more than is searched."""


def _same(
    before: tuple[dict[str, Listing], dict[str, SkillHead], str | None],
    after: tuple[dict[str, Listing], dict[str, SkillHead], str | None],
) -> bool:
    """Compare two looks; listings and heads that did not change are the same objects."""
    if before[2] != after[2] or before[1].keys() != after[1].keys():
        return False
    if len(before[0]) != len(after[0]):
        return False
    old, new = before[0], after[0]
    return all(_alike(old.get(path), one) for path, one in new.items()) and all(
        after[1][path] is head or _alike_head(head, after[1][path])
        for path, head in before[1].items()
    )


def _alike(old: Listing | None, new: Listing) -> bool:
    return old is new or (old is not None and old._replace(stamp=new.stamp) == new)


def _alike_head(old: SkillHead, new: SkillHead) -> bool:
    return (
        old.frontmatter == new.frontmatter and old.size == new.size and old.problems == new.problems
    )


def _stamp(place: str) -> FileStamp | None:
    try:
        status = os.lstat(place)
    except OSError:
        return None
    return FileStamp.of(status) if status.st_mode & 0o170000 == 0o040000 else None


def _sort_entries(
    entries: list[os.DirEntry[str]], prefix: str
) -> tuple[list[str], list[str], list[SkippedEntry], int]:
    """Separate files, folders and the rest, and count the bytes of the files."""
    files: list[str] = []
    folders: list[str] = []
    skipped: list[SkippedEntry] = []
    size = 0
    names = "/".join([entry.name for entry in entries])
    plain = names.isascii() and names.isprintable() and "\\" not in names
    for entry in entries:
        name = entry.name
        if not plain and not _is_nameable(name):
            shown = prefix + ascii(name)[1:-1]
            skipped.append(SkippedEntry(shown, "has a name that no URI can hold"))
        elif entry.is_dir(follow_symlinks=False):
            folders.append(name)
        elif entry.is_file(follow_symlinks=False):
            files.append(name)
            size += _size(entry)
        else:
            kind = "a link; links are not followed" if entry.is_symlink() else "no regular file"
            skipped.append(SkippedEntry(prefix + name, f"is {kind}"))
    return files, folders, skipped, size


def _is_nameable(name: str) -> bool:
    """Whether a name holds no backslash, control character, or byte that is not UTF-8."""
    return "\\" not in name and not any(
        ord(char) < 0x20 or 0x7F <= ord(char) < 0xA0 or 0xD800 <= ord(char) < 0xE000
        for char in name
    )


def _size(entry: os.DirEntry[str]) -> int:
    try:
        return entry.stat(follow_symlinks=False).st_size
    except OSError:
        return 0


def _clash(names: list[str]) -> tuple[str, str] | None:
    """Find two names that differ only in letter case or in how accents are encoded."""
    whole = "/".join(names)
    if whole.isascii() and len(set(whole.lower().split("/"))) == len(names):
        return None
    seen: dict[str, str] = {}
    for name in names:
        other = seen.setdefault(folded(name), name)
        if other is not name:
            return (min(name, other), max(name, other))
    return None


def folded(name: str) -> str:
    """Fold a name to the form in which disks that ignore case and encoding compare it."""
    if name.isascii():
        return name.lower()
    from unicodedata import normalize

    return normalize("NFC", normalize("NFC", name).casefold())


NamePolicy: TypeAlias = Literal["frontmatter", "strict", "lenient"]
"""What a name that is not its folder's, or no name at all, leads to: `frontmatter` serves a skill
under its `name` and leaves out wrong names; `strict` wants the folder's name as well; `lenient`
serves wrong ones too, outside `skills/list`."""


class SkillJudge(Protocol):
    """Decides which skills of a directory may be used, since it may be a strange project's."""

    def stamp(self) -> object:
        """Return a value that differs when a decision may be another one; asked often."""
        ...

    def is_found(self, folder: str) -> bool:
        """Return whether the skills of a directory came with a project, approved or not.

        Args:
            folder: The directory, absolute and without links.
        """
        ...

    def refuses(self, folder: str, frontmatter: JsonObject | None) -> bool:
        """Return whether a skill is left out, as its files are at this moment.

        Args:
            folder: Its directory, absolute and without links.
            frontmatter: The fields of its `SKILL.md`; None where they could not be read.
        """
        ...

    def approved_fields(self, folder: str, frontmatter: JsonObject) -> frozenset[str] | None:
        """Return the fields of a found skill that a user approved, as its files are now.

        Args:
            folder: Its directory, absolute and without links.
            frontmatter: The fields of its `SKILL.md`.

        Returns:
            None where the skill was not found, but given.
        """
        ...


class SkillOptions(NamedTuple):
    """How skills are served.

    Args:
        name_policy: What wrong names lead to.
        limits: Bounds.
        list_files: Whether `resources/list` has supporting files too.
        load_skill: Whether the tools `load_skill` and `read_skill_file` are offered.
        embed_catalog: Whether the tool says which skills there are.
        judge: Decides which skills may be used; None lets all through.
    """

    name_policy: NamePolicy = "frontmatter"
    limits: SkillLimits = DEFAULT_SKILL_LIMITS
    list_files: bool = False
    load_skill: bool = True
    embed_catalog: bool = True
    judge: SkillJudge | None = None


DEFAULT_OPTIONS = SkillOptions()
