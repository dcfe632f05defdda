"""Programs a user starts from the terminal: editor, pager, shell commands, the clipboard."""

from __future__ import annotations

import base64
import hashlib
import json
import os
import shlex
import shutil
import subprocess
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Final, Protocol

from fast_agent.text.visible import visible_lines
from fast_agent.tui.drawing.markdown import MarkdownRenderer
from fast_agent.tui.drawing.rows import shown

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from fast_agent.messages.message import Message, ToolCall, ToolResult
    from fast_agent.tui.drawing.theme import Theme

_OUTPUT: Final = 8 << 10
_CLIPBOARDS: Final = (
    ("WAYLAND_DISPLAY", ("wl-copy",)),
    ("DISPLAY", ("xclip", "-selection", "clipboard")),
    ("DISPLAY", ("xsel", "--clipboard", "--input")),
    ("", ("pbcopy",)),
)
_IMAGE_COMMANDS: Final = (
    ("WAYLAND_DISPLAY", ("wl-paste", "--no-newline", "--type", "image/png")),
    ("DISPLAY", ("xclip", "-selection", "clipboard", "-target", "image/png", "-out")),
    ("", ("pngpaste", "-")),
)
_OSC_NOTIFIES: Final = frozenset({"iTerm.app", "WezTerm", "ghostty"})
"""Terminals that show OSC 9 as a notification, by their documentation."""
_OSC_BYTES: Final = 74_000


class Programs(Protocol):
    """Gives the terminal to other programs; see `OtherPrograms`."""

    @property
    def is_away(self) -> bool:
        """Whether another program has the terminal."""
        ...

    def hold(self, lines: Sequence[str]) -> bool:
        """Keep lines until the terminal is back; returns whether it is away."""
        ...

    def run(self, work: Callable[[], None]) -> None:
        """Give the terminal to a program until it ends."""
        ...

    async def shell(self, line: str) -> None:
        """Run what a user typed behind `!`."""
        ...

    def with_output(self, message: Message) -> Message:
        """Insert the output of the user's commands before the next message."""
        ...

    def attach_image(self) -> None:
        """Attach the image on the clipboard to the message."""
        ...


def edited(text: str) -> str:
    """Edit text in the user's editor.

    Raises:
        OSError: The editor cannot be run.
    """
    command = os.environ.get("VISUAL") or os.environ.get("EDITOR") or "vi"
    with tempfile.TemporaryDirectory(prefix="fast-agent-") as directory:
        path = Path(directory) / "message.md"
        path.write_text(text, encoding="utf-8")
        subprocess.run([*shlex.split(command), str(path)], check=False)
        return path.read_text(encoding="utf-8", errors="replace").removesuffix("\n")


def page(text: str, *, at_end: bool = True) -> None:
    """Show text in the user's pager.

    Args:
        text: The text, drawn.
        at_end: Whether its end is shown first.

    Raises:
        OSError: The pager cannot be run.
    """
    command = shlex.split(os.environ.get("PAGER") or "less")
    if Path(command[0]).name == "less":
        command += ["-R", "-+F", *(["+G"] if at_end else [])]
    subprocess.run(command, input=text.encode("utf-8", "replace"), check=False)


def document_text(source: str, columns: int, theme: Theme) -> str:
    """Draw a document in Markdown, for the pager."""
    renderer = MarkdownRenderer(max(20, min(100, columns)), theme)
    return "\n".join(renderer.render(visible_lines(source))) + "\n"


def transcript_text(agent: str, history: Iterable[Message], columns: int, theme: Theme) -> str:
    """Draw what an agent remembers, for the pager."""
    renderer = MarkdownRenderer(max(20, min(100, columns)), theme)
    lines: list[str] = []
    for message in history:
        who = "you" if message.role == "user" else agent
        if message.text:
            style = theme.you if message.role == "user" else theme.heading
            lines += [style(shown(who)), *renderer.render(visible_lines(message.text)), ""]
        for call in message.tool_calls:
            lines += [
                theme.strong(f"calls {shown(call.name)}"),
                *_json_lines(dict(call.arguments)),
                "",
            ]
        for result in message.tool_results:
            sign = theme.error("failed") if result.is_error else theme.dim("result")
            lines += [sign, *(shown(line) for line in result.text.split("\n")), ""]
    return "\n".join(lines) + "\n"


