"""Programs a user starts from the terminal: editor, pager, shell commands, the clipboard."""

from __future__ import annotations

import base64
import json
import os
import shlex
import shutil
import signal
import subprocess
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Final

import anyio

from fast_agent.text.visible import visible_lines
from fast_agent.tui.markdown import MarkdownRenderer
from fast_agent.tui.rows import shown

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from fast_agent.messages.message import Message, ToolCall, ToolResult
    from fast_agent.tui.theme import Theme

_OUTPUT: Final = 8 << 10
_GRACE_SECONDS: Final = ((signal.SIGINT, 2.0), (signal.SIGTERM, 5.0))
_CLIPBOARDS: Final = (
    ("WAYLAND_DISPLAY", ("wl-copy",)),
    ("DISPLAY", ("xclip", "-selection", "clipboard")),
    ("DISPLAY", ("xsel", "--clipboard", "--input")),
)
_OSC_BYTES: Final = 74_000


def edited(text: str) -> str:
    """Let the user's editor change a text.

    Raises:
        OSError: The editor cannot be run.
    """
    command = os.environ.get("VISUAL") or os.environ.get("EDITOR") or "vi"
    with tempfile.TemporaryDirectory(prefix="fast-agent-") as directory:
        path = Path(directory) / "message.md"
        path.write_text(text, encoding="utf-8")
        subprocess.run([*shlex.split(command), str(path)], check=False)
        return path.read_text(encoding="utf-8", errors="replace").removesuffix("\n")


def page(text: str) -> None:
    """Show a text in the user's pager.

    Raises:
        OSError: The pager cannot be run.
    """
    command = shlex.split(os.environ.get("PAGER") or "less")
    if Path(command[0]).name == "less":
        command += ["-R", "-+F", "+G"]
    subprocess.run(command, input=text.encode("utf-8", "replace"), check=False)


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


def call_text(call: ToolCall, result: ToolResult | None, theme: Theme) -> str:
    """Draw a call and its result whole, for the pager."""
    lines = [theme.strong(shown(call.name)), *_json_lines(dict(call.arguments)), ""]
    if result is None:
        lines.append(theme.dim("it is still running"))
    else:
        lines.append(theme.error("failed") if result.is_error else theme.dim("result"))
        lines += [shown(line) for line in result.text.split("\n")]
    return "\n".join(lines) + "\n"


async def run_command_line(
    command: str, directory: Path, show: Callable[[Sequence[str]], None]
) -> str:
    """Run a command of the user's in a shell, and show its output as it comes.

    Args:
        command: The command line.
        directory: Where it runs.
        show: Takes lines of its output.

    Returns:
        The head and the tail of its output, and its status where that is not 0.
    """
    output = _Output(show)
    process = await anyio.open_process(
        command,
        cwd=directory,
        stdin=subprocess.DEVNULL,
        stderr=subprocess.STDOUT,
        start_new_session=True,
    )
    try:
        if process.stdout is not None:
            async for piece in process.stdout:
                output.take(piece.decode("utf-8", "replace"))
        status = await process.wait()
    except BaseException:
        with anyio.CancelScope(shield=True):
            await _end(process.pid, process.wait)
        raise
    finally:
        output.finish()
        with anyio.CancelScope(shield=True):
            await process.aclose()
    if status:
        show([f"exit status {status}"])
    return output.text + (f"\nexit status {status}" if status else "")


class _Output:
    """The output of a command: all of it is shown, its head and tail are kept."""

    def __init__(self, show: Callable[[Sequence[str]], None]) -> None:
        self._show = show
        self._rest = ""
        self._kept = ""

    def take(self, text: str) -> None:
        self._kept += text
        if len(self._kept) > 2 * _OUTPUT:
            self._kept = self._kept[: _OUTPUT // 2] + "\n…\n" + self._kept[-_OUTPUT // 2 :]
        *lines, self._rest = (self._rest + text).split("\n")
        if lines:
            self._show(lines)

    def finish(self) -> None:
        if self._rest:
            self._show([self._rest])
            self._rest = ""

    @property
    def text(self) -> str:
        kept = self._kept
        if len(kept) > _OUTPUT:
            kept = kept[: _OUTPUT // 2] + "\n…\n" + kept[-_OUTPUT // 2 :]
        return kept.removesuffix("\n")


async def _end(group: int, wait: Callable[[], object]) -> None:
    """End a process group step by step: interrupt, terminate, kill."""
    for number, grace in _GRACE_SECONDS:
        with suppress(ProcessLookupError):
            os.killpg(group, number)
        with anyio.move_on_after(grace):
            await wait()  # type: ignore[misc]
            return
    with suppress(ProcessLookupError):
        os.killpg(group, signal.SIGKILL)


def copy_command() -> tuple[str, ...] | None:
    """Return the program that fills the clipboard of this machine, or None."""
    for variable, command in _CLIPBOARDS:
        if os.environ.get(variable) and shutil.which(command[0]):
            return command
    return ("pbcopy",) if shutil.which("pbcopy") else None


def copy_sequence(text: str) -> str | None:
    """Return what has a terminal fill its clipboard; None where the text is too long for it."""
    data = base64.b64encode(text.encode("utf-8", "replace")).decode("ascii")
    return f"\x1b]52;c;{data}\x07" if len(data) <= _OSC_BYTES else None


def _json_lines(value: object) -> list[str]:
    text = json.dumps(value, ensure_ascii=False, indent=2)
    return [shown(line) for line in text.split("\n")]
