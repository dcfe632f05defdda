"""The list of a guide's documents: which there are, and what those that were shown say.

An entry needs the document's frontmatter. That is read when a page with the entry is first asked
for, and again when the file has changed; a guide of ten thousand documents is listed by the page.
"""

from __future__ import annotations

from collections.abc import Mapping
from time import gmtime
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from fast_agent.resources.guide.forms import HELP_ENTRY, MARKDOWN
from fast_agent.resources.media_type import media_type
from fast_agent.resources.resource import Resource
from fast_agent.text.safe_file import RefusedFileError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from threading import RLock

    from fast_agent.diagnostics.diagnostic import Diagnostic
    from fast_agent.resources.folder import Folder
    from fast_agent.resources.guide.config import GuideConfig
    from fast_agent.resources.guide.index import Document, GuideIndex
    from fast_agent.resources.guide.metadata import Metadata
    from fast_agent.resources.limits import Limits
    from fast_agent.text.json_value import JsonValue
    from fast_agent.text.safe_file import FileStamp

_FEW = 1000
"""Documents that are looked at each time a list is asked for."""

_LOOK_SECONDS = 1.0
"""How often more than that are looked at, unless a directory changes."""


_Key: TypeAlias = "tuple[str, str]"
"""A document's category and name."""


class _Entry(NamedTuple):
    """A document in the list; `stamp` equals the file's while the entry is right."""

    stamp: FileStamp
    resource: Resource
    problems: tuple[Diagnostic, ...]


class Listed(Mapping[str, Resource]):
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
        lock: Held by callers, and here while an entry of a `Listed` is looked up.
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
        self._listed: Listed | None = None
        self._look_at = 0.0
        self.revision = 1
        """Grows when a list that was given does not hold any more."""

    @property
    def begun(self) -> bool:
        """Whether anybody has asked which documents there are."""
        return self._index is not None

    def resources(self, index: GuideIndex) -> Mapping[str, Resource]:
        """Give the list; the same one until `revision` grows."""
        self._take(index)
        if self._listed is None:
            self._listed = Listed(index, self._locked_entry)
        return self._listed

    def follow(self, index: GuideIndex, *, now: bool = False) -> None:
        """Notice what differs: the documents there are, and what those that were shown say.

        Args:
            index: The documents there are now.
            now: Whether to look at all that were shown, however many they are.
        """
        few = len(self._entries) <= _FEW or index is not self._index
        self._take(index)
        if few or now or self._monotonic() >= self._look_at:
            for category, name in tuple(self._entries):
                self._renewed(index.shelves[category].documents[name])
            self._look_at = self._monotonic() + _LOOK_SECONDS

    def entries(self, index: GuideIndex) -> Iterator[tuple[Document, Resource, FileStamp]]:
        """Give every document with its entry and its state, as they are now.

        The time of a stamp is negative where the file has only just changed.
        """
        self._take(index)
        for document in index.documents():
            entry = self._renewed(document)
            yield document, entry.resource, entry.stamp
        self._look_at = self._monotonic() + _LOOK_SECONDS

    def problems(self, index: GuideIndex) -> list[Diagnostic]:
        """Give what is wrong with the documents' frontmatter."""
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
        """Give the entry of a document as it is now; one that is right stays the same object."""
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
        from fast_agent.resources.guide.metadata import Metadata, read_metadata

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