def call_text(
    call: ToolCall, result: ToolResult | None, theme: Theme, output: Sequence[str] = ()
) -> str:
    """Draw a call and its result whole, for the pager; while it runs, the end of its output."""
    lines = [theme.strong(shown(call.name)), *_json_lines(dict(call.arguments)), ""]
    if result is None:
        lines += [theme.dim("it is still running"), *output]
    else:
        lines.append(theme.error("failed") if result.is_error else theme.dim("result"))
        lines += [shown(line) for line in result.text.split("\n")]
    return "\n".join(lines) + "\n"


class CommandOutput:
    """The output of a command: all of it is shown, its head and tail are kept.

    Args:
        show: Takes lines as they come.
    """

    def __init__(self, show: Callable[[Sequence[str]], None]) -> None:
        self._show = show
        self._rest = ""
        self._kept = ""

    def take(self, text: str) -> None:
        """Take a piece."""
        self._kept += text
        if len(self._kept) > 2 * _OUTPUT:
            self._kept = self._kept[: _OUTPUT // 2] + "\n…\n" + self._kept[-_OUTPUT // 2 :]
        *lines, self._rest = (self._rest + text).split("\n")
        if lines:
            self._show(lines)

    def finish(self) -> None:
        """Show the last line, which may have no end."""
        if self._rest:
            self._show([self._rest])
            self._rest = ""

    @property
    def text(self) -> str:
        """The head and the tail."""
        kept = self._kept
        if len(kept) > _OUTPUT:
            kept = kept[: _OUTPUT // 2] + "\n…\n" + kept[-_OUTPUT // 2 :]
        return kept.removesuffix("\n")


def in_shell(line: str) -> list[str]:
    """Return the program and arguments that run a command line."""
    return ["/bin/sh", "-c", line] if os.name == "posix" else ["cmd.exe", "/c", line]


def notification(text: str, environ: Mapping[str, str], *, bell: bool) -> str:
    """Return what has a terminal notify its user: a message where it is known, else the bell.

    Args:
        text: What happened, in words of this program.
        environ: The environment, which names the terminal.
        bell: Whether to ring the bell only.
    """
    by_message = notifies_by_message(environ) and not bell
    return f"\x1b]9;fast-agent: {text}\x07" if by_message else "\x07"


def notifies_by_message(environ: Mapping[str, str]) -> bool:
    """Whether the terminal is known to show a message as a notification."""
    return environ.get("TERM_PROGRAM") in _OSC_NOTIFIES and not environ.get("TMUX")


def clipboard_image(environ: Mapping[str, str], directory: Path) -> Path | None:
    """Save the image on the clipboard; returns its file, None where the clipboard has none.

    Args:
        environ: The environment, which names the desktop.
        directory: Where images are saved; missing directories are made.

    Raises:
        OSError: The file cannot be written.
    """
    for command in _found(_IMAGE_COMMANDS, environ):
        with suppress(subprocess.TimeoutExpired):
            done = subprocess.run(command, capture_output=True, check=False, timeout=5)
            if done.returncode == 0 and done.stdout.startswith(b"\x89PNG\r\n\x1a\n"):
                directory.mkdir(mode=0o700, parents=True, exist_ok=True)
                digest = hashlib.sha256(done.stdout).hexdigest()[:12]
                path = directory / f"image-{digest}.png"
                path.write_bytes(done.stdout)
                path.chmod(0o600)
                return path
    return None


def image_command(environ: Mapping[str, str]) -> tuple[str, ...] | None:
    """Return the first program that reads an image of the clipboard, or None."""
    return next(_found(_IMAGE_COMMANDS, environ), None)


def copy_command(environ: Mapping[str, str] = os.environ) -> tuple[str, ...] | None:
    """Return the program that fills the clipboard of this machine, or None."""
    return next(_found(_CLIPBOARDS, environ), None)


def _found(
    commands: Sequence[tuple[str, tuple[str, ...]]], environ: Mapping[str, str]
) -> Iterator[tuple[str, ...]]:
    """Yield the commands that are installed and whose desktop is there."""
    for variable, command in commands:
        if (not variable or environ.get(variable)) and shutil.which(command[0]):
            yield command


def copy_sequence(text: str) -> str | None:
    """Return what has a terminal fill its clipboard; None where the text is too long for it."""
    data = base64.b64encode(text.encode("utf-8", "replace")).decode("ascii")
    return f"\x1b]52;c;{data}\x07" if len(data) <= _OSC_BYTES else None


def _json_lines(value: object) -> list[str]:
    text = json.dumps(value, ensure_ascii=False, indent=2)
    return [shown(line) for line in text.split("\n")]
