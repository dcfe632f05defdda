"""The linter of skills: everything a server would report, and what to look at before trusting."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fast_agent.diagnostics.diagnostic import Diagnostic
from fast_agent.diagnostics.rules import (
    SKILL_FILE,
    SKILL_LARGE_FILE,
    SKILL_LONG,
    SKILL_ROOT,
    SKILL_SKIPPED,
)
from fast_agent.resources.skill.files import HEAD
from fast_agent.resources.skill.options import DEFAULT_OPTIONS, SkillOptions
from fast_agent.resources.skill.provider import SkillProvider
from fast_agent.resources.skill.suspicion import suspicions
from fast_agent.resources.tokens import estimate
from fast_agent.text.safe_file import RefusedFileError
from fast_agent.text.source import Source, SourceError, decode
from fast_agent.text.span import Position, Span

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

    from fast_agent.diagnostics.rules import Rule
    from fast_agent.resources.skill.files import Listing, SkillRoot

_MOST_LINES = 500
_MOST_TOKENS = 5000
_START = Span(Position(1, 1), Position(1, 1))


def check_skills(
    roots: Iterable[Path | str], options: SkillOptions = DEFAULT_OPTIONS
) -> list[Diagnostic]:
    """Check folders of skills.

    Args:
        roots: Folders that hold skills, or are one; diagnostics name paths as these do.
        options: How they would be served.

    Returns:
        Every problem, by file and place.
    """
    return check_provider(SkillProvider(roots, options, report=_ignore))


def check_provider(provider: SkillProvider) -> list[Diagnostic]:
    """Check the skills of a provider as they are on disk now; the rest is as for `check_skills`."""
    provider.look()
    found = [*provider.skills.problems]
    found += [
        _note(SKILL_SKIPPED, skill.root.place(place), "has a path too long for a URI")
        for skill in provider.skills.skills
        for place in skill.contents.unnamed
    ]
    for root in provider.roots:
        found += _check_root(root, provider.limits.core.file_bytes)
    return sorted(
        dict.fromkeys(found), key=lambda one: (one.path, one.span or _START, one.code, one.message)
    )


def _check_root(root: SkillRoot, most: int) -> Iterator[Diagnostic]:
    if root.problem is None and not root.heads:
        yield Diagnostic(
            SKILL_ROOT,
            "there is no `SKILL.md` in it",
            root.shown,
            severity="warning",
            hint="put each skill into a folder of its own with a `SKILL.md`",
        )
    inside: set[str] = set()
    for listing in root.listings.values():  # parents come before what is in them
        if HEAD in listing.files or listing.path.rpartition("/")[0] in inside:
            inside.add(listing.path)
            yield from _check_folder(root, listing, most)
        yield from _misnamed(root, listing)


def _misnamed(root: SkillRoot, listing: Listing) -> Iterator[Diagnostic]:
    """Find heads that only disks that ignore letter case would find."""
    if HEAD in listing.files:
        return
    for name in listing.files:
        if name.lower() == HEAD.lower():
            yield Diagnostic(
                SKILL_FILE,
                f"a skill's file is called `{HEAD}`, not `{name}`",
                root.place(listing.prefix + name),
                hint=f"rename it to `{HEAD}`",
            )


def _check_folder(root: SkillRoot, listing: Listing, most: int) -> Iterator[Diagnostic]:
    for name in listing.files:
        place = listing.prefix + name
        shown = root.place(place)
        stamp = root.folder.stamp(place)
        if stamp is not None and stamp.size > most:
            message = f"the file has {stamp.size:,} bytes; reads answer {most:,}"
            yield _note(
                SKILL_LARGE_FILE, shown, message, "make it smaller, or name where to get it"
            )
            continue
        try:
            source = Source(shown, decode(root.folder.read(place, most).data))
        except (RefusedFileError, SourceError):
            continue  # not readable or not text: nothing to look for, and a head says so itself
        if name == HEAD:
            yield from _length(source)
        yield from suspicions(source, name)


def _length(source: Source) -> Iterator[Diagnostic]:
    lines, tokens = source.text.count("\n") + 1, estimate(len(source.text))
    if lines > _MOST_LINES or tokens > _MOST_TOKENS:
        message = f"the file has {lines:,} lines, about {tokens:,} tokens"
        hint = "keep the steps here and move details to files beside it"
        yield _note(SKILL_LONG, source.path, message, hint)


def _note(code: Rule, path: str, message: str, hint: str | None = None) -> Diagnostic:
    return Diagnostic(code, message, path, severity=code.severity, hint=hint)


def _ignore(problem: Diagnostic) -> None:
    """Leave a problem to `SkillSet.problems`."""
