"""The list of a guide's documents, kept while they stay the same.

An entry needs the document's frontmatter, which is read when a list is first asked for, and again
when the file has changed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from fast_agent.resources.guide.forms import MARKDOWN
from fast_agent.resources.media_type import media_type
from fast_agent.resources.resource import Resource
from fast_agent.text.safe_file import RefusedFileError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

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


class GuideListing:
    """Keeps the entries of documents; not for several threads at once.

    Args:
        config: The guide's configuration.
        folder: Its docroot.
        limits: What bounds a file.
        monotonic: Seconds that only grow.
    """

    def __init__(
        self,
        config: GuideConfig,
        folder: Folder,
        limits: Limits,
        monotonic: Callable[[], float],
    ) -> None:
        self._config = config
        self._folder = folder
        self._limits = limits
        self._monotonic = monotonic
        self._revision = 1
        self._entries: Mapping[_Key, _Entry] = {}
        self._resources: tuple[Resource, ...] | None = None
        self._known: GuideIndex | None = None
        self._look_at = 0.0

    def revision(self, index: GuideIndex) -> int:
        """Give a number that grows when the list does not hold any more."""
        few = index.count <= _FEW or index is not self._known
        if self._resources is not None and (few or self._monotonic() >= self._look_at):
            self._look(index)
        return self._revision

    def resources(self, index: GuideIndex) -> Sequence[Resource]:
        """Give the list; the same one until `revision` grows."""
        if self._resources is None:
            self._look(index)
        return self._resources or ()

    def refresh(self, index: GuideIndex, *, fresh: bool) -> bool:
        """Look at every document again.

        Args:
            index: The documents there are now.
            fresh: Whether the index was made just now, so that its stamps are the files'.

        Returns:
            Whether the list differs in more than sizes and dates.
        """
        known = self._known
        if self._resources is None:  # nobody has asked for the list
            self._known = index
            return known is not None and known is not index and _keys(known) != _keys(index)
        before = self._entries
        self._look(index, fresh=fresh)
        return _differ(before, self._entries)

    def entries(self, index: GuideIndex) -> Iterator[tuple[Document, Resource, FileStamp]]:
        """Give every document with its entry and its state, as they are now.

        The time of a stamp is negative where the file has only just changed.
        """
        self._look(index)
        entries = self._entries
        for document in index.documents():
            entry = entries[document.category, document.name]
            yield document, entry.resource, entry.stamp

    def problems(self, index: GuideIndex) -> list[Diagnostic]:
        """Give what is wrong with the documents' frontmatter."""
        self._look(index)
        return [problem for entry in self._entries.values() for problem in entry.problems]

    def _look(self, index: GuideIndex, *, fresh: bool = False) -> None:
        """Bring the entries up to date; those that are right stay the same objects."""
        before = self._entries
        stamp_of = self._folder.stamp
        entries: dict[_Key, _Entry] = {}
        same = self._resources is not None
        for document in index.documents():
            key = document.category, document.name
            stamp = document.stamp if fresh else stamp_of(document.path) or document.stamp
            entry = before.get(key)
            if entry is None or entry.stamp != stamp:
                known, entry = entry, self._entry(document, stamp, entry)
                same = same and known is not None and known.resource is entry.resource
            entries[key] = entry
        self._known = index
        self._look_at = self._monotonic() + _LOOK_SECONDS
        self._entries = entries
        if not same or len(entries) != len(before):
            self._revision += self._resources is not None
            self._resources = tuple([entry.resource for entry in entries.values()])

    def _entry(self, document: Document, stamp: FileStamp, known: _Entry | None) -> _Entry:
        """Read a document's frontmatter and make its entry."""
        from fast_agent.resources.guide.metadata import Metadata, read_metadata

        metadata = Metadata()
        mime_type = media_type(document.name)
        trusted = stamp
        if mime_type == MARKDOWN:
            try:
                found = self._folder.read(document.path, self._limits.file_bytes)
                metadata = read_metadata(found.data, f"{self._config.shown}/{document.path}")
                trusted = found.stamp
            except RefusedFileError:
                pass  # it is listed all the same; a read says why it cannot be read
        resource = _resource(document, stamp, mime_type, metadata)
        if known is not None and known.resource == resource:
            resource = known.resource  # the same object, so that the list stays the same
        return _Entry(trusted, resource, metadata.problems)


def _differ(before: Mapping[_Key, _Entry], after: Mapping[_Key, _Entry]) -> bool:
    """Whether two lists differ in more than sizes and dates."""
    return before.keys() != after.keys() or any(
        entry.resource is not before[key].resource
        and _named(entry.resource) != _named(before[key].resource)
        for key, entry in after.items()
    )


def _keys(index: GuideIndex) -> list[_Key]:
    return [(one.category, one.name) for one in index.documents()]


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


def _named(resource: Resource) -> tuple[JsonValue, ...]:
    """What a list tells of a document, without its size and date."""
    annotations = resource.annotations or {}
    return (
        resource.uri.text,
        resource.title,
        resource.description,
        annotations.get("audience"),
        annotations.get("priority"),
        resource.meta,
    )


def _iso(seconds: int) -> str:
    from time import gmtime

    moment = gmtime(seconds)
    return (
        f"{moment.tm_year:04}-{moment.tm_mon:02}-{moment.tm_mday:02}"
        f"T{moment.tm_hour:02}:{moment.tm_min:02}:{moment.tm_sec:02}Z"
    )
