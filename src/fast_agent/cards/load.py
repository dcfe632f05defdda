"""Loading: paths and addresses become cards, with every problem of every file."""

from __future__ import annotations

import os
import re
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, Protocol

from fast_agent.cards.card import Card, CardLoad, FetchedText, FileLoad, SkippedFile
from fast_agent.cards.card_files import (
    CARD_KEY,
    CARD_SUFFIXES,
    Candidate,
    SkippedPath,
    is_configuration,
    is_markdown,
    is_skill,
    list_directory,
    other_entries,
    stem,
)
from fast_agent.cards.document import FileContent, diagnostic, read_markdown, read_yaml
from fast_agent.cards.fields import FIELD_NAMED, PEER_FIELDS
from fast_agent.cards.records import REQUEST_PARAMS
from fast_agent.cards.validate import Origin, validate_card
from fast_agent.diagnostics import rules
from fast_agent.diagnostics.diagnostic import Diagnostic, RelatedPlace
from fast_agent.errors import FastAgentError, TrustError, os_reason
from fast_agent.schema.explanation import clipped
from fast_agent.text.frozen import frozen
from fast_agent.text.source import MAX_BYTES, Source, SourceError, read_source, signature_at
from fast_agent.text.span import Span
from fast_agent.text.wording import closest

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Mapping, Sequence

    from fast_agent.cards.grant import CardGrant
    from fast_agent.diagnostics.diagnostic import Severity
    from fast_agent.text.source import Signature, SourceReason

__all__ = ["Card", "CardLoad", "FetchedText", "SkippedFile", "load_cards"]

_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+://")
_CARD_KEYS = frozenset({"type", "instruction"})
_OTHER_KEYS = frozenset(
    {*PEER_FIELDS, *(key for one in REQUEST_PARAMS.entries for key in (one.name, one.spelling))}
)
"""Keys that are not card fields, but that an author of cards may expect."""

_SKIPPED = "skipped: "
_MAX_LISTED = 8
"""Entries of a directory without cards that its error names."""

_NAME_LINE = re.compile(r"""^name\s*:\s*["']?([^"'#\n]+?)["']?\s*$""", re.MULTILINE)
_RULE_OF: Mapping[SourceReason, str] = {
    "missing": rules.MISSING_FILE,
    "not-a-file": rules.UNREADABLE_FILE,
    "unreadable": rules.UNREADABLE_FILE,
    "too-large": rules.FILE_TOO_LARGE,
    "encoding": rules.ENCODING,
}


def load_cards(
    paths: Iterable[str | Path | Candidate],
    *,
    environ: Mapping[str, str] | None = None,
    cwd: Path | None = None,
    multi_card: bool = False,
    fetch: Callable[[str], FetchedText] | None = None,
    optional: Collection[str | Path] = (),
    grant: CardGrant | None = None,
    foreign: ForeignPlaces | None = None,
) -> CardLoad:
    """Load cards from files, directories and web addresses.

    A directory gives its card files sorted by name; directories below it are not loaded. One that
    contains no card is an error that names what was skipped. A file that is reached twice is
    loaded once.

    Args:
        paths: Files, directories, or `http(s)://` addresses, in load order; or candidates out of
            `list_directory`, which are then treated as files of a directory.
        environ: The variables for `${NAME}` in local cards, and in remote ones with a grant; those
            of the process when None.
        cwd: The directory relative paths start from; the working directory when None.
        multi_card: Whether a file may hold several cards.
        fetch: Gets the text behind an address; None refuses addresses. It raises a
            `FastAgentError` for whatever goes wrong, sizes and time-outs included.
        optional: Those of the directories that may hold no card: a warning where files in them
            were skipped, else a note.
        grant: What the found set of the cards may do; None where a user named them.
        foreign: Reads the directories of agents of other tools; None reads them like others.

    Returns:
        The cards and all problems. Nothing is raised for a wrong card or a missing file.
    """
    # All files are read before the first is parsed: system calls between cost the caches, and
    # the processor time of a load is a third less without them.
    start = os.getcwd() if cwd is None else os.fspath(cwd)  # noqa: PTH109
    collector = _CardCollector(start, fetch, grant, foreign)
    for path in paths:
        collector.collect(path if isinstance(path, Candidate) else os.fspath(path))
    environ = os.environ if environ is None else environ
    files = [_load(found, environ, multi_card) for found in collector.found]
    lenient = {os.fspath(path) for path in optional}
    for directory in reversed(collector.directories):
        own = files[directory.first : directory.end]
        # A file that another path brought counts for its directory too.
        if not directory.has_known_files and all(file.skipped is not None for file in own):
            problem = _no_cards(directory, own, is_optional=directory.shown in lenient)
            # The problem names these files, so they are not reported again one by one.
            files[directory.first : directory.end] = [
                *(replace(file, diagnostics=()) for file in own),
                FileLoad(diagnostics=(problem,)),
            ]
    return CardLoad.of(files)


