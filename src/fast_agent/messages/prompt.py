"""Prompt: messages made from text, files and media, as a program writes them."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

from fast_agent.messages.file import attach_file
from fast_agent.messages.message import Content, Media, Message, TextContent

if TYPE_CHECKING:
    Part: TypeAlias = str | Path | Media | Content


class Prompt:
    """Makes messages: `Prompt.user("What is this?", Path("chart.png"))`.

    A part is text, the path of a file, `Media`, or a content block. A file becomes an image, a
    sound, or a resource with its name.
    """

    @staticmethod
    def user(*parts: Part) -> Message:
        """Return a user message.

        Args:
            parts: What it contains, in order.

        Raises:
            HistoryError: A file cannot be read or is too large.
            ValueError: There are no parts, one is nothing a message contains, or a `Media` has no
                valid media type.
        """
        return Message("user", _content(parts))

    @staticmethod
    def assistant(*parts: Part) -> Message:
        """Return an assistant message, such as an example in a history.

        Args:
            parts: What it contains, in order.

        Raises:
            HistoryError: A file cannot be read or is too large.
            ValueError: There are no parts, one is nothing a message contains, or a `Media` has no
                valid media type.
        """
        return Message("assistant", _content(parts), stop_reason="endTurn")


def _content(parts: tuple[Part, ...]) -> tuple[Content, ...]:
    if not parts:
        raise ValueError("a message needs at least one part")
    return tuple([_block(part) for part in parts])


def _block(part: object) -> Content:
    match part:
        case str():
            return TextContent(part)
        case Path():
            return attach_file(part.parent, part.name, address="resource://attached")
        case Media():
            return part.content()
        case _ if isinstance(part, Content):
            return part
        case _:
            raise ValueError(f"a message cannot contain a value of type `{type(part).__name__}`")
