"""Who shares a conversation, for how long, and with which cards."""

from __future__ import annotations

import os
from contextlib import AsyncExitStack
from pathlib import Path
from typing import TYPE_CHECKING

import anyio
import pytest
from mcp.shared.exceptions import MCPError
from tests.serve.agent_world import (
    AgentWorld,
    ask,
    call_agent,
    connected,
    heard,
    session_of,
    text_of,
    until,
)

from fast_agent.engine.conversation_steps import ConversationSteps
from fast_agent.serve import agent_scopes
from fast_agent.serve.agent_scopes import ScopeLimits
from fast_agent.serve.agent_server import SESSION_ID
from fast_agent.sessions.store import SessionStore
from fast_agent.steps.parts import StepRedactor

if TYPE_CHECKING:
    from mcp.client import Client

pytestmark = pytest.mark.anyio
ERAS = ("legacy", "2026-07-28")
MODERN = "2026-07-28"
OWN_DESCRIPTORS = Path("/proc/self/fd")


@pytest.fixture
def world(tmp_path: Path) -> AgentWorld:
    world = AgentWorld(tmp_path)
    world.card("ann", default="true")
    world.card("bob")
    return world


@pytest.fixture(params=ERAS)
def era(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.mark.spec("SCOPE-1")
async def test_all_clients_share_one_conversation(world: AgentWorld, era: str) -> None:
    async with world.serving(scope="shared") as server:
        async with connected(server, era) as one, connected(server) as two:
            await ask(one, "ann", "from one")
            await ask(two, "ann", "from two")
            expected = ["from one", "from one", "from two", "from two"]
            assert await heard(one, "ann") == expected
        async with connected(server, era) as three:
            assert await heard(three, "ann") == expected


async def test_a_call_that_ended_is_not_held(world: AgentWorld, era: str) -> None:
    async with world.serving(scope="shared") as server, connected(server, era) as client:
        for _ in range(3):
            await ask(client, "ann", "hi")
        assert server.scopes._calls == set()
        assert (server.scopes.in_use, server.scopes.taken) == (0, 3)


@pytest.mark.spec("SCOPE-2")
async def test_calls_on_one_history_queue_in_the_order_they_came(world: AgentWorld) -> None:
    world.card("slow", model="slow?seconds=0.01")
    count = 12
    async with (
        world.serving(scope="shared") as server,
        connected(server) as one,
        connected(server) as two,
    ):
        async with anyio.create_task_group() as tasks:
            for number in range(count):
                client = one if number % 2 else two
                tasks.start_soon(ask, client, "slow", f"m{number}")
                await until(lambda wanted=number + 1: server.scopes.taken >= wanted)
        assert await heard(one, "slow") == [
            f"m{number}" for number in range(count) for _ in range(2)
        ]


@pytest.mark.spec("SCOPE-3")
async def test_each_connection_has_a_conversation_of_its_own(world: AgentWorld) -> None:
    async with world.serving(scope="connection") as server:
        async with connected(server) as one, connected(server) as two:
            await ask(one, "ann", "secret")
            await ask(two, "ann", "hello")
            await ask(one, "ann", "again")
            assert await heard(one, "ann") == ["secret", "secret", "again", "again"]
            assert await heard(two, "ann") == ["hello", "hello"]
        async with connected(server) as three:
            assert await heard(three, "ann") == []


@pytest.mark.spec("SCOPE-4")
async def test_a_client_without_connection_goes_on_with_the_session_it_was_given(
    world: AgentWorld,
) -> None:
    async with world.serving(scope="connection") as server, connected(server, MODERN) as client:
        first = await call_agent(client, "ann", "secret")
        session = session_of(first)
        other = session_of(await call_agent(client, "ann", "hello"))
        assert other != session
        assert len(session) >= 32
        call = "***CALL_TOOL nothing {}"
        assert session_of(await call_agent(client, "ann", "again", session)) == session
        assert session_of(await call_agent(client, "ann", call, other)) == other
        for guess in ("", session[:-1], session + "x", session.lower(), "1"):
            with pytest.raises(MCPError, match="unknown or expired session"):
                await call_agent(client, "ann", "give me", guess)
        histories = [
            [one.text for one in conversation.agent("ann").history]
            for conversation in server.scopes.held()
        ]
        assert histories[0] == ["secret", "secret", "again", "again"]
        assert histories[1][:3] == ["hello", "hello", call]


@pytest.mark.spec("SCOPE-5")
async def test_a_request_remembers_nothing(world: AgentWorld, era: str) -> None:
    async with world.serving(scope="request") as server, connected(server, era) as client:
        for _ in range(3):
            answer = await call_agent(client, "ann", "hello")
            assert text_of(answer) == "hello"
            assert "fast-agent/session" not in (answer.meta or {})
        assert await heard(client, "ann") == []
        assert len(list(server.scopes.held())) == 0


@pytest.mark.spec("SCOPE-6")
async def test_idle_sessions_end_and_there_is_room_for_so_many(world: AgentWorld) -> None:
    limits = ScopeLimits(conversations=3, idle_seconds=60)
    async with (
        world.serving(scope="connection", limits=limits) as server,
        connected(server, MODERN) as client,
    ):
        sessions = [session_of(await call_agent(client, "ann", f"{one}")) for one in range(3)]
        await call_agent(client, "ann", "in use", sessions[0])
        session_of(await call_agent(client, "ann", "new"))
        with pytest.raises(MCPError, match="omit it to start a new one"):
            await call_agent(client, "ann", "too late", sessions[1])
        world.now = 59
        await call_agent(client, "ann", "kept", sessions[0])
        world.now = 118
        assert await ask(client, "ann", "still", sessions[0]) == "still"
        with pytest.raises(MCPError, match="unknown or expired"):
            await call_agent(client, "ann", "too late", sessions[2])
        assert len(list(server.scopes.held())) == 1


@pytest.mark.spec("SCOPE-6")
async def test_sessions_in_use_are_not_ended_for_others(world: AgentWorld) -> None:
    world.card("slow", model="slow?seconds=30")
    limits = ScopeLimits(conversations=2)
    async with (
        world.serving(scope="connection", limits=limits) as server,
        connected(server, MODERN) as client,
        anyio.create_task_group() as tasks,
    ):
        for _ in range(2):
            tasks.start_soon(call_agent, client, "slow", "hello")
        await until(lambda: server.scopes.in_use == 2)
        with pytest.raises(MCPError, match="too many active conversations"):
            await call_agent(client, "ann", "hello")
        tasks.cancel_scope.cancel()


@pytest.mark.spec("SCOPE-6")
async def test_a_session_does_not_expire_under_a_call(world: AgentWorld) -> None:
    world.card("slow", model="slow?seconds=30")
    limits = ScopeLimits(idle_seconds=60)
    async with (
        world.serving(scope="connection", limits=limits) as server,
        connected(server, MODERN) as client,
        anyio.create_task_group() as tasks,
    ):
        session = session_of(await call_agent(client, "ann", "first"))
        tasks.start_soon(call_agent, client, "slow", "hello", session)
        await until(lambda: server.scopes.in_use == 1)
        world.now = 1_000
        other = session_of(await call_agent(client, "ann", "another client"))
        assert other != session
        assert await ask(client, "ann", "second", session) == "second"
        assert len(list(server.scopes.held())) == 2
        tasks.cancel_scope.cancel()


@pytest.mark.spec("SCOPE-7")
async def test_served_conversations_are_sessions_of_the_log(
    world: AgentWorld, era: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(agent_scopes, "MAX_OPEN", 2)
    store = SessionStore(world.home)
    async with (
        world.serving(scope="connection", sessions=store) as server,
        connected(server, era) as client,
    ):
        session = None
        if era == MODERN:
            session = session_of(await call_agent(client, "ann", "first"))
            for _ in range(3):  # so that the first is parked
                await call_agent(client, "ann", "another")
            assert sum(one.is_open for one in server.scopes.held()) == 2
        else:
            await call_agent(client, "ann", "first")
        await call_agent(client, "ann", "second", session)
    found = [store.read(one.id)[1] for one in store.list()]
    assert len(found) == (4 if era == MODERN else 1)
    histories = [[one.text for one in state.history("ann") or ()] for state in found]
    assert ["first", "first", "second", "second"] in histories
    for one in store.list():
        store.open(one.id).close()  # no lock is held any more


@pytest.mark.skipif(not OWN_DESCRIPTORS.exists(), reason="not run: the system does not list them")
async def test_no_open_session_takes_more_descriptors_than_are_counted_for_it(
    world: AgentWorld,
) -> None:
    world.card("lead", agents="[bob]")
    store = SessionStore(world.home, steps=lambda place: ConversationSteps(place, StepRedactor()))
    async with (
        world.serving(scope="connection", sessions=store) as server,
        AsyncExitStack() as stack,
    ):
        clients = [await stack.enter_async_context(connected(server)) for _ in range(4)]

        async def open_descriptors(*clients: Client) -> int:
            for client in clients:
                await ask(client, "lead", "***CALL_TOOL agent__bob {}")
            return len(os.listdir(OWN_DESCRIPTORS))  # noqa: PTH208 - nothing that waits

        before = await open_descriptors(clients[0])
        more = await open_descriptors(*clients[1:]) - before
        assert 0 < more <= 3 * agent_scopes.SESSION_DESCRIPTORS


async def test_a_conversation_is_ended_though_its_connection_is_cancelled(
    world: AgentWorld,
) -> None:
    store = SessionStore(world.home)
    async with world.serving(scope="connection", sessions=store) as server:
        conversation = await server.scopes.connect()
        assert conversation is not None
        async with server.scopes.used(conversation) as used:
            await used.prepare()
            await used.agent("ann").send("hello")
        with anyio.CancelScope() as leaving:
            leaving.cancel()
            await server.scopes.disconnect(conversation)
        (session,) = store.list()
        store.open(session.id).close()  # its lock is not held any more


@pytest.mark.spec("SCOPE-7")
async def test_a_single_call_is_no_session(world: AgentWorld) -> None:
    store = SessionStore(world.home)
    async with (
        world.serving(scope="request", sessions=store) as server,
        connected(server) as client,
    ):
        await ask(client, "ann", "hello")
    assert store.list() == []


@pytest.mark.spec("SCOPE-8")
async def test_everybody_changes_to_new_cards_where_they_share(world: AgentWorld) -> None:
    async with world.serving(scope="shared") as server, connected(server) as client:
        await ask(client, "ann", "first")
        (world.directory / "bob.md").unlink()
        world.card("eve")
        assert world.program.reload().changed
        assert await ask(client, "ann", "second") == "second"
        assert await ask(client, "eve", "hello") == "hello"
        with pytest.raises(MCPError, match="unknown tool `bob`"):
            await ask(client, "bob", "hello")
        assert len(await heard(client, "ann")) == 4


@pytest.mark.spec("SCOPE-9")
async def test_a_connection_keeps_the_cards_it_began_with(world: AgentWorld) -> None:
    async with world.serving(scope="connection", reload=True) as server, connected(server) as old:
        await ask(old, "ann", "first")
        (world.directory / "bob.md").unlink()
        world.card("eve")
        world.program.reload()
        async with connected(server) as new:
            assert await ask(new, "eve", "hello") == "hello"
            with pytest.raises(MCPError, match="unknown tool `bob`"):
                await ask(new, "bob", "hello")
            assert await ask(old, "bob", "hello") == "hello"
            with pytest.raises(MCPError, match="unknown tool `eve`"):
                await ask(old, "eve", "hello")
            assert server.scopes.generations == 2
            assert "nothing changed" in text_of(await old.call_tool("reload", {}))
            assert await ask(old, "eve", "hello") == "hello"
            assert await heard(old, "ann") == ["first", "first"]
        await until(lambda: server.scopes.generations == 1)


async def test_a_connection_that_asked_nothing_holds_no_older_cards(world: AgentWorld) -> None:
    async with (
        world.serving(scope="connection") as server,
        connected(server) as silent,
        connected(server) as asks,
    ):
        await ask(asks, "ann", "first")
        for number in range(3):
            world.card(f"eve{number}")
            assert world.program.reload().changed
            await server.cards_changed()
        await until(lambda: server.scopes.generations == 2)
        assert await ask(silent, "eve2", "hello") == "hello"
        with pytest.raises(MCPError, match="unknown tool `eve2`"):
            await ask(asks, "eve2", "hello")
        assert await heard(asks, "ann") == ["first", "first"]


@pytest.mark.spec("SCOPE-9", "SERVE-10")
async def test_a_session_takes_the_cards_its_client_reloads(world: AgentWorld) -> None:
    options = {"scope": "connection", "reload": True}
    async with world.serving(**options) as server, connected(server, MODERN) as client:
        session = session_of(await call_agent(client, "ann", "first"))
        world.card("eve")
        with pytest.raises(MCPError, match="unknown tool `eve`"):
            await call_agent(client, "eve", "hello", session)
        await client.call_tool("reload", {}, meta={SESSION_ID: session})
        assert await ask(client, "eve", "hello", session) == "hello"
        await call_agent(client, "ann", "second", session)
        conversation = next(server.scopes.held())
        said = [one.text for one in conversation.agent("ann").history]
        assert said == ["first", "first", "second", "second"]


@pytest.mark.spec("SCOPE-9")
async def test_a_session_takes_new_cards_once_none_of_its_calls_runs(world: AgentWorld) -> None:
    world.card("slow", model="slow?seconds=30")
    async with (
        world.serving(scope="connection") as server,
        connected(server, MODERN) as client,
        anyio.create_task_group() as tasks,
    ):
        session = session_of(await call_agent(client, "ann", "first"))
        tasks.start_soon(call_agent, client, "slow", "hello", session)
        await until(lambda: server.scopes.in_use == 1)
        world.card("eve")
        assert world.program.reload().changed
        with pytest.raises(MCPError, match="unknown tool `eve`"):
            await ask(client, "eve", "hello", session)
        tasks.cancel_scope.cancel()
        with anyio.CancelScope(shield=True):
            await until(lambda: server.scopes.in_use == 0)
            assert await ask(client, "eve", "hello", session) == "hello"


@pytest.mark.spec("SCOPE-10")
async def test_a_request_always_has_the_newest_cards(world: AgentWorld) -> None:
    world.card("ann", model="slow?seconds=0.2")
    async with world.serving(scope="request") as server, connected(server) as client:
        answers: list[str] = []
        async with anyio.create_task_group() as tasks:

            async def first() -> None:
                answers.append(await ask(client, "ann", "first"))

            tasks.start_soon(first)
            await until(lambda: server.scopes.in_use == 1)
            world.card("eve")
            world.program.reload()
            assert await ask(client, "eve", "hello") == "hello"
        assert answers == ["first"]


@pytest.mark.spec("SCOPE-11")
async def test_new_cards_are_made_live_once_for_all_who_wait(world: AgentWorld) -> None:
    loads = world.directory / "loads"
    (world.directory / "tools.py").write_text(
        f"with open({str(loads)!r}, 'a') as file:\n    file.write('x')\n"
        "def add(a: int) -> int:\n    return a + 1\n"
    )
    world.card("ann", "One.", default="true", function_tools='["tools.py:add"]')
    async with world.serving(scope="shared") as server, connected(server) as client:
        assert await ask(client, "ann", '***CALL_TOOL add {"a": 1}') == "2"
        assert loads.read_text() == "x"
        world.card("ann", "Two.", default="true", function_tools='["tools.py:add"]')
        assert world.program.reload().updated == ("ann",)
        answers: list[str] = []

        async def call() -> None:
            answers.append(await ask(client, "ann", '***CALL_TOOL add {"a": 2}'))

        async with anyio.create_task_group() as tasks:
            for _ in range(20):
                tasks.start_soon(call)
        assert answers == ["3"] * 20
        assert loads.read_text() == "xx"


async def test_a_call_that_nobody_can_answer_leaves_no_session_without_turns(
    world: AgentWorld, era: str
) -> None:
    world.card("mute", model="openai.gpt-5")
    store = SessionStore(world.home)
    serving = world.serving(scope="shared", sessions=store)
    async with serving as server, connected(server, era) as client:
        for _ in range(2):
            answer = await call_agent(client, "mute", "hi")
            assert answer.is_error
            assert "no API key" in text_of(answer)
        assert store.list() == []
        assert await ask(client, "ann", "hi") == "hi"
        assert (await call_agent(client, "mute", "hi")).is_error
        assert [one.turns for one in store.list()] == [1]
    assert [one.turns for one in store.list()] == [1]
