"""The list of a guide's documents, kept while they stay the same.

An entry needs the document's frontmatter, which is read when a list is first asked for, and again
when the file has changed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from fast_agent.resources.guide_metadata import Metadata, read_metadata
from fast_agent.resources.media_type import media_type
from fast_agent.resources.resource import Resource
from fast_agent.text.safe_file import RefusedFileError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from fast_agent.diagnostics.diagnostic import Diagnostic
    from fast_agent.resources.folder import Folder
    from fast_agent.resources.guide_config import GuideConfig
    from fast_agent.resources.guide_index import Document, GuideIndex
    from fast_agent.resources.limits import Limits
    from fast_agent.text.json_value import JsonValue
    from fast_agent.text.safe_file import FileStamp

_FEW = 1000
"""Documents that are looked at each time a list is asked for."""

_LOOK_SECONDS = 1.0
"""How often more than that are looked at, unless a directory changes."""

_MARKDOWN = "text/markdown"


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
        self._index: GuideIndex | None = None
        self._entries: Mapping[tuple[str, str], _Entry] = {}
        self._resources: tuple[Resource, ...] | None = None
        self._look_at = 0.0

    def revision(self, index: GuideIndex) -> int:
        """Give a number that grows when the list does not hold any more."""
        if self._resources is not None and not self._holds(index):
            self._revision += 1
            self._resources = None
        return self._revision

    def resources(self, index: GuideIndex) -> Sequence[Resource]:
        """Give the list; the same one until `revision` grows."""
        if self._resources is None:
            entries: dict[tuple[str, str], _Entry] = {}
            for document in index.documents():
                key = document.category, document.name
                entries[key] = self._entry(document, self._entries.get(key))
            self._entries = entries
            self._index = index
            self._resources = tuple(entry.resource for entry in entries.values())
            self._look_at = self._monotonic() + _LOOK_SECONDS
        return self._resources

    def refresh(self, index: GuideIndex) -> bool:
        """Look at every document again.

        Returns:
            Whether the list differs in more than sizes and dates.
        """
        before, known = self._resources, self._index
        if before is None or known is None:
            self._index = index
            return known is not None and known is not index and _keys(known) != _keys(index)
        self._look_at = 0.0
        self.revision(index)
        after = self.resources(index)
        return after is not before and list(map(_named, after)) != list(map(_named, before))

    def titles(self, index: GuideIndex) -> Mapping[Document, str]:
        """Give the titles of the documents that have one."""
        self._look(index)
        return {
            document: entry.resource.title
            for document in index.documents()
            if (entry := self._entries.get((document.category, document.name)))
            and entry.resource.title
        }

    def problems(self, index: GuideIndex) -> list[Diagnostic]:
        """Give what is wrong with the documents' frontmatter."""
        self._look(index)
        return [problem for entry in self._entries.values() for problem in entry.problems]

    def _look(self, index: GuideIndex) -> None:
        self._look_at = 0.0
        self.revision(index)
        self.resources(index)

    def _holds(self, index: GuideIndex) -> bool:
        if self._index is not index and not self._same(index):
            return False
        now = self._monotonic()
        if index.count > _FEW and now < self._look_at:
            return True
        self._look_at = now + _LOOK_SECONDS
        stamp = self._folder.stamp
        entries = self._entries
        return all(
            entries[one.category, one.name].stamp == stamp(one.path) for one in index.documents()
        )

    def _same(self, index: GuideIndex) -> bool:
        """Whether another index has the same documents."""
        if _keys(index) != list(self._entries):
            return False
        self._index = index
        return True

    def _entry(self, document: Document, known: _Entry | None) -> _Entry:
        stamp = self._folder.stamp(document.path) or document.stamp
        if known is not None and known.stamp == stamp:
            return known
        metadata = Metadata()
        mime_type = media_type(document.name)
        trusted = stamp
        if mime_type == _MARKDOWN:
            try:
                found = self._folder.read(document.path, self._limits.file_bytes)
                metadata = read_metadata(found.data, f"{self._config.shown}/{document.path}")
                trusted = found.stamp
            except RefusedFileError:
                pass  # it is listed all the same; a read says why it cannot be read
        return _Entry(trusted, _resource(document, stamp, mime_type, metadata), metadata.problems)


def _keys(index: GuideIndex) -> list[tuple[str, str]]:
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
