"""The skills in directories of this machine, as a source of an agent's catalog."""

from __future__ import annotations

import logging
import os
from functools import partial
from typing import TYPE_CHECKING

from fast_agent.diagnostics.rules import SKILL_SKIPPED
from fast_agent.errors import ResourceError
from fast_agent.resources.skill_client.entry import (
    ACTING_FIELDS,
    SkillEntry,
    SkillError,
    SkillResource,
)
from fast_agent.resources.uri import Uri

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from fast_agent.diagnostics.diagnostic import Diagnostic
    from fast_agent.resources.skill.files import SkillJudge
    from fast_agent.resources.skill.provider import SkillProvider
    from fast_agent.resources.skill.set import Skill, SkillSet


_log = logging.getLogger(__name__)


class LocalSkills:
    """Skills in directories.

    Args:
        directories: Absolute; of two skills with one URI that of the earlier one is taken.
        optional: Whether a directory may be missing without a word.
        judge: Decides which of the skills may be used; None lets all through.
        chosen: Those of the directories that a user chose: links in them to directories of skills
            are followed once.
        within: Where such links may end.
        permitting: Those of the directories whose skills' `allowed-tools` have an effect without
            an approval.
    """

    label = "local"
    local = True

    def __init__(
        self,
        directories: Iterable[str],
        *,
        optional: bool,
        judge: SkillJudge | None = None,
        chosen: Iterable[str] = (),
        within: Iterable[str] = (),
        permitting: Iterable[str] = (),
    ) -> None:
        self._directories = tuple(directories)
        self._optional = optional
        self._judge = judge
        self._provider: SkillProvider | None = None
        self._chosen = frozenset(chosen)
        self._permitting = frozenset(map(os.path.realpath, permitting))
        self._within = tuple(map(os.path.realpath, within))
        self._linked: dict[str, tuple[int, tuple[str, ...]]] = {}
        self._roots: tuple[str, ...] = ()
        self._set: SkillSet | None = None
        self._entries: tuple[SkillEntry, ...] = ()

    async def skills(self) -> Sequence[SkillEntry]:
        """List the skills as the disk has them now, without their inventories."""
        provider = self._new_provider()
        if provider is None:
            return ()
        provider.scan()
        if provider.skills is not self._set:
            self._set = provider.skills
            entries = tuple([_entry(one) for one in self._set.skills if _is_usable(one)])
            if entries != self._entries:
                self._entries = entries
        return self._entries

    def for_people(self) -> tuple[SkillEntry, ...]:
        """List the skills that a user may call by name, those included that models may not."""
        provider = self._new_provider()
        if provider is None:
            return ()
        provider.scan()
        return tuple([_entry(one) for one in provider.skills.skills if _is_callable(one)])

    async def complete(self, listed: SkillEntry, *, fresh: bool) -> SkillEntry:  # noqa: ARG002
        """Return an entry with its current files, sizes and digests."""
        provider, uri = self._need(), listed.head.uri
        try:
            snapshot = provider.snapshot(Uri.of(uri.scheme, uri.segments[:-1]))
        except ResourceError as error:
            raise SkillError(error.message) from None
        skill = snapshot.skill
        files = {
            one.path: SkillResource(skill.file_uri(one.path), one.uri, one.digest, one.size)
            for one in snapshot.files
            if one.readable
        }
        head = files.get("SKILL.md") or listed.head
        fields = skill.head.frontmatter
        where = _directory(skill)
        obeys = self._effective_fields(skill)
        return SkillEntry(head, skill.name, skill.description, fields, files, where, obeys)

    async def has_unlisted(self) -> bool:
        """Always False."""
        return False

    async def unlisted(self, uri: str) -> SkillEntry | None:  # noqa: ARG002
        """Always None."""
        return None

    async def read(self, file: SkillResource) -> bytes:
        """Read a file."""
        try:
            return b"".join(one.bytes for one in self._need().read(file.uri))
        except ResourceError as error:
            raise SkillError(error.message) from None

    def _effective_fields(self, skill: Skill) -> frozenset[str]:
        """Return which fields have an effect: those of skills that were given or approved."""
        fields, judge = skill.head.frontmatter or {}, self._judge
        written = ACTING_FIELDS.intersection(fields)
        if not written:
            return written
        folder = os.path.realpath(_directory(skill))
        approved = None if judge is None else judge.approved_fields(folder, fields)
        if approved is not None:
            return written & approved
        if os.path.realpath(skill.root.folder.path) in self._permitting:
            return written
        # An agent can write in its workspace: it would permit itself there what it likes.
        return written - {"allowed-tools"}

    def _with_links(self, roots: Sequence[str]) -> tuple[str, ...]:
        """Add the directories of skills that links in chosen directories lead to, each once."""
        found = list(roots)
        real = {os.path.realpath(root) for root in roots}
        for root in roots:
            if root not in self._chosen:
                continue
            for target in self._links_in(root):
                if not any(target == one or target.startswith(f"{one}/") for one in real):
                    real.add(target)
                    found.append(target)
        return tuple(found)

    def _links_in(self, root: str) -> tuple[str, ...]:
        """Find where the links of a directory lead; searched again when it changed."""
        try:
            changed = os.stat(root).st_mtime_ns  # noqa: PTH116
            known = self._linked.get(root)
            if known is not None and known[0] == changed:
                return known[1]
            with os.scandir(root) as entries:
                links = sorted(entry.path for entry in entries if entry.is_symlink())
        except OSError:
            return ()
        targets = [os.path.realpath(link) for link in links]
        found = tuple([one for one in targets if self._may_follow(one)])
        self._linked[root] = changed, found
        return found

    def _may_follow(self, target: str) -> bool:
        inside = any(target.startswith(f"{one}/") for one in self._within)
        return inside and os.path.isfile(f"{target}/SKILL.md")  # noqa: PTH113

    def _new_provider(self) -> SkillProvider | None:
        """Return the provider of the directories that exist."""
        roots = self._directories
        if self._optional:
            roots = tuple([root for root in roots if os.path.isdir(root)])  # noqa: PTH112
        if self._chosen:
            roots = self._with_links(roots)
        if roots != self._roots:
            self._roots, self._set = roots, None
            self._provider = _provider(roots, self._judge) if roots else None
        return self._provider

    def _need(self) -> SkillProvider:
        if self._provider is None:
            raise SkillError("this machine no longer has skills")
        return self._provider


