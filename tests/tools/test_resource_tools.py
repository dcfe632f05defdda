"""The tools that look documents up, over the packaged documents and a provider of odd ones."""

from __future__ import annotations

import base64
import re
from typing import TYPE_CHECKING

import pytest

from fast_agent.messages.message import ImageContent, TextContent, ToolCall, ToolResult
from fast_agent.resources.catalog import Catalog
from fast_agent.resources.internal.provider import InternalProvider
from fast_agent.resources.problem import AmbiguousName, NotFound
from fast_agent.resources.resource import Resource, ResourceContent, ResourceTemplate
from fast_agent.resources.session import Change
from fast_agent.resources.uri import Uri
from fast_agent.tools.resource_tools import DEFAULT_CHARACTERS, PAGE, DocumentLookup

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from fast_agent.resources.provider import Document
    from fast_agent.text.json_value import JsonValue
    from fast_agent.tools.tool import ToolContext

pytestmark = pytest.mark.anyio

PNG = b"\x89PNG\r\n\x1a\n0000"
LONG = "# Top\n" + "".join(f"line {number}\n" for number in range(9000))


class Odd:
    """Many short documents, a long one, a picture, bytes, and several at once."""

    scheme = "odd"
    revision = 0

    def __init__(self) -> None:
        names = [*(f"many/{number:03}" for number in range(120)), "long", "picture", "bytes"]
        made = [
            Resource(Uri.of("odd", name.split("/")), name, description="x\n" * 400, size=8)
            for name in names
        ]
        self._resources = {one.uri.text: one for one in made}

    def resources(self) -> Mapping[str, Resource]:
        return self._resources

    def templates(self) -> Sequence[ResourceTemplate]:
        return [ResourceTemplate("odd://all/{name}", "all", description="all of a name")]

    def read(self, uri: Uri) -> Sequence[ResourceContent]:
        match uri.path:
            case "long":
                return [ResourceContent(uri, "text/markdown", text=LONG)]
            case "picture":
                return [ResourceContent(uri, "image/png", blob=PNG)]
            case "bytes":
                return [ResourceContent(uri, "application/zip", blob=b"PK\xff")]
            case "all/two":
                one, two = Uri.parse("odd://one"), Uri.parse("odd://two")
                return [
                    ResourceContent(one, "text/plain", text="first"),
                    ResourceContent(two, "application/zip", blob=b"PK"),
                ]
            case "either":
                raise AmbiguousName(uri.text, ["odd://one", "odd://two"])
            case _:
                raise NotFound(uri.text, ["odd://long"])

    def complete(
        self, template: str, argument: str, value: str, given: Mapping[str, str]
    ) -> Iterable[str]:
        return ()

    def documents(self) -> Iterable[Document]:
        return ()

    def places(self) -> Sequence[str]:
        return ()

    def fingerprint(self, uri: Uri) -> str:
        return ""

    def refresh(self) -> Change:
        return Change()


@pytest.fixture(name="shelf")
def _shelf() -> Iterator[DocumentLookup]:
    shelf = DocumentLookup(Catalog([InternalProvider(), Odd()]))
    yield shelf
    shelf.close()


async def ask(
    shelf: DocumentLookup, context: ToolContext, name: str, **arguments: JsonValue
) -> ToolResult:
    tool = next(one for one in shelf.tools if one.spec.name == name)
    assert tool.source == "runtime"
    assert tool.repeatable
    return await tool.call(ToolCall("c1", name, arguments), context)


@pytest.mark.spec("INTERNAL-14")
async def test_the_list_tells_what_a_document_holds_why_and_how_long_it_is(
    shelf: DocumentLookup, context: ToolContext
) -> None:
    result = await ask(shelf, context, "resource_list", scheme="internal")
    assert not result.is_error
    (line,) = [one for one in result.text.split("\n") if "/workflows" in one]
    assert re.fullmatch(
        r"internal://fast-agent/workflows \(about \d+ tokens\): .+ Use when .+", line
    )
    assert "odd://" not in result.text
    assert "internal://fast-agent/skills/{name}/SKILL.md (a template)" in result.text


@pytest.mark.spec("INTERNAL-14", "INTERNAL-16")
async def test_a_long_list_comes_in_pages(shelf: DocumentLookup, context: ToolContext) -> None:
    seen: list[str] = []
    cursor: str | None = None
    for _ in range(10):
        result = await ask(shelf, context, "resource_list", prefix="odd://", cursor=cursor)
        assert not result.is_error
        *lines, last = result.text.split("\n")
        found = re.fullmatch(r"(\d+) more: continue with `cursor` (\S+)", last)
        seen += [line.split(" ")[0] for line in (lines if found else [*lines, last])]
        if found is None:
            break
        assert len(lines) == PAGE
        assert all(len(line) < 400 for line in lines)
        cursor = found[2]
    assert len(seen) == len(set(seen)) == 124
    assert seen[-1] == "odd://all/{name}"


@pytest.mark.spec("INTERNAL-14")
async def test_a_document_is_read_whole(shelf: DocumentLookup, context: ToolContext) -> None:
    uri = "internal://fast-agent/histories"
    result = await ask(shelf, context, "resource_read", uri=uri)
    provider = InternalProvider()
    assert result.text == provider.text_of(provider.find("histories"))


@pytest.mark.spec("INTERNAL-16")
async def test_one_section_is_read(shelf: DocumentLookup, context: ToolContext) -> None:
    uri = "internal://fast-agent/diagnostics"
    result = await ask(shelf, context, "resource_read", uri=uri, section="FA101 unknown-field")
    assert result.text.startswith("## FA101")
    assert "FA102" not in result.text


