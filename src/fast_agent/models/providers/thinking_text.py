"""Reasoning in the text of an answer, as `<think>…</think>` at its start.

Models behind OpenAI-compatible endpoints write it so where the server does not take it apart. The
marks may come in any pieces.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from fast_agent.models.model import TextDelta, ThinkingDelta

if TYPE_CHECKING:
    from fast_agent.models.model import DeltaSink

THINKING_IN_TEXT: Final = frozenset({"generic", "ollama"})
"""Providers whose answers are read so."""

_OPEN: Final = "<think>"
_CLOSE: Final = "</think>"


def split_thinking(text: str) -> tuple[str, str]:
    """Split a whole answer into its reasoning, empty where it has none, and the rest."""
    start = text.lstrip()
    if not start.startswith(_OPEN):
        return "", text
    thinking, closed, rest = start.removeprefix(_OPEN).partition(_CLOSE)
    return (thinking.strip(), rest.lstrip()) if closed else (thinking.strip(), "")


class ThinkingSplitter:
    """Splits the text of an answer as it arrives, in pieces of any size.

    Args:
        sink: Given the pieces.
    """

    def __init__(self, sink: DeltaSink) -> None:
        self._sink = sink
        self._held = ""
        self._state = "start"

    def add(self, text: str) -> None:
        """Take the next piece."""
        self._held += text
        if self._state == "start":
            self._open()
        if self._state == "thinking":
            self._think()
        if self._state == "after":
            self._held = self._held.lstrip()
            self._state = "text" if self._held else "after"
        if self._state == "text":
            self._give(TextDelta, len(self._held))

    def end(self) -> None:
        """Emit what was held back as a possible start of a mark."""
        self._give(ThinkingDelta if self._state == "thinking" else TextDelta, len(self._held))

    def _open(self) -> None:
        start = self._held.lstrip()
        if start.startswith(_OPEN):
            self._held, self._state = start.removeprefix(_OPEN), "thinking"
        elif not _OPEN.startswith(start):
            self._state = "text"

    def _think(self) -> None:
        thinking, closed, rest = self._held.partition(_CLOSE)
        if closed:
            self._give(ThinkingDelta, len(thinking))
            self._held, self._state = rest, "after"
            return
        # The end of it may be the start of the mark.
        kept = next(
            size for size in range(len(_CLOSE) - 1, -1, -1) if self._held.endswith(_CLOSE[:size])
        )
        self._give(ThinkingDelta, len(self._held) - kept)

    def _give(self, kind: type[TextDelta | ThinkingDelta], size: int) -> None:
        piece, self._held = self._held[:size], self._held[size:]
        if piece:
            self._sink(kind(piece))
