"""Settled: several pieces of work at the same time, until each has ended."""

from __future__ import annotations

from asyncio import get_running_loop
from functools import partial
from typing import TYPE_CHECKING, TypeVar, cast

from anyio import create_task_group

from fast_agent.errors import FastAgentError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence

T = TypeVar("T")


async def settled(jobs: Sequence[Callable[[], Awaitable[T]]]) -> list[T | FastAgentError]:
    """Run jobs at the same time until each has ended.

    Args:
        jobs: What to run; each is called once.

    Returns:
        What each returned, or the error it raised, in the order of `jobs`.
    """

    async def settle(job: Callable[[], Awaitable[T]]) -> T | FastAgentError:
        try:
            return await job()
        except FastAgentError as error:
            return error

    return await together([partial(settle, job) for job in jobs])


async def together(jobs: Sequence[Callable[[], Awaitable[T]]]) -> list[T]:
    """Run jobs that do not fail at the same time.

    Args:
        jobs: What to run; each is called once. What one raises cancels the others.

    Returns:
        What each returned, in the order of `jobs`.
    """
    if len(jobs) == 1:
        return [await jobs[0]()]
    ended: list[T | None] = [None] * len(jobs)
    left = iter(range(len(jobs)))

    async def run(index: int) -> None:
        ended[index] = await jobs[index]()

    def start_rest() -> None:
        for index in left:
            group.start_soon(run, index)

    # A task costs a good part of a turn, so jobs run here until one waits for something. Then the
    # loop goes on to what stands by, and each job that is left gets a task.
    async with create_task_group() as group:
        standing_by = get_running_loop().call_soon(start_rest)
        try:
            for index in left:
                await run(index)
        finally:
            standing_by.cancel()
    return cast("list[T]", ended)
