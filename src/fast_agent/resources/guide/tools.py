"""The tools of a server with a guide: `resource_search` and `resource_read`.

Most hosts pass the tools of a server to a model, but not its resources.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from fast_agent.resources.problem import NotFound
from fast_agent.resources.provider import Addition, ServedTool, ToolAnswer
from fast_agent.resources.sections import excerpt

if TYPE_CHECKING:
    from fast_agent.resources.catalog import Catalog
    from fast_agent.resources.resource import ResourceContent
    from fast_agent.resources.search import SearchIndex
    from fast_agent.text.json_value import JsonObject

SEARCH: Final = "resource_search"
READ: Final = "resource_read"
_HITS: Final = 8
_MAX_CHARACTERS: Final = 60_000
_READ_ONLY: Final[JsonObject] = {
    "readOnlyHint": True,
    "destructiveHint": False,
    "idempotentHint": True,
    "openWorldHint": False,
}
_INSTRUCTIONS: Final = (
    "This server has documents. Look for what you need with the tool `resource_search`, then read"
    " it by URI with `resource_read`, a section at a time where it is long."
)


def guide_addition(catalog: Catalog) -> Addition:
    """Return what a server with a guide offers in addition to its resources.

    Args:
        catalog: All documents of the server.
    """
    tools = tuple(_tools(CatalogTools(catalog)))
    return Addition(tools=lambda: tools, instructions=_INSTRUCTIONS)


class CatalogTools:
    """Answers the tools over a catalog.

    Args:
        catalog: The documents.
    """

    def __init__(self, catalog: Catalog) -> None:
        self._catalog = catalog
        self._index: SearchIndex | None = None

    def search(self, arguments: JsonObject) -> ToolAnswer:
        """Answer `resource_search`: the sections that fit best."""
        query = arguments.get("query")
        if not isinstance(query, str) or not query.strip():
            return ToolAnswer.of_text("`query` must hold the words to look for", is_error=True)
        if self._index is None:
            from fast_agent.resources.search import SearchIndex

            self._index = SearchIndex(self._catalog)
        hits = self._index.search(query, _HITS)
        if not hits:
            return ToolAnswer.of_text("nothing found; try other words")
        lines = [
            f"{hit.uri} § {hit.heading or hit.title} (about {hit.tokens} tokens): {hit.snippet}"
            for hit in hits
        ]
        return ToolAnswer.of_text("\n".join(lines))

    def read(self, arguments: JsonObject) -> ToolAnswer:
        """Answer `resource_read`: a document, or one section of it, in pieces where it is long."""
        uri, section = arguments.get("uri"), arguments.get("section")
        offset = arguments.get("offset", 0)
        if not isinstance(uri, str):
            return ToolAnswer.of_text("`uri` must be a text", is_error=True)
        if section is not None and not isinstance(section, str):
            return ToolAnswer.of_text("`section` must be a text", is_error=True)
        if isinstance(offset, bool) or not isinstance(offset, int) or offset < 0:
            return ToolAnswer.of_text("`offset` must be a number of characters", is_error=True)
        blocks: list[JsonObject] = []
        for content in self._catalog.read(uri):
            blocks += _blocks(content, section, offset)
        if not blocks:
            raise NotFound(uri)
        return ToolAnswer(tuple(blocks))


def _blocks(content: ResourceContent, section: str | None, offset: int) -> list[JsonObject]:
    if content.text is None:
        return [{"type": "resource", "resource": content.data}]
    part = excerpt(
        content.uri.text,
        content.text,
        section_name=section,
        offset=offset,
        max_chars=_MAX_CHARACTERS,
    )
    blocks: list[JsonObject] = [{"type": "text", "text": part.text}]
    if part.note is not None:
        blocks.append({"type": "text", "text": f"[{part.note}]"})
    return blocks


def _tools(tools: CatalogTools) -> tuple[ServedTool, ServedTool]:
    query: JsonObject = {"type": "string", "description": "Words to look for, or a question."}
    uri: JsonObject = {"type": "string", "description": "The document, as a search gives it."}
    section: JsonObject = {
        "type": "string",
        "description": "A heading, to read only what is below it: what stands after § in a search.",
    }
    offset: JsonObject = {
        "type": "integer",
        "minimum": 0,
        "description": "Characters to pass over, to go on with a long document.",
    }
    search = ServedTool(
        SEARCH,
        "Search the documents of this server. Gives the sections that fit best, with their URIs.",
        _schema({"query": query}, "query"),
        tools.search,
        "Search documents",
        _READ_ONLY,
    )
    read = ServedTool(
        READ,
        "Read a document of this server by its URI, whole or one section of it.",
        _schema({"uri": uri, "section": section, "offset": offset}, "uri"),
        tools.read,
        "Read a document",
        _READ_ONLY,
    )
    return search, read


def _schema(properties: JsonObject, required: str) -> JsonObject:
    return {
        "type": "object",
        "properties": properties,
        "required": [required],
        "additionalProperties": False,
    }
