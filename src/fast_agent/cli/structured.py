"""JSON in and out of `fast-agent go`: the schema an answer must have, and the facts of a run."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING

from fast_agent.errors import ConfigError

if TYPE_CHECKING:
    from pathlib import Path

    from fast_agent.models.usage import Usage
    from fast_agent.runtime.output import OutputShape
    from fast_agent.runtime.turn_setup import TurnResult


def read_schema(path: Path) -> OutputShape:
    """Read the JSON Schema an answer must have.

    Args:
        path: The file.

    Returns:
        The shape.

    Raises:
        ConfigError: The file cannot be read, is no JSON, or no JSON Schema; with its place.
    """
    from fast_agent.diagnostics.argument_rules import BAD_JSON_SCHEMA
    from fast_agent.diagnostics.diagnostic import Diagnostic
    from fast_agent.messages.json_text import JsonTextError, parse_json
    from fast_agent.runtime.output import JsonOutput
    from fast_agent.text.source import SourceError, read_source
    from fast_agent.text.span import Span

    try:
        source = read_source(path)
    except SourceError as error:
        raise ConfigError(f"{path}: {error.message}", hint=error.hint) from error
    try:
        value = parse_json(source.text)
    except JsonTextError as error:
        found = tuple(
            Diagnostic(
                BAD_JSON_SCHEMA,
                fault.message,
                str(path),
                Span(source.position(fault.start), source.position(fault.end)),
                source_line=source.line(source.position(fault.start).line),
            )
            for fault in error.faults
        )
        raise ConfigError(f"{path} is not JSON", diagnostics=found) from error
    if not isinstance(value, Mapping):
        raise ConfigError(f"{path} holds no JSON Schema", hint="a schema is a JSON object")
    return JsonOutput(value)


def answer_facts(agent: str, result: TurnResult, usage: Usage) -> str:
    """Write the facts of a run as one JSON object."""
    facts = {
        "agent": agent,
        "text": result.text,
        "stop_reason": result.stop_reason,
        "usage": {
            "input_tokens": usage.input_tokens,
            "output_tokens": usage.output_tokens,
            "requests": usage.requests,
            "tool_calls": usage.tool_calls,
        },
        "structured": result.structured,
        "workflow": None,
    }
    return json.dumps(facts, ensure_ascii=False)
