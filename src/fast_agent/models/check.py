"""Checking models before any turn: every problem, with a place where a card or a file has one."""

from __future__ import annotations

from dataclasses import replace
from itertools import chain
from typing import TYPE_CHECKING

from fast_agent.config.providers import PROVIDERS
from fast_agent.diagnostics.diagnostic import Diagnostic
from fast_agent.diagnostics.rules import MISSING_MODEL_FILE, WRONG_MODEL_FILE
from fast_agent.errors import FastAgentError, ModelError, TrustError
from fast_agent.models.selection import select_model
from fast_agent.models.spec import LOCAL, parse_model_spec, parse_models

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from pathlib import Path

    from fast_agent.cards.card import Card
    from fast_agent.config.layer import Place
    from fast_agent.config.settings import Settings
    from fast_agent.models.selection import Selection
    from fast_agent.models.spec import ModelSpec


def check_model(
    text: str,
    settings: Settings,
    environ: Mapping[str, str],
    *,
    api_key: str | None = None,
    directory: Path | None = None,
    agent: str | None = None,
    ready: bool = True,
) -> tuple[Diagnostic, ...]:
    """Find everything that would keep a model from answering.

    Args:
        text: The spec.
        settings: The configuration.
        environ: The environment.
        api_key: The key of the card, or None.
        directory: Where relative files of the spec start; None forbids it to name files.
        agent: The agent that is to use it, or None.
        ready: Look for its key, packages and weights too; otherwise only at what was written.

    Returns:
        The problems. Those of the spec have no path: its place is known to who has it. Those in a
        file it names have their own.
    """
    try:
        specs = parse_models(text, settings.model_aliases, settings.endpoints)
    except ModelError as error:
        return error.diagnostics
    found: list[tuple[Diagnostic, ...]] = []
    for spec in specs:
        own = api_key if spec.is_reached_as(specs[0]) else None
        problems = _problems(spec, settings, environ, own, directory, agent, ready)
        if not problems and ready:
            return ()  # one that can answer is enough
        found.append(problems)
    return tuple(dict.fromkeys(chain.from_iterable(found)))


def _problems(
    spec: ModelSpec,
    settings: Settings,
    environ: Mapping[str, str],
    api_key: str | None,
    directory: Path | None,
    agent: str | None,
    ready: bool,
) -> tuple[Diagnostic, ...]:
    if spec.is_cloud:
        from fast_agent.models.access import endpoint_of, endpoint_problems

        endpoint = endpoint_of(spec, settings, environ, api_key)
        return tuple(endpoint_problems(endpoint)) if ready else ()
    if spec.provider == LOCAL:
        from fast_agent.models.access import local_problems

        return tuple(local_problems(spec, settings, environ, directory)) if ready else ()
    if spec.options.file is None:
        return ()
    return _file_problems(spec, spec.options.file, directory, agent)


def check_selection(
    selection: Selection,
    settings: Settings,
    environ: Mapping[str, str],
    *,
    api_key: str | None = None,
    agent: str | None = None,
    ready: bool = True,
) -> tuple[Diagnostic, ...]:
    """Check a chosen model; if none was chosen and the fallback is missing, say what to do.

    Args:
        selection: What was chosen.
        settings: The configuration.
        environ: The environment.
        api_key: The key of the card, or None.
        agent: The agent that is to use it, or None.
        ready: As for `check_model`.
    """
    problems = check_model(
        selection.text,
        settings,
        environ,
        api_key=api_key,
        directory=selection.directory,
        agent=agent,
        ready=ready,
    )
    if selection.source != "fallback" or not problems:
        return problems
    from fast_agent.models.access import LOCAL_REQUIREMENT

    return (
        Diagnostic(
            MISSING_MODEL_FILE.code,
            "no model is configured, and the local one is not there",
            "",
            hint=(
                f"run `pip install '{LOCAL_REQUIREMENT}'` and `fast-agent models pull smollm2`; "
                "or set a key such as `ANTHROPIC_API_KEY` and name a model such as "
                "`--model sonnet`; or use `--model passthrough`, which only echoes"
            ),
        ),
    )


