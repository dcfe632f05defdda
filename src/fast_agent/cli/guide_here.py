"""The guide that the configuration of the working directory names, for `fast-agent resources`."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from fast_agent.resources.guide.config import GuideConfig

_SECTION = b"guide"
_MOST = 1 << 20


def guide_here(environ: Mapping[str, str] | None = None) -> GuideConfig | None:
    """Give the guide of the configuration, the same that agents read here.

    Args:
        environ: The environment; that of the process when None.

    Raises:
        ConfigError: The configuration is wrong, or its guide is.
    """
    from fast_agent.config.home import home_directory, working_directory

    environ = os.environ if environ is None else environ
    here, home = working_directory(), home_directory(environ)
    if not _may_have_one(here, home, environ):
        return None
    from fast_agent.app import FastAgent
    from fast_agent.cli.report import report_note
    from fast_agent.resources.guide.file import configured_guide

    program = FastAgent(cwd=here, environ=environ)
    guide = configured_guide(program.settings)
    for line in program.admission.lines():
        report_note(line)
    return guide


def _may_have_one(here: Path, home: Path, environ: Mapping[str, str]) -> bool:
    """Say whether a file or a variable says the word at all.

    Reading the configuration takes longer than a server over stdio takes to start, and most
    configurations name no guide.
    """
    from fast_agent.config.home import CONFIG_NAMES

    if any(name.upper().startswith("GUIDE__") for name in environ):
        return True
    for folder in (here, *here.parents, home):
        for name in CONFIG_NAMES:
            try:
                with open(folder / name, "rb") as file:  # noqa: PTH123  (this is on the way to start)
                    if _SECTION in file.read(_MOST):
                        return True
            except OSError:
                continue  # none here, or none that can be read; reading it properly tells why
    return False
