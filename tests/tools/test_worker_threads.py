from __future__ import annotations

import subprocess
import sys
from contextvars import ContextVar
from threading import Barrier, Event, current_thread, main_thread

import anyio
import pytest
from tests.patience import until

from fast_agent.tools.worker_threads import WorkerThreads

pytestmark = pytest.mark.anyio

word: ContextVar[str] = ContextVar("word", default="unset")


async def test_work_runs_in_another_thread_within_the_callers_context() -> None:
    word.set("said")
    thread, heard = await WorkerThreads().run(lambda: (current_thread(), word.get()))
    assert thread is not main_thread()
    assert heard == "said"


async def test_what_it_raises_is_raised() -> None:
    def fail() -> None:
        raise LookupError("here")

    with pytest.raises(LookupError, match="here"):
        await WorkerThreads().run(fail)


async def test_stop_iteration_does_not_hang() -> None:
    with pytest.raises(RuntimeError, match="StopIteration"):
        await WorkerThreads().run(lambda: next(iter(())))


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
