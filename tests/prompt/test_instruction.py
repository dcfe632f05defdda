from __future__ import annotations

import dataclasses
import os
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import pytest

from fast_agent.cards.agent_config import AgentConfig
from fast_agent.cards.placeholder import parse_template
from fast_agent.errors import CardError, ResourceError
from fast_agent.prompt.instruction import (
    AgentListing,
    Instruction,
    InstructionContext,
    ServerInstructions,
    UrlTexts,
    host_platform,
    python_version,
)

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

pytestmark = pytest.mark.anyio


class World:
    """A card's directory, a workspace, and all an instruction may speak of, to be changed."""

    def __init__(self, root: Path) -> None:
        self.cards = root / "cards"
        self.workspace = root / "work"
        self.cards.mkdir()
        self.workspace.mkdir()
        self.now = datetime(2026, 11, 21, 23, 59, tzinfo=UTC)
        self.servers: tuple[ServerInstructions, ...] = ()
        self.agents: tuple[AgentListing, ...] = ()
        self.skills = "SKILLS"
        self.pages = {"https://a.b/c": "page"}
        self.monotonic = 0.0
        self.config = AgentConfig(name="me", type="router", source=self.cards / "me.md")

    async def fetch(self, url: str, *, max_bytes: int, timeout: float, check: object = None) -> str:
        if url not in self.pages:
            raise ResourceError(f"`{url}` answered with status 404")
        return self.pages[url]

    def internal(self, name: str) -> str:
        if name != "known":
            raise ResourceError(f"there is no internal document `{name}`")
        return "internal {{env}}"

    @property
    def context(self) -> InstructionContext:
        return InstructionContext(
            workspace=self.workspace,
            now=lambda: self.now,
            platform="Linux 6 x86_64",
            python="3.12.1",
            servers=lambda: self.servers,
            agents=lambda: self.agents,
            skills=lambda: self.skills,
            resources=lambda: "RESOURCES",
            internal=self.internal,
            urls=UrlTexts(self.fetch, lambda: self.monotonic, ttl=60),
        )

    def instruction(self, text: str) -> Instruction:
        return Instruction(parse_template(text), self.config, self.context)


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path)


@pytest.mark.spec("PLACE-2")
async def test_plain_values(world: World) -> None:
    text = (
        "{{agentName}}|{{agentType}}|{{agentCardPath}}|{{agentCardDir}}|{{workspaceRoot}}|"
        "{{hostPlatform}}|{{pythonVer}}|{{currentDate}}|{{agentSkills}}|{{agentInternalResources}}"
    )
    assert await world.instruction(text).render() == (
        f"me|router|{world.cards}/me.md|{world.cards}|{world.workspace}|"
        "Linux 6 x86_64|3.12.1|2026-11-21|SKILLS|RESOURCES"
    )


@pytest.mark.spec("PLACE-5", "PLACE-6", "PLACE-7")
async def test_braces_and_unknown_placeholders_stay(world: World) -> None:
    text = 'use {"a": {"b": 1}} and {{user}} and \\{{currentDate}} and {x} }}{{'
    assert await world.instruction(text).render() == text.replace("\\", "")


@pytest.mark.spec("PLACE-1")
async def test_what_comes_out_is_never_expanded_again(world: World) -> None:
    (world.cards / "a.md").write_text("{{env}} {{file:b.md}} \\{{x}}")
    world.pages["https://a.b/c"] = "{{file:/etc/passwd}} {{currentDate}}"
    world.servers = (ServerInstructions("s", "{{agentName}}"),)
    world.agents = (AgentListing("c", "{{agentName}}"),)
    world.skills = "{{agentName}}"
    instruction = world.instruction(
        "{{file:a.md}}|{{url:https://a.b/c}}|{{internal:known}}|{{agentSkills}}|"
        "{{serverInstructions}}|{{agents}}"
    )
    assert await instruction.render() == (
        "{{env}} {{file:b.md}} \\{{x}}|{{file:/etc/passwd}} {{currentDate}}|internal {{env}}|"
        '{{agentName}}|<mcp-server name="s">\n{{agentName}}\n</mcp-server>|'
        '<agents>\n<agent name="c">{{agentName}}</agent>\n</agents>'
    )


async def test_two_pieces_never_make_a_placeholder_together(world: World) -> None:
    world.skills = "{{current"
    assert await world.instruction("{{agentSkills}}Date}}").render() == "{{currentDate}}"


