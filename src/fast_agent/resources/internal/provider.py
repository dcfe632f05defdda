"""`internal://`: the documents that come with the program, by the manifest that lists them.

The manifest and the documents are made by `docs/generate.py`. Nothing that is not in the manifest
can be read, and nothing can be written.
"""

from __future__ import annotations

import json
from functools import cached_property
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Final, cast

from fast_agent.errors import ResourceError
from fast_agent.resources.problem import NotFound, UnavailableResource
from fast_agent.resources.provider import Document
from fast_agent.resources.resource import (
    TAGS,
    TOKENS,
    WHY,
    Resource,
    ResourceContent,
    ResourceTemplate,
)
from fast_agent.resources.session import Change
from fast_agent.resources.uri import Uri
from fast_agent.text.frozen import frozen
from fast_agent.text.safe_file import RefusedFileError, confined_parts
from fast_agent.text.wording import closest

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from fast_agent.text.json_value import JsonObject, JsonValue

SCHEME: Final = "internal"
AUTHORITY: Final = "fast-agent"
SKILL_TAG: Final = "skill"
"""The tag of single skills, which an index leaves to the list of skills."""

_PLACE = Path(__file__).with_name("documents")
_MANIFEST = "manifest.json"
_MANIFEST_VERSION = 1
_SKILL_TEMPLATE = f"{SCHEME}://{AUTHORITY}/skills/{{name}}/SKILL.md"


@frozen
class InternalDocument:
    """An entry of the manifest.

    Args:
        uri: What it is read by.
        title: What people call it.
        description: What it holds.
        why: When to read it.
        mime_type: Its media type.
        source: Its file, relative to the manifest.
        tags: Words it is found by.
        size: Its bytes.
        tokens: About how many tokens reading it takes.
    """

    uri: Uri
    title: str
    description: str
    why: str
    mime_type: str
    source: str
    tags: tuple[str, ...]
    size: int
    tokens: int

    @property
    def id(self) -> str:
        """What `{{internal:ID}}` calls it: its URI without scheme and authority."""
        return "/".join(self.uri.segments[1:])

    @property
    def resource(self) -> Resource:
        """Its entry in a list of resources."""
        meta: JsonObject = {WHY: self.why, TOKENS: self.tokens, TAGS: list(self.tags)}
        return Resource(
            uri=self.uri,
            name=self.id,
            title=self.title,
            description=self.description,
            mime_type=self.mime_type,
            size=self.size,
            meta=meta,
        )


def read_manifest(text: str) -> tuple[InternalDocument, ...]:
    """Read a manifest, with everything checked.

    Args:
        text: JSON: `{"version": 1, "resources": […]}`, the fields of `InternalDocument` in each.

    Returns:
        The documents, by URI.

    Raises:
        ResourceError: It is not of that form, or two documents have one URI.
    """
    try:
        whole: JsonValue = json.loads(text)
    except ValueError as error:
        raise ResourceError(f"the manifest is not JSON: {error}") from None
    entries = whole.get("resources") if isinstance(whole, dict) else None
    if not isinstance(whole, dict) or not isinstance(entries, list):
        raise ResourceError("the manifest is not an object with a list `resources`")
    if whole.get("version") != _MANIFEST_VERSION:
        raise ResourceError(f"the manifest is not of version {_MANIFEST_VERSION}")
    found: dict[str, InternalDocument] = {}
    for number, entry in enumerate(entries):
        document = _document(entry, f"entry {number} of the manifest")
        if found.setdefault(document.uri.text, document) is not document:
            raise ResourceError(f"`{document.uri}` is in the manifest twice")
    return tuple(found[uri] for uri in sorted(found))


def _document(entry: JsonValue, where: str) -> InternalDocument:
    if not isinstance(entry, dict):
        raise ResourceError(f"{where} is not an object")
    uri = Uri.parse(_text(entry, "uri", where))
    if uri.scheme != SCHEME or uri.segments[0] != AUTHORITY or len(uri.segments) == 1:
        raise ResourceError(f"{where}: `{uri}` does not start with `{SCHEME}://{AUTHORITY}/`")
    tags = entry.get("tags", [])
    if not isinstance(tags, list) or not all(isinstance(tag, str) for tag in tags):
        raise ResourceError(f"{where} has `tags` that are not a list of strings")
    source = _text(entry, "source", where)
    try:
        confined_parts(source)
    except RefusedFileError as error:
        raise ResourceError(f"{where}: the file `{source}` {error.message}") from None
    return InternalDocument(
        uri=uri,
        title=_text(entry, "title", where),
        description=_text(entry, "description", where),
        why=_text(entry, "why", where),
        mime_type=_text(entry, "mime_type", where),
        source=source,
        tags=tuple(cast("list[str]", tags)),
        size=_count(entry, "size", where),
        tokens=_count(entry, "tokens", where),
    )


