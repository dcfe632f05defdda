"""The one door to standard output and standard error.

Text of models, tools, servers, files and cards is written by people and programs this one does not
trust, and a terminal obeys what is written to it. Therefore `guard_streams` puts a `GuardedText`
before each of the two streams that is a terminal, and everything that is printed goes through it:
what commands print, log records, tracebacks, what functions of cards print. A stream that is no
terminal gets every byte as it is, but for secrets, which are hidden on standard error.

Errors of a command are reported together, on standard error.
"""

from __future__ import annotations

import codecs
import io
import json
import os
import sys
from contextlib import contextmanager, redirect_stdout, suppress
from typing import TYPE_CHECKING, Final, Self, TextIO, cast

import click

from fast_agent.errors import FastAgentError, TrustError, UnapprovedError, os_reason
from fast_agent.text.visible import visible, visible_lines

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterable, Sequence
    from types import TracebackType
    from typing import BinaryIO

    from _typeshed import ReadableBuffer

    from fast_agent.diagnostics.diagnostic import Diagnostic


class GuardedText(io.TextIOBase):
    """A standard stream, guarded: secrets are hidden, and on a terminal nothing is sent unseen.

    Args:
        stream: The stream.
        redact: Hides secrets; None hides none.
    """

    def __init__(self, stream: TextIO, redact: Callable[[str], str] | None = None) -> None:
        super().__init__()
        self._stream = stream
        self._terminal = stream.isatty()
        self._before = ""
        self._bytes = _TerminalBytes(self)
        self.redact = redact

    @property
    def encoding(self) -> str:  # type: ignore[override]
        """The encoding of the stream."""
        return self._stream.encoding

    @property
    def errors(self) -> str | None:  # type: ignore[override]
        """How the stream treats what it cannot encode."""
        return self._stream.errors

    @property
    def buffer(self) -> BinaryIO | io.RawIOBase:
        """The stream as one of bytes, which a terminal shows as text."""
        return self._bytes if self._terminal else self._stream.buffer

    def write(self, text: str, /) -> int:
        """Write text; on a terminal each piece is judged with the last character before it."""
        shown = text if self.redact is None else self.redact(text)
        if self._terminal:
            shown = visible_lines(shown, self._before)
        _put(self._stream, shown)
        self._before = text[-1:] or self._before
        return len(text)

    def write_whole(self, text: str) -> None:
        """Write text of which nothing may be hidden, since a user approves what it says."""
        _put(self._stream, visible_lines(text, self._before) if self._terminal else text)
        self._before = text[-1:] or self._before

    def whole(self) -> TextIO:
        """Return this stream for questions, of which nothing is hidden."""
        return cast("TextIO", _WholeText(self))

    def write_painted(self, text: str) -> None:
        """Write colours of this program around text that was made visible before."""
        _put(self._stream, text if self.redact is None else self.redact(text))
        self._before = ""

    def divert(self, stream: TextIO) -> TextIO:
        """Write to another stream from now; returns the one before."""
        before, self._stream = self._stream, stream
        return before

    def flush(self) -> None:
        """Flush the stream; once it is closed, there is nothing to flush."""
        if not self._stream.closed:  # the collector closes this one after it, which flushes
            self._stream.flush()

    def fileno(self) -> int:
        """The descriptor of the stream, for programs that are started on it."""
        return self._stream.fileno()

    def isatty(self) -> bool:
        """Whether the stream is a terminal."""
        return self._terminal

    def writable(self) -> bool:
        """Always True."""
        return True


class _WholeText(io.TextIOBase):
    """A guarded stream for questions: nothing in it is hidden.

    Args:
        stream: The stream.
    """

    def __init__(self, stream: GuardedText) -> None:
        super().__init__()
        self._stream = stream

    def write(self, text: str, /) -> int:
        """Write text."""
        self._stream.write_whole(text)
        return len(text)

    def flush(self) -> None:
        """Flush the stream."""
        self._stream.flush()

    def fileno(self) -> int:
        """The descriptor of the stream."""
        return self._stream.fileno()

    def isatty(self) -> bool:
        """Whether the stream is a terminal."""
        return self._stream.isatty()


