"""Resources, prompts and instructions."""

from __future__ import annotations

from typing import Any

import pytest

from fast_agent.errors import ToolError
from fast_agent.mcp.pool import instructions
from fast_agent.messages.message import EmbeddedResource, Message
from fast_agent.tools.toolbox import ServerFilter

pytestmark = pytest.mark.anyio


async def test_lists_and_reads_resources(servers: Any, each: str) -> None:
    resources = servers.pool.resources(each, ServerFilter())
    listed = {entry.uri: entry for entry in await resources.resources()}
    assert set(listed) == {"note://a", "note://hidden"}
    assert (listed["note://a"].name, listed["note://a"].mime_type) == ("a", "text/plain")
    assert await resources.read("note://a") == (
        EmbeddedResource("note://a", "text/plain", text="note a"),
    )
    (template,) = await resources.templates()
    assert template.uri_template == "file:///{name}.bin"
    (made,) = await resources.read("file:///ab.bin")
    assert made.blob == "YWI="


@pytest.mark.spec("TOOL-2")
async def test_a_resource_filter_holds_when_listing_and_when_reading(
    servers: Any, each: str
) -> None:
    resources = servers.pool.resources(each, ServerFilter(resources={each: ("note://a",)}))
    assert [entry.uri for entry in await resources.resources()] == ["note://a"]
    with pytest.raises(ToolError, match=r"`note://hidden` of server .* is not open") as raised:
        await resources.read("note://hidden")
    assert "`resources` filter" in str(raised.value.hint)
    with pytest.raises(ToolError, match="not open"):
        await resources.read("file:///ab.bin")


async def test_an_unknown_resource_is_an_error_that_names_the_server(
    servers: Any, each: str
) -> None:
    with pytest.raises(ToolError, match=f"server `{each}`: `resources/read` was refused"):
        await servers.pool.resources(each, ServerFilter()).read("note://none")


async def test_lists_and_gets_prompts(servers: Any, each: str) -> None:
    prompts = servers.pool.prompts(each, ServerFilter())
    listed = {entry.name: entry for entry in await prompts.prompts()}
    assert set(listed) == {"review", "hidden_prompt"}
    arguments = [(argument.name, argument.required) for argument in listed["review"].arguments]
    assert arguments == [("code", True), ("style", False)]
    assert await prompts.get("review", {"code": "x=1"}) == (
        Message.user("review x=1"),
        Message.user("be plain"),
    )


@pytest.mark.spec("TOOL-2")
async def test_a_prompt_filter_holds_when_listing_and_when_getting(servers: Any, each: str) -> None:
    prompts = servers.pool.prompts(each, ServerFilter(prompts={each: ("rev*",)}))
    assert [entry.name for entry in await prompts.prompts()] == ["review"]
    with pytest.raises(ToolError, match=r"`hidden_prompt` of server .* is not open"):
        await prompts.get("hidden_prompt")


async def test_instructions_are_given_without_controls(servers: Any, each: str) -> None:
    assert await instructions(servers.pool.connections([each])) == {each: "Use[31m the tools."}
