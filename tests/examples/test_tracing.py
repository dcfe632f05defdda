"""How the tracing demo draws a trace; `make demo-tracing` runs it with its viewer."""

from __future__ import annotations

import runpy
from pathlib import Path
from typing import Any

DEMO = Path(__file__).parents[2] / "examples/tracing/demo.py"


def _span(name: str, parent: str | None, start: str, status: str = "UNSET") -> dict[str, Any]:
    return {
        "name": name,
        "parent_id": parent,
        "context": {"span_id": name},
        "start_time": start,
        "status_code": status,
    }


def test_spans_are_drawn_inside_the_one_that_started_them_in_order() -> None:
    tree = runpy.run_path(str(DEMO))["tree"]
    spans = [
        _span("tool", "turn", "2026-01-01T00:00:03", "ERROR"),
        _span("chat", "turn", "2026-01-01T00:00:02"),
        _span("child", "tool", "2026-01-01T00:00:04"),
        _span("turn", None, "2026-01-01T00:00:01"),
    ]
    assert tree(spans) == ["turn", "  chat", "  tool  failed", "    child"]
