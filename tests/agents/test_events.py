"""The line for each step of a workflow."""

from __future__ import annotations

from typing import Any

import pytest

from fast_agent.agents.events import workflow_line


@pytest.mark.parametrize(
    ("kind", "facts", "line"),
    [
        ("branch", {"agent": "a", "index": 0, "text": "x"}, "`a` answered: x"),
        ("branch", {"agent": "a", "index": 0, "error": "x"}, ""),
        ("route", {"agent": "a", "confidence": None, "reasoning": None}, "goes to `a`"),
        (
            "route",
            {"agent": "a", "confidence": "low", "reasoning": "why not"},
            "goes to `a` (low confidence): why not",
        ),
        (
            "plan",
            {"number": 2, "steps": [{"tasks": [{"agent": "a"}, {"agent": "b"}]}] * 2},
            "plan 2: 4 tasks for `a`, `b` in 2 steps",
        ),
        ("plan", {"number": 1, "steps": [{"tasks": [{"agent": "a"}]}]}, "plan 1: a task for `a`"),
        (
            "plan",
            {"number": 1, "steps": [{"tasks": [{"agent": "a"}, {"agent": "b"}]}]},
            "plan 1: 2 tasks for `a`, `b`",
        ),
        ("plan", {"number": 3, "steps": []}, "plan 3: nothing more to do"),
        ("task", {"agent": "a", "description": "dig", "status": "started"}, ""),
        (
            "task",
            {"agent": "a", "description": "dig", "status": "failed", "error": "rock"},
            "task failed: `a`: dig",
        ),
        ("rating", {"round": 1, "rating": "FAIR", "feedback": "dull"}, "round 1 is FAIR: dull"),
        (
            "flag",
            {"draw": 4, "reason": "too_long"},
            "draw 4 is discarded: too long",
        ),
        ("flag", {"draw": 5, "error": "no key"}, "draw 5 is discarded: no key"),
        (
            "vote",
            {"draw": 1, "answer": "7", "votes": 1, "margin": 0, "leads": False},
            "draw 1 says `7`, which has 1 vote; no answer is ahead",
        ),
        (
            "vote",
            {"draw": 3, "answer": "7", "votes": 2, "margin": 1, "leads": True},
            "draw 3 says `7`, which has 2 votes and is 1 ahead",
        ),
        (
            "vote",
            {"draw": 4, "answer": "8", "votes": 1, "margin": 1, "leads": False},
            "draw 4 says `8`, which has 1 vote; another is ahead",
        ),
        ("else", {"answer": "7", "votes": 2}, "else: answer 7, votes 2"),
    ],
)
def test_each_step_is_one_line(kind: str, facts: Any, line: str) -> None:
    assert workflow_line(kind, facts) == line
