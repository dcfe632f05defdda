"""Skills that are served: each with its files under URIs, and all of them by URI and name.

A set is built from all roots; skills that cannot be served are left out, with the reason.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

from fast_agent.resources.problem import InvalidUri
from fast_agent.resources.skill.files import HEAD, folded
from fast_agent.resources.skill.frontmatter import is_name
from fast_agent.resources.uri import MAX_CHARACTERS, Uri

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from fast_agent.diagnostics.diagnostic import Diagnostic, Severity
    from fast_agent.diagnostics.rules import Rule
    from fast_agent.resources.skill.files import (
        Listing,
        NamePolicy,
        SkillJudge,
        SkillLimits,
        SkillRoot,
    )
    from fast_agent.resources.skill.frontmatter import SkillHead


SCHEME = "skill"
MANIFEST = "_manifest"
INDEX = "index.json"
PROMPT = "prompt-xml"
RESERVED = frozenset({INDEX, PROMPT})


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
        return _uri_below(self.uri, path)


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
    def has_nested(self) -> bool:
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
        if len(path) * 12 + len(uri.text) > MAX_CHARACTERS and not _is_nameable(uri, path):
            unnamed.append(place)
        else:
            files[path] = place
    return Contents(files, sorted(folders), unnamed)


_PLAIN = re.compile(r"[A-Za-z0-9!$&'()*+,;=:@~\-._/]+")


def _uri_below(uri: Uri, path: str) -> Uri:
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


def _is_nameable(uri: Uri, path: str) -> bool:
    try:
        uri.child(*path.split("/"))
    except InvalidUri:
        return False
    return True


def build(
    roots: Sequence[SkillRoot],
    policy: NamePolicy,
    limits: SkillLimits,
    before: SkillSet,
    judge: SkillJudge | None = None,
) -> SkillSet:
    """Assign a URI to every skill of the roots.

    Args:
        roots: Looked at. Those the user gave win over those that were found, then earlier ones
            over later ones.
        policy: What wrong names lead to.
        limits: Bounds of a skill.
        before: The last set, whose unchanged skills are taken over.
        judge: Knows which roots were found, and leaves skills out, which it reports itself; None
            lets all through.
    """
    builder = _Builder(policy, limits, before, judge)
    found = [root for root in roots if builder.is_found(root)]
    for root in roots:
        if root not in found:
            builder.add(root)
    for root in found:
        builder.add(root, is_found=True)
    return SkillSet(builder.skills.values(), builder.finished(), builder.refused)


class _Builder:
    """A set in the making."""

    def __init__(
        self, policy: NamePolicy, limits: SkillLimits, before: SkillSet, judge: SkillJudge | None
    ) -> None:
        self._judge = judge
        self.refused: list[tuple[SkillRoot, str]] = []
        self.skills: dict[str, Skill] = {}
        self.problems: list[Diagnostic] = []
        self._policy: NamePolicy = policy
        self._limits = limits
        self._before = {(id(one.root), one.folder): one for one in before.skills}
        self._folded: dict[str, Skill] = {}
        self._inner: dict[str, Skill] = {}
        """By each path above a skill's, one skill below it."""
        self._given: dict[str, Skill] = {}
        """By their folded names, the skills that no found skill may share a name with."""

    def is_found(self, root: SkillRoot) -> bool:
        """Return whether the skills of a root came with a project."""
        judge = self._judge
        return judge is not None and bool(root.heads) and judge.is_found(root.folder.path)

    def add(self, root: SkillRoot, *, is_found: bool = False) -> None:
        """Take the skills of a root, those in folders above others first.

        Args:
            root: The root.
            is_found: Whether it came with a project; those the user gave are added before.
        """
        if root.problem is not None:
            from fast_agent.diagnostics.rules import SKILL_ROOT

            self._report(SKILL_ROOT, root.shown, f"the folder of skills {root.problem}")
        root.wary.clear()
        inside: dict[str, Skill] = {}
        for listing in root.listings.values():
            if listing.skipped:
                self._skipped(root, listing)
        for folder in sorted(root.heads, key=lambda one: one.split("/")):
            if self._refuses(root, folder) or (is_found and self._is_taken(root, folder)):
                self.refused.append((root, folder))
                continue
            skill = self._skill(root, folder, _enclosing(inside, folder))
            if skill is not None:
                inside[folder] = skill
                self._keep(skill)
                if not is_found:
                    self._given.setdefault(folded(skill.name), skill)

    def finished(self) -> Iterable[Diagnostic]:
        """All problems, those only the whole shows included."""
        by_name: dict[str, list[Skill]] = {}
        for skill in self.skills.values():
            by_name.setdefault(skill.name, []).append(skill)
        for name, skills in by_name.items():
            for skill in skills if len(skills) > 1 else ():
                from fast_agent.diagnostics.rules import SKILL_SAME_NAME

                message = f"{len(skills)} skills are called `{name}`"
                self._report_head(SKILL_SAME_NAME, skill.root, skill.folder, message)
        return dict.fromkeys(self.problems)

    def _keep(self, skill: Skill) -> None:
        self.skills[skill.path] = skill
        self._folded[folded(skill.path)] = skill
        segments = skill.uri.segments
        for end in range(1, len(segments)):
            self._inner.setdefault("/".join(segments[:end]), skill)

    def _refuses(self, root: SkillRoot, folder: str) -> bool:
        place = f"{root.folder.path}/{folder}".removesuffix("/")
        return self._judge is not None and self._judge.refuses(
            place, root.heads[folder].frontmatter
        )

    def _is_taken(self, root: SkillRoot, folder: str) -> bool:
        """Return whether a found skill has the name of one the user gave, and report it."""
        name = root.heads[folder].name or _folder_name(root, folder)
        given = self._given.get(folded(name))
        if given is None:
            return False
        from fast_agent.diagnostics.rules import SKILL_COLLISION

        own = given.root.place(join(given.folder, HEAD))
        message = f"skill `{name}` is left out: your skill `{given.name}` ({own}) has this name"
        self._report_head(SKILL_COLLISION, root, folder, message, "rename one of them")
        return True

    def _skill(self, root: SkillRoot, folder: str, outer: Skill | None) -> Skill | None:
        head = root.heads[folder]
        name = self._name(root, folder, head)
        self.problems.extend(head.problems)
        if name is None or head.description is None:
            return None
        if not head.valid and self._policy != "lenient":
            return None
        uri = self._uri(root, folder, name, outer)
        if uri is None:
            return None
        parts = tuple(root.below(folder))
        old = self._before.get((id(root), folder))
        if not self._fits(root, folder, parts):
            return None
        listed = head.valid and is_name(name)
        if MANIFEST in parts[0].files:
            from fast_agent.diagnostics.rules import SKILL_MANIFEST_FILE

            message = "a real file `_manifest` stands where the inventory would be"
            place = root.place(join(folder, MANIFEST))
            self._report(SKILL_MANIFEST_FILE, place, message, "rename it")
        if old is not None and old.uri == uri and old.head is head and _same(old.parts, parts):
            return old
        return Skill(uri, name, head.description, listed, root, folder, head, parts)

    def _name(self, root: SkillRoot, folder: str, head: SkillHead) -> str | None:
        """Settle the name a skill is served under."""
        own = _folder_name(root, folder)
        if head.name is None:
            return own if self._policy == "lenient" and head.description else None
        if head.name != own and head.valid:
            from fast_agent.diagnostics.rules import SKILL_FOLDER_NAME

            strict = self._policy == "strict"
            self._report_head(
                SKILL_FOLDER_NAME,
                root,
                folder,
                f"the skill `{head.name}` is in a folder called `{own}`",
                f"rename the folder to `{head.name}`",
                "error" if strict else None,
            )
            return None if strict else head.name
        return head.name

    def _uri(self, root: SkillRoot, folder: str, name: str, outer: Skill | None) -> Uri | None:
        """Make a skill's URI, unless another has it."""
        if not folder:
            above: tuple[str, ...] = ()
        elif outer is None:
            above = tuple(folder.split("/")[:-1])
        else:
            inner = folder[len(outer.folder) :].strip("/")
            above = (*outer.uri.segments, *inner.split("/")[:-1])
        try:
            if not above and is_name(name):
                uri = Uri(f"{SCHEME}://{name}", SCHEME, (name,))
            else:
                uri = Uri.of(SCHEME, (*above, name))
        except InvalidUri as error:
            from fast_agent.diagnostics.rules import SKILL_NAME

            message = f"the skill cannot have a URI: it {error.reason}"
            self._report_head(SKILL_NAME, root, folder, message)
            return None
        if problem := self._collision(uri, folder, root, outer):
            from fast_agent.diagnostics.rules import SKILL_COLLISION

            self._report_head(SKILL_COLLISION, root, folder, problem, "rename one of them")
            return None
        return uri

    def _collision(self, uri: Uri, folder: str, root: SkillRoot, outer: Skill | None) -> str | None:
        if uri.segments[0] in RESERVED:
            return f"`{uri.segments[0]}` is a name the server keeps for itself"
        other = self._folded.get(folded(uri.path))
        if other is not None:
            where = other.root.place(join(other.folder, HEAD))
            return f"`{uri}` is also the URI of `{where}`, or differs from it in letter case only"
        for end in range(len(uri.segments) - 1, 0, -1):
            above = self.skills.get("/".join(uri.segments[:end]))
            if above is None:
                continue
            inner = "/".join(uri.segments[end:])
            if above is not outer and not _is_inside(above, root, folder):
                return f"`{uri}` is inside the skill `{above.uri}` of another folder"
            if join(above.folder, inner) != folder and _holds(above, inner):
                return f"`{uri}` is a folder of the skill `{above.uri}`"
        inner_skill = self._inner.get(uri.path)
        if inner_skill is not None:
            return f"the skill `{inner_skill.uri}` of another folder is inside `{uri}`"
        return None

    def _fits(self, root: SkillRoot, folder: str, parts: tuple[Listing, ...]) -> bool:
        """Check the bounds of a skill and the names in it."""
        for part in parts:
            if part.clash:
                from fast_agent.diagnostics.rules import SKILL_FILE_COLLISION

                first, second = part.clash
                message = f"`{first}` and `{second}` would be one name on many disks"
                self._report(
                    SKILL_FILE_COLLISION, root.place(part.path), message, "rename one of them"
                )
                return False
        count = sum(len(part.files) for part in parts)
        size = sum(part.size for part in parts)
        for amount, most, unit in (
            (count, self._limits.files, "files"),
            (size, self._limits.skill_bytes, "bytes"),
        ):
            if amount > most:
                from fast_agent.diagnostics.rules import SKILL_TOO_MUCH

                message = f"the skill holds {amount:,} {unit}; {most:,} are allowed"
                self._report(
                    SKILL_TOO_MUCH, root.place(folder), message, "move data out of the skill"
                )
                root.watch_sizes(folder)
                return False
        return True

    def _skipped(self, root: SkillRoot, listing: Listing) -> None:
        from fast_agent.diagnostics.rules import SKILL_SKIPPED

        for path, reason in listing.skipped:
            self._report(SKILL_SKIPPED, root.place(path), reason)

    def _report_head(
        self,
        code: Rule,
        root: SkillRoot,
        folder: str,
        message: str,
        hint: str | None = None,
        severity: Severity | None = None,
    ) -> None:
        """Report something about a skill, at its name."""
        from fast_agent.diagnostics.diagnostic import Diagnostic
        from fast_agent.text.span import Span

        line = root.heads[folder].name_line
        span = None if line is None else Span.at(line, 1, 4)
        path = root.place(join(folder, HEAD))
        found = Diagnostic(code, message, path, span, severity or code.severity, hint)
        self.problems.append(found)

    def _report(
        self,
        code: Rule,
        path: str,
        message: str,
        hint: str | None = None,
        severity: Severity | None = None,
    ) -> None:

        from fast_agent.diagnostics.diagnostic import Diagnostic

        severity = severity or code.severity
        self.problems.append(Diagnostic(code, message, path, severity=severity, hint=hint))


def _folder_name(root: SkillRoot, folder: str) -> str:
    """Return the name of a folder below a root, or of the root itself."""
    return folder.rpartition("/")[2] or root.folder.path.rpartition("/")[2]


def _enclosing(inside: Mapping[str, Skill], folder: str) -> Skill | None:
    """Find the innermost skill around a folder."""
    while folder:
        folder = folder.rpartition("/")[0]
        if folder in inside:
            return inside[folder]
    return None


def _is_inside(skill: Skill, root: SkillRoot, folder: str) -> bool:
    return skill.root is root and folder.startswith(f"{skill.folder}/" if skill.folder else "")


def _holds(skill: Skill, path: str) -> bool:
    return path in skill.files or path in skill.contents.folders


def _same(before: tuple[Listing, ...], after: tuple[Listing, ...]) -> bool:
    return len(before) == len(after) and all(
        old is new for old, new in zip(before, after, strict=True)
    )
