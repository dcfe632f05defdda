"""Briefing: what a workflow tells an agent."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fast_agent.messages.content import TextContent
from fast_agent.messages.message import Message
from fast_agent.workflows.tagged import blocks_of

if TYPE_CHECKING:
    from collections.abc import Iterable


def briefing(parts: Iterable[str], *sources: Message) -> Message:
    """Make a user message.

    Args:
        parts: Its paragraphs; empty ones are left out.
        sources: Messages whose images, sounds and resources go along.
    """
    text = "\n\n".join([part for part in parts if part])
    blocks = [block for source in sources for block in blocks_of(source)]
    return Message("user", (TextContent(text), *blocks))
