"""Early prompt: the prompt a user sees and types at while the program is still loading.

It knows nothing but a terminal, so that it is drawn before cards, models and the editor are
imported. What is typed is kept, piece by piece, and handed to the editor. It never answers a
question that comes up while loading.
"""

from __future__ import annotations

import codecs
import io
import os
import sys
import threading
import time
from contextlib import suppress
from typing import TYPE_CHECKING, Final, Self, cast

if TYPE_CHECKING:
    from collections.abc import Iterable
    from types import TracebackType
    from typing import Protocol, TextIO

    class DivertibleStream(Protocol):
        """A standard stream that can write to another place."""

        def divert(self, stream: TextIO) -> TextIO:
            """Write to another stream from now; returns the one before."""
            ...


_PROMPT: Final = "> "
_LOADING: Final = "  loading cards"
_QUIET_SECONDS: Final = 0.4
"""A question is not read from a user who pressed a key less than this ago."""
_PASTES_ON: Final = "\x1b[?2004h"
_PASTES_OFF: Final = "\x1b[?2004l"
_PIECE: Final = 1 << 16
_MIN_COLUMNS: Final = 20
_MIN_ROWS: Final = 6


class EarlyPrompt:
    """Draws a prompt and keeps what is typed, until the editor takes over.

    Args:
        source: The terminal's input.
        sink: The terminal's output.
        diverted: Streams to the same terminal, whose text goes above the prompt while it is shown.
    """

    def __init__(
        self, source: TextIO, sink: TextIO, diverted: Iterable[DivertibleStream] = ()
    ) -> None:
        import termios

        self._source = source
        self._sink = sink
        self._diverted = tuple(diverted)
        self._streams: list[TextIO] = []
        self._lock = threading.RLock()
        self._modes = termios.tcgetattr(source.fileno())
        self._pieces: list[bytes] = []
        self._decoder = codecs.getincrementaldecoder("utf-8")("ignore")
        self._line = ""
        self._sent = 0
        self._is_drawn = False
        self._is_line_open = False
        self._last_key = -_QUIET_SECONDS
        self._stops: tuple[int, int] | None = None
        self._reader: threading.Thread | None = None
        self._is_open = False

    def __enter__(self) -> Self:
        self._is_open = True
        self._streams = [
            one.divert(cast("TextIO", _StreamAbovePrompt(self, self._sink)))
            for one in self._diverted
        ]
        sys.stdin = _Answers(self, self._source)
        try:
            self._set_raw()
            self._put(_PASTES_ON)
            self._take_typed()
            self._start_reader()
            self._draw()
        except BaseException:  # an interrupt may come at once, and nothing else would clean up
            self.__exit__(None, None, None)
            raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        import termios

        self.finish()
        with suppress(termios.error):  # the terminal may be gone
            termios.tcsetattr(self._source.fileno(), termios.TCSANOW, self._modes)

    @property
    def has_keys(self) -> bool:
        """Whether typed keys have not been read yet."""
        return bool(self._pieces)

    def take(self) -> list[bytes]:
        """Return what was typed, piece by piece, once."""
        pieces, self._pieces = self._pieces, []
        return pieces

    def finish(self) -> None:
        """Erase the prompt and read no more keys; the terminal stays raw until the exit."""
        if not self._is_open:
            return
        self._stop_reader()
        with self._lock:
            self._is_open = False
            self._erase()
            self._put(_PASTES_OFF)
        sys.stdin = self._source
        for one, stream in zip(self._diverted, self._streams, strict=True):
            one.divert(stream)
        self._set_raw(suspends=True)

    def write(self, text: str) -> None:
        """Write text above the prompt; an open line, such as a question, takes its place."""
        with self._lock:
            self._erase()
            self._sink.write(text)
            self._sink.flush()
            if text:
                self._is_line_open = not text.endswith("\n")
            self._draw()

    def read_line(self) -> str:
        """Read the answer to a question; keys typed before it are kept for the editor."""
        import termios

        while time.monotonic() - self._last_key < _QUIET_SECONDS:
            time.sleep(_QUIET_SECONDS / 8)
        self._stop_reader()
        termios.tcsetattr(self._source.fileno(), termios.TCSANOW, self._modes)
        try:
            return self._source.readline()
        finally:
            with self._lock:
                self._is_line_open = False
            if self._is_open:
                self._set_raw()
                self._start_reader()
                self._draw()

    def _set_raw(self, *, suspends: bool = False) -> None:
        """Take keys as they come. Ctrl-C still interrupts; Ctrl-Z waits for the editor."""
        import termios

        raw = list(self._modes)
        raw[0] &= ~(termios.ICRNL | termios.IXON)
        raw[3] &= ~(termios.ICANON | termios.ECHO | termios.IEXTEN)
        raw[6] = list(raw[6])
        raw[6][termios.VMIN], raw[6][termios.VTIME] = 1, 0
        if not suspends:
            raw[6][termios.VSUSP] = b"\0"
        with suppress(termios.error):
            termios.tcsetattr(self._source.fileno(), termios.TCSANOW, raw)

    def _take_typed(self) -> None:
        """Take the lines typed before this program ran, when the terminal still changed Enter."""
        from select import select

        while select([self._source.fileno()], [], [], 0)[0]:
            data = os.read(self._source.fileno(), _PIECE)
            for line in data.replace(b"\n", b"\r").splitlines(keepends=True):
                self._take(line)
            if not data:
                return

    def _take(self, data: bytes) -> None:
        with self._lock:
            self._last_key = time.monotonic()
            self._pieces.append(data)
            self._type(self._decoder.decode(data))

    def _start_reader(self) -> None:
        self._stops = os.pipe()
        self._reader = threading.Thread(target=self._read, args=(self._stops[0],), daemon=True)
        self._reader.start()

    def _stop_reader(self) -> None:
        if self._stops is not None and self._reader is not None:
            os.write(self._stops[1], b"\0")
            self._reader.join()
            for one in self._stops:
                os.close(one)
            self._stops = None

    def _read(self, stop: int) -> None:
        from select import select

        while True:
            ready = select([self._source.fileno(), stop], [], [])[0]
            if self._source.fileno() in ready:
                try:
                    data = os.read(self._source.fileno(), _PIECE)
                except OSError:
                    return
                if not data:
                    return
                self._take(data)
            if stop in ready:
                return

    def _type(self, text: str) -> None:
        """Follow what is typed as far as it can be shown; the editor does the rest."""
        for sign in text:
            if sign == "\r":
                self._sent += bool(self._line.strip())
                self._line = ""
            elif sign in "\x7f\b":
                self._line = self._line[:-1]
            elif sign == "\x15":
                self._line = ""
            elif sign.isprintable():
                self._line += sign
            else:
                break
        self._draw()

    def _draw(self) -> None:
        if not self._is_open or self._is_line_open:
            return
        try:
            columns, rows = os.get_terminal_size(self._sink.fileno())
        except OSError:
            columns, rows = 80, 24
        line = _end_of(self._line, max(1, columns - len(_PROMPT) - 1))
        out = [self._erasing(), _PROMPT, line]
        if columns >= _MIN_COLUMNS and rows >= _MIN_ROWS:
            more = f", {self._sent} to send" if self._sent else ""
            out += ["\r\n", f"{_LOADING}{more}", "\r\x1b[1A"]
            out.append(f"\x1b[{len(_PROMPT) + sum(map(_cells, line))}C")
        self._is_drawn = True
        self._put("".join(out))

    def _erase(self) -> None:
        out, self._is_drawn = self._erasing(), False
        self._put(out)

    def _put(self, text: str) -> None:
        with suppress(OSError, ValueError):  # the terminal is gone, or has no such character
            self._sink.write(text)
            self._sink.flush()

    def _erasing(self) -> str:
        # Where the first row is that of the screen, tmux would keep it all if erased from there.
        return "\r\x1b[K\x1b[1B\x1b[J\x1b[1A" if self._is_drawn else ""


