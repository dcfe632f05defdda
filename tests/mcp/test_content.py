from __future__ import annotations

import mcp_types as types
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fast_agent.mcp.content import bounded, cut, from_sdk, to_wire, tool_result
from fast_agent.messages.message import (
    AudioContent,
    Content,
    EmbeddedResource,
    ImageContent,
    ResourceLink,
    TextContent,
    ToolResult,
)

extras = st.dictionaries(st.sampled_from(["_meta"]), st.just({"k": [1, "v"]}), max_size=1)
texts = st.text(max_size=20)
blocks: st.SearchStrategy[Content] = st.one_of(
    st.builds(TextContent, texts, extras),
    st.builds(ImageContent, st.just("aW1n"), st.just("image/png"), extras),
    st.builds(AudioContent, st.just("c25k"), st.just("audio/wav"), extras),
    st.builds(ResourceLink, st.just("a:b"), texts, st.none() | st.just("text/plain"), extras),
    st.builds(EmbeddedResource, st.just("a:b"), st.none(), texts, st.none(), extras, extras),
    st.builds(EmbeddedResource, st.just("a:b"), st.none(), st.none(), st.just("Yg=="), extras),
)


@given(blocks)
def test_blocks_survive_the_way_there_and_back(block: Content) -> None:
    from mcp.types import ContentBlock
    from pydantic import TypeAdapter

    adapter: TypeAdapter[ContentBlock] = TypeAdapter(ContentBlock)
    assert from_sdk(adapter.validate_python(to_wire(block), by_name=False)) == block


def test_a_cut_text_keeps_head_and_tail_and_says_what_is_missing() -> None:
    assert cut("abcdefgh", 8) == "abcdefgh"
    assert cut("a" * 10 + "b" * 10, 8) == ("aaaaaa\n[12 of 20 characters were left out]\nbb")


@given(st.lists(blocks, max_size=6), st.integers(0, 30))
def test_bounding_keeps_every_block_in_its_place(given: list[Content], limit: int) -> None:
    kept = bounded(given, limit)
    assert len(kept) == len(given)
    assert bounded(given, 10_000) == tuple(given)


def test_what_is_too_large_is_replaced_by_a_notice() -> None:
    image = ImageContent("A" * 200, "image/png")
    resource = EmbeddedResource("a:b", text="x" * 20)
    kept = bounded([image, resource, TextContent("y" * 5)], 10)
    assert kept[0] == TextContent("[200 characters of base64 were left out]")
    assert isinstance(kept[1], EmbeddedResource)
    assert "[10 of 20 characters were left out]" in (kept[1].text or "")
    assert kept[2] == TextContent("\n[5 of 5 characters were left out]\n")


@pytest.mark.parametrize("is_error", [True, False])
def test_a_server_that_asks_as_in_an_older_protocol_gets_a_remedy(*, is_error: bool) -> None:
    said = "elicitation via server-initiated requests is unavailable on 2026-07-28 connections."
    answer = types.CallToolResult(
        content=[types.TextContent(type="text", text=said)], is_error=is_error
    )
    found = tool_result("c", answer, 1000)
    assert ("`protocol: legacy` lets it" in found.text) is is_error


def test_an_error_result_says_why() -> None:
    result = ToolResult.error("id", "why")
    assert (result.id, result.text, result.is_error) == ("id", "why", True)
