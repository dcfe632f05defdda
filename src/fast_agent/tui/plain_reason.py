"""Why plain mode is on; known before anything of the terminal is imported."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Mapping

VARIABLE: Final = "FAST_AGENT_PLAIN"


def plain_reason(*, flag: bool, environ: Mapping[str, str]) -> str | None:
    """Return why plain mode is on: flag, variable, then the terminal; None where it is off."""
    if flag:
        return "by flag"
    named = environ.get(VARIABLE, "")
    if named:
        return None if named == "0" else f"by {VARIABLE}"
    if environ.get("TERM", "dumb") == "dumb" and os.name == "posix":
        return "as the terminal cannot draw"
    if not os.isatty(1):
        return "as standard output is not a terminal"
    return None
