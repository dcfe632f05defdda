"""How long tests wait for what must come: so long that no slow machine fails one."""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING

import anyio
import pytest

if TYPE_CHECKING:
    from collections.abc import Callable

PATIENCE = 120.0
"""Seconds until what has not come is held to come no more."""


def wait_until(condition: Callable[[], object]) -> None:
    """Wait for what another thread or process makes true."""
    end = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < end, "it never came true"
        time.sleep(0.005)


async def until(condition: Callable[[], object]) -> None:
    """Wait for what another task, thread or process makes true."""
    with anyio.fail_after(PATIENCE):
        while not condition():  # noqa: ASYNC110 - it may come true in another process
            await anyio.sleep(0.005)


class Rounds:
    """Rounds that go on for a time, and then until it is enough: what is up to chance comes late.

    Args:
        seconds: How long at least.
    """

    def __init__(self, seconds: float) -> None:
        self._begun = time.monotonic()
        self._seconds = seconds

    def more(self, *, enough: object) -> bool:
        """Whether to go round once more."""
        gone = time.monotonic() - self._begun
        return gone < self._seconds or (gone < PATIENCE and not enough)


def pass_seconds(seconds: float) -> None:
    """Move the clock of the running event loop on, so that what is due by then is due now.

    A test of a time limit gives a long one and lets it pass this way, once what is to be cut short
    has begun: whatever the machine does meanwhile, neither comes before the other.
    """
    loop = asyncio.get_running_loop()
    if not isinstance(loop, asyncio.BaseEventLoop):
        pytest.skip("not run: the clock of this event loop cannot be moved")
    now = loop.time
    loop.time = lambda: now() + seconds
