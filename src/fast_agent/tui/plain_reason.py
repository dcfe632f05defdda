"""Why plain mode is on; known before anything of the terminal is imported."""

from __future__ import annotations

import os
from contextlib import suppress
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Mapping

VARIABLE: Final = "FAST_AGENT_PLAIN"


def plain_reason(*, flag: bool, environ: Mapping[str, str], setting: bool = False) -> str | None:
    """Return why plain mode is on: flag, variable, setting, the terminal; None where it is off."""
    if flag:
        return "by flag"
    named = environ.get(VARIABLE, "")
    if named:
        return None if named == "0" else f"by {VARIABLE}"
    if setting:
        return "by the setting tui.plain"
    if environ.get("TERM", "dumb") == "dumb" and os.name == "posix":
        return "as the terminal cannot draw"
    if not os.isatty(1):
        return "as standard output is not a terminal"
    return None


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
