from __future__ import annotations

from functools import partial

import anyio
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fast_agent.errors import RunError
from fast_agent.workflows.workflow_turn import settled, together

pytestmark = pytest.mark.anyio


async def pass_time(steps: int) -> None:
    for _ in range(steps):
        await anyio.lowlevel.checkpoint()


@given(waits=st.lists(st.one_of(st.just(0), st.integers(1, 5)), max_size=12))
def test_every_job_begins_while_those_before_it_wait(waits: list[int]) -> None:
    begun: list[int] = []
    most = 0
    open_now = 0

    async def job(index: int) -> int:
        nonlocal most, open_now
        begun.append(index)
        if waits[index]:
            open_now += 1
            most = max(most, open_now)
            # Ends only when all have begun: a job that had to wait for another would hang.
            while len(begun) < len(waits):
                await anyio.lowlevel.checkpoint()
            await pass_time(waits[index])
            open_now -= 1
        return index

    async def main() -> list[int]:
        with anyio.fail_after(60):
            return await together([partial(job, index) for index in range(len(waits))])

    assert anyio.run(main) == list(range(len(waits)))
    assert begun == list(range(len(waits)))
    assert most == sum(1 for wait in waits if wait)


async def test_errors_stand_in_the_place_of_results() -> None:
    async def job(index: int) -> int:
        await pass_time(3 - index)
        if index == 1:
            raise RunError("no")
        return index

    first, second, third = await settled([partial(job, index) for index in range(3)])
    assert (first, third) == (0, 2)
    assert isinstance(second, RunError)
    (alone,) = await settled([partial(job, 1)])
    assert isinstance(alone, RunError)
    assert await settled([]) == []


@pytest.mark.parametrize("steps", range(8))
async def test_cancelled_at_any_moment_every_job_is(steps: int) -> None:
    events: list[str] = []

    async def job(name: str) -> None:
        events.append(f"{name} begins")
        try:
            await anyio.sleep(10)
        finally:
            events.append(f"{name} ends")

    async with anyio.create_task_group() as group:
        group.start_soon(together, [partial(job, name) for name in "abc"])
        await pass_time(steps)
        group.cancel_scope.cancel()
    begun = {event.split()[0] for event in events if event.endswith("begins")}
    ended = {event.split()[0] for event in events if event.endswith("ends")}
    assert begun == ended
    assert len(begun) == 3 if steps > 5 else len(begun) <= 3


async def test_what_is_no_error_of_ours_cancels_the_others() -> None:
    ended: list[str] = []

    async def wait() -> None:
        try:
            await anyio.sleep(10)
        finally:
            ended.append("wait")

    async def explode() -> None:
        await pass_time(1)
        raise KeyError("oops")

    with pytest.raises(ExceptionGroup) as raised:
        await together([wait, explode])
    assert raised.group_contains(KeyError)
    assert ended == ["wait"]