@pytest.mark.spec("PLACE-3")
async def test_a_new_day_is_seen(world: World) -> None:
    instruction = world.instruction("{{currentDate}} {{env}}")
    assert (await instruction.render()).count("2026-11-21") == 2
    world.now = datetime(2026, 11, 22, tzinfo=UTC)
    assert (await instruction.render()).count("2026-11-22") == 2


async def test_new_servers_and_agents_are_seen(world: World) -> None:
    instruction = world.instruction("[{{serverInstructions}}{{agents}}]")
    assert await instruction.render() == "[]"
    world.servers = (ServerInstructions("s", "x"),)
    assert await instruction.render() == '[<mcp-server name="s">\nx\n</mcp-server>]'
    world.servers = ()
    world.agents = (AgentListing("c"),)
    assert await instruction.render() == '[<agents>\n<agent name="c"/>\n</agents>]'


async def test_a_list_changed_in_place_is_seen(world: World) -> None:
    agents = [AgentListing("a")]
    context = dataclasses.replace(world.context, agents=lambda: agents)
    instruction = Instruction(parse_template("{{agents}}"), world.config, context)
    assert "b" not in (await instruction.render()).replace("<a", "")
    agents.append(AgentListing("b"))
    assert 'name="b"' in await instruction.render()


@pytest.mark.spec("PLACE-3")
async def test_nothing_changed_gives_the_very_same_text(world: World) -> None:
    (world.cards / "a.md").write_text("a")
    everything = "{{currentDate}}{{env}}{{serverInstructions}}{{agents}}{{file:a.md}}"
    instruction = world.instruction(everything + "{{url:https://a.b/c}}{{agentSkills}}")
    world.agents = (AgentListing("c"),)
    first = await instruction.render()
    world.agents = (AgentListing("c"),)
    assert await instruction.render() is first


async def test_without_providers_blocks_are_empty(world: World) -> None:
    context = InstructionContext(
        workspace=world.workspace, now=lambda: world.now, platform="", python=""
    )
    text = "[{{agentSkills}}{{agentInternalResources}}{{serverInstructions}}{{agents}}]"
    assert await Instruction(parse_template(text), world.config, context).render() == "[]"
    for wrong in ("{{internal:x}}", "{{url:https://a.b/c}}"):
        with pytest.raises(ResourceError) as caught:
            await Instruction(parse_template(wrong), world.config, context).render()
        assert f"`{wrong}`" in caught.value.message


@pytest.mark.spec("PLACE-4")
async def test_files_are_looked_up_beside_the_card_then_in_the_workspace(world: World) -> None:
    instruction = world.instruction("[{{file:in/a.md}}]")
    (world.workspace / "in").mkdir()
    (world.workspace / "in/a.md").write_text("workspace")
    assert await instruction.render() == "[workspace]"
    (world.cards / "in").mkdir()
    (world.cards / "in/a.md").write_text("card")
    assert await instruction.render() == "[card]"
    (world.cards / "in/a.md").unlink()
    assert await instruction.render() == "[workspace]"
    (world.workspace / "in/a.md").write_text("changed!")
    assert await instruction.render() == "[changed!]"


async def test_an_edit_of_the_same_size_and_a_replaced_file_are_seen(world: World) -> None:
    path = world.cards / "a.md"
    path.write_text("one")
    instruction = world.instruction("{{file:a.md}}")
    assert await instruction.render() == "one"
    path.write_text("two")
    os.utime(path, ns=(1, 1))
    assert await instruction.render() == "two"
    (world.cards / "b.md").write_text("new")
    os.utime(world.cards / "b.md", ns=(1, 1))
    (world.cards / "b.md").replace(path)
    assert await instruction.render() == "new"


async def test_missing_files(world: World) -> None:
    with pytest.raises(CardError) as caught:
        await world.instruction("{{file:a.md}}").render()
    assert caught.value.message == "the file of `{{file:a.md}}` does not exist"
    assert caught.value.hint is not None
    assert f"`{world.cards}` and `{world.workspace}`" in caught.value.hint
    silent = world.instruction("[{{file_silent:a.md}}]")
    assert await silent.render() == "[]"
    (world.cards / "a.md").write_text("now")
    assert await silent.render() == "[now]"


def link_out(world: World) -> None:
    (world.cards / "a.md").symlink_to("/etc/hostname")


def link_folder(world: World) -> None:
    (world.cards / "in").symlink_to("/etc")


def make_binary(world: World) -> None:
    (world.cards / "a.md").write_bytes(b"a\0\xff")


def make_large(world: World) -> None:
    (world.cards / "a.md").write_bytes(b"x" * (1024 * 1024 + 1))


def make_folder(world: World) -> None:
    (world.cards / "a.md").mkdir()


