"""Scroll: what goes into the scrollback in its order, and the tail that is still moving."""

from __future__ import annotations

from collections import deque
from functools import partial
from typing import TYPE_CHECKING, Final

import anyio
from anyio.to_thread import run_sync

from fast_agent.config.settings import NO_TUI
from fast_agent.text.visible import visible_lines
from fast_agent.tui.drawing.rows import shown, wrap
from fast_agent.tui.drawing.stream import LONG_PARAGRAPH, MarkdownStream

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from fast_agent.config.settings import TuiSettings
    from fast_agent.tui.drawing.theme import Theme

FRAME_SECONDS: Final = 1 / 30
SLOW_FRAME_SECONDS: Final = 1 / 4


class Scroll:
    """Takes text as it streams and lines that are finished, and commits them in order.

    Args:
        theme: The styles.
        columns: Gives the columns of the terminal.
        commit: Writes lines above the live area, and draws it.
        slow: Says whether the terminal is slow.
        settings: Width, wrapping, and whether text is drawn as Markdown; may change.
    """

    def __init__(
        self,
        theme: Theme,
        columns: Callable[[], int],
        commit: Callable[[Sequence[str]], None],
        slow: Callable[[], bool],
        settings: Callable[[], TuiSettings] = lambda: NO_TUI,
    ) -> None:
        self._theme = theme
        self._columns = columns
        self._commit = commit
        self._slow = slow
        self._settings = settings
        self._items: deque[tuple[str, str, Sequence[str] | Callable[[], list[str]]]] = deque()
        self._wake = anyio.Event()
        self._idle = anyio.Event()
        self._idle.set()
        self._stream: MarkdownStream | _SourceStream | None = None
        self._before = ""
        self._pending = ""
        self._flight = ""
        self._last = ""

    @property
    def text_width(self) -> int:
        """The width of text."""
        return max(10, min(self._settings().width, self._columns()))

    def add_text(self, text: str) -> None:
        """Add a piece of an answer."""
        safe = visible_lines(text, self._before)
        self._before = text[-1:] or self._before
        self._add("piece", safe, ())

    def end_text(self) -> None:
        """End the answer: what is left of it is drawn."""
        self._before = ""
        self._add("end", "", ())

    def add_lines(self, lines: Sequence[str], kind: str = "note") -> None:
        """Add finished lines; a blank one comes between kinds."""
        if lines:
            self._add(kind, "", lines)

    def add_markdown(self, text: str, kind: str = "note") -> None:
        """Add a whole text."""
        self.add_drawn(partial(self._draw_whole, visible_lines(text)), kind)

    def add_drawn(self, draw: Callable[[], list[str]], kind: str) -> None:
        """Add finished lines that take time to draw; a worker thread draws them."""
        self._add(kind, "", draw)

    async def run(self) -> None:
        """Draw what is added, until cancelled."""
        while True:
            await self._wake.wait()
            self._wake = anyio.Event()
            lines: list[str] = []
            while self._items:
                lines += await self._next()
            self._commit(lines)
            if not self._items:
                self._idle.set()
            await anyio.sleep(SLOW_FRAME_SECONDS if self._slow() else FRAME_SECONDS)

    async def drained(self) -> None:
        """Wait until everything added so far is written."""
        await self._idle.wait()

    def tail(self, columns: int, most: int) -> list[str]:
        """Draw the end of the text that is not finished."""
        text = self._pending + self._flight
        text += "".join(text for kind, text, _ in self._items if kind == "piece")
        text = text.strip("\n")
        if not text or most <= 0:
            return []
        room = max(1, min(self.text_width, columns - 2))
        lines = text[-(most + 1) * room :].split("\n")[-most:]
        mark = self._theme.dim(f"{self._theme.sign('live')} ")
        rows = [row for line in lines for row in wrap(line.expandtabs(4), room)]
        return [mark + row for row in rows[-most:]]

    def draw_sample(self) -> None:
        """Import what drawing an answer needs, so that the first answer does not wait for it."""
        stream = MarkdownStream(80, self._theme)
        stream.feed("```python\nx = 1\n```\n- a\n\n| a |\n|---|\n| b |\n")
        stream.finish()

    def _add(self, kind: str, text: str, lines: Sequence[str] | Callable[[], list[str]]) -> None:
        self._items.append((kind, text, lines))
        self._idle = anyio.Event() if self._idle.is_set() else self._idle
        self._wake.set()

    async def _next(self) -> list[str]:
        kind, text, lines = self._items.popleft()
        match kind:
            case "piece":
                pieces = [text]
                while self._items and self._items[0][0] == "piece":
                    pieces.append(self._items.popleft()[1])
                return await self._feed("".join(pieces))
            case "end":
                stream, self._stream = self._stream, None
                if stream is None:
                    return []
                rows = await run_sync(stream.finish)
                self._pending = ""
                return self._spaced("text", rows)
            case _:
                rows = await run_sync(lines) if callable(lines) else list(lines)
                return self._spaced(kind, rows)

    async def _feed(self, text: str) -> list[str]:
        stream = self._stream
        if stream is None:
            stream = self._stream = self._new_stream()
        stream.columns = self.text_width
        self._flight = text
        if "\n" in text or len(stream.pending) + len(text) >= LONG_PARAGRAPH:
            rows = await run_sync(stream.feed, text)
        else:
            rows = stream.feed(text)
        self._pending, self._flight = stream.pending, ""
        return self._spaced("text", rows)

    def _new_stream(self) -> MarkdownStream | _SourceStream:
        settings = self._settings()
        if not settings.markdown:
            return _SourceStream()
        wraps = settings.wrap == "words"
        return MarkdownStream(self.text_width, self._theme, wraps=wraps)

    def _draw_whole(self, text: str) -> list[str]:
        stream = MarkdownStream(self.text_width, self._theme)
        return [*stream.feed(text), *stream.finish()]

    def _spaced(self, kind: str, rows: list[str]) -> list[str]:
        """Insert a blank row between kinds of lines."""
        if not rows:
            return []
        blank = [""] if self._last not in {"", "rule", kind} and rows[0] else []
        self._last = kind
        return blank + rows


class _SourceStream:
    """Text as it is, line by line."""

    def __init__(self) -> None:
        self.pending = ""
        self.columns = 0

    def feed(self, text: str) -> list[str]:
        """Take a piece; returns whole lines."""
        *lines, self.pending = (self.pending + text).split("\n")
        return lines

    def finish(self) -> list[str]:
        """End the text."""
        rest, self.pending = self.pending, ""
        return [rest] if rest else []


def quoted(text: str, columns: int, most: int = 40) -> list[str]:
    """Return what a user said as rows, the middle left out where it is long."""
    lines = text.rstrip("\n").split("\n")
    left_out = len(lines) - most
    if left_out > 0:
        lines = [*lines[: most // 2], f"({left_out} more lines)", *lines[-most // 2 :]]
    return [row for line in lines for row in wrap(shown(line), columns)]
