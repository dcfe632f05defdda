"""The provider of `guide://`: documents in categories and collections."""

from __future__ import annotations

import time
from functools import partial
from threading import RLock
from typing import TYPE_CHECKING

from fast_agent.errors import ResourceError
from fast_agent.resources.folder import Folder
from fast_agent.resources.guide.index import find, find_exact
from fast_agent.resources.guide.listing import GuideListing
from fast_agent.resources.guide.pattern import (
    CATEGORY,
    CATEGORY_DOCUMENT,
    COLLECTION,
    DOCUMENT,
    HELP,
    MARKDOWN,
    TEMPLATES,
)
from fast_agent.resources.guide.tree import build_index, places
from fast_agent.resources.problem import NotFound, TooLarge, UnavailableResource
from fast_agent.resources.provider import Document as SearchDocument
from fast_agent.resources.resource import DEFAULT_LIMITS, ResourceContent, is_textual, media_type
from fast_agent.resources.session import Change
from fast_agent.text.safe_file import RefusedFileError
from fast_agent.text.wording import plural

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from fast_agent.diagnostics.diagnostic import Diagnostic
    from fast_agent.resources.guide.config import GuideConfig
    from fast_agent.resources.guide.index import Document, GuideIndex
    from fast_agent.resources.multipart import Part
    from fast_agent.resources.resource import Limits, Resource, ResourceTemplate
    from fast_agent.resources.uri import Uri
    from fast_agent.text.safe_file import FileBytes, FileStamp


_SAMPLES = 3
_RECENT_NS = 50_000_000


_FORMS = (
    (HELP.text, "this page"),
    (COLLECTION, "all documents of a collection"),
    (CATEGORY, "all documents of a category"),
    (CATEGORY_DOCUMENT, "a document of a category, or all that a pattern fits"),
    (DOCUMENT, "one document and nothing else; never a pattern"),
)


