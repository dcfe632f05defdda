"""Older cards, and what they hold: nobody keeps them who need not."""

from __future__ import annotations

from typing import TYPE_CHECKING

import anyio
import pytest
from tests.serve.agent_world import (
    AgentWorld,
    ask,
    call_agent,
    connected,
    session_of,
    text_of,
    until,
)

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.anyio


@pytest.mark.spec("LIVE-2")
async def test_a_conversation_without_connection_goes_on_with_newer_cards(tmp_path: Path) -> None:
    world = AgentWorld(tmp_path)
    world.card("ann", "One.")
    async with world.serving(scope="connection") as server, connected(server, "auto") as client:
        first = await call_agent(client, "ann", "first")
        session = session_of(first)
        old = server.scopes._by_id[session].generation
        world.card("ann", "Two.")
        assert world.program.reload().updated == ("ann",)
        await server.cards_changed()
        conversation = server.scopes._by_id[session]
        assert conversation.generation is not old
        assert old.users == 0
        assert conversation.agent("ann").config.instruction == "Two."
        assert text_of(await call_agent(client, "ann", "second", session)) == "second"
        heard = [one.text for one in conversation.agent("ann").history]
        assert heard == ["first", "first", "second", "second"]


@pytest.mark.spec("LIVE-3")
async def test_a_connection_keeps_its_cards_until_it_ends(tmp_path: Path) -> None:
    world = AgentWorld(tmp_path)
    world.card("ann", description="One.")
    async with world.serving(scope="connection") as server:
        async with connected(server) as client:
            assert await ask(client, "ann", "first") == "first"
            old = server._generations.current
            world.card("ann", description="Two.")
            world.program.reload()
            await server.cards_changed()
            assert [one.description for one in (await client.list_tools()).tools] == ["One."]
            assert old.users == 1
        await until(lambda: old.users == 0)


@pytest.mark.spec("SCOPE-5")
@pytest.mark.parametrize("mode", ["legacy", "auto"])
async def test_a_call_of_its_own_holds_no_agents_afterwards(tmp_path: Path, mode: str) -> None:
    world = AgentWorld(tmp_path)
    world.card("ann")
    async with world.serving(scope="request") as server, connected(server, mode) as client:
        for number in range(3):
            assert await ask(client, "ann", f"{number}") == f"{number}"
        assert server._generations.current.users == 0


@pytest.mark.spec("SCOPE-9")
async def test_new_connections_that_come_together_share_the_newer_agents(tmp_path: Path) -> None:
    world = AgentWorld(tmp_path)
    world.card("ann", "One.")
    async with world.serving(scope="connection") as server:
        old = server._generations.current
        world.card("ann", "Two.")
        world.program.reload()
        found: list[object] = []

        async def come() -> None:
            found.append(await server._generations.newest())

        async with anyio.create_task_group() as tasks:
            for _ in range(5):
                tasks.start_soon(come)
        assert found == [server._generations.current] * 5
        assert old is not server._generations.current
