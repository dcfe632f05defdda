"""What options request in addition to cards: servers, a model, histories, a store."""

from __future__ import annotations

import os
import shlex
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from fast_agent.cli.output import report_diagnostics, report_note
from fast_agent.errors import ConfigError, ModelError
from fast_agent.text.suggestion import closest, did_you_mean

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from fast_agent.agents.runtime_options import RuntimeOptions
    from fast_agent.app import FastAgent
    from fast_agent.cards.agent_config import ChildHistory, HistorySource, HistoryTarget
    from fast_agent.engine.conversation_steps import ConversationSteps
    from fast_agent.sessions.log import StepRecords
    from fast_agent.sessions.store import SessionStore


def known_servers(program: FastAgent, wanted: Sequence[str]) -> list[str]:
    """Return the servers named by `--servers` that the configuration defines.

    Args:
        program: The program.
        wanted: Names, several in one with commas between.
    """
    return [name for name in _named(wanted) if name in program.server_names]


def check_servers(program: FastAgent, wanted: Sequence[str]) -> None:
    """Check that the configuration defines every server named by `--servers`.

    Raises:
        TrustError: One of them may not act.
        ConfigError: It does not.
    """
    for name in _named(wanted):
        if name not in program.server_names:
            program.admission.decisions.check_server(name)
            near = closest(name, program.server_names)
            raise ConfigError(
                f"--servers names `{name}`, which the configuration does not define",
                hint=did_you_mean(near, "define it under `mcp.servers`"),
            )


def check_model(program: FastAgent, model: str | None) -> None:
    """Check that `--model` names a model, if it is passed.

    Raises:
        TrustError: It goes through a setting of a project that is not approved.
        ModelError: It is none; with every problem.
    """
    if model is None:
        return
    from fast_agent.models.check import check_model as problems_of

    settings = program.settings
    program.admission.check_model(model)
    problems = problems_of(model, settings, os.environ, directory=program.workspace, ready=False)
    if problems:
        first = problems[0]
        raise ModelError(first.message, hint=first.hint, diagnostics=problems)


def report_warnings(
    program: FastAgent, most: int | None = None, cards: Sequence[Path | str] = ()
) -> None:
    """Print the warnings of the configuration and the cards.

    Args:
        program: The program, with its cards loaded.
        most: How many are printed; the others are counted. None prints all.
        cards: The cards that were named, for the command that prints the others.
    """
    notes = (*program.settings.warnings, *program.snapshot.notes)
    warnings = [note for note in notes if note.severity == "warning"]
    if warnings:
        report_diagnostics(warnings[:most])
    program.mark_reported(warnings)
    more = len(warnings[most:]) if most is not None else 0
    if more:
        check = shlex.join(["fast-agent", "check", *map(str, cards)])
        report_note(f"… {more} more: {check}")


def child_history(
    source: HistorySource | None, merge_target: HistoryTarget | None
) -> ChildHistory | None:
    """Return the histories of called agents, if an option sets them."""
    if source is None and merge_target is None:
        return None
    from fast_agent.cards.agent_config import ChildHistory

    return ChildHistory(source=source, merge_target=merge_target)


def session_store(program: FastAgent, *, waits: bool = False) -> SessionStore:
    """Return the store of sessions the configuration names.

    Args:
        program: The program.
        waits: Whether a session in a database that another server uses is waited for, for as long
            as that server may keep it without answering.

    Raises:
        ConfigError: `sessions.url` names a database that cannot be used.
    """
    from fast_agent.config.bounds import LEASE_SECONDS
    from fast_agent.config.home import home_directory
    from fast_agent.sessions.store import SessionStore

    settings = program.settings.sessions
    return SessionStore(
        settings.url or home_directory(os.environ),
        disk_seconds=settings.disk_seconds,
        lease_seconds=settings.lease_seconds,
        wait_seconds=(settings.lease_seconds or LEASE_SECONDS) + 1 if waits else 0.0,
        redact=program.redact,
        provenance=program.admission.decisions.provenance,
        steps=partial(_turn_steps, program),
    )


def _turn_steps(program: FastAgent, place: Path | StepRecords) -> ConversationSteps:
    from fast_agent.engine.conversation_steps import ConversationSteps
    from fast_agent.steps.parts import StepRedactor

    return ConversationSteps(place, StepRedactor(program.secrets(), str(program.workspace)))


def _named(wanted: Sequence[str]) -> list[str]:
    names = [name.strip() for one in wanted for name in one.split(",")]
    return [name for name in names if name]


def allowing(texts: Sequence[str]) -> Callable[[RuntimeOptions], RuntimeOptions]:
    """Return what gives agents the calls that `--allow` permits.

    Args:
        texts: The patterns.

    Raises:
        ConfigError: One of them is not a pattern of calls.
    """
    from fast_agent.tools.allowed_calls import AllowedCalls

    allowed = AllowedCalls.read(texts)
    return lambda options: replace(options, allowed=allowed)
