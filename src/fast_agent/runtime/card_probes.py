"""The checks of single cards by the rooms above the cards; none runs a card's code."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from fast_agent.cards.load_set import Probe
    from fast_agent.config.settings import Settings


def card_probes(
    workspace: Path, settings: Settings | None, environ: Mapping[str, str]
) -> tuple[Probe, ...]:
    """Give the checks of histories, functions, skills, instructions and models.

    Args:
        workspace: The directory the program works in, absolute.
        settings: The configuration; None leaves models unchecked, whose names may be aliases.
        environ: The environment.
    """
    from fast_agent.messages.history_probe import history_probe
    from fast_agent.resources.skill.probe import skill_probe
    from fast_agent.runtime.instruction_check import check_instruction
    from fast_agent.runtime.internal_documents import internal_text
    from fast_agent.tools.card_functions import FunctionCheck

    plain = (
        partial(history_probe, workspace=workspace),
        FunctionCheck(workspace),
        partial(skill_probe, workspace=workspace),
        partial(check_instruction, workspace=workspace, internal=internal_text),
    )
    if settings is None:
        return plain
    from fast_agent.models.check import model_probe

    return (*plain, model_probe(settings, environ, cwd=workspace, ready=False))
