"""Settled: several pieces of work at the same time, of which some may fail."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar, cast

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
    ended: list[T | FastAgentError | None] = [None] * len(jobs)

    async def run(index: int) -> None:
        try:
            ended[index] = await jobs[index]()
        except FastAgentError as error:
            ended[index] = error

    # A task group costs more than a whole turn without one.
    if len(jobs) == 1:
        await run(0)
    else:
        from anyio import create_task_group

        async with create_task_group() as group:
            for index in range(len(jobs)):
                group.start_soon(run, index)
    return cast("list[T | FastAgentError]", ended)
