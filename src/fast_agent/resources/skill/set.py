"""Skills that are served: each with its files under URIs, and all of them by URI and name."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Literal, NamedTuple, TypeAlias

from fast_agent.resources.problem import InvalidUri
from fast_agent.resources.skill.files import HEAD
from fast_agent.resources.skill.frontmatter import is_name
from fast_agent.resources.uri import MAX_CHARACTERS, Uri

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from fast_agent.diagnostics.diagnostic import Diagnostic
    from fast_agent.resources.skill.files import Listing, SkillRoot
    from fast_agent.resources.skill.frontmatter import SkillHead

SCHEME = "skill"
MANIFEST = "_manifest"
INDEX = "index.json"
PROMPT = "prompt-xml"
RESERVED = frozenset({INDEX, PROMPT})


NamePolicy: TypeAlias = Literal["frontmatter", "strict", "lenient"]
"""What a name that is not its folder's, or no name at all, leads to: `frontmatter` serves a skill
under its `name` and leaves out wrong names; `strict` wants the folder's name as well; `lenient`
serves wrong ones too, outside `skills/list`."""


class Contents(NamedTuple):
    """What is in a skill, under paths as URIs have them (composed form).

    Args:
        files: By path in the skill, the path below the root; `SKILL.md` is first, then by path.
        folders: Paths of all folders, sorted.
        unnamed: Paths below the root of files whose URI would be too long.
    """

    files: Mapping[str, str]
    folders: Sequence[str]
    unnamed: Sequence[str]


class Skill:
    """One skill that is served.

    Args:
        uri: Its root, without a slash at the end: `skill://acme/refunds`.
        name: Its `name`, or its folder's where names are read leniently.
        description: Its `description`.
        listed: Whether `skills/list` has it.
        root: Where it is on disk.
        folder: Its folder below the root.
        head: Its frontmatter.
        parts: The listings of its folder and all inside it.
    """

    __slots__ = (
        "_contents",
        "description",
        "folder",
        "head",
        "listed",
        "name",
        "parts",
        "root",
        "uri",
    )

    def __init__(
        self,
        uri: Uri,
        name: str,
        description: str,
        listed: bool,
        root: SkillRoot,
        folder: str,
        head: SkillHead,
        parts: tuple[Listing, ...],
    ) -> None:
        self.uri = uri
        self.name = name
        self.description = description
        self.listed = listed
        self.root = root
        self.folder = folder
        self.head = head
        self.parts = parts
        self._contents: Contents | None = None

    @property
    def path(self) -> str:
        """The skill's path: its URI's segments with `/` between."""
        return self.uri.path

    @property
    def head_uri(self) -> Uri:
        """The URI of its `SKILL.md`."""
        return self.file_uri(HEAD)

    @property
    def has_entry(self) -> bool:
        """Whether `skills/get` has it: the last segment of its URI must be its `name`."""
        return self.head.name == self.name and is_name(self.name)

    @property
    def has_manifest_file(self) -> bool:
        """Whether a real file stands where the inventory would be."""
        return MANIFEST in self.parts[0].files

    @property
    def contents(self) -> Contents:
        """Its files and folders, put together once."""
        if (known := self._contents) is not None:
            return known
        made = _contents(self.folder, self.parts, self.uri)
        self._contents = made
        return made

    @property
    def files(self) -> Mapping[str, str]:
        """By path in the skill, the path below the root."""
        return self.contents.files

    @property
    def listing_key(self) -> tuple[str | int | bool | None, ...]:
        """What differs when lists of resources say something else of it."""
        return self.uri.text, self.name, self.description, self.head.size, self.has_manifest_file

    def file_uri(self, path: str) -> Uri:
        """Name one of its files or folders."""
        return _below(self.uri, path)


class SkillSet:
    """All skills at one look; never changed.

    Args:
        skills: Sorted by the URIs of their `SKILL.md`.
        problems: What was left out or is doubtful.
        refused: The root and the folder of each skill that the judge left out.
    """

    __slots__ = ("by_name", "by_path", "problems", "refused", "skills")

    def __init__(
        self,
        found: Iterable[Skill],
        problems: Iterable[Diagnostic],
        refused: Iterable[tuple[SkillRoot, str]] = (),
    ) -> None:
        kept = list(found)
        self.by_path = {skill.path: skill for skill in kept}
        self.skills: tuple[Skill, ...] = tuple(sorted(kept, key=lambda one: f"{one.uri.text}/"))
        self.by_name: dict[str, tuple[Skill, ...]] = {}
        for skill in kept:
            self.by_name[skill.name] = (*self.by_name.get(skill.name, ()), skill)
        self.problems = tuple(problems)
        self.refused = tuple(refused)

    @property
    def nested(self) -> bool:
        """Whether any skill has more than one segment before its files."""
        return any(len(skill.uri.segments) > 1 for skill in self.skills)

    def owner(self, uri: Uri) -> tuple[Skill, str] | None:
        """Find the skill a URI is in.

        Returns:
            The skill with the longest path that the URI starts with, and the rest of the URI's
            path (empty for the skill's root); None where there is none.
        """
        segments = uri.segments
        by_path = self.by_path
        for end in range(len(segments), 0, -1):
            skill = by_path.get("/".join(segments[:end]) if end > 1 else segments[0])
            if skill is not None:
                return skill, "/".join(segments[end:])
        return None


def _contents(folder: str, parts: tuple[Listing, ...], uri: Uri) -> Contents:
    """Gather a skill's files and folders under their paths in URIs."""
    start = len(folder) + 1 if folder else 0
    files: dict[str, str] = {HEAD: join(folder, HEAD)}
    found: list[tuple[str, str]] = []
    folders: list[str] = []
    unnamed: list[str] = []
    for part in parts:
        inner = composed(part.path[start:])
        prefix = f"{inner}/" if inner else ""
        found += [(prefix + composed(name), part.prefix + name) for name in part.files]
        folders += [prefix + composed(name) for name in part.folders]
    for path, place in sorted(found):
        if len(path) * 12 + len(uri.text) > MAX_CHARACTERS and not _nameable(uri, path):
            unnamed.append(place)
        else:
            files[path] = place
    return Contents(files, sorted(folders), unnamed)


_PLAIN = re.compile(r"[A-Za-z0-9!$&'()*+,;=:@~\-._/]+")


def _below(uri: Uri, path: str) -> Uri:
    """Name something below a URI by a path of names from disk, quickly where it is plain."""
    if _PLAIN.fullmatch(path):
        text = f"{uri.text}/{path}"
        if len(text) <= MAX_CHARACTERS:
            return Uri(text, uri.scheme, (*uri.segments, *path.split("/")))
    return uri.child(*path.split("/"))


def composed(text: str) -> str:
    """Convert a name to Unicode's composed form, as URIs have it."""
    if text.isascii():
        return text
    from unicodedata import normalize

    return normalize("NFC", text)


def join(folder: str, name: str) -> str:
    """Join a name to a folder, which may be the root (empty)."""
    return f"{folder}/{name}" if folder else name


def _nameable(uri: Uri, path: str) -> bool:
    try:
        uri.child(*path.split("/"))
    except InvalidUri:
        return False
    return True
