"""The list of a guide's documents: which there are, and what those that were shown say.

An entry needs the document's frontmatter. That is read when a page with the entry is first asked
for, and again when the file has changed; a guide of ten thousand documents is listed by the page.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from time import gmtime
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from fast_agent.diagnostics.diagnostic import Diagnostic
from fast_agent.resources.guide.pattern import HELP_ENTRY, MARKDOWN
from fast_agent.resources.resource import KIND, TAGS, WHY, Resource, media_type
from fast_agent.text.frozen import frozen
from fast_agent.text.safe_file import RefusedFileError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from threading import RLock

    from fast_agent.diagnostics.rules import Rule
    from fast_agent.resources.folder import Folder
    from fast_agent.resources.guide.config import GuideConfig
    from fast_agent.resources.guide.index import Document, GuideIndex
    from fast_agent.resources.resource import Limits
    from fast_agent.text.json_value import JsonObject, JsonValue
    from fast_agent.text.safe_file import FileStamp
    from fast_agent.text.source import Source
    from fast_agent.text.span import Span
    from fast_agent.text.yaml_document import YamlDocument


_FEW = 1000
"""Documents that are checked each time a list is asked for."""

_POLL_SECONDS = 1.0
"""How often further ones are checked, unless a directory changes."""


_Key: TypeAlias = "tuple[str, str]"
"""A document's category and name."""


class _Entry(NamedTuple):
    """A document in the list; `stamp` equals the file's while the entry is right."""

    stamp: FileStamp
    resource: Resource
    problems: tuple[Diagnostic, ...]


class ListedDocuments(Mapping[str, Resource]):
    """The documents of an index by URI, and the help page; an entry is made when looked up."""

    __slots__ = ("_documents", "_entry")

    def __init__(self, index: GuideIndex, entry: Callable[[Document], Resource]) -> None:
        self._documents: dict[str, Document | None] = {HELP_ENTRY.uri.text: None}
        for document in index.documents():
            self._documents[document.uri_text] = document
        self._entry = entry

    def __getitem__(self, uri: str) -> Resource:
        document = self._documents[uri]
        return HELP_ENTRY if document is None else self._entry(document)

    def __iter__(self) -> Iterator[str]:
        return iter(self._documents)

    def __len__(self) -> int:
        return len(self._documents)


