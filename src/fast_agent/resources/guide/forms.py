"""The five forms of a `guide://` URI: one fixed, four templates."""

from __future__ import annotations

from fast_agent.resources.resource import Resource, ResourceTemplate
from fast_agent.resources.uri import Uri

COLLECTION = "guide://collection/{id}"
CATEGORY = "guide://category/{name}"
CATEGORY_DOCUMENT = "guide://category/{name}/{+docId}"
DOCUMENT = "guide://document/{context}/{+docId}"
HELP = Uri.of("guide", ("help",))

MARKDOWN = "text/markdown"

HELP_ENTRY = Resource(
    HELP, "help", "How to read this guide", "Its URIs, contents and formats.", MARKDOWN
)
TEMPLATES = (
    ResourceTemplate(
        CATEGORY,
        "category",
        "Category",
        "All documents of a category; see `guide://help`.",
        MARKDOWN,
    ),
    ResourceTemplate(
        CATEGORY_DOCUMENT,
        "category-document",
        "Documents of a category",
        "A document of a category by name, with or without its extension, or all that a pattern"
        " (`*`, `**`, `%3F`, `[abc]`) fits.",
        MARKDOWN,
    ),
    ResourceTemplate(
        COLLECTION,
        "collection",
        "Collection",
        "All documents of a collection; see `guide://help`.",
        MARKDOWN,
    ),
    ResourceTemplate(
        DOCUMENT,
        "document",
        "Document",
        "One document by the name of its category or collection and its own.",
        MARKDOWN,
    ),
)
