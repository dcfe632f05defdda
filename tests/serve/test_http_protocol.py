"""One HTTP connection: what it may send, and what is read of it, over real sockets."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import anyio
import pytest
from tests.patience import pass_seconds, until
from tests.runners import every_runner
from tests.serve.http_world import TOKEN, http_world

from fast_agent.serve.connections import ConnectionLimits, Connections
from fast_agent.serve.http_access import HttpSettings
from fast_agent.serve.http_protocol import _ReadState

if TYPE_CHECKING:
    from tests.serve.http_world import Client

pytestmark = pytest.mark.anyio

GUARDED = HttpSettings(token=TOKEN)
BEARER = f"Authorization: Bearer {TOKEN}"
READ_AHEAD = 1 << 14


def chunked(*chunks: bytes, trailers: bytes = b"") -> bytes:
    return (
        b"".join([b"%x\r\n%b\r\n" % (len(one), one) for one in chunks]) + b"0\r\n%b\r\n" % trailers
    )


@pytest.mark.spec("TR-N1.2")
async def test_pipelined_requests_are_answered_one_by_one_and_in_order() -> None:
    async with http_world() as world:
        client = await world.connect()
        world.app.may_answer = anyio.Event()
        requests: list[bytes] = []
        for number in range(12):
            body = b"body %d" % number * number
            if number % 3:
                requests.append(world.post(body))
            else:
                head = world.head("Transfer-Encoding: chunked")
                requests.append(head + (chunked(body, b"!") if body else chunked()))
        await client.send(*requests)
        await until(lambda: world.app.asked)
        await anyio.wait_all_tasks_blocked()
        assert len(world.app.asked) == 1
        world.app.may_answer.set()
        for number in range(12):
            status, _, reported = await client.answer()
            body = "" if number == 0 else f"body {number}" * number + "!" * (number % 3 == 0)
            assert (status, json.loads(reported)["body"]) == (200, body)
        assert len(world.app.asked) == 12


@pytest.mark.spec("TR-N1.2", "TR-N1.1", "LOOP-8")
@every_runner
async def test_nothing_is_read_while_a_request_waits(runner: str) -> None:
    async with http_world() as world:
        client = await world.connect()
        world.app.may_answer = anyio.Event()
        await client.send(world.post())
        await until(lambda: world.app.asked)
        assert client.protocol.transport.is_reading()  # else nobody would notice that it leaves

        async def flood() -> None:
            while True:
                await client.send(world.post() * 1000)

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(flood)
            await until(lambda: not client.protocol.transport.is_reading())
            await anyio.wait_all_tasks_blocked()  # the flood waits for the socket to take more
            tasks.cancel_scope.cancel()
        assert 0 < len(client.protocol._ahead) <= READ_AHEAD
        assert len(world.app.asked) == 1


@pytest.mark.spec("TR-N1.4")
@every_runner
async def test_the_next_request_waits_until_the_answer_is_read(runner: str) -> None:
    async with http_world() as world:
        client = await world.connect()
        world.app.answer = b"x" * (8 << 20)
        await client.send(world.post(), world.post())
        await until(lambda: client.protocol.flow.write_paused)
        await anyio.wait_all_tasks_blocked()
        assert len(world.app.asked) == 1
        world.app.answer = b"small"
        assert len((await client.answer())[2]) == 8 << 20
        assert (await client.answer())[2] == b"small"


async def test_the_application_is_notified_when_its_client_leaves() -> None:
    async with http_world() as world:
        client = await world.connect()
        world.app.may_answer = anyio.Event()
        await client.send(world.post())
        await until(lambda: world.app.asked)
        await client.stream.aclose()
        await until(lambda: world.app.left == 1)


@pytest.mark.spec("TR-N1.1", "TR-N1.4")
@pytest.mark.parametrize("settings", [HttpSettings(), GUARDED])
async def test_a_head_has_ten_seconds(settings: HttpSettings) -> None:
    async with http_world(settings=settings) as world:
        silent, slow, half = [await world.connect() for _ in range(3)]
        await slow.send(b"\r\n\r\n")
        await half.send(world.head()[:-3])
        await until(lambda: half.protocol._reading is _ReadState.HEAD)
        pass_seconds(5)
        world.connections.check(half.protocol.loop.time())
        assert not half.protocol.transport.is_closing()
        pass_seconds(6)
        assert (await silent.ended(), await slow.ended()) == (b"", b"")
        assert await half.status() == 408
        assert await half.ended() == b""


@pytest.mark.spec("TR-N1.1")
async def test_a_body_has_thirty_seconds_from_its_last_byte() -> None:
    async with http_world(settings=GUARDED) as world:
        client = await world.connect()
        await client.send(world.head("Content-Length: 100", BEARER))
        for size in (1, 2, 3):
            await client.send(b"x")
            await until(lambda size=size: client.protocol._body.size == size)
            pass_seconds(15)
            world.connections.check(client.protocol.loop.time())
            assert client.protocol._reading is _ReadState.BODY
        pass_seconds(16)
        assert await client.status() == 408
        assert await client.ended() == b""
        assert not world.app.asked


async def test_an_unused_connection_ends_after_half_a_minute() -> None:
    async with http_world() as world:
        client = await world.connect()
        await client.send(world.post())
        assert await client.status() == 200
        await until(lambda: client.protocol._reading is _ReadState.NOTHING)
        pass_seconds(15)
        world.connections.check(client.protocol.loop.time())
        assert not client.protocol.transport.is_closing()
        pass_seconds(16)
        assert await client.ended() == b""


@pytest.mark.spec("TR-N1.4")
async def test_an_answer_that_nobody_reads_ends_the_connection() -> None:
    async with http_world() as world:
        client = await world.connect()
        world.app.answer = b"x" * (8 << 20)
        await client.send(world.post())
        await until(lambda: client.protocol.flow.write_paused)
        world.connections.check(client.protocol.loop.time())
        pass_seconds(15)
        world.connections.check(client.protocol.loop.time())
        assert not client.protocol.transport.is_closing()
        pass_seconds(16)
        # Judged before the client reads on: on a busy machine it would get the whole answer first.
        world.connections.check(client.protocol.loop.time())
        assert len(await client.ended()) < 8 << 20


async def test_an_answer_that_is_being_read_goes_on() -> None:
    async with http_world() as world:
        client = await world.connect()
        size = 8 << 20
        world.app.answer = b"x" * size
        await client.send(world.post())
        await until(lambda: client.protocol.flow.write_paused)
        read = b""
        while len(read) < size:
            read += await client.stream.receive()
            pass_seconds(1)
            world.connections.check(client.protocol.loop.time())
        assert read.endswith(b"x" * size)


async def test_a_call_may_take_as_long_as_it_takes() -> None:
    async with http_world() as world:
        client = await world.connect()
        world.app.may_answer = anyio.Event()
        await client.send(world.post())
        await until(lambda: world.app.asked)
        for _ in range(3):
            pass_seconds(10_000)
            world.connections.check(client.protocol.loop.time())
        world.app.may_answer.set()
        assert await client.status() == 200


@pytest.mark.spec("TR-N1.1", "TR-N1.4")
@pytest.mark.parametrize(
    ("lines", "status"),
    [
        (["X: " + "x" * 15_000], 200),
        (["X: " + "x" * 16_500], 431),
        (["X: " + "x" * 70_000], 431),
        ([f"X{number}: y" for number in range(98)], 200),
        ([f"X{number}: y" for number in range(99)], 431),
        ([f"X{number}: y" for number in range(3000)], 431),
    ],
)
async def test_heads_are_bounded(lines: list[str], status: int) -> None:
    for cut in (1, 4000, 1 << 20):
        async with http_world() as world:
            client = await world.connect()
            sent = world.head("Content-Length: 0", *lines)
            try:
                for at in range(0, len(sent), cut if cut > 1 else len(sent) // 50):
                    await client.send(sent[at : at + (cut if cut > 1 else len(sent) // 50)])
            except anyio.BrokenResourceError:
                assert status == 431
            assert await client.status() == status
            if status != 200:
                assert await client.ended() == b""
                assert not world.app.asked


@pytest.mark.spec("TR-N1.4")
async def test_bodies_are_bounded() -> None:
    most = 4 << 20
    async with http_world() as world:
        client = await world.connect()
        await client.send(world.post(b"x" * most))
        assert await client.status() == 200
        for sent in (
            world.post(b"x" * (most + 1)),
            world.head("Transfer-Encoding: chunked") + chunked(*[b"x" * 65_536] * 65),
        ):
            client = await world.connect()
            await client.send(sent)
            status, headers, reported = await client.answer()
            assert (status, headers["connection"]) == (413, "close")
            assert b"larger than 4,194,304 bytes" in reported
            assert await client.ended() == b""
        assert len(world.app.asked) == 1


@pytest.mark.spec("TR-N1.1", "TR-N1.4")
async def test_unfinished_bodies_are_bounded_as_a_whole() -> None:
    limits = ConnectionLimits(bodies_bytes=1_000_000)
    async with http_world(limits) as world:
        slow = [await world.connect() for _ in range(5)]
        for number, one in enumerate(slow):
            await one.send(world.head("Content-Length: 1000000"), b"x" * 240_000)
            if number < 4:
                await until(lambda one=one: one.protocol._body.size == 240_000)
        # The one that was heard of longest ago makes room.
        assert await slow[0].ended() == b""
        await until(lambda: slow[4].protocol._body.size == 240_000)
        assert all(not one.protocol.transport.is_closing() for one in slow[1:])
        # Requests of usual size find room all the while.
        small = await world.connect()
        await small.send(world.post(b"x" * 60_000))
        assert await small.status() == 200


@pytest.mark.spec("TR-N1.4")
async def test_a_body_that_finds_no_room_is_refused_while_others_are_answered() -> None:
    limits = ConnectionLimits(bodies_bytes=1_000_000)
    async with http_world(limits) as world:
        world.app.may_answer = anyio.Event()
        large = [await world.connect() for _ in range(3)]
        for number, one in enumerate(large[:2]):
            await one.send(world.post(b"x" * 450_000))
            await until(lambda number=number: len(world.app.asked) == number + 1)
        await large[2].send(world.post(b"x" * 450_000))
        status, headers, _ = await large[2].answer()
        assert (status, headers["retry-after"]) == (503, "5")
        world.app.may_answer.set()
        assert [await one.status() for one in large[:2]] == [200, 200]
        again = await world.connect()
        await again.send(world.post(b"x" * 450_000))
        assert await again.status() == 200


@pytest.mark.spec("TR-N1.1")
async def test_without_its_token_a_request_gets_an_answer_and_no_more() -> None:
    async with http_world(settings=GUARDED) as world:
        client = await world.connect()
        await client.send(world.head("Content-Length: 3000000"), b"x" * 1_000_000)
        status, headers, _ = await client.answer()
        assert (status, headers["www-authenticate"]) == (401, "bearer")
        assert client.protocol._body.size == 0
        # The connection is of use once the rest has gone by.
        await client.send(b"x" * 2_000_000, world.post(b"{}", BEARER))
        assert await client.status() == 200
        assert [one["body"] for one in world.app.asked] == ["{}"]


@pytest.mark.spec("TR-N1.1")
async def test_a_client_that_guesses_waits_longer_each_time() -> None:
    async with http_world(settings=GUARDED) as world:
        client = await world.connect()
        wrong = world.post(b"", "Authorization: Bearer wrong")
        await client.send(*[wrong] * 40)
        times: list[float] = []
        for _ in range(12):
            assert await client.status() == 401
            times.append(client.protocol.loop.time())
        assert times[-1] - times[0] >= sum(0.02 * number for number in range(1, 12)) * 0.99


async def test_trailers_are_dropped() -> None:
    async with http_world() as world:
        client = await world.connect()
        body = chunked(b"hello", trailers=b"Authorization: Bearer x\r\nMcp-Session-Id: y\r\n")
        await client.send(world.head("Transfer-Encoding: chunked") + body, world.post(b"next"))
        assert await client.status() == 200
        assert await client.status() == 200
        first, second = world.app.asked
        assert (first["body"], second["body"]) == ("hello", "next")
        assert first["headers"] == ["host", "transfer-encoding"]


async def test_what_offers_another_protocol_is_answered_as_usual() -> None:
    """The HTTP client of Java asks for HTTP/2 this way with its first request."""
    async with http_world() as world:
        client = await world.connect()
        offer = ("Connection: Upgrade, HTTP2-Settings", "Upgrade: h2c", "HTTP2-Settings: AAMAAABk")
        await client.send(world.post(b"one", *offer), world.post(b"two"))
        await client.send(world.head("Transfer-Encoding: chunked", *offer) + chunked(b"three"))
        assert [await client.status() for _ in range(3)] == [200] * 3
        assert [one["body"] for one in world.app.asked] == ["one", "two", "three"]


async def test_a_client_that_waits_for_leave_gets_it_where_its_body_is_wanted() -> None:
    async with http_world(settings=GUARDED) as world:
        client = await world.connect()
        await client.send(world.head("Content-Length: 5", "Expect: 100-continue", BEARER))
        assert await client.status() == 100
        await client.send(b"hello")
        assert await client.status() == 200
        await client.send(world.head("Content-Length: 5", "Expect: 100-continue"))
        assert await client.status() == 401


@pytest.mark.parametrize(
    "sent",
    [
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
        b"GET / HTTP/1.1\nHost: a\n\n",
        b"GET / HTTP/1.1\r\nHost : a\r\n\r\n",
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
        b"POST /mcp HTTP/1.1\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nab",
        b"POST /mcp HTTP/1.1\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        b"POST /mcp HTTP/1.1\r\nTransfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n",
        b"POST /mcp HTTP/1.1\r\nTransfer-Encoding: identity\r\n\r\n",
        b"POST /mcp HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        b"POST /mcp HTTP/1.1\r\nHost: a\r\n" + b"Transfer-Encoding: chunked\r\n" * 2 + b"\r\n",
        b"GET /mcp HTTP/1.1\r\n\r\n",
        b"GET \xff HTTP/1.1\r\nHost: localhost\r\n\r\n",
        b"GET /mcp HTTP/3.7\r\nHost: localhost\r\n\r\n",
        b"\x00" * 3000,
    ],
)
async def test_what_is_not_http_is_refused(sent: bytes) -> None:
    for pieces in ([sent], [sent[at : at + 1] for at in range(len(sent))][:400]):
        async with http_world() as world:
            client = await world.connect()
            try:
                for piece in pieces:
                    await client.send(piece)
            except anyio.BrokenResourceError:
                pass
            status, headers, reported = await client.answer()
            assert (status, headers["content-type"]) == (400, "application/json")
            assert list(json.loads(reported)) == ["error"]
            assert not world.app.asked
            assert not world.lines


async def test_an_answer_to_head_has_no_body() -> None:
    async with http_world(settings=GUARDED) as world:
        client = await world.connect()
        await client.send(world.head("Connection: close", method="HEAD"))
        reported = await client.ended()
        assert reported.startswith(b"HTTP/1.1 401 ")
        assert reported.endswith(b"\r\n\r\n")


@pytest.mark.spec("TR-N1.1")
async def test_a_silent_connection_goes_for_each_new_one() -> None:
    async with http_world(ConnectionLimits(connections=4)) as world:
        world.app.may_answer = anyio.Event()
        busy = await world.connect()
        await busy.send(world.post())
        await until(lambda: world.app.asked)
        silent = [await world.connect() for _ in range(3)]
        await silent[0].send(b"GET")  # it is heard of last
        await until(lambda: silent[0].protocol._reading is _ReadState.HEAD)
        for place in (1, 2, 0):
            await world.connect()
            assert await silent[place].ended() == b""
        assert len(world.connections) == 4
        world.app.may_answer.set()
        assert await busy.status() == 200


@pytest.mark.spec("TR-N1.1")
async def test_clients_without_the_token_take_half_of_the_connections() -> None:
    async with http_world(ConnectionLimits(connections=8), GUARDED) as world:
        known = [await world.connect() for _ in range(2)]
        for one in known:
            await one.send(world.post(b"{}", BEARER))
            assert await one.status() == 200
        strangers = [await world.connect() for _ in range(12)]
        for one in strangers[:8]:
            assert await one.ended() == b""
        assert len(world.connections) == 6
        for one in (*known, *strangers[8:]):
            await one.send(world.post(b"{}", BEARER))
            assert await one.status() == 200


async def test_when_all_are_answered_one_leaves_after_its_answer() -> None:
    async with http_world(ConnectionLimits(connections=4)) as world:
        world.app.may_answer = anyio.Event()
        busy: list[Client] = []
        for number in range(5):
            busy.append(await world.connect())
            await busy[-1].send(world.post())
            await until(lambda number=number: len(world.app.asked) == number + 1)
        refused = await world.connect()
        assert await refused.status() == 503
        assert await refused.ended() == b""
        world.app.may_answer.set()
        closing: list[bool] = []
        for one in busy:
            status, headers, _ = await one.answer()
            assert status == 200
            closing.append(headers.get("connection") == "close")
        assert closing == [True, False, False, False, False]
        assert world.lines == ["connections are refused: as many as possible are being answered"]


async def test_pipelining_makes_a_connection_the_first_to_go() -> None:
    async with http_world(ConnectionLimits(connections=2)) as world:
        quiet = await world.connect()
        greedy = await world.connect()
        await quiet.send(world.post())
        assert await quiet.status() == 200
        await greedy.send(*[world.post()] * 100)
        await until(lambda: greedy.protocol._delays > 3)
        await world.connect()
        await greedy.ended()
        await quiet.send(world.post())
        assert await quiet.status() == 200


def test_refused_connections_go_on_one_after_another_however_many_there_are() -> None:
    connections = Connections(ConnectionLimits(), has_token=True)
    turns = [connections.turn_after_refusal(10.0) for _ in range(1_001)]
    assert turns == sorted(set(turns))
    assert turns[0] == 10.0
    assert turns[-1] - turns[0] == pytest.approx(4.0)
    assert connections.turn_after_refusal(20.0) == 20.0, "turns that nobody took are not saved up"