class _TerminalBytes(io.RawIOBase):
    """The bytes of a terminal; anything but text shows as replacement characters."""

    def __init__(self, text: GuardedText) -> None:
        super().__init__()
        self._text = text
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")

    def write(self, data: ReadableBuffer, /) -> int:
        """Show bytes."""
        taken = bytes(data)
        self._text.write(self._decoder.decode(taken))
        return len(taken)

    def flush(self) -> None:
        """Flush the stream of the terminal."""
        self._text.flush()

    def fileno(self) -> int:
        """The descriptor of the terminal."""
        return self._text.fileno()

    def isatty(self) -> bool:
        """Always True."""
        return True

    def writable(self) -> bool:
        """Always True."""
        return True


def guard_streams() -> None:
    """Guard standard error, and standard output where it is a terminal."""
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        if getattr(sys, name) is None:
            setattr(sys, name, _opened(number))
    if sys.stdout.isatty() and not isinstance(sys.stdout, GuardedText):
        sys.stdout = GuardedText(sys.stdout)
    if not isinstance(sys.stderr, GuardedText):
        sys.stderr = GuardedText(sys.stderr, _redact_by_environment)


def _opened(number: int) -> TextIO:
    """Open a standard stream that the parent closed, on nothing.

    Otherwise the next file, such as a session, gets its number, and whatever a program that is
    started prints is written into that file.
    """
    try:
        os.fstat(number)
    except OSError:
        os.open(os.devnull, os.O_RDWR)  # the lowest free number, since those below are open
        os.set_inheritable(number, True)
    return os.fdopen(number, "w" if number else "r", encoding="utf-8", closefd=False)


def hide_in_errors(redact: Callable[[str], str]) -> None:
    """Hide what a program knows to be secret, too, in what is written to standard error."""
    if isinstance(sys.stderr, GuardedText):
        sys.stderr.redact = redact


class Output:
    """A stream that a command writes to.

    Args:
        stream: The current standard output or standard error.
    """

    __slots__ = ("_stream",)

    def __init__(self, stream: TextIO | GuardedText) -> None:
        self._stream = stream

    @property
    def is_terminal(self) -> bool:
        """Whether a user reads it."""
        return self._stream.isatty()

    @property
    def wants_color(self) -> bool:
        """Whether it shows colours: a terminal, and NO_COLOR is not set."""
        return self.is_terminal and not os.environ.get("NO_COLOR")

    def write(self, text: str) -> None:
        """Write text at once."""
        _put(self._stream, text)
        self._stream.flush()

    def line(self, text: str = "") -> None:
        """Write text and the end of its line."""
        self.write(f"{text}\n")

    def write_whole(self, text: str) -> None:
        """Write text of which nothing may be hidden, since a user approves what it says."""
        if isinstance(self._stream, GuardedText):
            self._stream.write_whole(text)
        else:
            _put(self._stream, text)
        self._stream.flush()

    def write_facts(self, text: str) -> None:
        """Write what this program says, as JSON or in words, with the secrets hidden.

        Answers and contents of files go through `write` instead, which changes nothing.
        """
        redact = sys.stderr.redact if isinstance(sys.stderr, GuardedText) else None
        self.write((redact or _redact_by_environment)(text))

    def write_json(self, value: object) -> None:
        """Write facts as JSON; its ASCII keeps what a terminal would act on out of it."""
        self.write_facts(json.dumps(value, indent=2) + "\n")

    def write_bytes(self, data: bytes) -> None:
        """Write bytes: as they are, or shown as text on a terminal."""
        binary = getattr(self._stream, "buffer", None)
        self._stream.flush()
        if binary is None:  # a text stream that a caller put there
            self.write(data.decode("utf-8", "replace"))
            return
        binary.write(data)
        binary.flush()

    def write_painted(self, text: str) -> None:
        """Write a rendering whose parts were made visible, colours of this program around them."""
        if not text:  # knowing what to hide in nothing costs a short run 2 % of its time
            return
        if isinstance(self._stream, GuardedText):
            self._stream.write_painted(text)
        else:
            _put(self._stream, text)
        self._stream.flush()

    def rewrite_line(self, text: str, *, last: bool) -> None:
        """Write text over the line the cursor is in; the last one ends it."""
        self.write_painted(f"\r{visible_lines(text)}{chr(10) if last else ''}")


def standard_output() -> Output:
    """Return the current standard output."""
    return Output(sys.stdout)


