"""Doctor: what is known about the terminal, and how; printed by `go --doctor`.

What a terminal can do is asked of it, or known from what the environment says. A terminal that does
not reply is reported as such, never guessed at.
"""

from __future__ import annotations

import locale
import os
import re
import shlex
import shutil
from functools import partial
from typing import TYPE_CHECKING, Final

from fast_agent.text.frozen import frozen
from fast_agent.tui.drawing.images import REQUIREMENT as IMAGES
from fast_agent.tui.drawing.images import has_pillow, image_source
from fast_agent.tui.drawing.rows import shown
from fast_agent.tui.drawing.screen import Screen, terminal_size
from fast_agent.tui.drawing.theme import Theme, link_source
from fast_agent.tui.input.keyboard import ask_terminal
from fast_agent.tui.programs import copy_command, image_command, notifies_by_message

if TYPE_CHECKING:
    from collections.abc import Mapping

    from fast_agent.config.settings import TuiSettings

_QUESTION: Final = (
    "\x1b[>0q\x1b[?2026$p\x1b[?u\x1b]11;?\x07\x1b_Gi=31,s=1,v=1,a=q,t=d,f=24;AAAA\x1b\\\x1b[c"
)
"""Name, synchronized output, extended keys, background, images; last what every one replies to."""
_REPLY_SECONDS: Final = 0.5
_NAME: Final = re.compile(rb"\x1bP>\|([^\x1b\x07]{1,100})(?:\x1b\\|\x07)")
_SYNCHRONIZED: Final = re.compile(rb"\x1b\[\?2026;([0-4])\$y")
_EXTENDED_KEYS: Final = re.compile(rb"\x1b\[\?\d{1,4}u")
_BACKGROUND: Final = re.compile(
    rb"\x1b\]11;rgb:([0-9a-fA-F]{1,4})/([0-9a-fA-F]{1,4})/([0-9a-fA-F]{1,4})"
)
_KITTY_IMAGES: Final = re.compile(rb"\x1b_Gi=31;OK\x1b\\")
_END: Final = re.compile(rb"\x1b\[\?([0-9;]*)c")
_SIXEL: Final = b"4"
"""Among the attributes of a terminal: it draws sixels."""
_WITHIN: Final = {
    "TMUX": "tmux",
    "STY": "screen",
    "ZELLIJ": "zellij",
    "SSH_CONNECTION": "ssh",
    "WSL_DISTRO_NAME": "WSL",
}
"""What a terminal is reached through, by the variable that each sets."""


@frozen(kw_only=True)
class TerminalReplies:
    """What a terminal said about itself.

    Args:
        answered: Whether it replied at all.
        name: Its name and version; empty where it did not say.
        synchronized: Whether it draws a frame at once; None where it did not say.
        extended_keys: Whether it reports keys by the kitty protocol.
        background: Its background, `rrggbb`; empty where it did not say.
        images: The protocols of images it says it draws.
    """

    answered: bool = False
    name: str = ""
    synchronized: bool | None = None
    extended_keys: bool = False
    background: str = ""
    images: tuple[str, ...] = ()


def read_replies(data: bytes) -> TerminalReplies:
    """Read what a terminal replied; whatever else it holds is ignored."""
    name = _NAME.search(data)
    synchronized = _SYNCHRONIZED.search(data)
    background = _BACKGROUND.search(data)
    end = _END.search(data)
    is_sixel = end is not None and _SIXEL in end[1].split(b";")[1:]
    images = {"kitty": _KITTY_IMAGES.search(data) is not None, "sixel": is_sixel}
    return TerminalReplies(
        answered=end is not None,
        name=name[1].decode("utf-8", "replace") if name else "",
        synchronized=synchronized[1] in b"123" if synchronized else None,
        extended_keys=_EXTENDED_KEYS.search(data) is not None,
        background="".join(map(_two_digits, background.groups())) if background else "",
        images=tuple(name for name, is_drawn in images.items() if is_drawn),
    )


