"""JSON in and out of `fast-agent go`: the schema an answer must have, and the facts of a run."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, cast

from fast_agent.diagnostics.diagnostic import Diagnostic
from fast_agent.diagnostics.rules import BAD_JSON_SCHEMA
from fast_agent.errors import ConfigError
from fast_agent.text.span import Span
from fast_agent.text.wording import closest, did_you_mean

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from fast_agent.agents.output import OutputShape
    from fast_agent.agents.turn_context import TurnResult
    from fast_agent.models.model import Usage
    from fast_agent.text.json_value import JsonValue
    from fast_agent.text.source import Source

_TYPES = ("object", "array", "string", "number", "integer", "boolean", "null")


def read_schema(path: Path) -> OutputShape:
    """Read the JSON Schema an answer must have.

    Args:
        path: The file.

    Returns:
        The shape.

    Raises:
        ConfigError: The file cannot be read, is not JSON, or no JSON Schema; with its place.
    """
    from fast_agent.agents.output import JsonOutput
    from fast_agent.messages.json_text import JsonTextError, parse_json
    from fast_agent.text.source import SourceError, read_source

    shown = str(path)
    try:
        source = read_source(path, shown=shown)
    except SourceError as error:
        found = Diagnostic(BAD_JSON_SCHEMA, error.message, shown, error.span, hint=error.hint)
        raise _refusal(shown, (found,)) from error
    try:
        value = parse_json(source.text)
    except JsonTextError as error:
        spans = [
            (fault, Span(source.position(fault.start), source.position(fault.end)))
            for fault in error.faults
        ]
        found = tuple(_problem(source, fault.message, span) for fault, span in spans)
        raise _refusal(shown, found) from error
    problems = tuple(_schema_problems(source, value))
    if problems or not isinstance(value, Mapping):
        raise _refusal(shown, problems)
    return JsonOutput(value)


def _schema_problems(source: Source, value: JsonValue) -> Iterator[Diagnostic]:
    """Find every place where a value is not a JSON Schema."""
    from jsonschema.validators import validator_for

    from fast_agent.text.yaml_document import YamlError, parse_yaml

    try:
        document = parse_yaml(source.text)
    except YamlError:
        document = None

    def span(keys: tuple[str | int, ...] = ()) -> Span | None:
        return None if document is None else document.span_of(keys)

    if not isinstance(value, Mapping):
        yield _problem(source, "the file holds no JSON Schema", span(), "a schema is an object")
        return
    kind = validator_for(value)
    faults = kind(kind.META_SCHEMA).iter_errors(value)
    for fault in sorted(faults, key=lambda one: [str(key) for key in one.absolute_path]):
        keys = tuple(fault.absolute_path)
        if keys[-1:] == ("type",) and isinstance(fault.instance, str):
            near = closest(fault.instance, _TYPES)
            hint = did_you_mean(near, f"the types are {', '.join(_TYPES)}")
            message = f"JSON Schema has no type `{fault.instance}`"
        else:
            message, hint = f"`{fault.json_path}` is wrong: {fault.message}", None
        yield _problem(source, message, span(keys), hint)


def _problem(
    source: Source, message: str, span: Span | None, hint: str | None = None
) -> Diagnostic:
    line = None if span is None else source.line(span.start.line)
    return Diagnostic(BAD_JSON_SCHEMA, message, source.path, span, hint=hint, source_line=line)


def _refusal(shown: str, problems: Sequence[Diagnostic]) -> ConfigError:
    return ConfigError(
        f"{shown}: {problems[0].message}", hint=problems[0].hint, diagnostics=problems
    )


def answer_facts(agent: str, result: TurnResult, usage: Usage) -> dict[str, JsonValue]:
    """Return the facts of a run as a JSON object."""
    return {
        "agent": agent,
        "text": result.text,
        "stop_reason": result.stop_reason,
        "usage": {
            "input_tokens": usage.input_tokens,
            "output_tokens": usage.output_tokens,
            "requests": usage.requests,
            "tool_calls": usage.tool_calls,
            "cost": usage.cost,
        },
        "context": None if result.context is None else result.context.to_json(),
        "structured": cast("JsonValue", result.structured),
        "workflow": result.workflow,
    }