def standard_error() -> Output:
    """Return the current standard error."""
    return Output(sys.stderr)


def choose(question: str, choices: Sequence[str], *, default: str) -> str:
    """Ask at the terminal for one of several words, on standard error."""
    import click

    return str(
        click.prompt(visible_lines(question), type=click.Choice(choices), default=default, err=True)
    )


def error_stream() -> TextIO:
    """Return standard error for handlers of log records."""
    return sys.stderr


@contextmanager
def prints_apart() -> Generator[Output]:
    """Send what tools and cards print to standard error, so that it does not mix with an answer.

    Yields:
        Standard output, for the answer.
    """
    out = standard_output()
    with redirect_stdout(sys.stderr):
        yield out


def _redact_by_environment(text: str) -> str:
    """Hide what looks like a secret in the environment, before a program is known."""
    from fast_agent.text.redaction import Redactor, environment_secrets

    return Redactor(environment_secrets(os.environ)).redact(text)


def _put(stream: TextIO | GuardedText, text: str) -> None:
    try:
        stream.write(text)
    except UnicodeEncodeError:  # a lone surrogate, or a character this encoding does not have
        encoding = stream.encoding
        stream.write(text.encode(encoding, "replace").decode(encoding))


def report_error(error: FastAgentError) -> None:
    """Print an error: its located problems where it has some, else its message and hint."""
    report_errors((error,))


def report_errors(errors: Iterable[FastAgentError]) -> None:
    """Print several errors, those without a place first; a problem they share is printed once."""
    located: dict[Diagnostic, None] = {}
    for error in errors:
        located.update(dict.fromkeys(error.diagnostics))
        if not error.diagnostics:
            code = "" if error.code is None else f"[{error.code}]"
            out = standard_error()
            write = out.write_whole if isinstance(error, UnapprovedError) else out.write
            write(f"error{code}: {_printable(error.message)}\n")
            if error.hint:
                write(f"hint: {_printable(error.hint)}\n")
    if located:
        report_diagnostics(located)


def report_system_error(error: OSError) -> None:
    """Print what the system refused, such as writing to a full disk."""
    where = f"`{_printable(str(error.filename))}`: " if error.filename is not None else ""
    reason = os_reason(error)
    # What could not be written must not be tried again when the program ends.
    with suppress(OSError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    standard_error().line(f"error: {where}{reason}")


def report_diagnostics(diagnostics: Iterable[Diagnostic]) -> None:
    """Print located problems."""
    from fast_agent.diagnostics.render_human import render_human

    out = standard_error()
    out.write_painted(render_human(diagnostics, color=out.wants_color))


def report_note(text: str) -> None:
    """Print a line a user should know of."""
    standard_error().line(_printable(text))


CLIENT_EXPECTED: Final = (
    "an MCP client is expected on standard input; `--transport http` serves at an address"
)


def report_input(text: str) -> None:
    """Print what is expected on standard input, if it is a terminal, where nothing would come."""
    if sys.stdin is not None and sys.stdin.isatty():
        report_note(text)


def report_left_out(text: str) -> None:
    """Print a line on what waits for an approval: nothing of it is hidden, so that it is read."""
    standard_error().write_whole(f"{_printable(text)}\n")


def _printable(text: str) -> str:
    return "\n".join(visible(line) for line in text.split("\n"))


class ErrorCollector:
    """Gathers errors: `with ErrorCollector() as errors:`, each step in `with errors.collect():`.

    At the end of the block a single error is raised as it is, and so is the last one where all are
    refusals of a project; others are reported together, and the command ends with status 1.
    """

    def __init__(self) -> None:
        self._errors: list[FastAgentError] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Report the collected errors; wrong usage found later does not hide them."""
        if not self._errors or not (error is None or isinstance(error, click.UsageError)):
            return
        # A project that may not act may be refused in several steps; each says the same.
        if len(self._errors) == 1 or all(isinstance(one, TrustError) for one in self._errors):
            raise self._errors[-1]
        report_errors(self._errors)
        sys.exit(1)

    @contextmanager
    def collect(self) -> Generator[None]:
        """Collect the error of a step, so that the next one is checked too."""
        try:
            yield
        except FastAgentError as error:
            self._errors.append(error)
