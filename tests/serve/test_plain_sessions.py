"""Sessions that were opened plainly: how long they are held, and how the SDK comes to know them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import anyio
import pytest
from tests.serve.agent_world import AgentWorld
from tests.serve.asgi_world import PROGRESS, open_app

from fast_agent.resources.session import Session
from fast_agent.serve.mailbox import Mailbox
from fast_agent.serve.plain_sessions import IDLE_SECONDS, MOST_SESSIONS, PlainSessions

if TYPE_CHECKING:
    from pathlib import Path

    from tests.serve.asgi_world import AsgiWorld, Reply


@pytest.fixture(name="world")
def _world(tmp_path: Path) -> AgentWorld:
    world = AgentWorld(tmp_path)
    world.card("ann")
    return world


class Held:
    """Sessions, a clock, and those that ended."""

    def __init__(self) -> None:
        self.now = 0.0
        self.ended: list[Session] = []
        self.sessions = PlainSessions(self._end, lambda: self.now)

    async def _end(self, session: Session) -> None:
        self.ended.append(session)

    def add(self) -> Any:
        return self.sessions.add(Session(lambda _method, _params: None), b"{}", Mailbox())


@pytest.mark.anyio
async def test_unused_sessions_end_and_those_in_use_do_not() -> None:
    held = Held()
    idle, busy, fresh = held.add(), held.add(), held.add()
    with held.sessions.used(busy):
        held.now = IDLE_SECONDS
        with held.sessions.used(fresh):
            pass
        held.now += 1
        await held.sessions.expire()
        assert held.ended == [idle.session]
    assert held.sessions.find(idle.name) is None
    assert held.sessions.find(busy.name) is busy
    held.now += IDLE_SECONDS
    await held.sessions.expire()
    assert held.ended == [idle.session, fresh.session]
    await held.sessions.close(fresh)
    assert len(held.ended) == 2
    held.now += 1
    await held.sessions.expire()
    assert held.ended[-1] is busy.session


@pytest.mark.anyio
async def test_only_so_many_are_open_and_none_is_left_at_the_end() -> None:
    held = Held()
    one = held.add()
    for _ in range(MOST_SESSIONS - 1):
        assert not held.sessions.full
        held.add()
    assert held.sessions.full
    await held.sessions.close(one)
    assert not held.sessions.full
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(held.sessions.look_after)
        await anyio.lowlevel.checkpoint()
        tasks.cancel_scope.cancel()
    assert len(held.ended) == MOST_SESSIONS


async def call(client: AsgiWorld, text: str, **meta: Any) -> Reply:
    params: dict[str, Any] = {"name": "ann", "arguments": {"message": text}}
    return await client.send("tools/call", {**params, "_meta": meta} if meta else params)


def said(reply: Reply) -> str:
    assert reply.status == 200
    return reply.json["result"]["structuredContent"]["text"]


@pytest.mark.anyio
async def test_a_session_is_the_same_one_plainly_and_for_the_sdk(world: AgentWorld) -> None:
    async with world.serving(scope="connection") as server, open_app(server) as client:
        hello = await client.begin()
        assert hello.headers["content-type"] == "application/json"
        name = client.headers["mcp-session-id"]
        opened = server.plain.find(name.encode())
        assert opened is not None
        assert said(await call(client, "one")) == "one"
        assert opened.sdk_id is None
        streamed = await call(client, "two", **PROGRESS)
        assert streamed.headers["content-type"].startswith("text/event-stream")
        assert (said(streamed), streamed.headers["mcp-session-id"]) == ("two", name)
        assert opened.sdk_id not in {None, name.encode()}
        assert said(await call(client, "three")) == "three"
        told = await client.send("prompts/get", {"name": "ann_history"})
        texts = [one["content"]["text"] for one in told.json["result"]["messages"]]
        assert texts == ["one", "one", "two", "two", "three", "three"]


@pytest.mark.anyio
async def test_the_sdk_may_end_its_own_before(world: AgentWorld) -> None:
    async with world.serving(scope="connection") as server, open_app(server) as client:
        await client.begin()
        opened = server.plain.find(client.headers["mcp-session-id"].encode())
        assert opened is not None
        assert said(await call(client, "one", **PROGRESS)) == "one"
        first = opened.sdk_id
        assert first is not None
        # No client knows this id; here it does what the SDK's own limit of idle time would do.
        other = await client.ask("DELETE", more={"mcp-session-id": first.decode()})
        assert other.status == 200
        with anyio.fail_after(60):
            while opened.sdk_id is not None:  # noqa: ASYNC110 - its connection is closed elsewhere
                await anyio.sleep(0.01)
        assert said(await call(client, "two", **PROGRESS)) == "two"
        assert opened.sdk_id != first
        told = await client.send("prompts/get", {"name": "ann_history"})
        assert len(told.json["result"]["messages"]) == 4


@pytest.mark.anyio
async def test_what_was_told_before_the_stream_opened_is_heard_on_it(world: AgentWorld) -> None:
    async with world.serving(scope="shared") as server, open_app(server) as client:
        await client.begin()
        listed = await client.send("tools/list")
        assert [one["name"] for one in listed.json["result"]["tools"]] == ["ann"]
        world.card("bob")
        world.program.reload()
        await server.cards_changed()
        async with client.stream("GET") as stream:
            await stream.until(b"notifications/tools/list_changed")
            assert stream.reply.headers["content-type"].startswith("text/event-stream")
            assert stream.reply.headers["mcp-session-id"] == client.headers["mcp-session-id"]
            again = await client.send("tools/list")
            assert len(again.json["result"]["tools"]) == 2
            world.card("cleo")
            world.program.reload()
            before = stream.reply.body
            await server.cards_changed()
            await stream.until(before + b"event")
            await stream.until(b"notifications/prompts/list_changed")


@pytest.mark.anyio
async def test_ending_a_session_ends_its_conversation(world: AgentWorld) -> None:
    async with world.serving(scope="connection") as server, open_app(server) as client:
        for meta in ({}, PROGRESS):
            client.headers.clear()
            await client.begin()
            name = client.headers["mcp-session-id"].encode()
            assert said(await call(client, "hi", **meta)) == "hi"
            ended = await client.ask("DELETE")
            assert (ended.status, server.plain.find(name)) == (200, None)
            assert not server.service.following.sessions
            assert (await call(client, "hi")).status == 404


@pytest.mark.anyio
@pytest.mark.parametrize(
    "capabilities",
    [
        {"sampling": 5},
        {"roots": {"listChanged": "x"}},
        {"elicitation": {"form": [1]}},
        {"experimental": {"x" * 4096: {}}},
        [],
    ],
)
async def test_a_handshake_that_is_not_plain_is_left_to_the_sdk(
    world: AgentWorld, capabilities: Any
) -> None:
    async with world.serving(scope="connection") as server, open_app(server) as client:
        reply = await client.send(
            "initialize",
            {
                "protocolVersion": "2025-11-25",
                "capabilities": capabilities,
                "clientInfo": {"name": "test", "version": "1"},
            },
        )
        assert reply.headers["content-type"].startswith("text/event-stream")
        assert server.plain.find(client.headers["mcp-session-id"].encode()) is None
