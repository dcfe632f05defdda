"""Where a turn stands: the open calls that what a server asks for meanwhile is charged to."""

from __future__ import annotations

from fast_agent.agents.budget import Meter
from fast_agent.agents.turn_context import OpenCallMeters
from fast_agent.steps.steps import NULL_STEPS


def test_a_server_is_charged_to_the_newest_open_call_of_its_agent() -> None:
    calls = OpenCallMeters()
    first, second, other = ((Meter(name),) for name in ("ann", "ann", "bob"))
    nobody = (), NULL_STEPS.top
    assert calls.newest("ann") == nobody
    with calls.entered("ann", first):
        with calls.entered("bob", other), calls.entered("ann", second):
            assert calls.newest("ann")[0] is second
            assert calls.newest("bob")[0] is other
        assert calls.newest("ann")[0] is first
        assert calls.newest("bob") == nobody
    assert calls.newest("ann") == nobody
