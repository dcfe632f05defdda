"""Turns of shared agents that send each other messages never wait in a ring."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import anyio
import pytest

from fast_agent.agents.history.memory import TurnLock
from fast_agent.app import FastAgent
from fast_agent.errors import RunError

if TYPE_CHECKING:
    from fast_agent.agent_app import AgentApp

pytestmark = pytest.mark.anyio


async def test_turns_come_one_after_another_in_their_order() -> None:
    lock, order = TurnLock(), list[int]()

    async def turn(number: int) -> None:
        async with lock:
            order.append(number)
            await anyio.lowlevel.checkpoint()
            order.append(number)

    async with anyio.create_task_group() as group:
        for number in range(5):
            group.start_soon(turn, number)
            await anyio.lowlevel.checkpoint()
    assert order == [0, 0, 1, 1, 2, 2, 3, 3, 4, 4]


@pytest.mark.parametrize("length", [2, 3, 5])
async def test_the_turn_that_would_close_a_ring_is_refused(length: int) -> None:
    locks = [TurnLock() for _ in range(length)]
    inside = anyio.Event()
    refused: list[int] = []
    done: list[int] = []

    async def turn(number: int) -> None:
        async with locks[number]:
            if number == length - 1:
                inside.set()
            await inside.wait()
            try:
                async with locks[(number + 1) % length]:
                    done.append(number)
            except RunError:
                refused.append(number)

    with anyio.fail_after(60):
        async with anyio.create_task_group() as group:
            for number in range(length):
                group.start_soon(turn, number)
    assert len(refused) == 1
    assert len(done) == length - 1


async def test_waiting_that_ends_is_no_ring() -> None:
    first, second = TurnLock(), TurnLock()
    got: list[str] = []

    async def inner() -> None:
        async with first, second:
            got.append("inner")

    async def other() -> None:
        async with second:
            await anyio.sleep(0.01)
            got.append("other")

    with anyio.fail_after(60):
        async with anyio.create_task_group() as group:
            group.start_soon(other)
            await anyio.lowlevel.checkpoint()
            group.start_soon(inner)
            group.start_soon(inner)
    assert got == ["other", "inner", "inner"]


async def test_a_cancelled_wait_leaves_nothing_behind() -> None:
    first, second = TurnLock(), TurnLock()
    async with anyio.create_task_group() as group:

        async def hold() -> None:
            async with second:
                await anyio.sleep_forever()

        group.start_soon(hold)
        await anyio.lowlevel.checkpoint()
        with anyio.move_on_after(0.01):
            async with first, second:
                raise AssertionError("it is held")
        group.cancel_scope.cancel()
    with anyio.fail_after(60):
        async with second, first:
            pass


async def test_a_cancelled_turn_does_not_begin() -> None:
    lock, begun = TurnLock(), list[int]()
    with anyio.CancelScope() as scope:
        scope.cancel()
        async with lock:
            begun.append(1)
    assert begun == []


async def test_agents_that_call_each_other_at_once_do_not_wait_for_ever() -> None:
    program = FastAgent("ring")
    running: list[AgentApp] = []
    both = anyio.Event()
    inside: list[str] = []

    async def ask(name: str) -> str:
        """Ask another agent."""
        inside.append(name)
        if len(inside) == 2:
            both.set()
        await both.wait()
        return await running[0][name].send("hello")

    for one in ("ann", "bob"):
        program.agent(one, model="passthrough", function_tools=[ask])
    answers: list[str] = []
    async with program.run() as app:
        running.append(app)

        async def start(agent: str, other: str) -> None:
            answers.append(await app[agent].send(f'***CALL_TOOL ask {{"name": "{other}"}}'))

        with anyio.fail_after(60):
            async with anyio.create_task_group() as group:
                group.start_soon(start, "ann", "bob")
                group.start_soon(start, "bob", "ann")
    assert sorted("each other's turns" in answer for answer in answers) == [False, True]
    assert any(answer.endswith("hello") for answer in answers)


async def test_a_turn_that_is_cancelled_while_it_waits_keeps_nobody_from_the_lock() -> None:
    lock, order = TurnLock(), list[str]()
    impatient = anyio.CancelScope()
    inside, leave = anyio.Event(), anyio.Event()

    async def first() -> None:
        async with lock:
            inside.set()
            await leave.wait()

    async def second() -> None:
        with impatient:
            async with lock:
                order.append("second")

    async def third() -> None:
        async with lock:
            order.append("third")

    async with anyio.create_task_group() as group:
        group.start_soon(first)
        await inside.wait()
        group.start_soon(second)
        group.start_soon(third)
        await anyio.wait_all_tasks_blocked()
        impatient.cancel()
        await anyio.wait_all_tasks_blocked()
        leave.set()
    assert order == ["third"]
    assert not lock.is_around


async def test_a_turn_that_is_cancelled_just_when_its_time_comes_hands_the_lock_on() -> None:
    lock, order = TurnLock(), list[str]()
    begin = anyio.Event()

    async def turn(name: str) -> None:
        await begin.wait()
        async with lock:
            order.append(name)

    # A task cancelled by itself, as by those who embed this: a scope would let it go on once more.
    second, third = (asyncio.ensure_future(turn(name)) for name in ("second", "third"))
    await anyio.wait_all_tasks_blocked()
    async with lock:
        begin.set()
        await anyio.wait_all_tasks_blocked()
    second.cancel()
    await third
    assert order == ["third"]
    assert second.cancelled()


async def test_nobody_passes_a_turn_that_was_let_go_on() -> None:
    lock, order = TurnLock(), list[str]()
    begin = anyio.Event()

    async def waiting() -> None:
        await begin.wait()
        async with lock:
            order.append("waiting")

    async with anyio.create_task_group() as group:
        group.start_soon(waiting)
        async with lock:
            begin.set()
            await anyio.wait_all_tasks_blocked()
        async with lock:
            order.append("late")
    assert order == ["waiting", "late"]


async def test_a_turn_knows_what_it_is_inside_of() -> None:
    outer, inner = TurnLock(), TurnLock()
    seen: list[bool] = []

    async def beside() -> None:
        seen.append(outer.is_around)

    async with anyio.create_task_group() as group:
        group.start_soon(anyio.sleep, 0)
        async with outer, inner:
            assert outer.is_around
            assert inner.is_around
        async with outer:
            assert not inner.is_around
        assert not outer.is_around
        group.start_soon(beside)
    assert seen == [False]
