"""Sessions over HTTP: how long they are held, what ends with them, and who gives way."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import anyio
import pytest
from tests.serve.agent_world import AgentWorld
from tests.serve.asgi_world import HELLO, PROGRESS, open_app

from fast_agent.resources.catalog import Catalog
from fast_agent.resources.service import ResourceService, ServerInfo
from fast_agent.serve import agent_call, http_sessions
from fast_agent.serve.agent_scopes import ScopeLimits
from fast_agent.serve.agent_server import SESSION_ID
from fast_agent.serve.http_sessions import IDLE_SECONDS, HttpSessions
from fast_agent.serve.resource_server import ResourceServer

if TYPE_CHECKING:
    from pathlib import Path

    from tests.serve.asgi_world import AsgiWorld, Reply

    from fast_agent.serve.http_sessions import HttpSession

pytestmark = pytest.mark.anyio


@pytest.fixture(name="world")
def _world(tmp_path: Path) -> AgentWorld:
    world = AgentWorld(tmp_path)
    world.card("ann")
    return world


class Held:
    """Sessions and a clock."""

    def __init__(self) -> None:
        self.now = 0.0
        self.service = ResourceService(Catalog(()), ServerInfo("test", "1"))
        self.sessions = HttpSessions(ResourceServer(self.service), lambda: self.now)

    async def new(self, owner: str = "a") -> HttpSession:
        opened = await self.sessions.new(owner)
        assert opened is not None
        return opened

    def find(self, *some: HttpSession) -> list[bool]:
        return [self.sessions.find(one.name) is one for one in some]


@pytest.mark.spec("TR-N2.1d")
async def test_unused_sessions_end_and_those_in_use_do_not() -> None:
    held = Held()
    idle, busy, fresh = [await held.new() for _ in range(3)]
    with held.sessions.used(busy):
        held.now = IDLE_SECONDS
        with held.sessions.used(fresh):
            pass
        held.now += 1
        await held.sessions.expire()
        assert held.find(idle, busy, fresh) == [False, True, True]
    held.now += IDLE_SECONDS
    await held.sessions.expire()
    assert held.find(busy, fresh) == [True, False]
    await held.sessions.close(fresh)
    held.now += 1
    await held.sessions.expire()
    assert len(held.sessions) == 0
    assert not held.service.following.sessions


@pytest.mark.spec("TR-N2.1a", "TR-N2.1b")
async def test_the_client_with_the_most_sessions_gives_way(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http_sessions, "MAX_SESSIONS", 10)
    held = Held()
    victim = await held.new("victim")
    flood = [await held.new("flood") for _ in range(20)]
    assert len(held.sessions) == 10
    assert held.find(victim, flood[10], flood[11], flood[-1]) == [True, False, True, True]
    for one in flood[11:]:
        one.using += 1  # a stream or a call
    assert await held.sessions.new("flood") is None
    assert held.find(victim) == [True]


@pytest.mark.spec("TR-N2.1b")
async def test_sessions_in_use_give_way_where_a_client_has_too_many(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(http_sessions, "MAX_SESSIONS", 10)
    held = Held()
    flood = [await held.new("flood") for _ in range(10)]
    for one in flood:
        one.using += 1
    assert await held.sessions.new("flood") is None
    other = await held.new("other")
    assert held.find(*flood, other) == [False, *[True] * 10]


@pytest.mark.spec("TR-N2.1b")
async def test_a_client_with_too_many_streams_loses_one_to_others(
    world: AgentWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(http_sessions, "MAX_SESSIONS", 2)
    async with world.serving() as server, open_app(server) as first:
        second, third = first.other("127.0.0.1"), first.other("127.0.0.1")
        await first.begin()
        await second.begin()
        async with first.stream("GET") as one, second.stream("GET") as two:
            await one.started()
            await two.started()
            refused = await third.send("initialize", HELLO)
            assert (refused.status, refused.headers["retry-after"]) == (503, "5")
            other = first.other("10.0.0.2")
            assert (await other.begin()).status == 200
            with anyio.fail_after(60):
                await one.ended.wait()
            assert not two.ended.is_set()
            assert (await first.send("ping")).status == 404
            assert (await other.send("ping")).status == 200


async def test_none_is_left_at_the_end() -> None:
    held = Held()
    for _ in range(3):
        await held.new()
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(held.sessions.look_after)
        await anyio.lowlevel.checkpoint()
        tasks.cancel_scope.cancel()
    assert len(held.sessions) == 0


async def call(client: AsgiWorld, text: str, **meta: Any) -> Reply:
    params: dict[str, Any] = {"name": "ann", "arguments": {"message": text}}
    return await client.send("tools/call", {**params, "_meta": meta} if meta else params)


def said(reply: Reply) -> str:
    assert reply.status == 200
    return reply.json["result"]["structuredContent"]["text"]


async def test_bodies_and_streams_are_of_one_session(world: AgentWorld) -> None:
    async with world.serving() as server, open_app(server) as client:
        await client.begin()
        assert (await call(client, "one")).headers["content-type"] == "application/json"
        streamed = await call(client, "two", **PROGRESS)
        assert streamed.headers["content-type"] == "text/event-stream"
        assert streamed.headers["mcp-session-id"] == client.headers["mcp-session-id"]
        assert said(streamed) == "two"
        reported = await client.send("prompts/get", {"name": "ann_history"})
        texts = [one["content"]["text"] for one in reported.json["result"]["messages"]]
        assert texts == ["one", "one", "two", "two"]


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
            assert stream.reply.headers["content-type"] == "text/event-stream"
            assert stream.reply.headers["mcp-session-id"] == client.headers["mcp-session-id"]
            again = await client.send("tools/list")
            assert len(again.json["result"]["tools"]) == 2
            world.card("cleo")
            world.program.reload()
            before = stream.reply.body
            await server.cards_changed()
            await stream.until(before + b"event")
            await stream.until(b"notifications/prompts/list_changed")


async def test_a_client_that_lost_its_stream_takes_it_back(world: AgentWorld) -> None:
    async with world.serving(scope="shared") as server, open_app(server) as client:
        await client.begin()
        await client.send("tools/list")
        async with client.stream("GET") as lost:
            await lost.started()
            assert (await client.ask("GET")).status == 409
            async with client.stream("GET", more={"last-event-id": "7"}) as stream:
                await lost.ended.wait()
                world.card("bob")
                world.program.reload()
                await server.cards_changed()
                await stream.until(b"notifications/tools/list_changed")
            assert stream.reply.status == 200
        async with client.stream("GET") as third:
            await third.started()
            assert third.reply.status == 200


async def test_ending_a_session_ends_what_is_under_way(world: AgentWorld) -> None:
    world.card("slow", model="slow?seconds=600")
    async with world.serving() as server, open_app(server) as client:
        await client.begin()
        replies: list[Reply] = []

        async def wait() -> None:
            params = {"name": "slow", "arguments": {"message": "x"}}
            replies.append(await client.send("tools/call", params))

        async with anyio.create_task_group() as tasks, client.stream("GET") as stream:
            tasks.start_soon(wait)
            with anyio.fail_after(60):
                while not server.scopes.in_use:  # noqa: ASYNC110 - it comes true elsewhere
                    await anyio.sleep(0.01)
            assert (await client.ask("DELETE")).status == 200
            with anyio.fail_after(60):
                await stream.ended.wait()
        assert replies[0].json["error"]["code"] == -32800
        assert not server.service.following.sessions
        assert (await call(client, "hi")).status == 404


@pytest.mark.spec("TR-N2.1a")
async def test_strangers_do_not_end_a_conversation(world: AgentWorld) -> None:
    asked: dict[str, Any] = {"name": "ann", "arguments": {"message": "hi"}}
    limits = ScopeLimits(conversations=10)
    async with world.serving(limits=limits) as server, open_app(server) as strangers:
        victim = strangers.other("10.0.0.2")
        first = await victim.modern("tools/call", "ann", asked)
        own = first.json["result"]["_meta"][SESSION_ID]
        for _ in range(15):
            assert said(await strangers.modern("tools/call", "ann", asked)) == "hi"
        assert len(list(server.scopes.held())) == 10
        again = await victim.modern("tools/call", "ann", asked, {SESSION_ID: own})
        assert again.json["result"]["_meta"][SESSION_ID] == own


@pytest.mark.spec("TR-N2.1c")
async def test_abandoned_questions_do_not_silence_others(
    world: AgentWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(agent_call, "MAX_WAITING", 4)
    world.card("asker", human_input=True)
    text = """***CALL_TOOL request_human_input {"message": "Which?"}"""
    asked: dict[str, Any] = {"name": "asker", "arguments": {"message": text}}
    can: dict[str, Any] = {
        "io.modelcontextprotocol/clientCapabilities": {"elicitation": {"form": {}}}
    }

    async def ask(client: AsgiWorld, **more: Any) -> Any:
        reply = await client.modern("tools/call", "asker", {**asked, **more}, can)
        return reply.json.get("result") or reply.json["error"]

    async with world.serving() as server, open_app(server) as strangers:
        victim = strangers.other("10.0.0.2")
        state = (await ask(victim))["requestState"]
        abandoned = [(await ask(strangers))["requestState"] for _ in range(6)]
        assert (await ask(strangers.other("10.0.0.3")))["resultType"] == "input_required"
        assert "unknown to this server" in str(await ask(strangers, requestState=abandoned[0]))
        answers = {"q1": {"action": "accept", "content": {"text": "blue"}}}
        done = await ask(victim, requestState=state, inputResponses=answers)
        assert done["structuredContent"]["text"] == "blue"