def check_aliases(settings: Settings) -> tuple[Diagnostic, ...]:
    """Check every alias of the configuration, used or not, each at its place."""
    problems: list[Diagnostic] = []
    for name, text in settings.model_aliases.items():
        try:
            parse_model_spec(name, settings.model_aliases, settings.endpoints)
        except ModelError as error:
            place = settings.place_of("model_aliases", name)
            prefix = f"alias `{name}` means `{text}`: "
            for problem in error.diagnostics:
                named = replace(problem, message=f"{prefix}{problem.message}")
                problems.append(named if place is None else _moved(named, place))
    return tuple(problems)


def _check_named_models(settings: Settings) -> Iterable[Diagnostic]:
    """Check the names of `model_limits`, of which a misspelt one would limit nothing."""
    for name in settings.model_limits:
        if name in PROVIDERS or name in settings.endpoints:
            continue
        try:
            parse_model_spec(name, settings.model_aliases, settings.endpoints)
        except ModelError as error:
            place = settings.place_of("model_limits", name, key=True)
            for problem in error.diagnostics:
                yield problem if place is None else _moved(problem, place)


def check_settings(
    settings: Settings, environ: Mapping[str, str], *, cwd: Path, may_read: bool = True
) -> tuple[Diagnostic, ...]:
    """Check what the configuration says of models: its aliases and its default model.

    Args:
        settings: The configuration.
        environ: The environment.
        cwd: The working directory; relative files of specs start there.
        may_read: Whether files that the default model names may be read.
    """
    problems = [*check_aliases(settings), *_check_named_models(settings)]
    if may_read and settings.default_model and settings.default_model not in settings.model_aliases:
        place = settings.place_of("default_model")
        problems += [
            problem if problem.path or place is None else _moved(problem, place)
            for problem in check_model(
                settings.default_model, settings, environ, directory=cwd, ready=False
            )
        ]
    return tuple(problems)


def model_probe(
    settings: Settings,
    environ: Mapping[str, str],
    *,
    cwd: Path,
    flag: str | None = None,
    ready: bool = True,
) -> Callable[[Card], Iterable[Diagnostic]]:
    """Make the check of a card's model for the checks of a load-set.

    Args:
        settings: The configuration.
        environ: The environment.
        cwd: The working directory.
        flag: The value of `--model`, or None; it overrides every card's own.
        ready: Look for keys, packages and weights too.

    Returns:
        A probe. A card whose model comes from elsewhere is not blamed for it: that model is
        checked once by `check_selection`.
    """

    def probe(card: Card) -> Iterable[Diagnostic]:
        selection = select_model(card.config, settings, environ, cwd=cwd, flag=flag)
        if selection.source != "card":
            return
        from fast_agent.models.access import check_model_files

        try:
            for spec in parse_models(selection.text, settings.model_aliases, settings.endpoints):
                check_model_files(spec, selection.directory, card.config.grant)
        except ModelError:
            pass  # reported below
        except TrustError as error:
            yield Diagnostic(WRONG_MODEL_FILE.code, error.message, card.path, hint=error.hint)
            return
        for problem in check_selection(
            selection,
            settings,
            environ,
            api_key=card.config.api_key,
            agent=card.config.name,
            ready=ready,
        ):
            yield problem if problem.path else _at_card(problem, card)

    return probe


def _at_card(problem: Diagnostic, card: Card) -> Diagnostic:
    # Finding a place parses the card again, with the slow parser that knows places: only once there
    # is a problem to place.
    span = card.span_of("model")
    line = None if span is None else card.source_line(span.start.line)
    return replace(problem, path=card.path, span=span, source_line=line)


def _moved(problem: Diagnostic, place: Place) -> Diagnostic:
    return replace(problem, path=place.path, span=place.span, source_line=place.source_line)


def _file_problems(
    spec: ModelSpec, name: str, directory: Path | None, agent: str | None
) -> tuple[Diagnostic, ...]:
    from fast_agent.models.access import named_file

    try:
        path = named_file(spec, name, directory)
        if spec.provider == "playback":
            from fast_agent.messages.file import read_history

            read_history(path)
        else:
            from fast_agent.models.offline.script_file import read_script_file

            book = read_script_file(path)
            if agent is not None:
                book.script_of(agent)
    except FastAgentError as error:
        problem = Diagnostic(WRONG_MODEL_FILE.code, error.message, "", hint=error.hint)
        return error.diagnostics or (problem,)
    return ()
