"""Workers: jobs one after another in the same task, as if each had its own."""

from __future__ import annotations

from asyncio import current_task
from contextvars import ContextVar
from functools import partial
from typing import TYPE_CHECKING

import anyio
import pytest

from fast_agent.rpc.peer import Workers

if TYPE_CHECKING:
    from asyncio import Task
    from collections.abc import Awaitable, Callable

pytestmark = pytest.mark.anyio

left: ContextVar[str | None] = ContextVar("left", default=None)


async def idle() -> None:
    """Let every task that can go on do so."""
    for _ in range(5):
        await anyio.lowlevel.checkpoint()


def noting(tasks: list[Task[object] | None]) -> Callable[[], Awaitable[None]]:
    async def job() -> None:
        tasks.append(current_task())

    return job


async def test_jobs_one_after_another_share_a_task() -> None:
    done: list[Task[object] | None] = []
    async with anyio.create_task_group() as tasks:
        workers = Workers(tasks)
        for _ in range(3):
            workers.do(noting(done))
            await idle()
        workers.end()
    assert len(done) == 3
    assert len(set(done)) == 1


async def test_jobs_go_on_beside_each_other() -> None:
    begun: list[int] = []
    go_on = anyio.Event()

    async def job(number: int) -> None:
        begun.append(number)
        await go_on.wait()

    async with anyio.create_task_group() as tasks:
        workers = Workers(tasks)
        for number in range(20):
            workers.do(partial(job, number))
        await idle()
        assert begun == list(range(20))
        go_on.set()
        await idle()
        # Some of the tasks are kept, and take a job each now.
        for number in range(20, 40):
            workers.do(partial(job, number))
        await idle()
        workers.end()
    assert sorted(begun) == list(range(40))


async def test_what_a_job_leaves_in_its_context_is_not_seen_by_the_next() -> None:
    seen: list[str | None] = []

    async def job() -> None:
        seen.append(left.get())
        left.set("mine")

    async with anyio.create_task_group() as tasks:
        workers = Workers(tasks)
        for _ in range(3):
            workers.do(job)
            await idle()
        workers.end()
    assert seen == [None, None, None]


async def test_a_job_given_to_a_task_that_is_cancelled_just_then_hears_of_it() -> None:
    heard: list[str] = []

    async def job() -> None:
        heard.append("begun")
        try:
            await anyio.sleep_forever()
        finally:
            heard.append("cancelled")

    async with anyio.create_task_group() as tasks:
        workers = Workers(tasks)
        workers.do(noting([]))
        await idle()
        workers.do(job)
        tasks.cancel_scope.cancel()
    assert heard == ["begun", "cancelled"]


async def test_no_task_is_left_once_there_will_be_no_more_jobs() -> None:
    go_on = anyio.Event()
    with anyio.fail_after(60):
        async with anyio.create_task_group() as tasks:
            workers = Workers(tasks)
            workers.do(noting([]))
            await idle()
            workers.do(go_on.wait)
            await idle()
            workers.do(noting([]))
            await idle()
            workers.end()
            go_on.set()
