"""Messages of a workflow to its agents, with quoted texts in tags that they cannot leave."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from fast_agent.messages.content import TextContent
from fast_agent.messages.message import Message
from fast_agent.prompt.prompt_block import attribute, escaped

if TYPE_CHECKING:
    from collections.abc import Iterable

    from fast_agent.messages.content import Content


SHORT: Final = 2_000
"""Longest text of one answer in the record of a workflow, in characters."""


def tagged(tag: str, text: str, **attributes: str) -> str:
    """Wrap a string in two tags.

    Args:
        tag: The element's name.
        text: The text; it is escaped, and so can neither close the element nor open another.
        **attributes: Attributes of the element.
    """
    written = "".join([attribute(name, value) for name, value in attributes.items()])
    return f"<{tag}{written}>\n{escaped(text.strip())}\n</{tag}>"


def request_text(request: Message) -> str:
    """Wrap the text of a request in tags."""
    return tagged("request", request.text)


def blocks_of(message: Message) -> tuple[Content, ...]:
    """Return what is not text in a message, to be passed on with the tagged texts."""
    content = message.content
    if len(content) == 1 and isinstance(content[0], TextContent):
        return ()
    return tuple([block for block in content if not isinstance(block, TextContent)])


def excerpt(text: str, limit: int = SHORT) -> str:
    """Cut a string for a record.

    Args:
        text: The text.
        limit: Most characters kept.
    """
    if len(text) <= limit:
        return text
    return f"{text[:limit]} [{len(text) - limit} characters more]"


def briefing(parts: Iterable[str], *sources: Message) -> Message:
    """Make a user message.

    Args:
        parts: Its paragraphs; empty ones are left out.
        sources: Messages whose images, sounds and resources go along.
    """
    text = "\n\n".join([part for part in parts if part])
    blocks = [block for source in sources for block in blocks_of(source)]
    return Message("user", (TextContent(text), *blocks))
