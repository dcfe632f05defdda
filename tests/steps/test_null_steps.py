"""A run without a carrier: every question is asked, and nothing is kept."""

from __future__ import annotations

import pytest

from fast_agent.steps.steps import NULL_STEPS

pytestmark = pytest.mark.anyio


def test_it_replays_nothing_and_asks_the_outside() -> None:
    assert NULL_STEPS.replays is False
    assert NULL_STEPS.fact("platform", lambda: "here") == "here"
    assert NULL_STEPS.note("id", "one", lambda: "new") == "new"
    assert NULL_STEPS.new_id(lambda: "fresh") == "fresh"
    assert NULL_STEPS.former_trace("00-1") is None
    assert NULL_STEPS.part("digest") == "digest"


async def test_a_deadline_is_that_of_the_clock() -> None:
    with NULL_STEPS.deadline("child", 3600) as scope:
        pass
    assert not scope.cancelled_caught
