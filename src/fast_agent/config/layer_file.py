"""Reading a configuration file as a layer: its text, what it holds, and what is wrong with it."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from fast_agent.config.layer import FileLayer, Place, place_in
from fast_agent.diagnostics.config_rules import INVALID_CONFIG_YAML, UNREADABLE_CONFIG
from fast_agent.diagnostics.diagnostic import Related
from fast_agent.text.source import SourceError, read_source
from fast_agent.text.yaml_document import YamlError, parse_yaml

if TYPE_CHECKING:
    from pathlib import Path

    from fast_agent.diagnostics.diagnostic import Diagnostic
    from fast_agent.text.source import Source
    from fast_agent.text.yaml_nodes import YamlProblem


def read_layer(
    path: Path, shown: str, problems: list[Diagnostic], *, secret: bool = False
) -> FileLayer | None:
    """Read a configuration file.

    Args:
        path: The file.
        shown: What messages call it.
        problems: Takes what is wrong with it.
        secret: Whether its lines are never shown.

    Returns:
        The layer; None where there is a problem.
    """
    try:
        source = read_source(path, shown=shown)
    except SourceError as error:
        place = Place(shown, error.span)
        message = f"the configuration cannot be read: {error.message}"
        problems.append(place.problem(UNREADABLE_CONFIG, message, error.hint))
        return None
    try:
        document = parse_yaml(source.text)
    except YamlError as error:
        problems.extend(_yaml_problem(item, source, secret=secret) for item in error.problems)
        return None
    return FileLayer(source, document, path.parent, secret)


def _yaml_problem(problem: YamlProblem, source: Source, *, secret: bool) -> Diagnostic:
    place = place_in(source, problem.span, secret=secret)
    diagnostic = place.problem(INVALID_CONFIG_YAML, problem.message, problem.hint)
    if problem.first is None:
        return diagnostic
    return replace(diagnostic, related=(Related("first given here", source.path, problem.first),))
