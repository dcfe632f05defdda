"""Peer: messages in both directions, whatever the other side does."""

from __future__ import annotations

import json
import os
import pty
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import anyio
import pytest
from tests.patience import until
from tests.runners import every_runner

from fast_agent.rpc.message import CANCELLED, RemoteError, RpcError
from fast_agent.rpc.peer import FULL_BYTES, MAX_UNREAD_BYTES, Peer

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator
    from pathlib import Path

    from anyio import CancelScope

    from fast_agent.rpc.message import Request
    from fast_agent.rpc.peer import Work
    from fast_agent.text.json_value import JsonObject

pytestmark = pytest.mark.anyio
CANCEL = "notifications/cancelled"


class Side:
    """Answers `ask` with what the client answers, and notes what it hears."""

    def __init__(self, peer: Peer) -> None:
        self.peer = peer
        self.heard: list[str] = []
        self.asked = 0

    def accept(self, request: Request, scope: CancelScope) -> Work:
        self.asked += 1

        async def work() -> JsonObject | bytes:
            if request.method == "fail":
                raise RuntimeError("broken")
            if request.method == "sleep":
                await anyio.sleep_forever()
            if request.method == "much":
                return b'"' + b"x" * (FULL_BYTES // 4) + b'"'
            return await self.peer.request("question", request.params)

        return work

    def cancelled(self, request: Request) -> JsonObject | None:
        if request.params.get("silent"):
            return None
        raise RpcError(CANCELLED, "cancelled")

    def notice(self, method: str, params: JsonObject) -> None:
        self.heard.append(method)


@asynccontextmanager
async def connection() -> AsyncGenerator[tuple[Side, int, int]]:
    there, here = os.pipe(), os.pipe()
    peer = Peer(there[0], here[1], cancel_method=CANCEL, announces=True, waits=True)
    side = Side(peer)
    try:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(peer.serve, side)
            await anyio.lowlevel.checkpoint()
            yield side, there[1], here[0]
    finally:
        for descriptor in (there[0], here[0], here[1]):
            os.close(descriptor)


async def message(descriptor: int) -> Any:
    line = b""
    while not line.endswith(b"\n"):
        await anyio.wait_readable(descriptor)
        line += os.read(descriptor, 1)
    return json.loads(line)


async def lines(descriptor: int, count: int) -> bytes:
    """Read until so many lines have come."""
    read: list[bytes] = []
    while count > 0:
        await anyio.wait_readable(descriptor)
        read.append(os.read(descriptor, 1 << 16))
        count -= read[-1].count(b"\n")
    return b"".join(read)


def send(descriptor: int, **fields: Any) -> None:
    os.write(descriptor, json.dumps({"jsonrpc": "2.0", **fields}).encode() + b"\n")


async def test_questions_are_asked_back_and_answered() -> None:
    async with connection() as (_, out, into):
        send(out, id="a", method="ask", params={"what": 1})
        question = await message(into)
        assert (question["method"], question["params"]) == ("question", {"what": 1})
        send(out, id=question["id"], result={"answer": 2})
        assert await message(into) == {"jsonrpc": "2.0", "id": "a", "result": {"answer": 2}}
        os.close(out)


async def test_an_error_of_the_client_is_reported_to_who_asked() -> None:
    async with connection() as (side, out, into):

        async def ask() -> None:
            with pytest.raises(RemoteError, match="not today") as raised:
                await side.peer.request("question", {})
            assert raised.value.code == -1

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(ask)
            question = await message(into)
            send(out, id=question["id"], error={"code": -1, "message": "not today"})
        os.close(out)


@pytest.mark.spec("ACP-21")
async def test_what_breaks_is_one_error_and_not_the_end(caplog: pytest.LogCaptureFixture) -> None:
    async with connection() as (side, out, into):
        send(out, id=1, method="fail")
        answered = await message(into)
        assert answered["error"] == {"code": -32603, "message": "internal error"}
        send(out, method="hello")
        send(out, id=2, method="ask")
        assert (await message(into))["method"] == "question"
        assert side.heard == ["hello"]
        send(out, id=2, method="ask")
        assert "is running" in (await message(into))["error"]["message"]
        os.close(out)
    assert "RuntimeError: broken" in caplog.text


@pytest.mark.spec("ACP-22")
async def test_who_waits_for_a_client_that_leaves_gets_an_error() -> None:
    async with connection() as (side, out, into):

        async def ask() -> None:
            with pytest.raises(RemoteError, match="gone"):
                await side.peer.request("question", {})

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(ask)
            await message(into)
            os.close(out)
        with pytest.raises(RemoteError, match="gone"):
            await side.peer.request("question", {})


@pytest.mark.spec("ACP-21")
async def test_a_client_that_never_reads_is_left(caplog: pytest.LogCaptureFixture) -> None:
    with anyio.fail_after(60):
        async with connection() as (side, out, _):
            text = "x" * (1 << 20)
            for _ in range(MAX_UNREAD_BYTES // len(text) + 1):
                side.peer.notify("told", {"text": text})
                await anyio.lowlevel.checkpoint()
    os.close(out)
    assert "does not read" in caplog.text


async def test_a_client_that_stops_listening_is_left() -> None:
    there, here = os.pipe(), os.pipe()
    peer = Peer(there[0], here[1], cancel_method=CANCEL, announces=True, waits=True)
    with anyio.fail_after(60):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(peer.serve, Side(peer))
            await anyio.lowlevel.checkpoint()
            os.close(here[0])
            peer.notify("told", {})
    for descriptor in (there[0], there[1], here[1]):
        os.close(descriptor)


async def test_messages_may_come_from_a_file(tmp_path: Any) -> None:
    path = tmp_path / "messages"
    path.write_text('{"jsonrpc":"2.0","method":"one"}\n{"jsonrpc":"2.0","method":"two"}')
    into, out = os.pipe()
    with path.open("rb") as file:
        peer = Peer(file.fileno(), out, cancel_method=CANCEL)
        side = Side(peer)
        await peer.serve(side)
    assert side.heard == ["one", "two"]
    os.close(into)
    os.close(out)


async def test_an_input_that_cannot_be_read_ends_with_its_error(tmp_path: Path) -> None:
    into, out = os.pipe()
    broken, other = pty.openpty()
    os.close(other)  # to read a terminal that nobody holds any more fails
    try:
        with pytest.raises(ExceptionGroup) as raised:
            await Peer(broken, out, cancel_method=CANCEL).serve(
                Side(Peer(broken, out, cancel_method=CANCEL))
            )
        assert raised.group_contains(OSError, match="Input/output")
    finally:
        for descriptor in (into, out, broken):
            os.close(descriptor)


@pytest.mark.parametrize("silent", [False, True])
async def test_a_cancelled_request_is_answered_as_its_side_says(*, silent: bool) -> None:
    async with connection() as (_, out, into):
        send(out, id=1, method="ask", params={"silent": silent})
        question = await message(into)
        send(out, method=CANCEL, params={"requestId": 1})
        reported = await message(into)
        assert (reported["method"], reported["params"]["requestId"]) == (CANCEL, question["id"])
        if not silent:
            assert (await message(into))["error"]["code"] == CANCELLED
        send(out, id=1, method="fail")
        assert (await message(into))["error"]["code"] == -32603
        os.close(out)


async def test_a_cancellation_right_behind_its_request_is_not_lost() -> None:
    async with connection() as (side, out, into):
        request = {"jsonrpc": "2.0", "id": 1, "method": "ask", "params": {"silent": True}}
        cancel = {"jsonrpc": "2.0", "method": CANCEL, "params": {"requestId": 1}}
        os.write(out, b"".join(json.dumps(one).encode() + b"\n" for one in (request, cancel)))
        send(out, id=2, method="fail")
        heard = [await message(into)]
        while heard[-1].get("id") != 2:
            heard.append(await message(into))
        os.close(out)
    assert side.peer.calls.cancel_all() is None
    assert not [one for one in heard if one.get("id") == 1 and "method" not in one]


@every_runner
async def test_nothing_is_read_while_the_client_does_not_read(runner: str) -> None:
    async with connection() as (side, out, into):
        many = 200
        form = b'{"jsonrpc":"2.0","id":%d,"method":"much"}' + b" " * 4000 + b"\n"

        async def write() -> None:
            data = b"".join(form % number for number in range(many))
            os.set_blocking(out, False)
            while data:
                await anyio.wait_writable(out)
                data = data[os.write(out, data[:4096]) :]
                unread.append(len(data))

        answers: list[bytes] = []
        unread: list[int] = []
        with anyio.fail_after(60):
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(write)
                before = -1
                while not side.asked or len(unread) > before:  # until nothing moves any more
                    before = len(unread)
                    await anyio.sleep(0.1)
                assert side.asked < many // 2
                assert unread[-1] > many * len(form) // 2
                answers += (await lines(into, many)).splitlines()
        assert sorted(json.loads(one)["id"] for one in answers) == list(range(many))
        os.close(out)


async def test_what_runs_may_end_before_the_connection_does() -> None:
    there, here = os.pipe(), os.pipe()
    peer = Peer(there[0], here[1], cancel_method=CANCEL)
    side = Side(peer)
    drained: list[int] = []

    async def drain() -> None:
        drained.append(len(peer.calls))
        await peer.calls.idle()

    with anyio.fail_after(60):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(peer.serve, side, drain)
            send(there[1], id=1, method="ask")
            await message(here[0])
            os.close(there[1])
            # Nobody can answer the question any more, so the request ends by itself.
            assert (await message(here[0]))["error"]["code"] == -32603
    assert drained == [1]
    for descriptor in (there[0], here[0], here[1]):
        os.close(descriptor)


async def test_requests_that_still_run_when_the_client_leaves_are_cancelled() -> None:
    with anyio.fail_after(60):
        async with connection() as (side, out, _):
            send(out, id=1, method="sleep")
            await until(lambda: side.asked)
            os.close(out)
