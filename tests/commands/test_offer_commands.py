"""What an agent is offered, shown: by a real server, from real directories."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from tests.commands.controller_world import DeskWorld
from tests.patience import PATIENCE

from fast_agent.commands.completion import complete_from_server
from fast_agent.mcp.server import from_command_line
from fast_agent.trust.gate import TrustOptions

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
        assert f"- `{server.name}__add` ({server.name}, about " in tools
        assert await shell("/mcp") == f"- `{server.name}`: connected"
        assert f"- `{server.name} " in await shell("/prompts")
        resources = await shell("/resources")
        assert "://" in resources
        assert "(template)" in resources


@pytest.mark.spec("T-C0.7")
async def test_tools_that_are_asked_about_are_marked(world: DeskWorld) -> None:
    world.write("bob")
    world.write("ann", default="true", agents="[bob]", confirm="[agent__bob]")
    async with world.sat() as shell:
        tools = await shell("/tools")
        assert tools.startswith("- `agent__bob` (agent, about ")
        assert " tokens, you may be asked first)" in tools


@pytest.mark.spec("T-C0.8")
async def test_a_server_is_connected_again_and_its_log_is_shown(
    world: DeskWorld, tmp_path: Path
) -> None:
    script = tmp_path / "loud.py"
    text = SERVER.read_text("utf-8")
    script.write_text(f"import sys\nprint('ready \\x1b[2J', file=sys.stderr)\n{text}".replace(
        "from __future__ import annotations\n", ""), "utf-8")  # fmt: skip
    line = f"{sys.executable} {script} stdio"
    server = from_command_line(line, directory=world.directory, taken=[])
    world.write("ann", default="true", servers=f"[{server.name}]")
    async with world.sat(servers=(server,)) as shell:
        nothing = await shell(f"/mcp log {server.name}")
        assert nothing == f"`{server.name}` wrote nothing to its standard error"
        for _ in range(2):
            again = await shell(f"/mcp reconnect {server.name}")
            assert again == f"connected to `{server.name}` again"
        log = await shell(f"/mcp log {server.name}")
        assert "ready" in log
        assert "\x1b" not in log
        assert "there is no MCP server `nobody`" in await shell.refused("/mcp log nobody")


@pytest.mark.spec("MCPS-4")
async def test_servers_are_connected_and_disconnected(world: DeskWorld) -> None:
    line = f"{sys.executable} {SERVER} stdio"
    server = from_command_line(line, directory=world.directory, taken=[])
    world.write("ann", default="true", servers=f"[{server.name}]")
    async with world.sat(servers=(server,)) as shell:
        name = server.name
        assert await shell(f"/mcp disconnect {name}") == f"there was no connection to `{name}`"
        assert await shell(f"/mcp connect {name}") == f"connected to `{name}`"
        assert await shell("/mcp show") == f"- `{name}`: connected"
        assert "disconnected" in await shell(f"/mcp disconnect {name}")
        assert await shell("/mcp") == f"- `{name}`: unused"
        assert f"- `{name}__add` ({name}, about " in await shell("/tools")
        assert await shell("/mcp") == f"- `{name}`: connected"
        assert "there is no MCP server `nobody`" in await shell.refused("/mcp connect nobody")


@pytest.mark.spec("CMD-16")
async def test_a_server_that_cannot_be_started_is_reported(world: DeskWorld) -> None:
    server = from_command_line("/bin/false", directory=world.directory, taken=[])
    world.write("ann", default="true", servers=f"['{server.name}']")
    async with world.sat(servers=(server,)) as shell:
        for line in ("/tools", "/prompts", "/resources", "/skills", "/system"):
            assert server.name in await shell.refused(line)
        assert f"`{server.name}`: failed: " in await shell("/mcp")


@pytest.mark.spec("CMD-16")
async def test_skills_and_functions_are_listed(tmp_path: Path) -> None:
    world = DeskWorld(tmp_path, TrustOptions(everything=True))
    skill = world.directory / ".fast-agent/skills/knit"
    skill.mkdir(parents=True)
    (skill / "SKILL.md").write_text("---\nname: knit\ndescription: Knits socks.\n---\nKnit.\n")
    (world.directory / "tools.py").write_text('def add(a: int) -> int:\n    """Add it."""\n')
    world.write("ann", default="true", function_tools='["tools.py:add"]')
    world.write("talk", type="chain", sequence="[ann]")
    async with world.sat() as shell:
        assert await shell("/skills") == "- `knit`: Knits socks."
        assert "- `add` (function, about 30 tokens): Add it." in await shell("/tools")
        await shell("@talk")
        assert await shell("/skills") == "`talk` has no skills"
        assert await shell("/prompts") == "the servers of `talk` have no prompts for it"


@pytest.mark.spec("CMD-16")
async def test_a_prompt_is_filled_and_sent_and_a_resource_goes_with_a_message(
    world: DeskWorld,
) -> None:
    line = f"{sys.executable} {SERVER} stdio"
    server = from_command_line(line, directory=world.directory, taken=[])
    name = server.name
    world.write(
        "ann",
        default="true",
        servers=f"[{name}]",
        prompts=f"{{{name}: [review]}}",
        resources=f"{{{name}: ['note://a']}}",
    )
    async with world.sat(servers=(server,)) as shell:
        assert await shell("/prompts") == (f"- `{name} review code=… [style=…]`: Review some code.")
        result = await shell.run(f"/prompts {name} review code='x = 1' style=strict")
        assert result.text == "prompt `review`: 2 messages"
        assert result.ask is not None
        assert result.ask.message.text == "be strict"
        assert [one.text for one in shell.controller.instance().history] == ["review x = 1"]
        for wrong, reported in (
            (f"{name} review", "needs `code`"),
            (f"{name} review code=1 colour=2", "does not take `colour`"),
            (f"{name} review code", "`code` is not an argument"),
            (f"{name} review code='", "unclosed quote"),
            (f"{name} reveiw", "did you mean `review`?"),
            (f"{name} hidden_prompt", "has no prompt `hidden_prompt`"),
            (f"{name}", "the name of a prompt is missing"),
            ("nobody review", "has no server `nobody`"),
        ):
            assert reported in await shell.refused(f"/prompts {wrong}")
        assert len(shell.controller.instance().history) == 1
        assert await shell(f"/resources {name} note://a") == "```\nnote a\n```"
        result = await shell.run(f"/resources {name} note://a what's this?")
        assert result.ask is not None
        assert result.ask.message.text == "what's this?"
        assert len(result.ask.message.content) == 2
        assert "not open to this agent" in await shell.refused(f"/resources {name} note://hidden")
        assert "the URI of a resource is missing" in await shell.refused(f"/resources {name}")


@pytest.mark.spec("T-C2.4")
async def test_a_server_completes_the_arguments_of_its_prompts_and_templates(
    world: DeskWorld,
) -> None:
    line = f"{sys.executable} {SERVER} stdio"
    server = from_command_line(line, directory=world.directory, taken=[])
    name = server.name
    world.write("ann", default="true", servers=f"[{name}]", prompts=f"{{{name}: [review]}}")
    async with world.sat(servers=(server,)) as shell:

        async def completions(line: str, seconds: float = PATIENCE) -> list[str]:
            found = await complete_from_server(line, shell.controller, seconds=seconds)
            return [line[: one.start] + one.text for one in found]

        prompts, resources = f"/prompts {name} ", f"/resources {name} "
        assert await completions(prompts) == []  # completion connects to no server
        await shell(f"/mcp connect {name}")
        assert await completions(prompts) == [f"{prompts}review"]
        assert await completions(f"{prompts}review ") == [
            f"{prompts}review code=", f"{prompts}review style=",
        ]  # fmt: skip
        assert await completions(f"{prompts}review code=x style=st") == [
            f"{prompts}review code=x style=strict",
            f"{prompts}review code=x style='style of x'",
        ]
        assert await completions(f"{prompts}hidden_prompt code=") == []
        assert await completions(f"{prompts}review code=x style=st", seconds=0) == []
        assert await completions(f"{resources}fi") == [f"{resources}file:///"]
        assert await completions(f"{resources}file:///re") == [
            f"{resources}file:///report.bin", f"{resources}file:///result.bin",
        ]  # fmt: skip
        assert await completions(f"{resources}file:///b") == []
        assert f"{resources}note://a" in await completions(f"{resources}no")
        for other in ("/prompts", "/prompts x y", "/help prompts", "hello", "/resources nobody x"):
            assert await completions(other) == []
