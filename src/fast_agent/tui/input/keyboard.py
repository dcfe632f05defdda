"""Keyboard: what comes from the terminal, as keys and pastes.

The only module that needs a POSIX terminal; elsewhere the library's own input is used.
"""

from __future__ import annotations

import os
import re
import sys
import threading
import time
from contextlib import contextmanager
from itertools import chain
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable, Generator

    from prompt_toolkit.input import Input

    from fast_agent.tui.input.early_prompt import EarlyPrompt

PASTE_BEGIN: Final = "\x1b[200~"
PASTE_END: Final = "\x1b[201~"
FOCUS_LOST: Final = "\x1b[O"
_PIECE: Final = 1 << 16
_FOCUS: Final = re.compile("(\x1b\\[[IO])")
_EXTENDED_ENTER: Final = re.compile("\x1b\\[(?:27;[2-8];13~|13;[2-8]u)")
"""Enter with Shift, Alt or Ctrl, as terminals with extended keys send it."""
_NEW_LINE: Final = "\x1b\r"
_BURST: Final = 5
"""More keys than this in one piece, with a line end among them, are a paste."""


class Focus:
    """Whether the terminal has the focus of the desktop.

    Attributes:
        is_lost: Whether the terminal reported that it lost the focus.
    """

    def __init__(self) -> None:
        self.is_lost = False


def terminal_input(early: EarlyPrompt | None = None, focus: Focus | None = None) -> Input:
    """Return the input of this terminal.

    Args:
        early: What has read the terminal so far; its keys are the first that are read.
        focus: Records what the terminal reports about its focus.
    """
    if os.name != "posix":
        from prompt_toolkit.input import create_input

        return create_input()
    return _posix_input(early, focus or Focus())


def _posix_input(early: EarlyPrompt | None, focus: Focus) -> Input:
    from prompt_toolkit.input.vt100 import Vt100Input
    from prompt_toolkit.key_binding import KeyPress
    from prompt_toolkit.keys import Keys

    lone_escape = Keys.F24  # no keyboard has it

    class PastingInput(Vt100Input):
        """Reads in large pieces, and keeps pastes away from the parser of keys.

        The library's own reader looks through all of a paste at each of its pieces of 1,024 bytes,
        which takes minutes for 10 MB.
        """

        def __init__(self) -> None:
            super().__init__(sys.stdin)
            self._decoder = Decoder()
            self._is_closed = False

        @property
        def closed(self) -> bool:
            return self._is_closed

        def read_keys(self) -> list[KeyPress]:
            pieces = _typed(early) or [self._read()]
            for kind, text in chain.from_iterable(map(self._decoder.feed, pieces)):
                if kind == "focus":
                    focus.is_lost = text == FOCUS_LOST
                elif kind == "paste":
                    self.vt100_parser.flush()
                    self._buffer.append(KeyPress(Keys.BracketedPaste, text))
                else:
                    self.vt100_parser.feed(text)
            found, self._buffer = self._buffer, []
            return found

        def _read(self) -> bytes:
            data = _read(self.fileno())
            self._is_closed = data == b""
            return data or b""

        def flush_keys(self) -> list[KeyPress]:
            """Return waiting input; an escape that nothing follows is a separate key.

            Else the library would wait for a second whether a sequence follows.
            """
            found = super().flush_keys()
            if [one.key for one in found] == [Keys.Escape]:
                return [KeyPress(lone_escape, "")]
            return found

    return PastingInput()


def _typed(early: EarlyPrompt | None) -> list[bytes]:
    return [] if early is None else early.take()


def _read(descriptor: int) -> bytes | None:
    """Read a piece; empty where the terminal is gone, None where nothing is there."""
    try:
        return os.read(descriptor, _PIECE)
    except BlockingIOError:
        return None
    except OSError:
        return b""


