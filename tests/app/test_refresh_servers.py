"""Servers that cards bring, while the cards change: what stays, what is replaced, what ends."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import anyio
import pytest
from tests.app.refresh_world import World
from tests.patience import until
from tests.processes import ended, lives

from fast_agent.errors import FastAgentError

if TYPE_CHECKING:
    from fast_agent.agent_app import AgentApp

pytestmark = pytest.mark.anyio

SERVER = Path(__file__).with_name("who_server.py")


class ServerWorld(World):
    """Agents that bring servers."""

    def bring(self, agent: str, *who: str, text: str = "Hi.", **more: str) -> None:
        """Write an agent that brings servers, each named `who` before its `=`."""
        servers = "".join(
            f'\n  - {{target: "{sys.executable} {SERVER} {one.partition("=")[2]} '
            f'{self.directory}", name: {one.partition("=")[0]}}}'
            for one in who
        )
        self.write(agent, text, mcp_connect=servers, **more)


@pytest.fixture
def world(tmp_path: Path) -> ServerWorld:
    return ServerWorld(tmp_path)


async def who(app: AgentApp, agent: str, server: str, tool: str = "who") -> tuple[str, int]:
    """Ask a server through an agent what it was started as, and which process it is."""
    name, pid = (await app[agent].send(f"***CALL_TOOL {server}__{tool} {{}}")).split()
    return name, int(pid)


@pytest.mark.spec("LIVE-8")
async def test_a_server_that_a_changed_card_brings_again_goes_on(world: ServerWorld) -> None:
    world.bring("ann", "box=one")
    async with world.live() as app:
        before = await who(app, "ann", "box")
        world.bring("ann", "box=one", text="Changed.")
        await world.reload(app)
        assert await who(app, "ann", "box") == before
        assert [report.name for report in app.runtime.server_reports()] == ["box"]


@pytest.mark.spec("LIVE-8")
async def test_a_changed_server_is_replaced_and_others_stay(world: ServerWorld) -> None:
    world.bring("ann", "box=one", "jar=jar")
    world.bring("bob", "jar=jar")
    async with world.live() as app:
        _, old = await who(app, "ann", "box")
        jar = await who(app, "bob", "jar")
        world.bring("ann", "box=two", "jar=jar")
        await world.reload(app)
        name, new = await who(app, "ann", "box")
        assert (name, new != old) == ("two", True)
        assert await who(app, "ann", "jar") == await who(app, "bob", "jar") == jar
        await ended(old)
        assert lives(new)


@pytest.mark.spec("LIVE-8")
async def test_a_server_ends_with_the_last_card_that_brings_it(world: ServerWorld) -> None:
    world.bring("ann", "box=one")
    world.bring("bob", "box=one")
    world.write("cid")
    async with world.live() as app:
        _, pid = await who(app, "ann", "box")
        assert (await who(app, "bob", "box"))[1] == pid
        world.write("ann")
        await world.reload(app)
        assert (await who(app, "bob", "box"))[1] == pid
        (world.directory / "bob.md").unlink()
        await world.reload(app)
        await ended(pid)
        assert app.runtime.server_reports() == ()


@pytest.mark.spec("LIVE-3", "LIVE-8")
async def test_a_call_under_way_is_answered_by_the_server_it_was_made_to(
    world: ServerWorld,
) -> None:
    world.bring("ann", "box=one")
    answers: list[tuple[str, int]] = []
    async with world.live() as app:
        _, old = await who(app, "ann", "box")

        async def ask() -> None:
            answers.append(await who(app, "ann", "box", "later"))

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(ask)
            await until((world.directory / "begun").exists)
            world.bring("ann", "box=two")
            await world.reload(app)
            (world.directory / "goes on").touch()
            assert (await who(app, "ann", "box"))[0] == "two"
        assert answers == [("one", old)]
        await ended(old)


@pytest.mark.spec("LIVE-3", "LIVE-8")
@pytest.mark.parametrize("later", ["two", None])
async def test_a_turn_that_waits_for_its_server_gets_it_though_the_card_changes(
    world: ServerWorld, later: str | None
) -> None:
    world.bring("ann", "box=slow")
    answers: list[str] = []
    async with world.live() as app:

        async def ask() -> None:
            answers.append((await who(app, "ann", "box"))[0])

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(ask)
            await until((world.directory / "begun").exists)
            if later is None:
                world.write("ann")
            else:
                world.bring("ann", f"box={later}")
            await world.reload(app)
            (world.directory / "goes on").touch()
        assert answers == ["slow"]
        if later is not None:
            assert (await who(app, "ann", "box"))[0] == later


@pytest.mark.spec("LIVE-4", "LIVE-8")
async def test_a_refused_change_of_servers_leaves_all_as_they_were(world: ServerWorld) -> None:
    world.bring("ann", "box=one")
    world.bring("bob", "box=one")
    async with world.live() as app:
        before = await who(app, "ann", "box")
        assert await who(app, "bob", "box") == before
        world.bring("ann", "box=two")
        with pytest.raises(FastAgentError, match="two different servers named `box`"):
            await world.reload(app)
        assert await who(app, "ann", "box") == await who(app, "bob", "box") == before
        world.bring("bob", "box=two")
        await world.reload(app)
        assert (await who(app, "ann", "box"))[0] == (await who(app, "bob", "box"))[0] == "two"
        await ended(before[1])
