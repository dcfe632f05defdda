"""Commands about agents: listed, switched, called, asked once, shown, given another model."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from fast_agent.commands.command import Ask
from fast_agent.commands.table import is_command, run_command

if TYPE_CHECKING:
    from tests.commands.controller_world import DeskWorld

pytestmark = pytest.mark.anyio


def three(world: DeskWorld) -> None:
    world.write("ann", default="true", description="Adds.")
    world.write("bob", tool_only="true")
    world.write("talk", type="chain", sequence="[ann]")


async def test_agents_are_listed_without_those_that_are_only_tools(world: DeskWorld) -> None:
    three(world)
    async with world.sat() as shell:
        assert await shell("/agents") == (
            "- `ann` (current): agent; Adds.\n- `talk`: chain; uses `ann`"
        )


@pytest.mark.spec("CMD-11")
async def test_another_agent_is_talked_to(world: DeskWorld) -> None:
    three(world)
    async with world.sat() as shell:
        for line in ("/agent talk", "@talk"):
            shell.controller.agent = "ann"
            result = await shell.run(line)
            assert (result.agent, result.ask, shell.controller.agent) == ("talk", None, "talk")
        result = await shell.run("@ann  how do\tyou do")
        assert (result.agent, result.ask) == ("ann", Ask(agent="ann", text="how do\tyou do"))
        assert await shell("/agent") == "talking to `ann`: agent; Adds."
        for line in ("@bob", "/agent bob"):
            assert "is `tool_only`: only agents call it" in await shell.refused(line)
        assert "did you mean `@ann`?" in await shell.refused("@anm")
        assert "did you mean `/history rewind`?" in await shell.refused("/rewind")
        assert "did you mean `/agents`?" in await shell.refused("/agnets")
        assert "did you mean `talk`?" in await shell.refused("/agent tolk")
        assert shell.controller.agent == "ann"


@pytest.mark.spec("CMD-11")
async def test_another_agent_is_asked_once(world: DeskWorld) -> None:
    three(world)
    async with world.sat() as shell:
        result = await shell.run('#bob what\'s "up"?')
        assert result.ask == Ask(agent="bob", text='what\'s "up"?')
        assert shell.controller.agent == "ann"
        assert "nothing to send" in await shell.refused("#bob")


@pytest.mark.spec("CMD-11")
async def test_what_only_looks_like_a_command_is_a_message(world: DeskWorld) -> None:
    three(world)
    async with world.sat() as shell:
        for line in (
            "hello", "", "/", "/ help", "/etc/hosts is a file", "/2 is a half", "# Plan", "#",
            "#include <stdio.h>", "@", "@someone@example.org hi", "@ ann", "## ann", "//comment",
        ):  # fmt: skip
            assert not is_command(line, shell.controller), line
        for line in ("/help", "/halp me", "/save_history", "@ann", "@anm", "#talk", " /help"):
            assert is_command(line, shell.controller), line


@pytest.mark.spec("CMD-8")
async def test_an_agent_is_called_with_histories_for_this_call(world: DeskWorld) -> None:
    three(world)
    async with world.sat() as shell:
        assert await shell('/call bob it\'s "me"') == 'it\'s "me"'
        assert len(shell.controller.instance("bob").history) == 0
        await shell("/call bob --history-merge-target child one two")
        await shell("/call --history-merge-target=child bob three")
        assert [one.text for one in shell.controller.instance("bob").history] == [
            "one two", "one two", "three", "three",
        ]  # fmt: skip
        await shell("/call bob --history-source child --history-merge-target orchestrator four")
        assert [one.text for one in shell.controller.instance("ann").history] == ["four", "four"]
        reported = await shell.refused("/call bob --history-source chlid five")
        assert "did you mean `child`?" in reported
        assert "MESSAGE is missing" in await shell.refused("/call bob")
        assert "`--history-source` needs a value" in await shell.refused("/call --history-source")


@pytest.mark.spec("CMD-7")
async def test_a_card_that_is_printed_loads_again(world: DeskWorld) -> None:
    world.write("ann", "Say ```hello```.", default="true", description="'#1: \"A\"'")
    world.write("bob")
    async with world.sat() as shell:
        await shell("/agent bob --tool")
        text = await shell("/agent --dump")
        first, *lines, last = text.splitlines()
        assert first == last == "````"
        (world.directory / "again").mkdir()
        (world.directory / "again/cid.md").write_text(
            "\n".join(lines).replace("name: ann", "name: cid").replace("default: true\n", "")
        )
        await shell("/card again")
        ann, cid = shell.controller.instance("ann").config, shell.controller.instance("cid").config
        assert (cid.instruction, cid.description) == (ann.instruction, ann.description)
        assert cid.agents == ann.agents == ("bob",)
        assert "name: bob" in await shell("/agent bob --dump")


@pytest.mark.spec("CMD-15")
async def test_a_chosen_model_answers_and_stays_through_a_reload(world: DeskWorld) -> None:
    world.write("ann", default="true")
    world.write("lead", agents="[ann]")
    async with world.sat() as shell:
        assert await shell("hello") == "hello"
        assert await shell("/model") == "`ann` uses `passthrough` (set in its card)"
        await shell("/model slow?seconds=0")
        assert await shell("/model") == "`ann` uses `slow?seconds=0` (chosen for this run)"
        world.write("ann", "Changed.", default="true")
        await shell("/reload")
        assert await shell("/model") == "`ann` uses `slow?seconds=0` (chosen for this run)"
        assert len(shell.controller.instance().history) == 2
        assert "unknown model" in await shell.refused("/model nothing.at-all")
        assert "OPENAI_API_KEY" in await shell.refused("/model openai.gpt-5")
        assert await shell("/model") == "`ann` uses `slow?seconds=0` (chosen for this run)"
        await shell("/model default")
        assert await shell("/model") == "`ann` uses `passthrough` (set in its card)"
        await shell("@lead")
        assert await shell("/model") == "`lead` uses `passthrough` (set in its card)"


async def test_a_model_is_chosen_where_the_card_has_none_that_works(world: DeskWorld) -> None:
    world.write("ann", default="true", model="openai.gpt-5")
    async with world.sat() as shell:
        assert await shell("/model") == "`ann` uses `openai.gpt-5` (set in its card)"
        await shell("/model passthrough")
        assert await shell("hello") == "hello"


@pytest.mark.spec("CMD-16", "T-C0.10")
async def test_the_system_prompt_and_usage_are_shown(world: DeskWorld) -> None:
    three(world)
    world.write("ann", "You are {{agentName}}. Hide \x1b[8mthis\u202e.", default="true")
    async with world.sat() as shell:
        text = await shell("/system")
        prompt = "```\nYou are ann. Hide <U+001B>[8mthis<U+202E>.\n```"
        assert text == f"from `ann.md`, filled in: `{{{{agentName}}}}`\n\n{prompt}"
        await shell("hello")
        usage = await shell("/usage")
        assert "the conversation: 2 tokens in, 2 out, 1 request, 0 tool calls" in usage
        assert "`ann`: 2 tokens" in usage
        await shell("@talk")
        for line in ("/system", "/model", "/model passthrough", "/tools"):
            assert "is of type `chain`" in await shell.refused(line)


async def test_a_shell_may_have_other_commands(world: DeskWorld) -> None:
    three(world)
    async with world.sat() as shell:
        none = await run_command("/exit", shell.controller, {})
        assert none.failed
        assert (await shell.run("/exit")).leave