def make_pipe(world: World) -> None:
    os.mkfifo(world.cards / "a.md")


def leave_alone(world: World) -> None:
    assert not (world.cards / "a.md").exists()


@pytest.mark.spec("PLACE-4")
@pytest.mark.parametrize("kind", ["file", "file_silent"])
@pytest.mark.parametrize(
    ("prepare", "name", "message"),
    [
        (leave_alone, "../cards/me.md", "leads out of its directory with `..`"),
        (leave_alone, "/etc/hostname", "is an absolute path"),
        (leave_alone, "~/x", "is an absolute path"),
        (link_out, "a.md", "goes through the link `a.md`"),
        (link_folder, "in/hostname", "goes through the link `in`"),
        (make_binary, "a.md", "cannot be used: the file is not UTF-8 text"),
        (make_large, "a.md", "holds more than 1048576 bytes"),
        (make_folder, "a.md", "is a directory"),
        (make_pipe, "a.md", "is not a regular file"),
    ],
)
async def test_files_that_are_refused(
    world: World, kind: str, prepare: Callable[[World], None], name: str, message: str
) -> None:
    prepare(world)
    placeholder = f"{{{{{kind}:{name}}}}}"
    with pytest.raises(CardError) as caught:
        await world.instruction(placeholder).render()
    assert caught.value.message.startswith(f"the file of `{placeholder}` {message}")


async def test_a_file_replaced_by_a_link_is_refused(world: World) -> None:
    (world.cards / "a.md").write_text("good")
    instruction = world.instruction("{{file:a.md}}")
    await instruction.render()
    (world.cards / "a.md").unlink()
    link_out(world)
    with pytest.raises(CardError, match="goes through the link"):
        await instruction.render()


async def test_remote_cards_may_not_read_files(world: World) -> None:
    world.config = AgentConfig(name="far", remote="https://x.y/far.md")
    (world.workspace / "a.md").write_text("secret")
    for kind in ("file", "file_silent"):
        with pytest.raises(CardError, match="a card from the network may not read files"):
            await world.instruction(f"{{{{{kind}:a.md}}}}").render()
    text = await world.instruction("{{agentCardPath}}|{{agentCardDir}}").render()
    assert text == "https://x.y/far.md|"


async def test_an_agent_without_a_card_reads_from_the_workspace(world: World) -> None:
    world.config = AgentConfig(name="code")
    (world.workspace / "a.md").write_text("from workspace")
    assert await world.instruction("{{file:a.md}}").render() == "from workspace"


async def test_pages_are_fetched_again_after_their_time(world: World) -> None:
    instruction = world.instruction("{{url:https://a.b/c}} {{url:https://a.b/c}}")
    assert await instruction.render() == "page page"
    world.pages["https://a.b/c"] = "new"
    assert await instruction.render() == "page page"
    world.monotonic += 61
    assert await instruction.render() == "new new"
    world.monotonic += 61
    del world.pages["https://a.b/c"]
    with pytest.raises(ResourceError, match="status 404") as caught:
        await instruction.render()
    assert "`{{url:https://a.b/c}}`" in caught.value.message


async def test_only_web_addresses_are_fetched(world: World) -> None:
    with pytest.raises(ResourceError, match="is not an `http` or `https` address"):
        await world.instruction("{{url:file:///etc/passwd}}").render()


async def test_internal_documents(world: World) -> None:
    assert await world.instruction("{{internal:known}}").render() == "internal {{env}}"
    with pytest.raises(ResourceError, match="there is no internal document `other`"):
        await world.instruction("{{internal:other}}").render()


def test_facts_of_this_machine() -> None:
    import platform

    assert python_version() == platform.python_version()
    assert host_platform().split(" ")[0] == platform.system()


@pytest.mark.spec("FMT-18")
async def test_the_instructions_of_the_project(world: World) -> None:
    instruction = world.instruction("<{{projectInstructions}}>")
    assert await instruction.render() == "<>"
    (world.workspace / "CLAUDE.md").write_text("@AGENTS.md\n")
    (world.workspace / "AGENTS.md").write_text("Use tabs, {{env}}.\n")
    (world.cards / "AGENTS.md").write_text("not these\n")
    assert await instruction.render() == "<Use tabs, {{env}}.>"
    (world.workspace / "CLAUDE.md").write_text("Be brief.\n")
    assert await instruction.render() == "<Use tabs, {{env}}.\n\nBe brief.>"
    (world.workspace / "AGENTS.md").unlink()
    (world.workspace / "AGENTS.md").symlink_to(world.cards / "AGENTS.md")
    with pytest.raises(CardError):
        await instruction.render()
