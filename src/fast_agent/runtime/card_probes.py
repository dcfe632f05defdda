"""The checks of single cards by the rooms above the cards; none runs a card's code."""

from __future__ import annotations

import os
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from fast_agent.cards.card import Card
    from fast_agent.cards.load_set import Probe
    from fast_agent.config.settings import Settings
    from fast_agent.diagnostics.diagnostic import Diagnostic


def card_probes(
    workspace: Path, settings: Settings | None, environ: Mapping[str, str]
) -> tuple[Probe, ...]:
    """Give the checks of histories, functions, skills, instructions and models.

    Args:
        workspace: The directory the program works in, absolute.
        settings: The configuration; None leaves models unchecked, whose names may be aliases.
        environ: The environment.
    """
    from fast_agent.runtime.instruction_check import check_instruction
    from fast_agent.runtime.internal_documents import internal_text

    plain = (
        partial(history_probe, workspace=workspace),
        _function_probe(workspace),
        partial(skill_probe, workspace=workspace),
        partial(check_instruction, workspace=workspace, internal=internal_text),
    )
    if settings is None:
        return plain
    from fast_agent.models.check import model_probe

    return (*plain, model_probe(settings, environ, cwd=workspace, ready=False))


def _function_probe(workspace: Path) -> Probe:
    """Make the check of functions and shell directories; most cards have none."""
    check: Probe | None = None

    def probe(card: Card) -> Iterable[Diagnostic]:
        nonlocal check
        config = card.config
        if not (config.function_tools or config.tool_hooks or config.shell):
            return ()
        if check is None:
            from fast_agent.tools.card_functions import FunctionCheck

            check = FunctionCheck(workspace)
        return check(card)

    return probe


def history_probe(card: Card, *, workspace: Path | None = None) -> Iterator[Diagnostic]:
    """Find what is wrong with the files under `messages`.

    Args:
        card: A card; nothing is read for one from a web address.
        workspace: Where paths of an agent made in Python start; None leaves them unread.

    Yields:
        Problems in a file at their place in it; for a file that cannot be read at all, at the name
        in the card.
    """
    directory = card.config.directory or workspace
    if not card.config.messages or directory is None or card.config.remote is not None:
        return
    from fast_agent.messages.file import check_history_file

    for index, name in enumerate(card.config.messages):
        shown = str(Path(card.path).parent / name) if card.path else None
        grant = card.config.grant
        check = None if grant is None else grant.check_read
        for problem in check_history_file(directory / name, shown=shown, check=check):
            yield problem if problem.span is not None else _in_card(card, index, problem)


def _in_card(card: Card, index: int, problem: Diagnostic) -> Diagnostic:
    span = card.span_of("messages", index)
    line = None if span is None else card.source_line(span.start.line)
    return replace(problem, path=card.path, span=span, source_line=line)


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
