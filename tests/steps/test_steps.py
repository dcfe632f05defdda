"""Places of questions."""

from __future__ import annotations

import pytest

from fast_agent.steps.steps import TURN_SEPARATOR, Key, agent_of


@pytest.mark.parametrize(
    ("turn", "agent"),
    [
        ("", ""),
        ("ann", "ann"),
        ("ann:2", "ann"),
        ("ann@1", "ann"),
        ("ann@1:2", "ann"),
        ("a%2Fb:1", "a/b"),
        (f"ann:1{TURN_SEPARATOR}bob:2", "bob"),
        (f"ann:1{TURN_SEPARATOR}x%2Fy@3", "x/y"),
    ],
)
def test_the_agent_of_a_turn(turn: str, agent: str) -> None:
    assert agent_of(turn) == agent
    assert Key(turn, "tool", "t", 1).agent == agent
