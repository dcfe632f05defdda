"""Why plain mode is on; known before anything of the terminal is imported."""

from __future__ import annotations

import os
import sys
from contextlib import suppress
from typing import TYPE_CHECKING, Final

from fast_agent.text.frozen import frozen

if TYPE_CHECKING:
    from collections.abc import Mapping

VARIABLE: Final = "FAST_AGENT_PLAIN"
_STANDARD_OUTPUT_HANDLE: Final = -11
_PROCESSED_OUTPUT, _VIRTUAL_TERMINAL = 0x1, 0x4


@frozen(kw_only=True)
class OutputFacts:
    """What the system knows about standard output.

    Args:
        is_terminal: Whether it is a terminal.
        is_posix: Whether `TERM` names the kind of the terminal.
        draws: Whether a console of Windows takes control sequences; None elsewhere.
    """

    is_terminal: bool
    is_posix: bool = True
    draws: bool | None = None


def plain_reason(
    *,
    flag: bool,
    environ: Mapping[str, str],
    setting: bool = False,
    output: OutputFacts | None = None,
) -> str | None:
    """Return why plain mode is on: flag, variable, setting, the terminal; None where it is off.

    Args:
        flag: Whether `--plain` was given.
        environ: The environment.
        setting: The setting `tui.plain`.
        output: What is known about standard output; None asks the system.
    """
    if flag:
        return "by flag"
    named = environ.get(VARIABLE, "")
    if named:
        return None if named == "0" else f"by {VARIABLE}"
    if setting:
        return "by the setting tui.plain"
    output = output or output_facts()
    if environ.get("TERM", "dumb") == "dumb" and output.is_posix:
        return "as the terminal cannot draw"
    if not output.is_terminal:
        return "as standard output is not a terminal"
    if output.draws is False:
        return "as this console takes no control sequences"
    return None


def output_facts() -> OutputFacts:
    """Ask the system about standard output; turns control sequences on in a console of Windows."""
    is_terminal = os.isatty(1)
    if sys.platform != "win32":
        return OutputFacts(is_terminal=is_terminal)
    return OutputFacts(
        is_terminal=is_terminal,
        is_posix=False,
        draws=_turn_sequences_on() if is_terminal else None,
    )


def _turn_sequences_on() -> bool:
    """Enable control sequences on a Windows console; return False if it cannot."""
    if sys.platform != "win32":
        return True
    import ctypes
    from ctypes import wintypes

    kernel = ctypes.windll.kernel32
    handle = kernel.GetStdHandle(_STANDARD_OUTPUT_HANDLE)
    mode = wintypes.DWORD()
    if not kernel.GetConsoleMode(handle, ctypes.byref(mode)):
        return True  # not a console but a terminal of another kind, such as one of ssh
    wanted = mode.value | _PROCESSED_OUTPUT | _VIRTUAL_TERMINAL
    return bool(kernel.SetConsoleMode(handle, wanted))


def may_be_set(environ: Mapping[str, str]) -> bool:
    """Whether a configuration may turn plain mode on; found without reading it as one.

    The first prompt is drawn before the configuration is read. Where a file so much as names the
    setting, nothing is drawn until it is read.
    """
    from pathlib import Path

    from fast_agent.config.home import CONFIG_NAMES, home_directory

    if any("TUI" in name and "PLAIN" in name for name in environ if name != VARIABLE):
        return True
    here = Path.cwd()
    for folder in (home_directory(environ), here, *here.parents):
        for name in CONFIG_NAMES:
            with suppress(OSError):
                if b"plain" in (folder / name).read_bytes():
                    return True
    return False
