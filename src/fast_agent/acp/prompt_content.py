"""Prompt content: blocks of a prompt as a message, and those of messages as clients show them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fast_agent.acp.params import objects, wrong
from fast_agent.errors import HistoryError
from fast_agent.messages.content import OpaqueContent, TextContent
from fast_agent.messages.json_message import content_from_wire, content_to_wire
from fast_agent.messages.message import Message

if TYPE_CHECKING:
    from collections.abc import Iterable

    from fast_agent.messages.content import Content
    from fast_agent.text.json_value import JsonObject, JsonValue


def read_prompt(params: JsonObject) -> Message:
    """Read the message of a prompt.

    Raises:
        RequestError: A block is wrong, or there is none.
    """
    blocks = objects(params, "prompt")
    if not blocks:
        raise wrong("prompt", "holds no blocks")
    return Message("user", tuple([_block(block, at) for at, block in enumerate(blocks)]))


def _block(block: JsonObject, index: int) -> Content:
    kind, said = block.get("type"), block.get("text")
    if kind == "text" and isinstance(said, str):
        # Anything else a client says about a text block is for people, not for models.
        return TextContent(said)
    place = f"prompt[{index}]"
    try:
        content = content_from_wire({name: one for name, one in block.items() if one is not None})
    except HistoryError as error:
        raise wrong(place, error.message) from None
    if isinstance(content, OpaqueContent):
        raise wrong(place, f"has the type `{kind}`, which is not known")
    return content


def block_to_wire(block: Content) -> JsonObject | None:
    """Return a block as clients show it; None for a block they do not know."""
    if isinstance(block, TextContent):
        return text_block(block.text)
    if isinstance(block, OpaqueContent):
        return None
    try:
        return content_to_wire(block)
    except HistoryError:
        return None


def text_block(text: str) -> JsonObject:
    """Return a string as a block."""
    return {"type": "text", "text": text}


def tool_content(blocks: Iterable[Content]) -> list[JsonValue]:
    """Return the content of a tool call, without empty strings."""
    return [
        {"type": "content", "content": wire}
        for block in blocks
        if (wire := block_to_wire(block)) is not None and wire.get("text") != ""
    ]
