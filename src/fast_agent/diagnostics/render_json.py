"""Problems and cards as JSON for programs, and as SARIF 2.1.0 for editors and code hosts."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

from fast_agent.diagnostics.rulebook import rules

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from fast_agent.diagnostics.diagnostic import CardFact, Diagnostic, Fix
    from fast_agent.diagnostics.rules import Rule
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


_LEVELS = {"error": "error", "warning": "warning", "info": "note"}
_SCHEMA = (
    "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
)


def render_sarif(
    cards: Iterable[CardFact],
    diagnostics: Iterable[Diagnostic],
    *,
    version: str,
) -> str:
    """Render one SARIF log with one run.

    Args:
        cards: The cards of the load-set; they go into the run's property bag.
        diagnostics: The problems, in the order to print them.
        version: The version of this program.

    Returns:
        The log as JSON with a final line end.
    """
    found = list(diagnostics)
    known = rules()
    used = [known[code] for code in sorted({one.code for one in found}) if code in known]
    index = {rule.code: number for number, rule in enumerate(used)}
    driver: JsonObject = {
        "name": "fast-agent",
        "semanticVersion": version,
        "rules": [_rule(rule) for rule in used],
    }
    run: JsonObject = {
        "tool": {"driver": driver},
        "columnKind": "unicodeCodePoints",
        "results": [_result(one, index) for one in found],
        "properties": {"cards": [_sarif_card(fact) for fact in cards]},
    }
    log: JsonObject = {"$schema": _SCHEMA, "version": "2.1.0", "runs": [run]}
    return json.dumps(log, indent=2) + "\n"


def artifact_uri(path: str) -> str:
    """Write a path as SARIF wants it: a relative reference, or an absolute `file:` address."""
    from urllib.parse import quote  # only this format needs it

    if path.startswith(("http://", "https://")):
        return path
    named = Path(path)
    if named.is_absolute():
        return named.as_uri()
    return quote(named.as_posix(), safe="/")


def _rule(rule: Rule) -> JsonObject:
    page = rule.page.strip()
    return {
        "id": rule.code,
        "name": rule.name,
        "shortDescription": {"text": rule.name.replace("-", " ")},
        "help": {"text": page, "markdown": page},
        "defaultConfiguration": {"level": _LEVELS[rule.severity]},
    }


def _result(found: Diagnostic, index: dict[str, int]) -> JsonObject:
    text = found.message if found.hint is None else f"{found.message}\nhint: {found.hint}"
    result: dict[str, JsonObject | Sequence[JsonObject] | str | int] = {
        "ruleId": found.code,
        "level": _LEVELS[found.severity],
        "message": {"text": text},
        "properties": {"hint": found.hint},
    }
    if found.code in index:
        result["ruleIndex"] = index[found.code]
    if found.path:
        result["locations"] = [_location(found.path, found.span)]
    if found.related:
        result["relatedLocations"] = [
            {**_location(one.path, one.span), "message": {"text": one.message}}
            for one in found.related
        ]
    if found.fix is not None and found.path:
        result["fixes"] = [_sarif_fix(found.path, found.fix, found.hint)]
    return result


def _location(path: str, span: Span | None) -> JsonObject:
    physical: dict[str, JsonObject] = {"artifactLocation": {"uri": artifact_uri(path)}}
    if span is not None:
        physical["region"] = _region(span)
    return {"physicalLocation": physical}


def _sarif_fix(path: str, fix: Fix, hint: str | None) -> JsonObject:
    replacement: JsonObject = {
        "deletedRegion": _region(fix.span),
        "insertedContent": {"text": fix.replacement},
    }
    return {
        "description": {"text": hint or "replace the text"},
        "artifactChanges": [
            {"artifactLocation": {"uri": artifact_uri(path)}, "replacements": [replacement]}
        ],
    }


def _region(span: Span) -> JsonObject:
    return {
        "startLine": span.start.line,
        "startColumn": span.start.column,
        "endLine": span.end.line,
        "endColumn": span.end.column,
    }


def _sarif_card(fact: CardFact) -> JsonObject:
    card = dict(_card(fact))
    card["toolOnly"] = card.pop("tool_only")  # names are in camelCase there
    return card