def _text(entry: JsonObject, name: str, where: str) -> str:
    value = entry.get(name)
    if not isinstance(value, str) or not value.strip():
        raise ResourceError(f"{where} has no text `{name}`")
    return value


def _count(entry: JsonObject, name: str, where: str) -> int:
    value = entry.get(name)
    if not isinstance(value, int) or isinstance(value, bool) or value < 0:
        raise ResourceError(f"{where} has no number `{name}`")
    return value


class InternalProvider:
    """The packaged documents as resources.

    Args:
        place: The directory of the manifest and the documents; another one than the package's own
            is for tests.
    """

    def __init__(self, place: Path = _PLACE) -> None:
        self._place = place

    @property
    def scheme(self) -> str:
        """Always `internal`."""
        return SCHEME

    @property
    def revision(self) -> int:
        """Always 0: what is packaged does not change."""
        return 0

    @cached_property
    def by_uri(self) -> Mapping[str, InternalDocument]:
        """The documents by URI, sorted.

        Raises:
            Unavailable: The manifest is not there.
            ResourceError: It is wrong.
        """
        text = self._text(_MANIFEST, f"{SCHEME}://{AUTHORITY}", None)
        return MappingProxyType({one.uri.text: one for one in read_manifest(text)})

    @property
    def index(self) -> tuple[InternalDocument, ...]:
        """What a prompt lists: everything but single skills."""
        return tuple([one for one in self.by_uri.values() if SKILL_TAG not in one.tags])

    def find(self, document_id: str) -> InternalDocument:
        """Find a document by its id; `_` and `-` are the same, and so is letter case.

        Raises:
            NotFound: There is none.
        """
        wanted = _folded(document_id)
        ids = {one.id: one for one in self.by_uri.values()}
        for name, document in ids.items():
            if _folded(name) == wanted:
                return document
        near = closest(document_id, ids)
        raise NotFound(document_id, [near] if near else sorted(ids), what="internal document")

    def text_of(self, document: InternalDocument) -> str:
        """Read a document.

        Raises:
            Unavailable: Its file is not there, or is another one than the manifest says.
        """
        return self._text(document.source, document.uri.text, document.size)

    def resources(self) -> Mapping[str, Resource]:
        """Every document, the same values each time."""
        return self._resources

    @cached_property
    def _resources(self) -> Mapping[str, Resource]:
        return {uri: one.resource for uri, one in self.by_uri.items()}

    def templates(self) -> Sequence[ResourceTemplate]:
        """The template of skills."""
        return (
            ResourceTemplate(
                template=_SKILL_TEMPLATE,
                name="skill",
                title="Packaged skill",
                description="A skill that comes with the program.",
                mime_type="text/markdown",
            ),
        )

    def read(self, uri: Uri) -> Sequence[ResourceContent]:
        """Read a document of the manifest; see `Provider.read`."""
        document = self.by_uri.get(uri.text)
        if document is None:
            near = closest(uri.path, {one.uri.path: None for one in self.by_uri.values()})
            close = [f"{SCHEME}://{near}"] if near else [one.uri.text for one in self.index]
            raise NotFound(uri.text, close)
        return (ResourceContent(uri, document.mime_type, text=self.text_of(document)),)

    def complete(
        self, template: str, argument: str, value: str, given: Mapping[str, str]
    ) -> Iterable[str]:
        """Complete the name of a skill."""
        del given
        if template != _SKILL_TEMPLATE or argument != "name":
            raise NotFound(argument, ("name",), what="argument")
        names = [one.uri.segments[2] for one in self.by_uri.values() if SKILL_TAG in one.tags]
        return [name for name in names if name.startswith(value)]

    def documents(self) -> Iterable[Document]:
        """Every document, for search."""
        for one in self.by_uri.values():
            yield Document(one.uri, one.title, str(one.size), lambda one=one: self.text_of(one))

    def places(self) -> Sequence[str]:
        """None: what is packaged is fixed."""
        return ()

    def fingerprint(self, uri: Uri) -> str:
        """Distinguish an existing document from a missing one; a document does not change."""
        document = self.by_uri.get(uri.text)
        return "" if document is None else str(document.size)

    def refresh(self) -> Change:
        """Find that nothing changed."""
        return Change()

    def _text(self, source: str, uri: str, size: int | None) -> str:
        # Some installers make every packaged file a link, so these are followed: what is read is
        # named by the package itself.
        try:
            data = (self._place / source).read_bytes()
            text = data.decode()
        except (OSError, UnicodeDecodeError):
            raise UnavailableResource(uri, "is missing from this installation") from None
        if size is not None and len(data) != size:
            raise UnavailableResource(uri, "was changed in this installation")
        return text


def _folded(document_id: str) -> str:
    return document_id.replace("_", "-").casefold()
