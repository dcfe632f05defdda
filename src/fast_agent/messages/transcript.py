"""Transcript: what a history file holds."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from fast_agent.messages.content import NOTHING

if TYPE_CHECKING:
    from fast_agent.messages.message import Message
    from fast_agent.text.json_value import JsonObject


@dataclass(frozen=True, slots=True)
class Transcript:
    """A conversation as a file holds it.

    Args:
        system: The system prompt the file gives, or None.
        messages: The messages, in order.
        extra: Unknown fields of the document, kept.
    """

    system: str | None = None
    messages: tuple[Message, ...] = ()
    extra: JsonObject = NOTHING
