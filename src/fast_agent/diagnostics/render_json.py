"""Problems and cards as one JSON object, for programs."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

    from fast_agent.diagnostics.diagnostic import CardFact, Diagnostic
    from fast_agent.text.json_value import JsonObject
    from fast_agent.text.span import Position, Span

_START: JsonObject = {"line": 1, "column": 1}


def render_json(cards: Iterable[CardFact], diagnostics: Iterable[Diagnostic]) -> str:
    """Render what `check --format json` prints.

    Lines and columns count from 1, columns in characters; `end` is just after the last one.
    A problem of a whole file has both at 1:1.

    Args:
        cards: The cards of the load-set, in load order.
        diagnostics: The problems, in the order to print them.

    Returns:
        One JSON object on several lines, with a final line end.
    """
    report = {
        "cards": [_card(fact) for fact in cards],
        "diagnostics": [_diagnostic(found) for found in diagnostics],
    }
    # ASCII escapes keep lone surrogates and bidirectional controls out of a terminal.
    return json.dumps(report, indent=2) + "\n"


def _card(fact: CardFact) -> JsonObject:
    return {
        "name": fact.name,
        "type": fact.type,
        "path": fact.path,
        "default": fact.default,
        "tool_only": fact.tool_only,
    }


def _diagnostic(found: Diagnostic) -> JsonObject:
    start, end = _ends(found.span)
    return {
        "code": found.code,
        "severity": found.severity,
        "message": found.message,
        "path": found.path,
        "start": start,
        "end": end,
        "hint": found.hint,
        "fix": _fix(found),
    }


def _fix(found: Diagnostic) -> JsonObject | None:
    if found.fix is None:
        return None
    start, end = _ends(found.fix.span)
    return {"replacement": found.fix.replacement, "start": start, "end": end}


def _ends(span: Span | None) -> tuple[JsonObject, JsonObject]:
    return (_START, _START) if span is None else (_position(span.start), _position(span.end))


def _position(position: Position) -> JsonObject:
    return {"line": position.line, "column": position.column}