def with_variables(file: FileLoad, environ: Mapping[str, str], *, multi_card: bool) -> FileLoad:
    """Read the cards of a file again with the values of variables; the file is not opened again.

    Args:
        file: What the file gave while only the names of variables were known.
        environ: The variables for `${NAME}`.
        multi_card: Whether a file may hold several cards.

    Returns:
        The same where no card of the file has a variable.
    """
    documents = [card.document for card in file.cards if card.document is not None]
    if not any("${" in one.yaml.text for one in documents):
        return file
    config, candidate = file.cards[0].config, file.candidate
    if candidate is not None:
        name = os.path.basename(candidate.path)  # noqa: PTH119
        name = name if name.lower().endswith(CARD_SUFFIXES) else _AS_CARD
        origin = Origin(stem(name), source=config.source, grant=config.grant)
    else:
        name = _name_of(config.remote or "")
        origin = Origin(_unquoted(name), remote=config.remote, grant=config.grant)
    again = _Found(name, origin, candidate, documents[0].source, None, file.signature)
    return _load(again, environ, multi_card)


class _Directory(NamedTuple):
    """A directory that was listed.

    Args:
        path: Where it is.
        shown: Its path as the user named it.
        first: Index of its first file among all that were gathered.
        end: Index behind its last one.
        has_known_files: Whether one of its files was gathered before, by another path.
    """

    path: str
    shown: str
    first: int
    end: int
    has_known_files: bool


class _Found(NamedTuple):
    """A file or address that was read: its text, or its problem.

    Args:
        name: Its file name.
        origin: Where a card in it comes from.
        candidate: The file; None for an address, and for a path that leads to no file.
        source: Its text; None where `problem` says why not.
        problem: Its error, or why it was skipped; None if there is text.
        signature: Its signature before it was read.
        notes: What became of its fields, where it is an agent of another tool.
    """

    name: str
    origin: Origin
    candidate: Candidate | None = None
    source: Source | None = None
    problem: Diagnostic | None = None
    signature: Signature | None = None
    notes: tuple[Diagnostic, ...] = ()

    @property
    def named(self) -> bool:
        """Whether the user named it, not the directory it is in."""
        return self.candidate is None or self.candidate.named


_NOWHERE = Origin(None)
_AS_CARD = "card.md"
"""The file name that a card made of an agent of another tool is read by: it is Markdown."""


@frozen
class ForeignCard:
    """An agent of another tool as a card.

    Args:
        text: The text of the card; None where the file is not one.
        problem: Why it is not.
        notes: What became of the fields of the agent, at their places in its file.
    """

    text: str | None
    problem: Diagnostic | None = None
    notes: tuple[Diagnostic, ...] = ()


class ForeignPlaces(Protocol):
    """Reads the agents of other tools in the directories where these keep them."""

    def files(self, folder: str) -> Sequence[str] | None:
        """Return the files of a directory that may hold agents; None if it is not such a place."""
        ...

    def cards(
        self, folder: str, sources: Mapping[str, Source]
    ) -> Iterable[tuple[str, ForeignCard]]:
        """Return the cards of all files of a directory, each with the path of its file."""
        ...


