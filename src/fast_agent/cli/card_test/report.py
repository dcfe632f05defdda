"""What came of the cases, for people and for programs."""

from __future__ import annotations

import json
from itertools import groupby
from typing import TYPE_CHECKING

from fast_agent.text.visible import visible

if TYPE_CHECKING:
    from collections.abc import Sequence

    from fast_agent.cli.card_test.case_run import CaseResult


def render_text(results: Sequence[CaseResult]) -> str:
    """Write one line a case, with what was not as expected below it, and the counts."""
    lines: list[str] = []
    for file, cases in groupby(results, lambda one: one.file):
        lines.append(visible(file))
        for case in cases:
            mark = "ok    " if case.passed else "FAILED"
            note = " (recorded)" if case.recorded else ""
            lines.append(f"  {mark} {visible(case.name)}{note}")
            for problem in case.problems:
                lines += [f"         {visible(line)}" for line in problem.split("\n")]
    failed = sum(not one.passed for one in results)
    lines.append(f"{len(results) - failed} passed, {failed} failed")
    return "\n".join(lines) + "\n"


def render_json(results: Sequence[CaseResult]) -> str:
    """Write the same as one JSON object."""
    failed = sum(not one.passed for one in results)
    facts = {
        "passed": len(results) - failed,
        "failed": failed,
        "cases": [
            {
                "file": one.file,
                "name": one.name,
                "passed": one.passed,
                "recorded": one.recorded,
                "problems": list(one.problems),
            }
            for one in results
        ],
    }
    return json.dumps(facts, indent=2, ensure_ascii=False) + "\n"
