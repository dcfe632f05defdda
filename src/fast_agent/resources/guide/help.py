"""The page `guide://help`: how to read this guide, made from what is in it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fast_agent.resources.guide.forms import (
    CATEGORY,
    CATEGORY_DOCUMENT,
    COLLECTION,
    DOCUMENT,
    HELP,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from fast_agent.resources.guide.index import Document, GuideIndex
    from fast_agent.resources.limits import Limits

_FORMS = (
    (HELP.text, "this page"),
    (COLLECTION, "all documents of a collection"),
    (CATEGORY, "all documents of a category"),
    (CATEGORY_DOCUMENT, "a document of a category, or all that a pattern fits"),
    (DOCUMENT, "one document and nothing else; never a pattern"),
)


def help_page(index: GuideIndex, limits: Limits) -> str:
    """Write the page.

    Args:
        index: The guide as it is now.
        limits: What bounds an answer.

    Returns:
        Markdown.
    """
    return "\n".join([*_head(index), *_contents(index), *_names(index), *_answers(limits)]) + "\n"


def _head(index: GuideIndex) -> Iterator[str]:
    documents = _count(index.count, "document")
    categories = _count(len(index.shelves), "category", "categories")
    collections = _count(len(index.config.collections), "collection")
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
    yield "which begins with `guide://document/`."
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
    yield "What is larger is refused as a whole, with its size and a few URIs to begin with;"
    yield "nothing is cut."


def _example(index: GuideIndex) -> Document | None:
    """Choose a document for the examples: the first of a plain name, best with an extension."""
    found = [shelf.documents[shelf.names[0]] for shelf in index.shelves.values() if shelf.names]
    return next((one for one in found if "." in one.name), found[0] if found else None)


def _uri(kind: str, *names: str) -> str:
    from fast_agent.resources.uri import Uri

    return Uri.of("guide", (kind, *names)).text


def _count(count: int, one: str, many: str | None = None) -> str:
    return f"{count} {one if count == 1 else many or one + 's'}"


def _cell(text: str | None) -> str:
    """Make a text fit for one cell of a table."""
    return " ".join((text or "").split()).replace("|", "\\|").replace("`", "'")


def _bytes(count: int) -> str:
    for size, unit in ((1 << 20, "MiB"), (1 << 10, "KiB")):
        if count >= size and count % size == 0:
            return f"{count // size} {unit}"
    return f"{count} bytes"