class GuideProvider:
    """Serves the documents of a guide.

    Nothing is read before it is asked for: the index is made with the first request, frontmatter
    with the first page of a list that shows it. A read of one document checks only that
    document; every other answer looks first whether a directory has changed.

    Args:
        config: The guide's configuration.
        limits: What bounds files, answers and the tree.
        clock: Nanoseconds since 1970, as the file system counts them.
        monotonic: Seconds that only grow.

    Raises:
        RefusedFileError: The docroot is gone.
    """

    def __init__(
        self,
        config: GuideConfig,
        limits: Limits = DEFAULT_LIMITS,
        clock: Callable[[], int] = time.time_ns,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self.config = config
        self._limits = limits
        self._clock = clock
        self._folder = Folder(config.docroot, config.shown)
        self._lock = RLock()
        self._listing = GuideListing(config, self._folder, limits, monotonic, self._lock)
        self._index: GuideIndex | None = None
        self._digests: dict[str, tuple[FileStamp, str]] = {}

    @property
    def scheme(self) -> str:
        """Always `guide`."""
        return "guide"

    @property
    def revision(self) -> int:
        """A number that grows with every change of the tree or of a document that was listed.

        Until a list was asked for there is nothing to differ from, and nothing is checked.
        """
        with self._lock:
            if self._listing.begun:
                self._listing.follow(self._current())
            return self._listing.revision

    def resources(self) -> Mapping[str, Resource]:
        """Every document under its canonical URI, and `guide://help`.

        A document's frontmatter is read when its entry is looked up.
        """
        with self._lock:
            return self._listing.resources(self._current())

    def templates(self) -> Sequence[ResourceTemplate]:
        """The four forms of URI that have arguments."""
        return TEMPLATES

    def read(self, uri: Uri) -> Sequence[ResourceContent]:
        """Read a document, several as one multipart content, or the help page.

        Raises:
            ResourceError: `NotFound`, `AmbiguousName`, `TooLarge` or `UnavailableResource`.
        """
        index = self._index
        document = None if index is None else find_exact(index, uri)
        if document is not None:
            try:
                return (self._content(document, self._read(document)),)
            except RefusedFileError as refusal:
                if not refusal.missing:
                    raise self._problem(document, refusal) from refusal
        index = self._current()
        if uri == HELP:
            return (ResourceContent(HELP, MARKDOWN, text=self._help(index)),)
        documents = find(index, uri)
        if len(documents) > 1:
            return (self._multipart(uri, documents),)
        try:
            return (self._content(documents[0], self._read(documents[0])),)
        except RefusedFileError as refusal:
            raise self._problem(documents[0], refusal) from refusal

    def complete(
        self, template: str, argument: str, value: str, given: Mapping[str, str]
    ) -> Iterable[str]:
        """Complete an argument within those that are given; see `Provider.complete`.

        Raises:
            NotFound: The template has no such argument.
        """
        from fast_agent.resources.guide.index import complete

        return complete(self._current(), template, argument, value, given)

    def documents(self) -> Iterator[SearchDocument]:
        """Every document that is text, under its canonical URI."""
        with self._lock:
            found = list(self._listing.entries(self._current()))
        now = self._clock()
        for document, entry, stamp in found:
            if is_textual(media_type(document.name)):
                yield SearchDocument(
                    entry.uri, entry.title, _search_stamp(stamp, now), partial(self._text, document)
                )

    def places(self) -> Sequence[str]:
        """The directories of the categories; the docroot where one of them is missing."""
        return places(self.config, self._folder.path)

    def fingerprint(self, uri: Uri) -> str:
        """A digest of what a read would answer, of files that changed only."""
        try:
            index = self._current()
            if uri == HELP:
                return _digest(self._help(index).encode())
            documents = find(index, uri)
        except ResourceError:
            return ""
        if len(documents) > self._limits.parts:
            return f"{len(documents)} parts"
        if len(documents) == 1:
            return f"{documents[0].uri} {self._state(documents[0])[1]}"
        states = [f"{one.uri} {self._state(one)}" for one in documents]
        return _digest("\n".join(sorted(states)).encode())

    def refresh(self) -> Change:
        """Scan the tree and every document that was listed; `revision` shows what differs."""
        with self._lock:
            self._listing.follow(self._current(), now=True)
            return Change()

    def diagnostics(self) -> Iterator[Diagnostic]:
        """Find what is doubtful in the tree and in the documents' frontmatter, reading them all."""
        with self._lock:
            index = self._current()
            problems = self._listing.problems(index)
        yield from index.problems
        yield from index.empty()
        yield from problems

    def _help(self, index: GuideIndex) -> str:
        return help_page(index, self._limits)

    def _current(self) -> GuideIndex:
        """The index, rebuilt if a directory has changed."""
        with self._lock:
            index = self._index
            if index is None or not index.is_current():
                index = build_index(self.config, self._folder, self._limits, self._clock)
                self._index = index
            return index

    def _read(self, document: Document) -> FileBytes:
        return self._folder.read(document.path, self._limits.file_bytes)

    def _content(self, document: Document, found: FileBytes) -> ResourceContent:
        return ResourceContent.of_bytes(document.uri, media_type(document.name), found.data)

    def _problem(self, document: Document, refusal: RefusedFileError) -> ResourceError:
        uri = document.uri.text
        if refusal.missing:
            return NotFound(uri, what="document")
        stamp = self._folder.stamp(document.path)
        if stamp is not None and stamp.size > self._limits.file_bytes:
            return TooLarge(uri, stamp.size, self._limits.file_bytes)
        return UnavailableResource(uri, refusal.message)

    def _multipart(self, uri: Uri, documents: Sequence[Document]) -> ResourceContent:
        from fast_agent.resources.multipart import compose

        limits = self._limits
        if len(documents) > limits.parts:
            samples = [one.uri.text for one in sorted(documents)[:_SAMPLES]]
            raise TooLarge(uri.text, len(documents), limits.parts, unit="parts", samples=samples)
        in_order = sorted(documents, key=lambda one: one.uri.text)
        sizes = [0 if stamp is None else stamp.size for stamp in map(self._stamp, in_order)]
        total = sum(size for size in sizes if size <= limits.file_bytes)
        if total > limits.answer_bytes:
            samples = [one.uri.text for one in in_order[:_SAMPLES]]
            raise TooLarge(uri.text, total, limits.answer_bytes, samples=samples)
        composed = compose(uri.text, [self._part(one) for one in in_order], limits)
        return ResourceContent(uri, composed.mime_type, text=composed.data.decode())

    def _part(self, document: Document) -> Part:
        from fast_agent.resources.multipart import Part

        try:
            found = self._read(document)
        except RefusedFileError as refusal:
            problem = self._problem(document, refusal)
            if isinstance(problem, TooLarge):
                reason = f"holds {problem.count} bytes, more than the limit of {problem.limit}"
            else:
                reason = refusal.message
            return Part.failed(document.uri, reason)
        kind = media_type(document.name)
        return Part(document.uri, kind, found.data, self._modified(document, found.stamp))

    def _modified(self, document: Document, stamp: FileStamp) -> float | None:
        if stamp.mtime_ns < 0:  # a recent change, whose stamp is not to be trusted
            now = self._stamp(document)
            return None if now is None else now.mtime_ns / 1e9
        return stamp.mtime_ns / 1e9

    def _stamp(self, document: Document) -> FileStamp | None:
        return self._folder.stamp(document.path)

    def _state(self, document: Document) -> tuple[int, str]:
        """The date and the digest of a document, which is read where it may have changed."""
        stamp = self._stamp(document)
        if stamp is None:
            return 0, ""
        known = self._digests.get(document.path)
        if known is None or known[0] != stamp:
            try:
                found = self._read(document)
                known = found.stamp, _digest(found.data)
            except RefusedFileError as refusal:
                known = stamp, refusal.message
            if len(self._digests) > self._limits.subscriptions:
                self._digests.clear()
            self._digests[document.path] = known
        return stamp.mtime_ns // 1_000_000_000, known[1]

    def _text(self, document: Document) -> str | None:
        try:
            return self._read(document).data.decode()
        except (RefusedFileError, UnicodeDecodeError):
            return None


def _search_stamp(stamp: FileStamp, now: int) -> str:
    """Write a state as text; one that is too recent to be trusted is like no other."""
    unsure = f" {now}" if now - stamp.mtime_ns < _RECENT_NS or stamp.mtime_ns < 0 else ""
    return f"{stamp.inode} {stamp.size} {stamp.mtime_ns}{unsure}"


def _digest(data: bytes) -> str:
    from hashlib import sha256

    return sha256(data).hexdigest()


def help_page(index: GuideIndex, limits: Limits) -> str:
    """Write the page.

    Args:
        index: The current guide.
        limits: What bounds an answer.

    Returns:
        Markdown.
    """
    return "\n".join([*_head(index), *_contents(index), *_names(index), *_answers(limits)]) + "\n"


def _head(index: GuideIndex) -> Iterator[str]:
    documents = plural(index.count, "document")
    categories = plural(len(index.shelves), "category", "categories")
    collections = plural(len(index.config.collections), "collection")
    yield "# How to read this guide"
    yield ""
    yield f"This server holds {documents} in {categories}, and {collections} chosen from them."
    yield ""
    yield "| URI | what it answers |"
    yield "|---|---|"
    for form, answer in _FORMS:
        yield f"| `{form}` | {answer} |"
    yield ""


def _contents(index: GuideIndex) -> Iterator[str]:
    if index.shelves:
        yield "## Categories"
        yield ""
        yield "| URI | documents | about |"
        yield "|---|---|---|"
        for name, shelf in index.shelves.items():
            uri = _uri("category", name)
            count = "too many" if shelf.problem else len(shelf.names)
            yield f"| `{uri}` | {count} | {_cell(shelf.category.description)} |"
        yield ""
    if index.config.collections:
        yield "## Collections"
        yield ""
        yield "| URI | documents | made of | about |"
        yield "|---|---|---|---|"
        for name, collection in index.config.collections.items():
            uri = _uri("collection", name)
            count = "too many" if index.too_large(name) else len(index.collection(name))
            members = ", ".join(f"`{_cell(one.text)}`" for one in collection.members)
            yield f"| `{uri}` | {count} | {members} | {_cell(collection.description)} |"
        yield ""


def _names(index: GuideIndex) -> Iterator[str]:
    yield "## Names and patterns"
    yield ""
    yield "`{docId}` is the path of a document inside its category, folders included. The"
    yield "extension may be left out where that leaves one document. `{context}` is a category or a"
    yield "collection; where both have the name, the category is asked first."
    yield ""
    yield "In a `guide://category/` URI, `{docId}` may hold `*` (anything in one name), `**`"
    yield "(folders too), `?` (one character, written `%3F` since a URI ends its path at `?`) and"
    yield "`[abc]`. A document whose own name is the `{docId}` is in the answer as well."
    yield ""
    document = _example(index)
    if document is not None:
        yield "For example:"
        yield ""
        yield f"- `{document.uri}` is one document."
        stem, dot, extension = document.name.rpartition(".")
        if dot and "/" not in extension and len(index.shelves[document.category].stems(stem)) == 1:
            yield f"- `{_uri('category', document.category, *stem.split('/'))}` is the same one."
            pattern = _uri("category", document.category, "**", f"*.{extension}")
            yield f"- `{pattern}` is every `.{_cell(extension)}` document of its category."
        yield ""


def _answers(limits: Limits) -> Iterator[str]:
    yield "## Answers"
    yield ""
    yield "One document is answered as it is, with its own media type, under its canonical URI,"
    yield "which starts with `guide://document/`."
    yield ""
    yield "Several are answered as one text of the media type `multipart/mixed` (RFC 2046): after"
    yield "the first headers, each document follows a line `--BOUNDARY` with headers of its own, an"
    yield "empty line, and its text. The last line is `--BOUNDARY--`. It can be read as it is, or"
    yield "with any parser of e-mail. The headers of a document:"
    yield ""
    yield "| header | what it says |"
    yield "|---|---|"
    yield "| `Content-Type` | its media type |"
    yield "| `Content-Transfer-Encoding` | `8bit` for text as it is, `base64` for anything else |"
    yield "| `Content-Location` | its canonical URI, which reads this document alone |"
    yield "| `Content-Length` | its size in bytes, before any encoding |"
    yield "| `ETag` | its SHA-256: equal while the document is |"
    yield "| `Last-Modified` | when it last changed |"
    yield "| `X-Resource-Problem` | it could not be read, and why; its text says so too |"
    yield ""
    answer, file = _bytes(limits.answer_bytes), _bytes(limits.file_bytes)
    yield f"An answer holds up to {limits.parts} documents and {answer}, a document up to {file}."
    yield "What is larger is refused as a whole, with its size and a few URIs to start with;"
    yield "nothing is cut."


def _example(index: GuideIndex) -> Document | None:
    """Choose a document for the examples: the first of a plain name, best with an extension."""
    found = [shelf.documents[shelf.names[0]] for shelf in index.shelves.values() if shelf.names]
    return next((one for one in found if "." in one.name), found[0] if found else None)


def _uri(kind: str, *names: str) -> str:
    from fast_agent.resources.uri import Uri

    return Uri.of("guide", (kind, *names)).text


def _cell(text: str | None) -> str:
    """Escape a string for one cell of a table."""
    return " ".join((text or "").split()).replace("|", "\\|").replace("`", "'")


def _bytes(count: int) -> str:
    for size, unit in ((1 << 20, "MiB"), (1 << 10, "KiB")):
        if count >= size and count % size == 0:
            return f"{count // size} {unit}"
    return f"{count} bytes"