class GuideListing:
    """Keeps the entries of documents that were shown; the caller holds the lock.

    Args:
        config: The guide's configuration.
        folder: Its docroot.
        limits: What bounds a file.
        monotonic: Seconds that only grow.
        lock: Held by callers, and here while an entry of a `ListedDocuments` is looked up.
    """

    def __init__(
        self,
        config: GuideConfig,
        folder: Folder,
        limits: Limits,
        monotonic: Callable[[], float],
        lock: RLock,
    ) -> None:
        self._config = config
        self._folder = folder
        self._limits = limits
        self._monotonic = monotonic
        self._lock = lock
        self._entries: dict[_Key, _Entry] = {}
        self._index: GuideIndex | None = None
        self._listed: ListedDocuments | None = None
        self._look_at = 0.0
        self.revision = 1
        """Grows when a list that was given does not hold any more."""

    @property
    def begun(self) -> bool:
        """Whether anybody has asked which documents there are."""
        return self._index is not None

    def resources(self, index: GuideIndex) -> Mapping[str, Resource]:
        """Return the list; the same object until `revision` grows."""
        self._take(index)
        if self._listed is None:
            self._listed = ListedDocuments(index, self._locked_entry)
        return self._listed

    def follow(self, index: GuideIndex, *, now: bool = False) -> None:
        """Notice what differs: the documents there are, and what those that were shown say.

        Args:
            index: The documents there are now.
            now: Whether to check every document listed, however many there are.
        """
        few = len(self._entries) <= _FEW or index is not self._index
        self._take(index)
        if few or now or self._monotonic() >= self._look_at:
            for category, name in tuple(self._entries):
                self._renewed(index.shelves[category].documents[name])
            self._look_at = self._monotonic() + _POLL_SECONDS

    def entries(self, index: GuideIndex) -> Iterator[tuple[Document, Resource, FileStamp]]:
        """Yield every document with its current entry and state.

        The time of a stamp is negative where the file has only just changed.
        """
        self._take(index)
        for document in index.documents():
            entry = self._renewed(document)
            yield document, entry.resource, entry.stamp
        self._look_at = self._monotonic() + _POLL_SECONDS

    def problems(self, index: GuideIndex) -> list[Diagnostic]:
        """Return the problems of the documents' frontmatter."""
        self._take(index)
        return [
            problem
            for document in index.documents()
            for problem in self._renewed(document).problems
        ]

    def _take(self, index: GuideIndex) -> None:
        """Go over to another index."""
        before, self._index = self._index, index
        if before is None or before is index or before.names() == index.names():
            return
        self.revision += 1
        self._listed = None
        shelves = index.shelves
        self._entries = {
            key: entry
            for key, entry in self._entries.items()
            if key[1] in shelves[key[0]].documents
        }

    def _locked_entry(self, document: Document) -> Resource:
        with self._lock:
            key = document.category, document.name
            entry = self._entries.get(key)
            if entry is None:
                entry = self._entries[key] = self._read(document, None)
            return entry.resource

    def _renewed(self, document: Document) -> _Entry:
        """Return the current entry of a document; an unchanged one stays the same object."""
        key = document.category, document.name
        stamp = self._folder.stamp(document.path) or document.stamp
        known = self._entries.get(key)
        if known is not None and known.stamp == stamp:
            return known
        entry = self._read(document, stamp)
        if known is not None:
            if known.resource == entry.resource:
                entry = entry._replace(resource=known.resource)
            else:
                self.revision += 1
                self._listed = None
        self._entries[key] = entry
        return entry

    def _read(self, document: Document, stamp: FileStamp | None) -> _Entry:
        """Read a document's frontmatter and make its entry."""
        metadata = Metadata()
        mime_type = media_type(document.name)
        trusted: FileStamp | None = None
        if mime_type == MARKDOWN:
            try:
                found = self._folder.read(document.path, self._limits.file_bytes)
                metadata = read_metadata(found.data, f"{self._config.shown}/{document.path}")
                trusted = found.stamp
            except RefusedFileError:
                pass  # it is listed all the same; a read says why it cannot be read
        if stamp is None:
            sure = trusted is not None and trusted.mtime_ns >= 0
            stamp = trusted if sure else self._folder.stamp(document.path)
        stamp = stamp or document.stamp
        resource = _resource(document, stamp, mime_type, metadata)
        return _Entry(trusted or stamp, resource, metadata.problems)