class Decoder:
    """Distinguishes typed keys from pastes."""

    def __init__(self) -> None:
        import codecs

        self._text = codecs.getincrementaldecoder("utf-8")("surrogateescape")
        self._paste: list[str] | None = None
        # A terminal that marks its pastes once marks all; a burst is then what a slow line held up.
        self._marks = False
        self._held = ""

    def feed(self, data: bytes) -> list[tuple[str, str]]:
        """Return what a piece holds, as pairs of `keys`, `paste` or `focus` and its text."""
        text = self._held + self._text.decode(data)
        self._held = ""
        found: list[tuple[str, str]] = []
        while text:
            if self._paste is None:
                before, begin, text = text.partition(PASTE_BEGIN)
                for typed in _FOCUS.split(before):
                    if _FOCUS.match(typed):
                        found.append(("focus", typed))
                    elif typed:
                        keys = _EXTENDED_ENTER.sub(_NEW_LINE, typed)
                        found.append(("keys" if self._marks else _kind_of(keys), keys))
                if begin:
                    self._paste, self._marks = [], True
                continue
            inside, end, behind = text.partition(PASTE_END)
            if not end:
                # The end mark may be cut by the piece.
                cut = next(
                    (n for n in range(len(PASTE_END) - 1, 0, -1)
                     if inside.endswith(PASTE_END[:n])), 0,
                )  # fmt: skip
                self._paste.append(inside[: len(inside) - cut])
                self._held = inside[len(inside) - cut :]
                break
            self._paste.append(inside)
            found.append(("paste", "".join(self._paste)))
            self._paste, text = None, behind
        return found


def _kind_of(text: str) -> str:
    """Whether text came faster than anybody types: a terminal without marks pasted it."""
    is_burst = len(text) > _BURST and "\x1b" not in text
    lines = text.rstrip("\r\n")
    return "paste" if is_burst and ("\r" in lines or "\n" in lines) else "keys"


@contextmanager
def cooked_terminal() -> Generator[None]:
    """Hand the terminal to another program as a shell does, and take it back."""
    if os.name != "posix":
        yield
        return
    import termios

    descriptor = sys.stdin.fileno()
    raw = termios.tcgetattr(descriptor)
    cooked = termios.tcgetattr(descriptor)
    cooked[0] |= termios.ICRNL | termios.IXON
    cooked[1] |= termios.OPOST
    cooked[3] |= termios.ECHO | termios.ICANON | termios.IEXTEN | termios.ISIG
    termios.tcsetattr(descriptor, termios.TCSANOW, cooked)
    try:
        yield
    finally:
        termios.tcsetattr(descriptor, termios.TCSANOW, raw)


@contextmanager
def interrupts_passed() -> Generator[None]:
    """Leave Ctrl-C to the program at the terminal, which is in the same process group."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    import signal

    before = signal.signal(signal.SIGINT, _pass)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def _pass(number: int, frame: object) -> None:
    del number, frame


def ask_terminal(
    send: Callable[[], None], is_complete: Callable[[bytes], bool], seconds: float
) -> bytes:
    """Send a question to this terminal and return what it replies.

    Args:
        send: Sends the question, control sequences that draw nothing.
        is_complete: Whether what was read so far is the whole reply.
        seconds: Maximum wait.

    Returns:
        The reply, as far as it came; empty where this is not a POSIX terminal.
    """
    if os.name != "posix":
        return b""
    import termios
    import tty
    from select import select

    source = sys.stdin.fileno()
    before = termios.tcgetattr(source)
    reply, end = b"", time.monotonic() + seconds
    tty.setcbreak(source)  # else the terminal would hold the reply back, and show it
    try:
        send()
        while not is_complete(reply) and (left := end - time.monotonic()) > 0:
            if select([source], [], [], left)[0]:
                piece = _read(source)
                reply += piece or b""
                if piece == b"":
                    break
    finally:
        termios.tcsetattr(source, termios.TCSANOW, before)
    return reply


def suspend() -> None:
    """Stop the process group, as Ctrl-Z does; returns when it continues."""
    import signal

    if os.name == "posix":
        os.killpg(0, signal.SIGTSTP)
