from __future__ import annotations

import json
from base64 import b64decode

from hypothesis import given
from hypothesis import strategies as st

from fast_agent.resources.provider import EMPTY, Answer
from fast_agent.resources.resource import (
    Resource,
    ResourceContent,
    ResourceTemplate,
    estimate,
    is_textual,
    media_type,
)
from fast_agent.resources.uri import Uri
from fast_agent.rpc.message import encode

URI = Uri.parse("skill://a/SKILL.md")


def test_a_resource_knows_its_json() -> None:
    full = Resource(URI, "a", "A", "About é", "text/markdown", 7, {"priority": 0.5}, {"x": 1})
    assert (
        json.loads(full.json)
        == full.data
        == {
            "uri": "skill://a/SKILL.md",
            "name": "a",
            "title": "A",
            "description": "About é",
            "mimeType": "text/markdown",
            "size": 7,
            "annotations": {"priority": 0.5},
            "_meta": {"x": 1},
        }
    )
    assert full.json is full.json
    assert full == Resource(
        URI, "a", "A", "About é", "text/markdown", 7, {"priority": 0.5}, {"x": 1}
    )
    assert Resource(URI, "a", size=0).data == {"uri": URI.text, "name": "a", "size": 0}
    template = ResourceTemplate("skill://{name}", "n", mime_type="text/plain")
    assert (
        json.loads(template.json)
        == template.data
        == {
            "uriTemplate": "skill://{name}",
            "name": "n",
            "mimeType": "text/plain",
        }
    )


@given(st.binary(max_size=60) | st.text(max_size=60).map(str.encode))
def test_a_content_keeps_its_bytes(data: bytes) -> None:
    content = ResourceContent.of_bytes(URI, "text/plain", data)
    assert content.bytes == data
    wire = json.loads(content.json)
    assert wire == content.data
    assert wire["uri"] == URI.text
    assert ("text" in wire) != ("blob" in wire)
    carried = wire["text"].encode() if "text" in wire else b64decode(wire["blob"], validate=True)
    assert carried == data
    assert b"\n" not in content.json


def test_byte_order_mark_and_line_ends_stay() -> None:
    data = b"\xef\xbb\xbf---\r\nname: a\r\n\r---"
    content = ResourceContent.of_bytes(URI, None, data, {"k": "v"})
    assert content.text == "\ufeff---\r\nname: a\r\n\r---"
    assert "mimeType" not in content.data
    assert content.data["_meta"] == {"k": "v"}


def test_encoding() -> None:
    assert encode({"é": [1, None, True]}) == '{"é":[1,null,true]}'.encode()
    json.loads(encode({"a": "x\ud800y"}))


def test_answers_join_as_data_and_as_json() -> None:
    tail = Answer({"resultType": "complete", "_meta": {"s": 1}})
    joined = {"a": 1, "resultType": "complete", "_meta": {"s": 1}}
    for answer in (Answer({"a": 1}), Answer(json=b'{"a":1}')):
        found = answer.with_fields(tail)
        assert found.data == json.loads(found.json) == joined
    assert EMPTY.with_fields(tail).data == Answer(json=b"{}").with_fields(tail).data == tail.data
    assert EMPTY.json == b"{}"
    merged = Answer({"_meta": {"t": 2}}).with_fields(tail)
    assert merged.data == {"resultType": "complete", "_meta": {"t": 2, "s": 1}}
    page = Answer.of_list("items", [b"1", b'"x"'], 'c"')
    assert page.data == {"items": [1, "x"], "nextCursor": 'c"'}
    assert Answer.of_list("items", []).json == b'{"items":[]}'


def test_media_types() -> None:
    assert media_type("docs/GUIDE.MD") == "text/markdown"
    assert media_type("a.tar.gz") == "application/gzip"
    assert media_type("LICENSE") == "text/plain"
    assert media_type("a/b.d/Makefile") == "text/x-makefile"
    for unknown in ("a.unknown", ".md", "x.d/none", "", "a."):
        assert media_type(unknown) == "application/octet-stream"
    assert is_textual("text/x-python")
    assert is_textual("application/json")
    assert not is_textual("image/png")


def test_tokens() -> None:
    assert [estimate(n) for n in (0, 1, 4, 5)] == [0, 1, 1, 2]
