"""The check of the skill directories a card names, made when cards are loaded or checked."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from fast_agent.cards.card import Card
    from fast_agent.diagnostics.diagnostic import Diagnostic


def skill_probe(card: Card, *, workspace: Path) -> Iterator[Diagnostic]:
    """Find the directories under `skills` that are none.

    Args:
        card: A card; one from a web address names no directories here.
        workspace: Where paths of an agent made in Python start.

    Yields:
        A problem at the name in the card.
    """
    config = card.config
    if not config.skills or config.remote is not None:
        return
    start = config.directory or workspace
    for index, name in enumerate(config.skills):
        path = os.path.join(start, name)  # noqa: PTH118  (as `AgentSkills` reads it)
        if os.path.isdir(path):  # noqa: PTH112
            continue
        from fast_agent.diagnostics.diagnostic import Diagnostic
        from fast_agent.diagnostics.rules import SKILL_ROOT

        is_file = os.path.exists(path)  # noqa: PTH110
        message = f"`{name}` {'is no folder' if is_file else 'does not exist'}"
        # `skills: DIR` stands for a list of one.
        span = card.span_of("skills", index) or card.span_of("skills")
        yield Diagnostic(
            SKILL_ROOT,
            f"the folder of skills {message}",
            card.path,
            span,
            SKILL_ROOT.severity,
            "name a folder beside the card that holds skills, or write `skills: []` for none",
            source_line=None if span is None else card.source_line(span.start.line),
        )
