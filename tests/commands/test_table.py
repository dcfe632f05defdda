"""The table: what it says of itself, and that nothing typed at it raises."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import TYPE_CHECKING

import anyio
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.commands.controller_world import DeskWorld

from fast_agent.commands.completion import complete
from fast_agent.commands.table import COMMANDS, SIGNS, is_command, run_command

if TYPE_CHECKING:
    from fast_agent.commands.command import Command

HEAD = (
    "help",
    "agents",
    "agent",
    "call",
    "model",
    "system",
    "usage",
    "context",
    "card",
    "trust",
    "reload",
)
OFFERS = ("tools", "mcp", "prompts", "resources", "skills")
TAIL = ("history", "save_history", "compact", "clear", "session", "exit")


@pytest.mark.spec("CMD-1")
def test_the_table_has_every_command_that_needs_no_screen() -> None:
    assert tuple(COMMANDS) == (*HEAD, *OFFERS, *TAIL)


@pytest.mark.spec("CMD-1")
@pytest.mark.parametrize("command", COMMANDS.values(), ids=lambda one: one.name)
def test_every_command_says_what_it_does(command: Command) -> None:
    for one in (command, *command.actions):
        assert re.fullmatch(r"[a-z].*[^.]", one.summary), one.name
        assert (one.act is None) == bool(one.actions)
        wanted = [word.required for word in one.words]
        assert wanted == sorted(wanted, reverse=True)
        assert not any(word.rest for word in one.words[:-1])
        assert all(option.name.startswith("--") and option.summary for option in one.options)


@pytest.mark.spec("CMD-1", "T-C0.6")
@pytest.mark.anyio
async def test_help_and_the_reference_are_made_of_it(world: DeskWorld) -> None:
    world.write("ann")
    page = Path(__file__).parents[2] / "docs/reference/slash-commands.md"
    reference = page.read_text().replace("\\|", "|")
    async with world.sat() as shell:
        text = await shell("/help")
        for command in COMMANDS.values():
            assert f"- `/{command.usage}`: {command.summary}" in text
            assert f"`/{command.usage}`" in reference
            own = await shell(f"/help {command.name}")
            for action in command.actions:
                assert f"- `/{command.name} {action.usage}`: {action.summary}" in own
                assert f"`/{command.name} {action.usage}`" in reference
            for option in command.options:
                assert f"`{option.name}`: {option.summary}" in own
        for sign in SIGNS:
            assert f"`{sign}`" in text
            assert f"`{sign}`" in reference
        for topic in ("models", "cards", "sessions"):
            assert f"`/help {topic}`" in text
            assert (await shell(f"/help {topic}")).startswith("# ")
        assert "`/help resources`" not in text  # the command is meant
        assert (await shell("/help resources")).startswith("`/resources ")
        assert await shell("/help /card") == await shell("/help card")
        assert "did you mean `/card`?" in await shell.refused("/help crad")
        assert "did you mean `/history`?" in await shell.refused("/histroy")
        assert "did you mean `load`?" in await shell.refused("/history laod x")


WORDS = st.sampled_from(
    [
        *(f"/{name}" for name in COMMANDS if name != "reload"), "/reload", "ann", "bob", "talk",
        "--tool", "--dump", "--force", "--history-source", "child", "@ann", "#bob", "all", "show",
        "load", "rewind", "save", "list", "new", "resume", "fork", "delete", "export", "rename",
        ".", "..", "ann.md", "/nowhere/x", "a\0b", "\x1b[2J", "\u202e", "'", '"',
        "\\", "x" * 5000, "-1", "0", "1", "99999999999999999999", "http://127.0.0.1:9/x.md",
        "file:///etc/passwd", "://", "\ud800", "--", "--=", "=",
    ]
)  # fmt: skip

TEXTS = st.text(max_size=6).filter(lambda text: not set("/~") & set(text))
"""Texts that name nothing outside the working directory."""


@pytest.mark.spec("CMD-14")
@settings(max_examples=150, deadline=None)
@given(st.lists(st.lists(st.one_of(WORDS, TEXTS), max_size=5), max_size=4))
def test_no_line_raises_or_leaves_the_desk_broken(
    tmp_path_factory: pytest.TempPathFactory, lines: list[list[str]]
) -> None:
    directory = tmp_path_factory.mktemp("desk")

    async def sit() -> None:
        world = DeskWorld(directory)
        world.write("ann", default="true")
        world.write("bob", tool_only="true")
        world.write("talk", type="chain", sequence="[ann]")
        async with world.sat(kept=True) as shell:
            for words in lines:
                line = " ".join(words)
                complete(line, shell.controller)
                is_command(line, shell.controller)
                result = await run_command(line, shell.controller)
                assert not re.search("[\x00-\x09\x0b-\x1f\x7f\u202e]", result.text)
                assert shell.controller.agent in shell.controller.app
            assert await shell.controller.instance("ann").send("still here") == "still here"

    anyio.run(sit)
    assert sorted(os.listdir(directory)) == ["home", "work"]  # noqa: PTH208


@pytest.mark.anyio
@pytest.mark.spec("CMD-1", "CMD-17")
async def test_a_line_is_completed(world: DeskWorld) -> None:
    world.write("ann", default="true", description="Adds.")
    world.write("bob", tool_only="true")
    world.write("my cards/cid")
    (world.directory / "notes.txt").touch()
    (world.directory / ".hidden.md").touch()
    async with world.sat(kept=True) as shell:
        controller = shell.controller

        def completions(line: str) -> list[str]:
            found = complete(line, controller)
            assert all(line[: one.start] + one.text for one in found)
            return [one.text for one in found]

        assert completions("/ca") == ["/call", "/card"]
        assert completions("/help confi") == ["configuration"]
        assert completions("/card ") == ["ann.md", "bob.md", '"my cards/"']
        assert completions('/card "my cards/') == ['"my cards/cid.md"']
        assert completions("/card .h") == [".hidden.md"]
        assert completions("/history load n") == ["notes.txt"]
        assert completions("/card ann.md --") == ["--tool"]
        assert completions("/agent ") == ["ann", "bob"]
        assert completions("/call bob --history-source c") == ["child", "cumulative"]
        assert completions("/call bob --history-source child ") == []
        assert completions("/session re") == ["resume", "rename"]
        assert controller.session is not None
        assert completions("/session resume ") == [controller.session.id]
        assert completions("/session nonsense ") == []
        assert "haiku" in completions("/model h")
        assert completions("/help his") == ["history"]
        assert completions("@") == ["@ann"]
        assert completions("#an") == ["#ann"]
        for line in ("", "hello", "# ", "/unknown x", "/card \0", "/card nowhere/", "/usage "):
            assert completions(line) == []
        assert complete("@a", controller)[0].about == "Adds."