def _resource(document: Document, stamp: FileStamp, mime_type: str, metadata: Metadata) -> Resource:
    annotations: dict[str, JsonValue] = {}
    if metadata.audience:
        annotations["audience"] = metadata.audience
    if metadata.priority is not None:
        annotations["priority"] = metadata.priority
    annotations["lastModified"] = _iso(stamp.mtime_ns // 1_000_000_000)
    return Resource(
        document.uri,
        f"{document.category}/{document.name}",
        metadata.title,
        metadata.description,
        mime_type,
        stamp.size,
        annotations,
        dict(metadata.meta) or None,
    )


def _iso(seconds: int) -> str:
    moment = gmtime(seconds)
    return (
        f"{moment.tm_year:04}-{moment.tm_mon:02}-{moment.tm_mday:02}"
        f"T{moment.tm_hour:02}:{moment.tm_min:02}:{moment.tm_sec:02}Z"
    )


AUDIENCES = ("user", "assistant")

_MAX_HEAD_BYTES = 65_536
_HEADING = re.compile(r"\s*#[ \t]+(\S[^\r\n]*)")
_CLOSING = re.compile(r"[ \t]+#+[ \t]*$")
_FENCE = re.compile(r"\ufeff?---[ \t]*\r?\n")


@frozen
class Metadata:
    """What a document says of itself.

    Args:
        title: Its title, or the heading it starts with, or None.
        description: What it holds, or None.
        audience: Whom it is for, of `user` and `assistant`.
        priority: How important it is, from 0 to 1, or None.
        meta: `why`, `type` and `tags`, those that are given, as `_meta` has them.
        problems: What is wrong with the frontmatter.
    """

    title: str | None = None
    description: str | None = None
    audience: tuple[str, ...] = ()
    priority: float | None = None
    meta: tuple[tuple[str, JsonValue], ...] = ()
    problems: tuple[Diagnostic, ...] = ()


def read_metadata(data: bytes, shown: str) -> Metadata:
    """Read what a document says of itself.

    Args:
        data: The document's bytes.
        shown: What diagnostics call it.

    Returns:
        Its metadata; without fields, but with problems, where the frontmatter cannot be read.
    """
    head = data[:_MAX_HEAD_BYTES].decode(errors="replace")
    if _FENCE.match(head) is None:
        return Metadata(title=_heading(head.removeprefix("\ufeff")))
    return _frontmatter(head, shown)


def _frontmatter(head: str, shown: str) -> Metadata:
    from fast_agent.text.frontmatter import FrontmatterError, split_frontmatter
    from fast_agent.text.source import Source
    from fast_agent.text.yaml_document import YamlError, parse_yaml

    source = Source.of(shown, head)
    try:
        parts = split_frontmatter(source)
    except FrontmatterError as error:
        return Metadata(problems=(_broken(source, error.message, error.span, error.hint),))
    if parts is None:
        return Metadata(title=_heading(source.text))
    title = _heading(parts.body)
    try:
        document = parse_yaml(parts.text, first_line=parts.first_line)
    except YamlError as error:
        problems = tuple(_broken(source, one.message, one.span, one.hint) for one in error.problems)
        return Metadata(title=title, problems=problems)
    if document.value is None:
        return Metadata(title=title)
    if not isinstance(document.value, Mapping):
        message = "it is not a mapping of fields"
        problem = _broken(source, message, document.span_of(()), "write `title: …` lines")
        return Metadata(title=title, problems=(problem,))
    return _Fields(source, document, document.value).metadata(title)


def _broken(source: Source, reason: str, span: Span, hint: str | None) -> Diagnostic:
    from fast_agent.diagnostics.rules import BROKEN_GUIDE_FRONTMATTER

    message = f"the frontmatter cannot be read: {reason}"
    return _diagnostic(source, BROKEN_GUIDE_FRONTMATTER, message, span, hint)


def _diagnostic(
    source: Source, rule: Rule, message: str, span: Span, hint: str | None
) -> Diagnostic:
    line = source.line(span.start.line)
    return Diagnostic(rule.code, message, source.path, span, rule.severity, hint, source_line=line)


class _Fields:
    """The fields of one frontmatter, under way."""

    def __init__(self, source: Source, document: YamlDocument, fields: JsonObject) -> None:
        self._source = source
        self._document = document
        self._fields = fields
        self._problems: list[Diagnostic] = []

    def metadata(self, heading: str | None) -> Metadata:
        meta: dict[str, JsonValue] = {WHY: self._text("why"), KIND: self._text("type")}
        meta[TAGS] = self._texts("tags")
        return Metadata(
            self._text("title") or heading,
            self._text("description"),
            self._audience(),
            self._priority(),
            tuple((key, value) for key, value in meta.items() if value),
            tuple(self._problems),
        )

    def _text(self, key: str) -> str | None:
        value = self._fields.get(key)
        if value is None:
            return None
        if isinstance(value, str):
            return value.strip() or None
        self._add_problem(
            f"`{key}` is not a string", key, "put it in quotes if it is meant as text"
        )
        return None

    def _texts(self, key: str) -> tuple[str, ...]:
        value = self._fields.get(key)
        if value is None:
            return ()
        given = (value,) if isinstance(value, str) else value
        if isinstance(given, Sequence):
            texts = tuple(one for one in given if isinstance(one, str))
            if len(texts) == len(given):
                return texts
        self._add_problem(
            f"`{key}` is not a list of strings", key, f"write `{key}: [one, another]`"
        )
        return ()

    def _audience(self) -> tuple[str, ...]:
        named = self._texts("audience")
        wrong = [one for one in named if one not in AUDIENCES]
        if wrong:
            message = f"`audience` holds `{wrong[0][:60]}`, which clients do not know"
            self._add_problem(message, "audience", "write `user`, `assistant`, or both in a list")
        return tuple(one for one in AUDIENCES if one in named)

    def _priority(self) -> float | None:
        value = self._fields.get("priority")
        if value is None:
            return None
        if isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value <= 1:
            return value
        message = "`priority` is not a number from 0 to 1"
        self._add_problem(
            message, "priority", "write 1 for the most important documents, 0 for the least"
        )
        return None

    def _add_problem(self, message: str, key: str, hint: str) -> None:
        from fast_agent.diagnostics.rules import WRONG_GUIDE_METADATA

        span = self._document.span_of((key,))
        self._problems.append(_diagnostic(self._source, WRONG_GUIDE_METADATA, message, span, hint))


def _heading(body: str) -> str | None:
    """Return the heading a document starts with, if it starts with one."""
    found = _HEADING.match(body)
    return None if found is None else _CLOSING.sub("", found[1]).strip() or None
