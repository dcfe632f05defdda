"""Calling agents from Python with histories that meet, and saying so for many at once."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

import pytest

from fast_agent import AgentsAsToolsOptions, ChildHistory
from fast_agent.errors import CardError, RunError
from fast_agent.messages.history import check_validity

if TYPE_CHECKING:
    from collections.abc import Callable

    from fast_agent import FastAgent

    NewProgram: TypeAlias = Callable[..., FastAgent]

pytestmark = pytest.mark.anyio


def add_two(program: FastAgent, **fields: object) -> None:
    program.agent("boss", model="passthrough", agents=["kid"], default=True, **fields)  # pyright: ignore[reportArgumentType]
    program.agent("kid", model="passthrough", instruction="Draw.")


@pytest.mark.spec("ROUTE-9")
async def test_options_say_for_several_agents_how_they_call_others(new_program: NewProgram) -> None:
    program = new_program()
    options = AgentsAsToolsOptions(
        history_source="child",
        history_merge_target="child",
        max_parallel=2,
        child_timeout_sec=5,
        max_display_instances=3,
    )
    add_two(program, agents_as_tools_options=options)
    program.smart("other", agents=["kid"], agents_as_tools_options=options, max_parallel=7)
    program.orchestrator(
        "lead",
        agents=["kid"],
        agents_as_tools_options=AgentsAsToolsOptions("orchestrator", "child"),
    )
    cards = program.load_set.cards
    boss, other, lead = (cards[name].config for name in ("boss", "other", "lead"))
    assert (boss.history_source, boss.history_merge_target) == ("child", "child")
    assert (boss.max_parallel, boss.child_timeout_sec, boss.max_display_instances) == (2, 5, 3)
    assert (other.history_source, other.max_parallel) == ("child", 7)
    assert (lead.history_source, lead.history_merge_target) == ("orchestrator", "child")
    plain = AgentsAsToolsOptions()
    assert (plain.history_source, plain.history_merge_target) == ("none", "none")
    with pytest.raises(CardError, match="history_source"):
        add_two(new_program(), agents_as_tools_options=AgentsAsToolsOptions("chld"))  # pyright: ignore[reportArgumentType]


@pytest.mark.spec("ROUTE-10")
async def test_a_call_runs_on_a_copy_and_its_own_words_go_first(new_program: NewProgram) -> None:
    program = new_program()
    add_two(program)
    async with program.run() as app:
        boss, kid = app["boss"], app["kid"]
        await boss.send("we sail")
        assert await app.call("kid", "draw") == "draw"
        assert (len(kid.history), len(boss.history)) == (0, 2)
        await app.call("kid", "draw a boat", history_merge_target="child")
        assert [one.text for one in kid.history] == ["draw a boat", "draw a boat"]
        await app.call("kid", "***CALL_TOOL none {}", history_merge_target="orchestrator")
        assert [one.role for one in boss.history] == ["user", "assistant"] * 2 + [
            "user",
            "assistant",
        ]
        assert check_validity(boss.history) == []
        with pytest.raises(RunError, match="no agent is named `kd`"):
            await app.call("kd", "draw")


async def test_a_call_starts_with_what_its_words_say(new_program: NewProgram) -> None:
    program = new_program()
    add_two(program, history_source="orchestrator", history_merge_target="child")
    program.agent("far", model="playback", instruction="Repeat.")
    async with program.run() as app:
        await app["boss"].send("we sail")
        # `playback` answers the assistant messages it starts with: those of the boss.
        assert await app.call("far", "go on", caller="boss") == "we sail"
        answer = await app.call("far", "go on", caller="boss", history_source="none")
        assert answer.startswith("MESSAGES EXHAUSTED")
        assert [one.text for one in app["far"].history][:2] == ["go on", "we sail"]


@pytest.mark.spec("ROUTE-9")
async def test_a_program_goes_before_all_cards(new_program: NewProgram) -> None:
    program = new_program()
    add_two(program, child_history={"kid": ChildHistory(merge_target="none")})
    async with program.run(child_history=ChildHistory(merge_target="child")) as app:
        await app.send('***CALL_TOOL agent__kid {"message": "draw"}')
        assert [one.text for one in app["kid"].history] == ["draw", "draw"]