@pytest.mark.spec("INTERNAL-16")
async def test_a_long_document_comes_in_pieces_that_join(
    shelf: DocumentLookup, context: ToolContext
) -> None:
    pieces: list[str] = []
    offset = 0
    for _ in range(20):
        result = await ask(shelf, context, "resource_read", uri="odd://long", offset=offset)
        texts = [block.text for block in result.content if isinstance(block, TextContent)]
        assert len(texts[0]) <= DEFAULT_CHARACTERS
        pieces.append(texts[0])
        if len(texts) == 1:
            break
        found = re.search(r"continue with `offset` (\d+)\]", texts[1])
        assert found is not None
        assert "read one `section`: `Top`" in texts[1]
        offset = int(found[1])
    assert len(pieces) > 3
    assert "".join(pieces) == LONG


@pytest.mark.spec("INTERNAL-16")
async def test_the_length_of_a_piece_may_be_chosen_up_to_a_bound(
    shelf: DocumentLookup, context: ToolContext
) -> None:
    short = await ask(shelf, context, "resource_read", uri="odd://long", max_chars=50)
    assert short.text.startswith("# Top\nline 0\n")
    assert "of 9" not in short.text.split("[")[0]
    huge = await ask(shelf, context, "resource_read", uri="odd://long", max_chars=10**9)
    assert len(huge.text) <= len(LONG)


async def test_a_picture_is_shown_and_other_bytes_are_reported(
    shelf: DocumentLookup, context: ToolContext
) -> None:
    picture = await ask(shelf, context, "resource_read", uri="odd://picture")
    assert picture.content == (ImageContent(base64.b64encode(PNG).decode(), "image/png"),)
    other = await ask(shelf, context, "resource_read", uri="odd://bytes")
    assert other.is_error
    assert "application/zip, 3 bytes" in other.text


async def test_several_documents_are_read_each_below_its_uri(
    shelf: DocumentLookup, context: ToolContext
) -> None:
    result = await ask(shelf, context, "resource_read", uri="odd://all/two")
    assert result.text == "===== odd://one\nfirst\n===== odd://two is not text\n"


@pytest.mark.spec("INTERNAL-17")
async def test_a_search_gives_sections_that_read(
    shelf: DocumentLookup, context: ToolContext
) -> None:
    result = await ask(shelf, context, "resource_search", query="when an agent forgets")
    first = result.text.split("\n")[0]
    found = re.match(r"(\S+) § (.+?) \(about \d+ tokens\): ", first)
    assert found is not None
    read = await ask(shelf, context, "resource_read", uri=found[1], section=found[2])
    assert not read.is_error
    nothing = await ask(shelf, context, "resource_search", query="zzyzx")
    assert not nothing.is_error
    assert "nothing found for `zzyzx`" in nothing.text


@pytest.mark.spec("INTERNAL-18")
@pytest.mark.parametrize(
    ("tool", "arguments", "message"),
    [
        ("resource_read", {}, "`uri` is missing"),
        ("resource_read", {"uri": " "}, "`uri` is empty"),
        ("resource_read", {"uri": 3}, "`uri` must be a string"),
        ("resource_read", {"uri": "internal://fast-agent/../x"}, "has the segment `..`"),
        (
            "resource_read",
            {"uri": "internal://fast-agent/workflow"},
            "`internal://fast-agent/workflows`",
        ),
        ("resource_read", {"uri": "file:///etc/passwd"}, "is not a resource URI"),
        ("resource_read", {"uri": "file://etc/passwd"}, "`internal://`, `odd://`"),
        ("resource_read", {"uri": "odd://either"}, "`odd://one`, `odd://two`"),
        ("resource_read", {"uri": "odd://long", "section": "Tp"}, "`Top`"),
        ("resource_read", {"uri": "odd://long", "offset": -1}, "at least 0"),
        ("resource_read", {"uri": "odd://long", "offset": 10**9}, "behind the end"),
        ("resource_read", {"uri": "odd://long", "max_chars": 0}, "at least 1"),
        ("resource_read", {"uri": "odd://long", "max_chars": True}, "must be a whole number"),
        ("resource_read", {"uri": "odd://long", "ofset": 4}, "did you mean `offset`?"),
        ("resource_read", {"uri": "odd://long", "whatever": 4}, "its arguments are `uri`"),
        ("resource_list", {"scheme": "guide"}, "close to it: `internal://`, `odd://`"),
        ("resource_list", {"cursor": "bm90IG91cnM"}, "ask without one"),
        ("resource_search", {"query": []}, "`query` must be a string"),
    ],
)
async def test_an_error_says_what_to_try(
    shelf: DocumentLookup,
    context: ToolContext,
    tool: str,
    arguments: dict[str, JsonValue],
    message: str,
) -> None:
    result = await ask(shelf, context, tool, **arguments)
    assert result.is_error
    assert message in result.text


async def test_a_list_of_nothing_says_what_there_is(
    shelf: DocumentLookup, context: ToolContext
) -> None:
    result = await ask(shelf, context, "resource_list", prefix="odd://none")
    assert result.text == "nothing starts with `odd://none`; there are `internal://`, `odd://`"


async def test_numbers_may_come_as_floats(shelf: DocumentLookup, context: ToolContext) -> None:
    result = await ask(shelf, context, "resource_read", uri="odd://long", max_chars=60.0)
    assert not result.is_error
