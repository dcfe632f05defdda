"""Loading: paths and addresses become cards, with every problem of every file."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from fast_agent.cards.card import Card
from fast_agent.cards.card_files import (
    CARD_SUFFIXES,
    Candidate,
    is_configuration,
    is_markdown,
    is_skill,
    is_yaml,
    list_directory,
    stem,
)
from fast_agent.cards.document import Reading, read_markdown, read_yaml
from fast_agent.cards.findings import diagnostic
from fast_agent.cards.validate import Origin, validate_card
from fast_agent.diagnostics import card_file_rules as rules
from fast_agent.diagnostics.diagnostic import Diagnostic
from fast_agent.errors import CardError, FastAgentError
from fast_agent.text.source import MAX_BYTES, Source, SourceError, read_source
from fast_agent.text.span import Span
from fast_agent.text.suggestion import closest

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from fast_agent.text.source import SourceReason

__all__ = ["Card", "CardLoad", "Skipped", "load_cards"]

_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+://")
_CARD_KEYS = frozenset({"type", "name", "instruction"})
_CARD_KEY = re.compile(r"""^["']?(?:type|name|instruction)["']?\s*:""", re.MULTILINE)
_NAME_LINE = re.compile(r"""^name\s*:\s*["']?([^"'#\n]+?)["']?\s*$""", re.MULTILINE)
_RULE_OF: Mapping[SourceReason, str] = {
    "missing": rules.MISSING_FILE,
    "not-a-file": rules.UNREADABLE_FILE,
    "unreadable": rules.UNREADABLE_FILE,
    "too-large": rules.FILE_TOO_LARGE,
    "encoding": rules.ENCODING,
}


@dataclass(frozen=True, slots=True)
class Skipped:
    """A file of a directory that was passed over.

    Args:
        path: The file, as the user named it.
        reason: Why, as its diagnostic says it.
    """

    path: str
    reason: str


@dataclass(frozen=True, slots=True)
class CardLoad:
    """What paths gave.

    Args:
        cards: The cards in load order, unsound ones too.
        diagnostics: Every problem of every file, in load order.
        skipped: The files passed over.
        unread: The names that cards in unreadable files would most likely have, so that nobody
            reports references to them as unknown.
    """

    cards: tuple[Card, ...] = ()
    diagnostics: tuple[Diagnostic, ...] = ()
    skipped: tuple[Skipped, ...] = ()
    unread: tuple[str, ...] = ()

    @property
    def failed(self) -> bool:
        """Whether there is an error."""
        return any(found.severity == "error" for found in self.diagnostics)

    def raise_errors(self) -> None:
        """Raise when there is an error.

        Raises:
            CardError: With all diagnostics.
        """
        errors = [found for found in self.diagnostics if found.severity == "error"]
        if errors:
            count = f"{len(errors)} errors in cards" if len(errors) > 1 else errors[0].message
            raise CardError(count, hint=errors[0].hint, diagnostics=self.diagnostics)


def load_cards(
    paths: Iterable[str | Path | Candidate],
    *,
    environ: Mapping[str, str] | None = None,
    cwd: Path | None = None,
    multi_card: bool = False,
    fetch: Callable[[str], str] | None = None,
) -> CardLoad:
    """Load cards from files, directories and web addresses.

    A directory gives its card files sorted by name; directories below it are not looked into. A
    file that is reached twice is loaded once.

    Args:
        paths: Files, directories, or `http(s)://` addresses, in load order; or candidates out of
            `list_directory`, which are then treated as files of a directory.
        environ: The variables for `${NAME}` in local cards; those of the process when None.
        cwd: The directory relative paths start from; the working directory when None.
        multi_card: Whether a file may hold several cards.
        fetch: Gets the text behind an address; None refuses addresses. It raises a
            `FastAgentError` for whatever goes wrong, sizes and time-outs included.

    Returns:
        The cards and all problems. Nothing is raised for a wrong card or a missing file.
    """
    # All files are read before the first is parsed: system calls between cost the caches, and
    # the processor time of a load is a third less without them.
    gathering = _Gathering(os.getcwd() if cwd is None else os.fspath(cwd), fetch)  # noqa: PTH109
    for path in paths:
        gathering.gather(path if isinstance(path, Candidate) else os.fspath(path))
    loading = _Loading(os.environ if environ is None else environ, multi_card=multi_card)
    for found in gathering.found:
        loading.take(found)
    return CardLoad(
        tuple(loading.cards),
        tuple(loading.diagnostics),
        tuple(loading.skipped),
        tuple(loading.unread),
    )


class _Found(NamedTuple):
    """A file or address that was looked at: its text, or what is wrong with it.

    Args:
        name: Its file name.
        origin: Where a card in it comes from.
        named: Whether the user named it, not the directory it is in.
        source: Its text; None where `problem` says why not.
        problem: What is wrong, or why it was passed over; None where there is text.
    """

    name: str
    origin: Origin
    named: bool
    source: Source | None = None
    problem: Diagnostic | None = None


_NOWHERE = Origin(None)


class _Gathering:
    """Finds and reads the files behind paths and addresses."""

    def __init__(self, cwd: str, fetch: Callable[[str], str] | None) -> None:
        self._cwd = cwd
        self._fetch = fetch
        self._seen: set[str] = set()
        self.found: list[_Found] = []

    def gather(self, shown: str | Candidate) -> None:
        if isinstance(shown, Candidate):
            self._read(shown)
            return
        if _SCHEME.match(shown):
            self._gather_address(shown)
            return
        path = os.path.abspath(os.path.join(self._cwd, shown))  # noqa: PTH100, PTH118 - fast
        name = os.path.basename(path)  # noqa: PTH119
        if os.path.isdir(path):  # noqa: PTH112
            self._gather_directory(path, shown)
        elif is_skill(name):
            message = "a `SKILL.md` is a skill, not a card"
            self._refuse(shown, message, "name it in `skills`, or name a card file")
        elif is_configuration(name):
            message = f"`{name}` is a configuration file, not a card"
            self._refuse(shown, message, "it is read without being named")
        elif not name.lower().endswith(CARD_SUFFIXES) and os.path.lexists(path):
            message = f"`{name}` does not have the suffix of a card"
            self._refuse(shown, message, f"card files end in {', '.join(CARD_SUFFIXES)}")
        else:
            self._read(Candidate(path, shown, named=True))

    def _gather_address(self, address: str) -> None:
        name = re.split("[?#]", address, maxsplit=1)[0].rpartition("/")[2]
        if not address.lower().startswith(("http://", "https://")):
            scheme = address.partition(":")[0]
            message = f"cards cannot be loaded by `{scheme}`"
            self._report(rules.REMOTE_FAILED, message, address, "use http:// or https://")
        elif not name.lower().endswith(CARD_SUFFIXES):
            message = "the address does not have the suffix of a card"
            self._refuse(address, message, f"it must end in {', '.join(CARD_SUFFIXES)}")
        elif self._fetch is None:
            message = "cards from web addresses are not loaded here"
            self._report(rules.REMOTE_FAILED, message, address, "save the card and name the file")
        elif address not in self._seen:
            self._seen.add(address)
            try:
                text = self._fetch(address)
            except FastAgentError as error:
                self._report(rules.REMOTE_FAILED, error.message, address, error.hint)
                return
            if len(text) > MAX_BYTES:
                message = f"it is larger than {MAX_BYTES // 1024:,} KiB"
                self._report(rules.FILE_TOO_LARGE, message, address)
                return
            origin = Origin(_unquoted(name), remote=address)
            self.found.append(_Found(name, origin, named=True, source=Source.of(address, text)))

    def _gather_directory(self, path: str, shown: str) -> None:
        try:
            candidates = list_directory(path, shown)
        except OSError as error:
            reason = (error.strerror or "cannot be read").lower()
            self._report(rules.UNREADABLE_FILE, f"the directory cannot be read: {reason}", shown)
            return
        for candidate in candidates:
            self._read(candidate)
        if not candidates:
            message = "the directory holds no cards"
            problem = Diagnostic(rules.NO_CARDS, message, shown, severity="info")
            self.found.append(_Found("", _NOWHERE, named=True, problem=problem))

    def _read(self, candidate: Candidate) -> None:
        path = candidate.path
        if path in self._seen:
            return
        self._seen.add(path)
        name = os.path.basename(path)  # noqa: PTH119 - fast
        origin = Origin(stem(name), source=Path(path))
        if not candidate.named and is_skill(name):
            problem = _passed_over(candidate.shown, "a skill, not a card")
            self.found.append(_Found(name, origin, candidate.named, problem=problem))
            return
        try:
            source = read_source(path, shown=candidate.shown)
        except SourceError as error:
            problem = _source_problem(error, candidate)
            self.found.append(_Found(name, origin, candidate.named, problem=problem))
        else:
            self.found.append(_Found(name, origin, candidate.named, source))

    def _refuse(self, shown: str, message: str, hint: str) -> None:
        self._report(rules.NOT_A_CARD_FILE, message, shown, hint)

    def _report(self, code: str, message: str, shown: str, hint: str | None = None) -> None:
        problem = Diagnostic(code, message, shown, hint=hint)
        self.found.append(_Found("", _NOWHERE, named=True, problem=problem))


class _Loading:
    """Turns texts into cards."""

    def __init__(self, environ: Mapping[str, str], *, multi_card: bool) -> None:
        self._environ = environ
        self._multi_card = multi_card
        self.cards: list[Card] = []
        self.diagnostics: list[Diagnostic] = []
        self.skipped: list[Skipped] = []
        self.unread: list[str] = []

    def take(self, found: _Found) -> None:
        if found.source is not None:
            self._take_text(found, found.source)
        elif found.problem is not None:
            self.diagnostics.append(found.problem)
            if found.problem.code == rules.SKIPPED_FILE:
                self.skipped.append(Skipped(found.problem.path, found.problem.message))
            elif found.origin.name is not None:
                self.unread.append(found.origin.name)

    def _take_text(self, found: _Found, source: Source) -> None:
        read = read_markdown if is_markdown(found.name) else read_yaml
        reading: Reading = read(source, multi_card=self._multi_card)
        if reading.bare:
            if found.named:
                self.diagnostics.append(_bare(source))
            else:
                self._skip(source.path, "no frontmatter")
            return
        if not found.named and is_yaml(found.name) and not _says_card(source, reading):
            self._skip(source.path, "none of `type`, `name` and `instruction` is in it")
            return
        self.diagnostics.extend(reading.diagnostics)
        if not reading.documents:
            written = _NAME_LINE.search(source.text)
            self.unread.append(written[1] if written else stem(found.name))
        for document in reading.documents:
            card, problems = validate_card(document, found.origin, self._environ)
            self.cards.append(card)
            self.diagnostics.extend(problems)

    def _skip(self, shown: str, reason: str) -> None:
        problem = _passed_over(shown, reason)
        self.skipped.append(Skipped(shown, problem.message))
        self.diagnostics.append(problem)


def _passed_over(shown: str, reason: str) -> Diagnostic:
    return Diagnostic(rules.SKIPPED_FILE, f"passed over: {reason}", shown, severity="info")


def _bare(source: Source) -> Diagnostic:
    hint = "begin the file with a line `---`, then fields, then another `---`"
    for number, line in enumerate(source.text.split("\n"), 1):
        if line.strip():
            if line == "---":
                hint = f"the `---` on line {number} must be the first line"
            break
    message = "the file has no frontmatter, so it is no card"
    return diagnostic(source, rules.NO_FRONTMATTER, message, Span.at(1, 1), hint=hint)


def _source_problem(error: SourceError, candidate: Candidate) -> Diagnostic:
    message, hint = error.message, error.hint
    if error.reason == "missing":
        if os.path.islink(candidate.path):  # noqa: PTH114
            message = "the link leads to no file"
        elif near := _near_file(candidate.path, candidate.shown):
            hint = f"did you mean `{near}`?"
    return Diagnostic(
        _RULE_OF[error.reason],
        message,
        candidate.shown,
        error.span,
        hint=hint,
        source_line=error.line,
    )


def _says_card(source: Source, reading: Reading) -> bool:
    """Whether a YAML file of a directory has a key that only a card would have."""
    if not reading.documents:
        return _CARD_KEY.search(source.text) is not None
    return any(
        isinstance(document.yaml.value, dict) and not _CARD_KEYS.isdisjoint(document.yaml.value)
        for document in reading.documents
    )


def _near_file(path: str, shown: str) -> str | None:
    """Find a card file or directory beside a path that does not exist, called much like it."""
    directory, name = os.path.split(path)
    try:
        beside = sorted(os.listdir(directory))  # noqa: PTH208
    except OSError:
        return None
    likely = [
        one for one in beside if one.lower().endswith(CARD_SUFFIXES) or "." not in one.lstrip(".")
    ]
    near = closest(name, likely) or closest(stem(name), {stem(one): one for one in likely})
    if near is None:
        return None
    near = next((one for one in likely if near in {one, stem(one)}), near)
    return os.path.join(os.path.dirname(shown.rstrip("/")), near)  # noqa: PTH118, PTH120


def _unquoted(name: str) -> str:
    from urllib.parse import unquote

    return stem(unquote(name))
