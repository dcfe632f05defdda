"""Live agents after edits at random are those a program has that begins then."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

import anyio
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.app.refresh_world import World

from fast_agent.agents.live_agent import LlmAgent
from fast_agent.errors import CardError

if TYPE_CHECKING:
    from pathlib import Path

    import pytest

    from fast_agent.agent_app import AgentApp

    Shown: TypeAlias = dict[str, tuple[object, ...]]

NAMES = "abcd"
FIELDS: tuple[dict[str, str], ...] = (
    {},
    {"description": "Adds."},
    {"agents": "[b]", "default": "true"},
    {"agents": "[c, d]"},
    {"model": "playback"},
    {"type": "chain", "sequence": "[c, d]"},
    {"name": "e"},
    {"name": "b"},
    {"tool_only": "true"},
    {"function_tools": '["tool.py:add"]'},
    {"wrong": "1"},
)
CARDS = st.tuples(
    st.sampled_from(NAMES),
    st.sampled_from(FIELDS),
    st.sampled_from(["Be brief.", "Be long.", "{{file_silent:part.txt}}"]),
)
EDITS = st.one_of(
    CARDS,
    CARDS,
    st.sampled_from(["remove a", "remove c", "swap", "part.txt", "tool.py"]),
)
ROUNDS = st.lists(
    st.tuples(st.lists(EDITS, min_size=1, max_size=3), st.sets(st.sampled_from(NAMES))), max_size=6
)


class Edited(World):
    """Cards that are edited, each time so that it differs from the time before."""

    def __init__(self, directory: Path) -> None:
        super().__init__(directory)
        self._edits = 0
        self.edit("tool.py")
        for name, members in zip(NAMES, ("[b]", "[c, d]", "[d]", "[]"), strict=True):
            self.write(name, agents=members)

    def edit(self, edit: str | tuple[str, dict[str, str], str]) -> None:
        self._edits += 1
        directory = self.directory
        if isinstance(edit, tuple):
            name, fields, text = edit
            self.write(name, text, **fields)
        elif edit == "swap":
            one, other, beside = (directory / name for name in ("a.md", "b.md", "beside"))
            if one.exists():
                one.rename(beside)
                other.rename(one)
                beside.rename(other)
        elif edit == "part.txt":
            (directory / edit).write_text("x" * self._edits)
        elif edit == "tool.py":
            about = "x" * self._edits
            (directory / edit).write_text(f'def add(a: int) -> int:\n    """{about}"""\n')
        else:
            (directory / f"{edit[-1]}.md").unlink(missing_ok=True)


async def shown(app: AgentApp) -> Shown:
    """Return what can be seen of every agent: its card, model, system prompt and tools."""
    seen: Shown = {}
    for name in app.load_set.cards:
        agent = app[name]
        seen[name] = (agent.config,)
        if isinstance(agent, LlmAgent):
            tools = (await agent.setup.tools.table()).specs
            seen[name] = agent.config, agent.model_name, await agent.setup.render(), tools
    return seen


async def fresh(directory: Path) -> tuple[Shown, str | None]:
    world = World(directory)
    async with world.live() as app:
        return await shown(app), app.load_set.default


@settings(max_examples=40)
@given(ROUNDS)
def test_a_refresh_comes_to_what_a_new_program_has(
    tmp_path_factory: pytest.TempPathFactory,
    rounds: list[tuple[list[str | tuple[str, dict[str, str], str]], set[str]]],
) -> None:
    async def run() -> None:
        world = Edited(tmp_path_factory.mktemp("live"))
        async with world.live() as app:
            for edits, asked in rounds:
                for name in asked & set(app.load_set.cards):
                    await app[name].send("hi")
                for edit in edits:
                    world.edit(edit)
                before, done = app.load_set, world.program.reload()
                changed = await app.refresh()
                try:
                    theirs = await fresh(world.directory)
                except CardError:
                    assert app.load_set is before
                    continue
                assert not done.refused
                assert changed == done.changed
                assert (await shown(app), app.load_set.default) == theirs

    anyio.run(run)
