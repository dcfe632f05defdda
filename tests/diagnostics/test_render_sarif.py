from __future__ import annotations

import json
from pathlib import Path

import pytest

from fast_agent.diagnostics.diagnostic import CardFact, Diagnostic, Fix, RelatedPlace
from fast_agent.diagnostics.render_json import artifact_uri, render_sarif
from fast_agent.diagnostics.rules import DUPLICATE_NAME, SIMILAR_NAMES, UNKNOWN_AGENT
from fast_agent.text.span import Span


@pytest.mark.spec("CHECK-2")
def test_one_run_with_rules_results_and_fixes() -> None:
    unknown = Diagnostic(
        UNKNOWN_AGENT,
        "no agent is named `writr`",
        "my cards/a.md",
        Span.at(4, 3, 5),
        hint="did you mean `writer`?",
        fix=Fix(Span.at(4, 3, 5), "writer"),
    )
    twice = Diagnostic(
        DUPLICATE_NAME,
        "two cards are called `b`",
        "b.md",
        related=(RelatedPlace("the first is here", "a.md", Span.at(2, 7, 1)),),
    )
    fact = CardFact("a", "agent", "a.md", default=True, tool_only=False)
    log = json.loads(render_sarif([fact], [unknown, twice], version="1.2.3"))
    assert log["version"] == "2.1.0"
    (run,) = log["runs"]
    driver = run["tool"]["driver"]
    assert driver["semanticVersion"] == "1.2.3"
    assert [rule["id"] for rule in driver["rules"]] == [UNKNOWN_AGENT, DUPLICATE_NAME]
    assert "writer" in driver["rules"][0]["help"]["text"]
    first, second = run["results"]
    region = {"startLine": 4, "startColumn": 3, "endLine": 4, "endColumn": 8}
    place = {"physicalLocation": {"artifactLocation": {"uri": "my%20cards/a.md"}, "region": region}}
    assert first["ruleId"] == UNKNOWN_AGENT
    assert first["ruleIndex"] == 0
    assert first["level"] == "error"
    assert first["message"]["text"].startswith("no agent is named `writr`\nhint: did you mean")
    assert first["locations"] == [place]
    (change,) = first["fixes"][0]["artifactChanges"]
    assert change["artifactLocation"] == {"uri": "my%20cards/a.md"}
    assert change["replacements"] == [
        {"deletedRegion": region, "insertedContent": {"text": "writer"}}
    ]
    assert second["locations"] == [{"physicalLocation": {"artifactLocation": {"uri": "b.md"}}}]
    assert second["relatedLocations"][0]["message"] == {"text": "the first is here"}
    assert "fixes" not in second
    assert run["properties"]["cards"] == [
        {"name": "a", "type": "agent", "path": "a.md", "default": True, "toolOnly": False}
    ]


@pytest.mark.parametrize(
    ("severity", "level"), [("error", "error"), ("warning", "warning"), ("info", "note")]
)
def test_levels(severity: str, level: str) -> None:
    found = Diagnostic(SIMILAR_NAMES, "m", "", severity=severity)  # pyright: ignore[reportArgumentType]
    result = json.loads(render_sarif([], [found], version="1"))["runs"][0]["results"][0]
    assert result["level"] == level
    assert "locations" not in result


def test_paths_become_addresses() -> None:
    assert artifact_uri("a b/ü#.md") == "a%20b/%C3%BC%23.md"
    assert artifact_uri("https://example.com/a.md") == "https://example.com/a.md"
    assert artifact_uri(str(Path("/x y/a.md"))) == "file:///x%20y/a.md"
