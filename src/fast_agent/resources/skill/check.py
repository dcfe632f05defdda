"""The linter of skills: everything a server would report, and what to check before trusting."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from fast_agent.diagnostics.diagnostic import Diagnostic
from fast_agent.diagnostics.rules import (
    SKILL_COMMENT,
    SKILL_FILE,
    SKILL_HIDDEN,
    SKILL_LARGE_FILE,
    SKILL_LONG,
    SKILL_RISKY,
    SKILL_ROOT,
    SKILL_SKIPPED,
)
from fast_agent.resources.resource import estimate
from fast_agent.resources.skill.files import HEAD
from fast_agent.text.frontmatter import unfenced_lines
from fast_agent.text.safe_file import RefusedFileError
from fast_agent.text.source import Source, SourceError, decode
from fast_agent.text.span import Position, Span

if TYPE_CHECKING:
    from collections.abc import Iterator

    from fast_agent.diagnostics.rules import Rule
    from fast_agent.resources.skill.files import Listing, SkillRoot
    from fast_agent.resources.skill.provider import SkillProvider

_MAX_LINES = 500
_MAX_TOKENS = 5000
_START = Span(Position(1, 1), Position(1, 1))


def check_provider(provider: SkillProvider) -> list[Diagnostic]:
    """Check a provider's skills in their current state on disk.

    Returns:
        Every problem, by file and place.
    """
    provider.scan()
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
            hint="put each skill into its own folder with a `SKILL.md`",
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
            continue  # not readable or not text: nothing to scan, and a head reports that itself
        if name == HEAD:
            yield from _length(source)
        yield from suspicions(source, name)


def _length(source: Source) -> Iterator[Diagnostic]:
    lines, tokens = source.text.count("\n") + 1, estimate(len(source.text))
    if lines > _MAX_LINES or tokens > _MAX_TOKENS:
        message = f"the file has {lines:,} lines, about {tokens:,} tokens"
        hint = "keep the steps here and move details to files next to it"
        yield _note(SKILL_LONG, source.path, message, hint)


def _note(code: Rule, path: str, message: str, hint: str | None = None) -> Diagnostic:
    return Diagnostic(code, message, path, severity=code.severity, hint=hint)


_TAGS = re.compile("[\U000e0000-\U000e007f]+")
_FLAG = "\U0001f3f4"
_DIRECTION = re.compile("[\u202a-\u202e\u2066-\u2069]")
_NO_WIDTH = re.compile(
    "[\u200b\u2060-\u2064\ufeff]|(?<=[\x21-\u024f])[\u200c\u200d\u200e\u200f\u00ad]"
)
_MARKDOWN = (".md", ".markdown", ".mdx")
_PIPED = re.compile(
    r"\b(?:curl|wget|fetch|iwr|Invoke-WebRequest)\b[^|;&\n]*\|\s*(?:sudo\s+(?:-\S+\s+)*)?"
    r"(?:env\s+)?(?:ba|z|da|k|fi)?sh\b"
    r"|\b(?:curl|wget)\b[^|;&\n]*\|\s*(?:sudo\s+)?(?:python[0-9.]*|perl|ruby|node)\b"
    r"|\b(?:ba|z)?sh\s+(?:-c\s+)?[\"']?(?:<\(|\$\()\s*(?:curl|wget)\b"
    r"|\biex\b[^\n]*\b(?:iwr|irm|Invoke-WebRequest|Invoke-RestMethod|DownloadString)\b"
    r"|\b(?:iwr|irm|Invoke-WebRequest|Invoke-RestMethod)\b[^|\n]*\|\s*iex\b",
    re.IGNORECASE,
)
_RUN_ON_LOAD = re.compile(r"(?:^|(?<=[\s(>|]))!`[^`\n]+`")
_HOOKS = re.compile(r"^hooks[ \t]*:", re.MULTILINE)
_INSTALL = re.compile(r'"(?:pre|post)?install"\s*:\s*"')


def suspicions(source: Source, name: str) -> Iterator[Diagnostic]:
    """Scan the text of a skill.

    Args:
        source: The text.
        name: The file's name.

    Yields:
        One diagnostic for each kind of thing, at the first place it is found.
    """
    if not source.text.isascii():
        yield from _hidden(source)
    if name.lower().endswith(_MARKDOWN):
        yield from _comments(source)
    yield from _risky(source, name)


def _hidden(source: Source) -> Iterator[Diagnostic]:
    text = source.text
    kinds = (
        ("tag characters, which spell invisible text", _tags(text)),
        ("marks that turn the direction of writing", _spans_of(_DIRECTION, text)),
        ("characters of no width", _spans_of(_NO_WIDTH, text)),
    )
    for what, found in kinds:
        if found:
            start, end = found[0]
            codes = ", ".join(f"U+{ord(one):04X}" for one in dict.fromkeys(text[start:end]))
            count = f" and {len(found) - 1} more" if len(found) > 1 else ""
            message = f"the text holds {what}: {codes[:60]}{count}"
            yield _diagnostic_at(SKILL_HIDDEN, source, start, end, message, "remove them")


def _spans_of(pattern: re.Pattern[str], text: str) -> list[tuple[int, int]]:
    return [match.span() for match in pattern.finditer(text)]


def _tags(text: str) -> list[tuple[int, int]]:
    """Find tag characters that are not those of a flag."""
    return [
        (start, end) for start, end in _spans_of(_TAGS, text) if text[start - 1 : start] != _FLAG
    ]


def _comments(source: Source) -> Iterator[Diagnostic]:
    if "<!--" not in source.text:
        return
    for number, line in unfenced_lines(source.text):
        at = line.find("<!--")
        if at >= 0 and line.count("`", 0, at) % 2 == 0:
            yield Diagnostic(
                SKILL_COMMENT,
                "an HTML comment: people who read the rendered text do not see it",
                source.path,
                Span.at(number, at + 1, 4),
                SKILL_COMMENT.severity,
                "remove it, or say it in the text",
                source_line=line,
            )
            return


def _risky(source: Source, name: str) -> Iterator[Diagnostic]:
    text = source.text
    if match := _PIPED.search(text):
        message = "what the network answers is run as a program"
        hint = "install a pinned package, or ship the script with the skill"
        yield _diagnostic_at(SKILL_RISKY, source, *match.span(), message, hint)
    if name == HEAD:
        head, _, body = text.partition("\n---")
        if match := _HOOKS.search(head):
            message = "`hooks` may run commands on the machine that loads the skill"
            yield _diagnostic_at(
                SKILL_RISKY, source, *match.span(), message, "read every command in it"
            )
        if match := _RUN_ON_LOAD.search(body):
            offset = len(text) - len(body)
            message = "some hosts run this command when the skill is loaded"
            start, end = match.start() + offset, match.end() + offset
            yield _diagnostic_at(
                SKILL_RISKY, source, start, end, message, "ask for the command in words"
            )
    elif name == "conftest.py":
        message = "pytest runs this file in any folder it is found in"
        yield _diagnostic_at(SKILL_RISKY, source, 0, 1, message, "read it, or give it another name")
    elif name == "package.json" and (match := _INSTALL.search(text)):
        message = "package managers run this when the package is installed"
        yield _diagnostic_at(SKILL_RISKY, source, *match.span(), message, "read the command")


def _diagnostic_at(
    code: Rule, source: Source, start: int, end: int, message: str, hint: str
) -> Diagnostic:
    first = source.position(start)
    width = max(1, min(end, len(source.text)) - start)
    line = source.line(first.line)
    span = Span.at(first.line, first.column, min(width, max(1, len(line) - first.column + 1)))
    return Diagnostic(code, message, source.path, span, code.severity, hint, source_line=line)
