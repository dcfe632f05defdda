"""Tools that let an agent look documents up: `resource_list`, `resource_read`, `resource_search`.

Answers are bounded and say how to get the rest; what goes wrong says what to try.
"""

from __future__ import annotations

from base64 import b64encode
from typing import TYPE_CHECKING, Final, TypeAlias

from fast_agent.errors import ResourceError, ToolError
from fast_agent.messages.message import ImageContent, TextContent, ToolResult
from fast_agent.models.model import ToolSpec
from fast_agent.resources.catalog import page
from fast_agent.resources.problem import NotFound
from fast_agent.resources.resource import TOKENS, WHY, estimate
from fast_agent.resources.search import SearchIndex
from fast_agent.resources.sections import excerpt, sections
from fast_agent.text.frozen import frozen
from fast_agent.tools.result import said
from fast_agent.tools.tool import RuntimeTool, ToolArguments, object_schema
from fast_agent.tools.worker_threads import WorkerThreads

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from fast_agent.messages.message import Content, ToolCall
    from fast_agent.resources.catalog import Catalog
    from fast_agent.resources.resource import Resource, ResourceContent
    from fast_agent.text.json_value import JsonValue
    from fast_agent.tools.tool import ToolContext

LIST: Final = "resource_list"
READ: Final = "resource_read"
SEARCH: Final = "resource_search"

PAGE = 50
"""Most resources of one list."""

DEFAULT_CHARACTERS = 20_000
"""Most characters of one read, unless it says otherwise."""

MAX_CHARACTERS = 100_000
"""The most it may say."""

HITS = 8
_MAX_SECTIONS = 40
_MAX_LINE = 300

_LIST_SPEC = ToolSpec(
    LIST,
    "List documents that can be read, with their size in tokens, what they hold and when to read"
    " them.",
    object_schema(
        scheme=("string", "only this scheme, such as `internal`"),
        prefix=("string", "only URIs that start with this"),
        cursor=("string", "where to continue, as a longer list says"),
    ),
)
_READ_SPEC = ToolSpec(
    READ,
    "Read a document by its URI, whole or one section of it. Long ones come in pieces.",
    object_schema(
        uri=("string", "the document"),
        section=(
            "string",
            "a heading, to read only what is below it; `A > B` where B is not alone",
        ),
        offset=("integer", "characters to skip, to continue a long document"),
        max_chars=("integer", f"most characters of the answer, {DEFAULT_CHARACTERS} unless given"),
        required=("uri",),
    ),
)
_SEARCH_SPEC = ToolSpec(
    SEARCH,
    "Search the documents. Gives the sections that fit best; read them by URI and section.",
    object_schema(query=("string", "words to search for"), required=("query",)),
)

Work: TypeAlias = "Callable[[ToolArguments], tuple[Content, ...]]"


@frozen
class ResourceTool(RuntimeTool):
    """One of the tools.

    Args:
        spec: How the model sees it.
        work: Does the work; runs in a thread.
        threads: The threads.
    """

    spec: ToolSpec
    work: Work
    threads: WorkerThreads

    @property
    def repeatable(self) -> bool:
        """Always True: it only reads."""
        return True

    async def call(self, call: ToolCall, context: ToolContext) -> ToolResult:
        """Answer a call; what cannot be had is an error result that says what to try."""
        del context
        try:
            arguments = ToolArguments(self.spec, call.arguments)
            return ToolResult(call.id, await self.threads.run(lambda: self.work(arguments)))
        except (ResourceError, ToolError) as problem:
            return ToolResult.error(call.id, said(problem))