def _provider(roots: Sequence[str], judge: SkillJudge | None) -> SkillProvider:
    from fast_agent.resources.skill.provider import SkillOptions, SkillProvider

    # Skills written for other programs have fields and names that are not in the specification.
    options = SkillOptions(name_policy="lenient", load_skill=False, judge=judge)
    return SkillProvider(roots, options, report=partial(_report, roots))


def _report(roots: Sequence[str], problem: Diagnostic) -> None:
    """Report what leaves a skill or a file out; the rest is for `fast-agent resources check`."""
    is_warning = problem.severity == "error"
    if problem.code == SKILL_SKIPPED:
        # A link of its directory, which was followed to a root.
        is_warning = os.path.realpath(problem.path) not in map(os.path.realpath, roots)
    line = f":{problem.span.start.line}" if problem.span else ""
    _log.log(
        logging.WARNING if is_warning else logging.DEBUG,
        "%s%s: %s %s",
        problem.path,
        line,
        problem.code,
        problem.message,
    )


def _entry(skill: Skill) -> SkillEntry:
    head = SkillResource(skill.head_uri, skill.head_uri.text)
    fields = skill.head.frontmatter
    return SkillEntry(head, skill.name, skill.description, fields, None, _directory(skill))


def _directory(skill: Skill) -> str:
    return f"{skill.root.folder.path}/{skill.folder}".rstrip("/")


def _is_callable(skill: Skill) -> bool:
    """Whether a user may call it by name."""
    return (skill.head.frontmatter or {}).get("user-invocable") is not False


def _is_usable(skill: Skill) -> bool:
    """Whether a model may load it: not where its author kept it for people."""
    fields = skill.head.frontmatter
    return fields is None or fields.get("disable-model-invocation") is not True
