from __future__ import annotations

import json

import pytest

from fast_agent.diagnostics.diagnostic import CardFact, Diagnostic, Fix
from fast_agent.diagnostics.render_json import render_json
from fast_agent.text.span import Position, Span


@pytest.mark.spec("CHECK-2")
def test_the_shape() -> None:
    typo = Diagnostic(
        "FA101",
        "no field `modle`",
        "a.md",
        Span.at(3, 1, 5),
        hint="did you mean `model`?",
        fix=Fix(Span(Position(3, 1), Position(4, 2)), "model"),
        source_line="modle: gpt",
    )
    whole = Diagnostic("FA8", "odd \ud800\u202e", "b.md", severity="warning")
    fact = CardFact("a", "agent", "a.md", default=True, tool_only=False)
    text = render_json([fact], [typo, whole])
    assert text.isascii()
    assert json.loads(text) == {
        "cards": [
            {"name": "a", "type": "agent", "path": "a.md", "default": True, "tool_only": False}
        ],
        "diagnostics": [
            {
                "code": "FA101",
                "severity": "error",
                "message": "no field `modle`",
                "path": "a.md",
                "start": {"line": 3, "column": 1},
                "end": {"line": 3, "column": 6},
                "hint": "did you mean `model`?",
                "fix": {
                    "replacement": "model",
                    "start": {"line": 3, "column": 1},
                    "end": {"line": 4, "column": 2},
                },
            },
            {
                "code": "FA8",
                "severity": "warning",
                "message": "odd \ud800\u202e",
                "path": "b.md",
                "start": {"line": 1, "column": 1},
                "end": {"line": 1, "column": 1},
                "hint": None,
                "fix": None,
            },
        ],
    }


def test_nothing() -> None:
    assert json.loads(render_json([], [])) == {"cards": [], "diagnostics": []}