class DocumentLookup:
    """The documents agents may look up, and the tools for it.

    Args:
        catalog: The documents.
    """

    def __init__(self, catalog: Catalog) -> None:
        self.catalog = catalog
        self._index = SearchIndex(catalog)
        threads = WorkerThreads(limit=4)
        self.tools: tuple[ResourceTool, ...] = (
            ResourceTool(_LIST_SPEC, self._list, threads),
            ResourceTool(_READ_SPEC, self._read, threads),
            ResourceTool(_SEARCH_SPEC, self._search, threads),
        )

    def close(self) -> None:
        """Drop the search index."""
        self._index.close()

    def _list(self, arguments: ToolArguments) -> tuple[Content, ...]:
        scheme = (arguments.text("scheme") or "").removesuffix("://").lower()
        prefix = arguments.text("prefix") or ""
        if scheme and scheme not in self.catalog.schemes:
            known = [f"{one}://" for one in sorted(self.catalog.schemes)]
            raise NotFound(f"{scheme}://", known, what="scheme")
        listing = self.catalog.listing()
        start = f"{scheme}://" if scheme else ""
        kept = [uri for uri in listing.uris if uri.startswith(start) and uri.startswith(prefix)]
        kind = f"{LIST} {scheme} {prefix}"
        part = page(kind, kept, arguments.text("cursor"), PAGE)
        lines = [_listed(one) for one in listing.entries(kept[part.start : part.end])]
        if part.cursor is not None:
            lines.append(f"{len(kept) - part.end} more: continue with `cursor` {part.cursor}")
        else:
            lines += [
                f"{one.template} (a template): {_short(one.description or one.title or one.name)}"
                for one in self.catalog.templates()
                if one.template.startswith(start) and one.template.startswith(prefix)
            ]
        if not lines:
            known = ", ".join(f"`{one}://`" for one in sorted(self.catalog.schemes))
            lines.append(f"nothing starts with `{_short(start or prefix)}`; there are {known}")
        return (TextContent("\n".join(lines)),)

    def _read(self, arguments: ToolArguments) -> tuple[Content, ...]:
        uri = arguments.required_text("uri")
        contents = self.catalog.read(uri)
        if len(contents) == 1 and contents[0].text is None:
            return (_picture(contents[0]),)
        text = _joined(contents)
        offset = arguments.whole("offset", 0)
        most = arguments.whole("max_chars", DEFAULT_CHARACTERS, least=1)
        asked = arguments.text("section")
        piece = excerpt(
            uri, text, section_name=asked, offset=offset, max_chars=min(most, MAX_CHARACTERS)
        )
        if offset and offset >= piece.total:
            raise ToolError(
                f"`offset` {offset} is behind the end; there are {piece.total} characters"
            )
        if piece.note is None:
            return (TextContent(piece.text),)
        notes = [f"[{piece.note}]"]
        if asked is None and (names := _section_names(text)):
            notes.append(f"[or read one `section`: {names}]")
        return (TextContent(piece.text), TextContent("\n".join(notes)))

    def _search(self, arguments: ToolArguments) -> tuple[Content, ...]:
        query = arguments.required_text("query")
        hits = self._index.search(query, HITS)
        if not hits:
            text = f"nothing found for `{_short(query)}`; try other words, or `{LIST}`"
            return (TextContent(text),)
        lines = [
            f"{hit.uri} § {hit.heading or hit.title} (about {hit.tokens} tokens): {hit.snippet}"
            for hit in hits
        ]
        lines.append(f"read one with `{READ}`, `section` being what stands after §")
        return (TextContent("\n".join(lines)),)


def _listed(resource: Resource) -> str:
    meta = resource.meta or {}
    tokens: JsonValue = meta.get(TOKENS)
    if tokens is None and resource.size is not None:
        tokens = estimate(resource.size)
    size = "" if tokens is None else f" (about {tokens} tokens)"
    described = [resource.description or resource.title or "", str(meta.get(WHY) or "")]
    return f"{resource.uri}{size}: {_short(' '.join(part for part in described if part))}"


def _short(text: str) -> str:
    text = " ".join(text.split())
    return text if len(text) <= _MAX_LINE else f"{text[:_MAX_LINE]}…"


def _joined(contents: Sequence[ResourceContent]) -> str:
    """Join the texts of a read of several documents, each below its URI."""
    if len(contents) == 1:
        return contents[0].text or ""
    return "\n".join(
        f"===== {one.uri}\n{one.text}" if one.text is not None else f"===== {one.uri} is not text\n"
        for one in contents
    )


def _picture(content: ResourceContent) -> Content:
    kind, data = content.mime_type or "", content.blob or b""
    if not kind.startswith("image/"):
        raise ToolError(f"`{content.uri}` is not text: {kind or 'bytes'}, {len(data):,} bytes")
    return ImageContent(b64encode(data).decode(), kind)


def _section_names(text: str) -> str:
    names = [f"`{_short(one.name)}`" for one in sections(text) if one.title]
    more = f", and {len(names) - _MAX_SECTIONS} more" if len(names) > _MAX_SECTIONS else ""
    return ", ".join(names[:_MAX_SECTIONS]) + more
