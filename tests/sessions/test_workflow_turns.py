"""Turns that set off others and are written down, when something cannot be."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from tests.sessions.live_world import live, world_of
from tests.sessions.refusing_journal import Refusing
from tests.sessions.session_world import store_in
from tests.workflows.one_of_each import PLACES, help_out, lead
from tests.workflows.scripted_world import World, agent

from fast_agent.agents.events import TurnFinished
from fast_agent.errors import FastAgentError, SessionError
from fast_agent.messages.history import check_validity
from fast_agent.models.script import Call

if TYPE_CHECKING:
    from pathlib import Path

    from fast_agent.cards.agent_config import HistoryTarget

pytestmark = pytest.mark.anyio


async def written_by_a_turn(directory: Path) -> int:
    """Return how often one turn of the chain writes."""
    with store_in(directory).create() as session:
        journal = Refusing(session.journal, None)
        async with live(world_of(), journal) as runtime:
            await runtime.agent("flow").send("through")
        return len(journal.written)


@pytest.mark.spec("SESSION-2", "SESSION-11", "SESSION-12")
async def test_whichever_event_of_a_workflow_cannot_be_written_its_answer_is_not_shown(
    tmp_path: Path,
) -> None:
    points = await written_by_a_turn(tmp_path / "whole")
    assert points > 3
    for point in range(points):
        store, world = store_in(tmp_path / str(point)), world_of()
        with store.create() as session:
            journal = Refusing(session.journal, point)
            async with live(world, journal) as runtime:
                flow = runtime.agent("flow")
                with pytest.raises(SessionError, match="no more"):
                    await flow.send("through")
                shown = [
                    event.message
                    for event in world.events
                    if isinstance(event, TurnFinished) and event.origin.agent == "flow"
                ]
                assert shown in ([], [None])
                journal.refuses = False
                assert await flow.send("again") == "again"
                histories = {name: list(runtime.agent(name).history) for name in ("flow", "kid")}
                for history in histories.values():
                    assert check_validity(history) == []
        with store.open(session.id) as again:
            for name, history in histories.items():
                assert list(again.history(name) or ()) == history


@pytest.mark.spec("SESSION-12")
@pytest.mark.parametrize("more", [True, False])
async def test_a_merge_that_cannot_be_written_is_written_with_the_next_one_or_at_the_end(
    tmp_path: Path, more: bool
) -> None:
    """Also where the agent it goes into has no turn of its own."""
    boss = agent("boss", agents=("kid",), history_merge_target="child")
    steps = [Call("agent__kid", {"message": "one"}), "done"] * 2

    def world() -> World:
        return World({"boss": steps, "kid": lambda _: "said"})

    with store_in(tmp_path / "whole").create() as session:
        whole = Refusing(session.journal, None)
        async with world().runtime(boss, agent("kid"), journal=whole) as runtime:
            await runtime.agent("boss").send("go")
    store = store_in(tmp_path / "full")
    with store.create() as session:
        journal = Refusing(session.journal, whole.written.index(["HistoryExtended"]))
        async with world().runtime(boss, agent("kid"), journal=journal) as runtime:
            with pytest.raises(SessionError):
                await runtime.agent("boss").send("go")
            journal.refuses = False
            if more:
                await runtime.agent("boss").send("go")
            remembered = list(runtime.agent("kid").history)
    assert len(remembered) == (4 if more else 2)
    with store.open(session.id) as again:
        assert again.history("kid") == remembered


TARGETS: dict[str, HistoryTarget] = {
    "full": "child",
    "iterative_planner": "orchestrator",
    "tool": "child",
}


@pytest.mark.spec("SESSION-12")
@pytest.mark.parametrize("place", sorted(PLACES.keys() - {"end of a chain", "iterative"}))
async def test_whatever_cannot_be_written_histories_and_log_agree_after_the_next_turns(
    place: str, tmp_path: Path
) -> None:
    top = replace(PLACES[place], history_merge_target=TARGETS.get(place, "none"), use_history=True)
    if top.type == "iterative_planner":
        top = replace(top, plan_iterations=1)
    points, point = 1, 0
    while point < points:
        store = store_in(tmp_path / f"{points} {point}")
        world = World({"top": lead, "kid": help_out, "pal": help_out})
        with store.create() as session:
            # First nothing is refused, to count.
            journal = Refusing(session.journal, point if points > 1 else None)
            async with world.runtime(top, agent("kid"), agent("pal"), journal=journal) as runtime:
                try:
                    await runtime.agent("top").send("go")
                except FastAgentError:
                    assert points > 1
                count = len(journal.written)
                journal.refuses = False
                names = ("top", "kid", "pal")
                for name in names:
                    await runtime.agent(name).send("again")
                remembered = {name: list(runtime.agent(name).history) for name in names}
        with store.open(session.id) as again:
            for name, history in remembered.items():
                assert check_validity(history) == []
                assert list(again.history(name) or ()) == history
            assert check_validity(again.journal.transcript.messages()) == []
        if points == 1:
            points = count
        else:
            point += 1
    assert points > 3
