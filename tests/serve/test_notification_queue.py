"""Notifications between threads, and clients that do not take them."""

from __future__ import annotations

import threading
from functools import partial
from typing import TYPE_CHECKING

import anyio.lowlevel
import pytest
from anyio import to_thread

from fast_agent.rpc.message import NOTHING
from fast_agent.serve.resource_server import NotificationQueue

if TYPE_CHECKING:
    from fast_agent.serve.resource_server import Notification


@pytest.mark.anyio
async def test_order_is_kept_and_a_closed_box_is_emptied_first() -> None:
    mailbox = NotificationQueue()
    sent: list[str] = []

    async def send(notification: Notification) -> None:
        sent.append(notification.method)

    async with anyio.create_task_group() as group:
        group.start_soon(mailbox.deliver, send)
        for name in ("a", "b", "c"):
            await to_thread.run_sync(partial(mailbox.put, name, NOTHING))
        await anyio.wait_all_tasks_blocked()
        mailbox.put("d", {})
        await anyio.lowlevel.checkpoint()
        mailbox.close()
    assert sent == ["a", "b", "c", "d"]


@pytest.mark.anyio
async def test_a_flood_for_a_slow_client_takes_no_room() -> None:
    mailbox = NotificationQueue()
    reads = anyio.Event()
    sent: list[object] = []

    async def send(notification: Notification) -> None:
        await reads.wait()
        sent.append(notification.params["uri"])

    def flood() -> None:
        for number in range(5000):
            mailbox.put("notifications/resources/updated", {"uri": f"x://{number % 7}"})

    async with anyio.create_task_group() as group:
        group.start_soon(mailbox.deliver, send)
        await to_thread.run_sync(flood)
        await anyio.wait_all_tasks_blocked()
        assert len(mailbox._waiting) <= 7
        reads.set()
        await anyio.wait_all_tasks_blocked()
        mailbox.close()
    assert set(sent) == {f"x://{number}" for number in range(7)}
    assert len(sent) <= 8


def test_a_watcher_outlives_the_loop() -> None:
    async def make() -> NotificationQueue:
        return NotificationQueue()

    mailbox = anyio.run(make)
    thread = threading.Thread(target=mailbox.put, args=("late", {}))
    thread.start()
    thread.join()
