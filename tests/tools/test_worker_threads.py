from __future__ import annotations

import gc
import subprocess
import sys
from contextvars import ContextVar
from threading import Barrier, Event, current_thread, main_thread
from weakref import ref

import anyio
import pytest
from tests.patience import PATIENCE, until

from fast_agent.tools.worker_threads import WorkerThreads

pytestmark = pytest.mark.anyio

word: ContextVar[str] = ContextVar("word", default="unset")


@pytest.fixture
async def threads() -> WorkerThreads:
    """A pool with a thread that has nothing to do."""
    threads = WorkerThreads()
    await threads.run(lambda: None)
    return threads


async def test_work_runs_in_another_thread_within_the_callers_context(
    threads: WorkerThreads,
) -> None:
    word.set("said")
    for _ in range(20):
        thread, heard = await threads.run(lambda: (current_thread(), word.get()))
        assert thread is not main_thread()
        assert heard == "said"
    assert threads.threads == 1


async def test_what_it_raises_is_raised_and_held_by_nothing(threads: WorkerThreads) -> None:
    class HereError(LookupError):
        pass

    def fail() -> None:
        raise HereError("here")

    async def run() -> ref[HereError] | None:
        try:
            await threads.run(fail)
        except HereError as error:
            return ref(error)
        return None

    gc.disable()
    try:
        for _ in range(20):
            error = await run()
            assert error is not None
            await until(lambda error=error: error() is None)
    finally:
        gc.enable()


async def test_stop_iteration_does_not_hang(threads: WorkerThreads) -> None:
    for _ in range(20):
        with pytest.raises(RuntimeError, match="StopIteration"):
            await threads.run(lambda: next(iter(())))


async def test_the_loop_goes_on_while_a_function_waits(
    threads: WorkerThreads,
) -> None:
    for number in range(20):
        asked = Event()
        async with anyio.create_task_group() as group:
            # Set by the loop, while the function waits for it.
            group.start_soon(until, lambda asked=asked: asked.set() or True)
            assert await threads.run(lambda asked=asked: asked.wait(PATIENCE))
        assert await threads.run(lambda number=number: number) == number


async def test_one_thread_serves_calls_that_follow_each_other() -> None:
    threads = WorkerThreads()
    for _ in range(20):
        await threads.run(lambda: None)
    assert threads.threads == 1


async def test_calls_wait_their_turn_beyond_the_limit() -> None:
    threads = WorkerThreads(limit=3)
    running: list[int] = []
    most = 0
    three = Barrier(3, timeout=60)

    def work() -> None:
        nonlocal most
        running.append(1)
        most = max(most, len(running))
        three.wait()
        running.pop()
        three.wait()

    async with anyio.create_task_group() as group:
        for _ in range(12):
            group.start_soon(threads.run, work)
    assert most == 3
    assert threads.threads == 3


async def test_a_cancelled_call_is_abandoned_and_leaves_its_place_to_others() -> None:
    threads = WorkerThreads(limit=1)
    await threads.run(lambda: None)
    begun, free = Event(), Event()

    def work() -> None:
        begun.set()
        free.wait()

    async with anyio.create_task_group() as group:
        group.start_soon(threads.run, work)
        await until(begun.is_set)
        group.cancel_scope.cancel()
    assert await threads.run(lambda: "next") == "next"
    assert threads.threads == 2
    free.set()


async def test_a_call_cancelled_before_a_thread_took_it_never_runs() -> None:
    threads = WorkerThreads(limit=1)
    free = Event()
    ran: list[str] = []
    async with anyio.create_task_group() as group:
        group.start_soon(threads.run, free.wait)
        await anyio.sleep(0.02)
        with anyio.move_on_after(0.02):
            await threads.run(lambda: ran.append("late"))
        free.set()
    await threads.run(lambda: None)
    assert ran == []


async def test_idle_threads_end() -> None:
    threads = WorkerThreads(idle_seconds=0.02)
    await threads.run(lambda: None)
    with anyio.fail_after(60):
        while threads.threads:  # noqa: ASYNC110 (threads tell nobody that they end)
            await anyio.sleep(0.01)
    assert await threads.run(lambda: "again") == "again"


async def test_a_function_given_up_on_does_not_keep_the_program_from_ending() -> None:
    program = """
import anyio, time
from fast_agent.tools.worker_threads import WorkerThreads
async def main():
    with anyio.move_on_after(0.05):
        await WorkerThreads().run(lambda: time.sleep(600))
anyio.run(main)
"""
    subprocess.run([sys.executable, "-c", program], check=True, timeout=60)  # noqa: ASYNC221
