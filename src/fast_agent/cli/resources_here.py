"""What a directory brings to `fast-agent resources`: skills and a guide, as far as they may act."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, NamedTuple

from fast_agent.config.home import CONFIG_NAMES, GUIDE_FILE, user_home, usual_skill_folders

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from fast_agent.app import FastAgent
    from fast_agent.diagnostics.diagnostic import Diagnostic
    from fast_agent.resources.guide.config import GuideConfig
    from fast_agent.resources.skill.options import SkillJudge

_SECTION = b"guide"
_MAX_BYTES = 1 << 20


class ResourcesHere(NamedTuple):
    """What may be offered of a directory.

    Args:
        guide: The guide of the configuration, the same that agents read here; None for none.
        judge: Decides which of the skills may be used; None where there are none.
        has_guide: Whether the `.guide.yaml` of the directory counts.
    """

    guide: GuideConfig | None = None
    judge: SkillJudge | None = None
    has_guide: bool = True


def resources_here(environ: Mapping[str, str] | None = None) -> ResourcesHere:
    """Decide about skills and guides that are found in the working directory.

    Args:
        environ: The environment; that of the process when None.

    Raises:
        ConfigError: The configuration is wrong, or its guide is.
    """
    from fast_agent.config.home import home_directory, working_directory

    environ = os.environ if environ is None else environ
    here, home = working_directory(), home_directory(environ)
    if not _may_bring_something(here, home, environ):
        return ResourcesHere()
    from fast_agent.app import FastAgent
    from fast_agent.cli.loading import expect_cards
    from fast_agent.cli.report import report_left_out
    from fast_agent.resources.guide.file import configured_guide

    program = FastAgent(cwd=here, environ=environ)
    # Cards decide who else gets the skills, so the result is the one `go` has here.
    expect_cards(program, cards=())
    has_guide = expect_guide(program)
    guide = configured_guide(program.settings)
    program.admission.decisions.decide()
    for line in program.admission.decisions.lines():
        report_left_out(line)
    return ResourcesHere(
        guide,
        program.admission.skills,
        has_guide and program.admission.decisions.allows_guide(GUIDE_FILE),
    )


def expect_guide(program: FastAgent) -> bool:
    """Read the guide of the working directory, before it is decided about.

    Returns:
        Whether there is one.
    """
    from fast_agent.config.layer import read_layer

    file = program.workspace / GUIDE_FILE
    if not os.path.lexists(file):
        return False
    problems: list[Diagnostic] = []
    layer = read_layer(file, GUIDE_FILE, problems)
    if layer is not None:
        program.admission.expected.add_files(program.workspace, guides=[layer])
    return True  # one that cannot be read is an error where it is opened


def _may_bring_something(here: Path, home: Path, environ: Mapping[str, str]) -> bool:
    """Return whether there are skills or guides here at all.

    Reading the configuration takes longer than a server over stdio takes to start, and most
    directories have neither.
    """
    if any(name.upper().startswith("GUIDE__") for name in environ):
        return True
    skills = usual_skill_folders(here, user_home(environ), with_own=False)
    if any(map(os.path.lexists, (*skills, here / GUIDE_FILE))):
        return True
    for folder in (here, *here.parents, home):
        for name in CONFIG_NAMES:
            try:
                with open(folder / name, "rb") as file:  # noqa: PTH123  (this is on the way to start)
                    if _SECTION in file.read(_MAX_BYTES):
                        return True
            except OSError:
                continue  # none here, or none that can be read; reading it properly reports why
    return False
