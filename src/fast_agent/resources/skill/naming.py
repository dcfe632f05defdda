"""Names and URIs for the skills of all roots: what is served, and what is left out and why."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fast_agent.resources.problem import InvalidUri
from fast_agent.resources.skill.files import HEAD, folded
from fast_agent.resources.skill.frontmatter import is_name
from fast_agent.resources.skill.set import MANIFEST, RESERVED, SCHEME, Skill, SkillSet, join
from fast_agent.resources.uri import Uri

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from fast_agent.diagnostics.diagnostic import Diagnostic, Severity
    from fast_agent.diagnostics.rules import Rule
    from fast_agent.resources.skill.files import Listing, SkillLimits, SkillRoot
    from fast_agent.resources.skill.frontmatter import SkillHead
    from fast_agent.resources.skill.options import SkillJudge
    from fast_agent.resources.skill.set import NamePolicy


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