class _CardCollector:
    """Finds and reads the files behind paths and addresses."""

    def __init__(
        self,
        cwd: str,
        fetch: Callable[[str], FetchedText] | None,
        grant: CardGrant | None,
        foreign: ForeignPlaces | None,
    ) -> None:
        self._cwd = cwd
        self._grant = grant
        self._foreign = foreign
        self._fetch = fetch
        self._seen: set[str] = set()
        self._ends: dict[str, tuple[str, frozenset[str]]] = {}
        self.found: list[_Found] = []
        self.directories: list[_Directory] = []

    def collect(self, shown: str | Candidate) -> None:
        if isinstance(shown, Candidate):
            self._read(shown)
            return
        if _SCHEME.match(shown):
            self._collect_address(shown)
            return
        path = os.path.abspath(os.path.join(self._cwd, shown))  # noqa: PTH100, PTH118 - fast
        name = os.path.basename(path)  # noqa: PTH119
        if os.path.isdir(path):  # noqa: PTH112
            files = None if self._foreign is None else self._foreign.files(path)
            if self._foreign is None or files is None:
                self._collect_directory(path, shown)
            else:
                self._collect_foreign(path, shown, self._foreign, files)
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

    def _collect_address(self, address: str) -> None:
        name = _name_of(address)
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
                final, text = self._fetch(address)
            except FastAgentError as error:
                self._report(rules.REMOTE_FAILED, error.message, address, error.hint)
                return
            if len(text) > MAX_BYTES:
                message = f"it is larger than {MAX_BYTES // 1024:,} KiB"
                self._report(rules.FILE_TOO_LARGE, message, address)
                return
            origin = Origin(_unquoted(name), remote=final, grant=self._grant)
            self.found.append(_Found(name, origin, source=Source.of(final, text)))

    def _collect_directory(self, path: str, shown: str) -> None:
        try:
            candidates = list_directory(path, shown)
        except OSError as error:
            reason = os_reason(error)
            self._report(rules.UNREADABLE_FILE, f"the directory cannot be read: {reason}", shown)
            return
        if self._grant is not None:
            self._ends[path] = os.path.realpath(path), _plain_files(path)
        first = len(self.found)
        for candidate in candidates:
            self._read(candidate)
        end = len(self.found)
        has_known_files = end - first < len(candidates)
        self.directories.append(_Directory(path, shown, first, end, has_known_files))

    def _collect_foreign(
        self, path: str, shown: str, foreign: ForeignPlaces, files: Sequence[str]
    ) -> None:
        """Read the agents of another tool in a directory, as cards that stand in their files."""
        first = len(self.found)
        read: dict[str, _Found] = {}
        for file in files:
            place = os.path.join(shown, os.path.relpath(file, path))  # noqa: PTH118
            self._read(Candidate(file, place, named=False))
            if self.found[first:] and self.found[-1].source is not None:
                read[file] = self.found.pop()
        sources = {file: one.source for file, one in read.items() if one.source is not None}
        for file, card in foreign.cards(path, sources):
            one = read[file]
            own = None if card.text is None else Source(sources[file].path, card.text, is_made=True)
            self.found.append(
                one._replace(name=_AS_CARD, source=own, problem=card.problem, notes=card.notes)
            )
        self.directories.append(_Directory(path, shown, first, len(self.found), False))

    def _read(self, candidate: Candidate) -> None:
        path = candidate.path
        if path in self._seen:
            return
        self._seen.add(path)
        name = os.path.basename(path)  # noqa: PTH119 - fast
        origin = Origin(stem(name), source=Path(path), grant=self._grant)
        source = problem = signature = None
        if self._grant is not None:
            problem = _outside_set_problem(candidate, self._end_of(path), self._grant)
            if problem is not None:
                self.found.append(_Found(name, origin, candidate, None, problem, None))
                return
        if not candidate.named and is_skill(name):
            signature = signature_at(path)
            problem = _skipped_diagnostic(candidate.shown, "a skill, not a card")
        else:
            try:
                source = read_source(path, shown=candidate.shown)
                signature = source.signature
            except SourceError:
                # Looked at again, so that the signature is older than what was found wrong.
                signature = signature_at(path)
                source, problem = _read_again(candidate)
        self.found.append(_Found(name, origin, candidate, source, problem, signature))

    def _end_of(self, path: str) -> str:
        """Return where a path ends; a directory of a thousand cards is looked up once."""
        folder, _, name = path.rpartition(os.sep)
        real, plain = self._ends.get(folder, ("", ()))
        return f"{real}{os.sep}{name}" if name in plain else os.path.realpath(path)

    def _refuse(self, shown: str, message: str, hint: str) -> None:
        self._report(rules.NOT_A_CARD_FILE, message, shown, hint)

    def _report(self, code: str, message: str, shown: str, hint: str | None = None) -> None:
        problem = Diagnostic(code, message, shown, hint=hint)
        self.found.append(_Found("", _NOWHERE, problem=problem))


