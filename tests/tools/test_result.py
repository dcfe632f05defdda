from __future__ import annotations

import datetime as dt
import enum
from base64 import b64decode
from dataclasses import dataclass
from typing import TYPE_CHECKING

import mcp.types
import pytest
from pydantic import BaseModel

from fast_agent.errors import ToolError
from fast_agent.messages.message import (
    EmbeddedResource,
    ImageContent,
    ResourceLink,
    TextContent,
    ToolResult,
)
from fast_agent.tools.result import result_of, said

if TYPE_CHECKING:
    from fast_agent.messages.message import Content
    from fast_agent.text.json_value import JsonValue

PNG = b"\x89PNG\r\n\x1a\n rest"


@dataclass
class Point:
    x: int
    y: float


class Person(BaseModel):
    name: str
    born: dt.date


class Colour(enum.Enum):
    RED = "red"


@pytest.mark.parametrize(
    ("value", "text", "structured"),
    [
        ("plain", "plain", None),
        ("", "", None),
        (None, "", None),
        (3, "3", None),
        (True, "true", None),
        (False, "false", None),
        (2.5, "2.5", None),
        (Colour.RED, "red", None),
        (dt.date(2026, 1, 2), "2026-01-02", None),
        ({"a": [1, None]}, '{"a":[1,null]}', {"a": [1, None]}),
        ([1, "é"], '[1,"é"]', [1, "é"]),
        ([], "[]", []),
        ((1, 2), "[1,2]", [1, 2]),
        (Point(1, 2.0), '{"x":1,"y":2.0}', {"x": 1, "y": 2.0}),
        (
            [Person(name="Ada", born=dt.date(1815, 12, 10))],
            '[{"name":"Ada","born":"1815-12-10"}]',
            [{"name": "Ada", "born": "1815-12-10"}],
        ),
        (
            {"content": "words", "more": 1},
            '{"content":"words","more":1}',
            {"content": "words", "more": 1},
        ),
        ({"type": "text"}, '{"type":"text"}', {"type": "text"}),
        (
            {"type": "report", "text": "x"},
            '{"type":"report","text":"x"}',
            {"type": "report", "text": "x"},
        ),
        (float("nan"), "NaN", None),
        (b"bytes of text", "bytes of text", None),
    ],
)
def test_values_become_text_and_structure(value: object, text: str, structured: JsonValue) -> None:
    result = result_of("c", value)
    assert result.id == "c"
    assert result.text == text
    assert result.structured == structured
    assert not result.is_error


@pytest.mark.parametrize(
    ("value", "content"),
    [
        (TextContent("a"), (TextContent("a"),)),
        ({"type": "text", "text": "a"}, (TextContent("a"),)),
        (mcp.types.TextContent(text="a"), (TextContent("a"),)),
        ([mcp.types.TextContent(text="a"), "b"], (TextContent("a"), TextContent("b"))),
        (
            ["see", ImageContent("AAAA", "image/png")],
            (TextContent("see"), ImageContent("AAAA", "image/png")),
        ),
        (
            mcp.types.ImageContent(data="AAAA", mime_type="image/png"),
            (ImageContent("AAAA", "image/png"),),
        ),
        (
            mcp.types.EmbeddedResource(
                resource=mcp.types.TextResourceContents(uri="file:///a", text="t")
            ),
            (EmbeddedResource("file:///a", text="t"),),
        ),
        (
            {"type": "resource_link", "uri": "file:///a", "name": "a"},
            (ResourceLink("file:///a", "a"),),
        ),
    ],
)
def test_content_blocks_are_taken_as_they_are(value: object, content: tuple[Content, ...]) -> None:
    assert result_of("c", value).content == content


def test_bytes_of_an_image_become_an_image() -> None:
    (block,) = result_of("c", PNG).content
    assert isinstance(block, ImageContent)
    assert block.mime_type == "image/png"
    assert b64decode(block.data) == PNG


@pytest.mark.parametrize(
    "value",
    [
        ToolResult("other", (TextContent("no"),), is_error=True, structured={"a": 1}),
        mcp.types.CallToolResult(
            content=[mcp.types.TextContent(text="no")], structured_content={"a": 1}, is_error=True
        ),
        {
            "content": [{"type": "text", "text": "no"}],
            "structuredContent": {"a": 1},
            "isError": True,
        },
    ],
)
def test_whole_results_keep_all_they_say(value: object) -> None:
    assert result_of("c", value) == ToolResult(
        "c", (TextContent("no"),), is_error=True, structured={"a": 1}
    )


@pytest.mark.parametrize(
    ("value", "words"),
    [
        (object(), "a value of type `object` was returned, which is not JSON"),
        ({"a": [object()]}, "a value of type `object` was returned, which is not JSON"),
        ({object(): 1}, "a value of type `object` was returned, which is not JSON"),
        (b"\xff\xfe\x00binary", "neither text nor an image"),
        ({"type": "image", "data": 3}, "content block"),
    ],
)
def test_what_a_model_cannot_be_given_is_refused(value: object, words: str) -> None:
    with pytest.raises(ToolError, match=words):
        result_of("c", value)


def test_a_value_that_refers_to_itself_is_refused() -> None:
    value: list[object] = []
    value.append(value)
    with pytest.raises(ToolError, match=r"the `list` .* not JSON: Circular reference"):
        result_of("c", value)


def test_errors_are_said_with_type_or_hint() -> None:
    assert said(ValueError("no")) == "ValueError: no"
    assert said(KeyError()) == "KeyError"
    assert said(ToolError("no", hint="yes")) == "no\nhint: yes"
    assert ToolResult.error("c", "no") == ToolResult("c", (TextContent("no"),), is_error=True)