class _StreamAbovePrompt(io.TextIOBase):
    """A standard stream whose text goes above the prompt."""

    def __init__(self, prompt: EarlyPrompt, stream: TextIO) -> None:
        super().__init__()
        self._prompt = prompt
        self._stream = stream

    @property
    def encoding(self) -> str:  # type: ignore[override]
        return self._stream.encoding

    def write(self, text: str, /) -> int:
        self._prompt.write(text)
        return len(text)

    def flush(self) -> None:
        self._stream.flush()

    def fileno(self) -> int:
        return self._stream.fileno()

    def isatty(self) -> bool:
        return True

    def writable(self) -> bool:
        return True


class _Answers(io.TextIOBase):
    """Standard input, for questions that come up while loading."""

    def __init__(self, prompt: EarlyPrompt, stream: TextIO) -> None:
        super().__init__()
        self._prompt = prompt
        self._stream = stream

    @property
    def encoding(self) -> str:  # type: ignore[override]
        return self._stream.encoding

    def readline(self, size: int = -1, /) -> str:
        del size
        return self._prompt.read_line()

    def fileno(self) -> int:
        return self._stream.fileno()

    def isatty(self) -> bool:
        return True

    def readable(self) -> bool:
        return True


def _cells(sign: str) -> int:
    from unicodedata import combining, east_asian_width

    return 0 if combining(sign) else 2 if east_asian_width(sign) in "WF" else 1


def _end_of(text: str, columns: int) -> str:
    """Return the end of a string that fits."""
    used = 0
    for place in range(len(text) - 1, -1, -1):
        used += _cells(text[place])
        if used > columns:
            return text[place + 1 :]
    return text