def _load(found: _Found, environ: Mapping[str, str], multi_card: bool) -> FileLoad:
    """Turn the text of a file into cards."""
    if found.source is not None:
        return _load_text(found, found.source, environ, multi_card)
    problem = found.problem
    if problem is None:
        return FileLoad(found.candidate, found.signature)
    if problem.code in {rules.SKIPPED_FILE, rules.SKIPPED_FOREIGN.code}:
        return _skipped(found, problem)
    unread = () if found.origin.name is None else (found.origin.name,)
    return FileLoad(found.candidate, found.signature, (), (problem,), None, unread)


def _load_text(
    found: _Found,
    source: Source,
    environ: Mapping[str, str],
    multi_card: bool,
) -> FileLoad:
    read = read_markdown if is_markdown(found.name) else read_yaml
    reading: FileContent = read(source, multi_card=multi_card)
    if reading.bare:
        if found.named:
            return FileLoad(found.candidate, found.signature, (), (_bare(source),))
        return _skipped(found, _skipped_diagnostic(source.path, _why_bare(source)))
    if not found.named:
        reason = _why_no_card(found.name, source, reading)
        if reason is not None:
            return _skipped(found, _skipped_diagnostic(source.path, reason))
    unread: tuple[str, ...] = ()
    if not reading.documents:
        written = _NAME_LINE.search(source.text)
        unread = (written[1] if written else stem(found.name),)
    cards: list[Card] = []
    diagnostics = [*found.notes, *reading.diagnostics]
    for document in reading.documents:
        card, problems = validate_card(document, found.origin, environ)
        cards.append(card)
        diagnostics.extend(problems)
    return FileLoad(
        found.candidate, found.signature, tuple(cards), tuple(diagnostics), None, unread
    )


def _skipped(found: _Found, problem: Diagnostic) -> FileLoad:
    skipped = SkippedFile(problem.path, problem.message)
    return FileLoad(found.candidate, found.signature, (), (problem,), skipped)


def _read_again(candidate: Candidate) -> tuple[Source | None, Diagnostic | None]:
    try:
        return read_source(candidate.path, shown=candidate.shown), None
    except SourceError as error:
        return None, _source_problem(error, candidate)


def _plain_files(folder: str) -> frozenset[str]:
    """Name the entries of a directory that are files and no links."""
    try:
        with os.scandir(folder) as entries:
            return frozenset(one.name for one in entries if one.is_file(follow_symlinks=False))
    except OSError:
        return frozenset()


def _outside_set_problem(candidate: Candidate, end: str, grant: CardGrant) -> Diagnostic | None:
    """Judge a file of a found set by where it ends, before it is opened."""
    try:
        grant.check_end(candidate.path, end)
    except TrustError:
        message = f"skipped: it leads out of `{grant.root}`, through a link or by its name"
        return Diagnostic(rules.SKIPPED_FILE, message, candidate.shown, severity="warning")
    return None


def _skipped_diagnostic(shown: str, reason: str) -> Diagnostic:
    return Diagnostic(rules.SKIPPED_FILE, f"{_SKIPPED}{reason}", shown, severity="info")