def report(environ: Mapping[str, str], settings: TuiSettings, plain: str | None) -> str:
    """Describe this terminal, a line for each thing; asks it where it can reply.

    Args:
        environ: The environment.
        settings: How the terminal should look.
        plain: Why plain mode is on, or None.
    """
    replies = TerminalReplies()
    is_terminal = os.isatty(0) and os.isatty(1)
    if is_terminal and environ.get("TERM", "") not in {"", "dumb"}:
        send = partial(Screen(1, terminal_size).send, _QUESTION)
        replies = read_replies(ask_terminal(send, _is_complete, _REPLY_SECONDS))
    columns, rows = terminal_size()
    encoding = locale.getencoding()
    facts = {
        "input": _stream(0),
        "output": _stream(1) + (f", {columns} x {rows}" if os.isatty(1) else ""),
        **terminal_facts(environ, replies, encoding),
        **_drawing_facts(environ, settings, plain, encoding),
        "images": _images(environ, settings, replies, plain),
        **_program_facts(environ, settings),
    }
    width = max(map(len, facts)) + 2
    return "".join(f"{name:<{width}}{shown(value)}\n" for name, value in facts.items())


def terminal_facts(
    environ: Mapping[str, str], replies: TerminalReplies, encoding: str
) -> dict[str, str]:
    """Describe the terminal itself, each with where it is known from."""
    program = f"{environ.get('TERM_PROGRAM', '')} {environ.get('TERM_PROGRAM_VERSION', '')}".strip()
    name = replies.name or (f"{program} (TERM_PROGRAM)" if program else "unknown")
    within = [f"{what} ({key})" for key, what in _WITHIN.items() if environ.get(key)]
    said = {True: "yes", False: "no", None: "it does not say"}
    silent = "no reply to questions"
    return {
        "terminal": name,
        "TERM": environ.get("TERM", "") or "not set",
        "within": ", ".join(within) or "nothing known",
        "replies": "yes" if replies.answered else silent,
        "background": f"#{replies.background}" if replies.background else "it does not say",
        "whole frames": said[replies.synchronized],
        "extended keys": "yes (kitty)" if replies.extended_keys else "not by the kitty protocol",
        "encoding": encoding,
    }


def _drawing_facts(
    environ: Mapping[str, str], settings: TuiSettings, plain: str | None, encoding: str
) -> dict[str, str]:
    theme = Theme.of_environment(environ, encoding=encoding, name=settings.theme)
    by = "COLORTERM" if theme.depth > 256 else "TERM"
    source = link_source(environ) if plain is None else None
    off = next((name for name in ("NO_COLOR", "CLICOLOR", "FORCE_COLOR") if environ.get(name)), "")
    colors = f"{theme.depth:,}, by {by}" if theme.color else f"none, by {off or 'the theme'}"
    return {
        "drawing": "as rows" if plain is None else f"plain lines, {plain}",
        "colours": colors,
        "theme": settings.theme,
        "signs": "ASCII" if theme.ascii_only else "Unicode",
        "links": f"yes, by {source}" if source else "as text with their address",
    }


def _images(
    environ: Mapping[str, str], settings: TuiSettings, replies: TerminalReplies, plain: str | None
) -> str:
    """Describe whether images are drawn, and what would draw them where they are only named."""
    drawing, source = settings.images, image_source(environ)
    if drawing != "auto":
        source = None if drawing == "off" else (drawing, "tui.images")
    if plain is not None or drawing == "off":
        return "named"
    if source is None:
        able = " or ".join(f"`tui.images: {name}`" for name in replies.images)
        return f"named; {able} draws them" if able else "named"
    what = "this needs" if source[0] == "sixel" else "formats other than PNG need"
    needs = "" if has_pillow() else f"; {what} `pip install '{IMAGES}'`"
    return f"drawn ({source[0]}), by {source[1]}{needs}"


def _program_facts(environ: Mapping[str, str], settings: TuiSettings) -> dict[str, str]:
    editor = environ.get("VISUAL") or environ.get("EDITOR") or "vi"
    copied, image = copy_command(environ), image_command(environ)
    message = notifies_by_message(environ) and settings.notify == "auto"
    return {
        "notification": "off" if settings.notify == "off" else "message" if message else "bell",
        "clipboard": copied[0] if copied else "by the terminal (OSC 52)",
        "pasted images": image[0] if image else "none; needs `wl-paste`, `xclip` or `pngpaste`",
        "editor": _program(editor),
        "pager": _program(environ.get("PAGER") or "less"),
    }


def _program(command: str) -> str:
    try:
        name = shlex.split(command)[0]
    except (ValueError, IndexError):
        return f"{command} (not a command line)"
    return command if shutil.which(name) else f"{command} (not found)"


def _stream(descriptor: int) -> str:
    return "terminal" if os.isatty(descriptor) else "not a terminal"


def _two_digits(channel: bytes) -> str:
    return f"{round(int(channel, 16) * 255 / (16 ** len(channel) - 1)):02x}"


def _is_complete(data: bytes) -> bool:
    return _END.search(data) is not None
