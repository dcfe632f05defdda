"""The time between the word to stop and the end."""

from __future__ import annotations

from typing import TYPE_CHECKING

import anyio
import pytest

from fast_agent.serve import agent_generation
from fast_agent.serve.agent_generation import CANCEL_GRACE_SECONDS, Drain

if TYPE_CHECKING:
    from collections.abc import Callable

pytestmark = pytest.mark.anyio
LONG = 3600.0


class Calls:
    """Calls under way, which end when they are called off unless they are stubborn."""

    def __init__(self, running: int, *, stubborn: bool = False) -> None:
        self.running = running
        self.called_off = 0
        self._stubborn = stubborn

    def drain(self, seconds: float) -> Drain:
        return Drain(lambda: self.running > 0, self._call_off, seconds)

    def _call_off(self) -> None:
        self.called_off += 1
        if not self._stubborn:
            self.running = 0


class Over:
    """Waits for the end of a drain, and knows how many seconds were left."""

    def __init__(self) -> None:
        self.left: list[float] = []
        self._over = anyio.Event()

    def __call__(self, seconds: float) -> None:
        self.left.append(seconds)
        self._over.set()

    async def wait(self) -> float:
        with anyio.fail_after(60):
            await self._over.wait()
        return self.left[-1]


async def ends(drain: Drain, meanwhile: Callable[[], None] | None = None) -> float:
    over = Over()
    drain.begin(over)
    assert drain.begun
    if meanwhile is not None:
        await anyio.sleep(0.1)
        assert not over.left
        meanwhile()
    return await over.wait()


async def test_without_calls_it_is_over_at_once_and_all_the_time_is_left() -> None:
    calls = Calls(0)
    assert LONG - 60 < await ends(calls.drain(LONG)) <= LONG
    assert not calls.called_off


@pytest.mark.parametrize("seconds", [LONG, 0.9])
async def test_it_waits_for_calls_that_end_in_time(seconds: float) -> None:
    calls = Calls(2)

    def end() -> None:
        calls.running = 0

    assert await ends(calls.drain(seconds), end) >= CANCEL_GRACE_SECONDS
    assert not calls.called_off


async def test_calls_that_take_too_long_are_called_off_once() -> None:
    calls = Calls(2)
    assert await ends(calls.drain(0.1)) == CANCEL_GRACE_SECONDS
    assert calls.called_off == 1


async def test_calls_that_do_not_end_though_called_off_hold_nothing_up(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(agent_generation, "CANCEL_GRACE_SECONDS", 0.1)
    calls = Calls(1, stubborn=True)
    assert await ends(calls.drain(0.0)) == 0.1
    assert (calls.called_off, calls.running) == (1, 1)


async def test_a_second_word_calls_off_what_is_under_way_and_a_third_is_handed_on() -> None:
    calls, over = Calls(1), Over()
    drain = calls.drain(LONG)
    drain.begin(over)
    drain.begin(over)
    await over.wait()
    assert (calls.called_off, over.left) == (1, [CANCEL_GRACE_SECONDS])
    drain.begin(over)
    assert over.left == [CANCEL_GRACE_SECONDS] * 2
