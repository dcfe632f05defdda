"""What an agent is offered, shown: by a real server, from real directories."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from fast_agent.mcp.server import from_command_line

if TYPE_CHECKING:
    from tests.commands.desk_world import DeskWorld

pytestmark = pytest.mark.anyio

SERVER = Path(__file__).parents[1] / "mcp/servers/everything.py"


@pytest.mark.spec("CMD-16")
async def test_what_a_server_offers_is_listed(world: DeskWorld) -> None:
    line = f"{sys.executable} {SERVER} stdio"
    server = from_command_line(line, directory=world.directory, taken=[])
    world.write("ann", default="true", servers=f"[{server.name}]")
    async with world.sat(servers=(server,)) as shell:
        assert await shell("/mcp") == f"- `{server.name}`: unused"
        tools = await shell("/tools")
        assert f"- `{server.name}__add` ({server.name})" in tools
        assert await shell("/mcp") == f"- `{server.name}`: connected"
        assert f"- `{server.name}` `" in await shell("/prompts")
        resources = await shell("/resources")
        assert "://" in resources
        assert "(template)" in resources


@pytest.mark.spec("CMD-16")
async def test_a_server_that_cannot_be_started_is_told(world: DeskWorld) -> None:
    server = from_command_line("/bin/false", directory=world.directory, taken=[])
    world.write("ann", default="true", servers=f"['{server.name}']")
    async with world.sat(servers=(server,)) as shell:
        for line in ("/tools", "/prompts", "/resources", "/skills", "/system"):
            assert server.name in await shell.refused(line)
        assert f"`{server.name}`: failed: " in await shell("/mcp")


@pytest.mark.spec("CMD-16")
async def test_skills_and_functions_are_listed(world: DeskWorld) -> None:
    skill = world.directory / ".fast-agent/skills/knit"
    skill.mkdir(parents=True)
    (skill / "SKILL.md").write_text("---\nname: knit\ndescription: Knits socks.\n---\nKnit.\n")
    (world.directory / "tools.py").write_text('def add(a: int) -> int:\n    """Add it."""\n')
    world.write("ann", default="true", function_tools='["tools.py:add"]')
    world.write("talk", type="chain", sequence="[ann]")
    async with world.sat() as shell:
        assert await shell("/skills") == "- `knit`: Knits socks."
        assert "- `add` (function): Add it." in await shell("/tools")
        await shell("@talk")
        assert await shell("/skills") == "`talk` has no skills"
        assert await shell("/prompts") == "the servers of `talk` have no prompts for it"