def _bare(source: Source) -> Diagnostic:
    line = _late_frontmatter(source)
    if line is None:
        hint = "start the file with a line `---`, then fields, then another `---`"
    else:
        hint = f"the `---` on line {line} must be the first line"
    message = "the file has no frontmatter, so it is not a card"
    return diagnostic(source, rules.NO_FRONTMATTER, message, Span.at(1, 1), hint=hint)


def _why_bare(source: Source) -> str:
    line = _late_frontmatter(source)
    if line is None:
        return "no frontmatter"
    return f"its frontmatter starts on line {line}, and must start on line 1"


def _late_frontmatter(source: Source) -> int | None:
    """Find frontmatter below the first line, as under a heading.

    Returns:
        The line of its opening fence; None where no two fences have a key of cards between them.
    """
    lines = source.text.split("\n")
    fences = [number for number, line in enumerate(lines, 1) if line == "---"]
    for opening, closing in pairwise(fences):
        if CARD_KEY.search("\n".join(lines[opening : closing - 1])):
            return opening
    return None


def _no_cards(directory: _Directory, files: Sequence[FileLoad], *, is_optional: bool) -> Diagnostic:
    """Report a directory without a card, with what is in it and why that is not loaded."""
    skipped = [file.skipped for file in files if file.skipped is not None]
    other = other_entries(directory.path, directory.shown)
    passed_over = [
        *other.directories,
        *(SkippedPath(one.path, one.reason.removeprefix(_SKIPPED)) for one in skipped),
        *other.files,
    ]
    related = [
        RelatedPlace(f"{_SKIPPED}{one.reason}", one.path) for one in passed_over[:_MAX_LISTED]
    ]
    if len(passed_over) > _MAX_LISTED:
        more = len(passed_over) - _MAX_LISTED
        related.append(RelatedPlace(f"{_SKIPPED}{more} more", directory.shown))
    if other.directories:
        hint = f"name the directory the cards are in: `{other.directories[0].path}`"
    elif passed_over:
        hint = f"`{passed_over[0].path}` is not a card: {passed_over[0].reason}"
    else:
        hint = "`fast-agent new DIRECTORY` writes a starter set"
    severity: Severity = "error"
    if is_optional:
        severity = "warning" if skipped else "info"
    return Diagnostic(
        rules.NO_CARDS,
        f"the directory `{directory.shown}` holds no cards",
        directory.shown,
        severity=severity,
        hint=hint,
        related=tuple(related),
    )


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


def _why_no_card(name: str, source: Source, reading: FileContent) -> str | None:
    """Return why a file of a directory is not a card; None if it is one.

    A file is a card by `type` or `instruction`. It is one too where every key is a field of cards
    or nearly one (in YAML with a `name` among them), so that a misspelled field is an error and not
    a file that is missing.
    """
    if not reading.documents:
        if is_markdown(name) or CARD_KEY.search(source.text) is not None:
            return None
        return "neither `type` nor `instruction` is in it"
    values = [one.yaml.value for one in reading.documents]
    if any(isinstance(one, dict) and not _CARD_KEYS.isdisjoint(one) for one in values):
        return None
    if not is_markdown(name) and not any(isinstance(one, dict) and "name" in one for one in values):
        return "neither `type` nor `instruction` is in it"
    foreign = [
        key for one in values if isinstance(one, dict) for key in one if not _may_be_field(key)
    ]
    if not foreign:
        return None
    if not is_markdown(name):
        return "neither `type` nor `instruction` is in it"
    return (
        f"`{clipped(foreign[0])}` is not a field of cards, and neither `type` nor `instruction` is"
        " in its frontmatter"
    )


def _may_be_field(key: str) -> bool:
    return key in FIELD_NAMED or key in _OTHER_KEYS or closest(key, FIELD_NAMED) is not None


def _near_file(path: str, shown: str) -> str | None:
    """Find a card file or directory with a name close to a path that does not exist."""
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


def _name_of(address: str) -> str:
    """Return the file name of an address, with its suffix."""
    return re.split("[?#]", address, maxsplit=1)[0].rpartition("/")[2]


def _unquoted(name: str) -> str:
    from urllib.parse import unquote

    return stem(unquote(name))
