"""The workflow of type MAKER: votes of clones of a worker, and what the caller sees of them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import anyio
import pytest
from tests.patience import until
from tests.workflows.scripted_world import World

from fast_agent.agents.events import TurnFinished, TurnStarted
from fast_agent.agents.output import JsonOutput
from fast_agent.cards.agent_config import AgentConfig, RequestParams, UsageLimits
from fast_agent.errors import LimitError, ModelError, RunError
from fast_agent.messages.message import Message
from fast_agent.models.script import Delay, Fail, Say
from fast_agent.workflows.maker.calibration import Calibration, Estimate
from fast_agent.workflows.maker.maker import Maker

if TYPE_CHECKING:
    from fast_agent.agents.output import OutputShape
    from fast_agent.agents.turn_context import TurnResult
    from fast_agent.models.script import Step


def voter(**fields: Any) -> AgentConfig:
    return AgentConfig(name="voter", type="MAKER", worker="judge", **fields)


async def ask(
    world: World,
    config: AgentConfig,
    message: str = "how many?",
    *,
    output: OutputShape | None = None,
    worker: AgentConfig | None = None,
) -> TurnResult:
    judge = worker or AgentConfig(name="judge", instruction="Count.")
    async with world.runtime(config, judge) as runtime:
        return await runtime.agent("voter").generate(message, output=output)


def steps(text: str) -> list[Step | str]:
    return list(text.split())


@pytest.mark.anyio
@pytest.mark.spec("MAKER-1", "MAKER-5")
async def test_the_caller_sees_winner_votes_and_margin() -> None:
    world = World({"judge": steps("7 8 7 7")})
    result = await ask(world, voter(k=2))
    assert result.text == "7"
    assert result.workflow == {
        "type": "MAKER",
        "winner": "7",
        "votes": {"7": 3, "8": 1},
        "total_samples": 4,
        "discarded_samples": 0,
        "margin": 2,
        "converged": True,
    }
    assert (result.stop_reason, result.structured) == ("endTurn", None)
    assert result.tree_usage.requests == 4
    assert world.warnings == []
    world.finish()


@pytest.mark.anyio
async def test_votes_and_flags_are_events_in_the_order_of_the_draws() -> None:
    world = World({"judge": ["7", "8", "", "7", Fail("gone"), "7"]})
    result = await ask(world, voter(k=2))
    assert world.facts_of("vote") == [
        {"draw": 1, "answer": "7", "votes": 1, "leads": True, "margin": 1, "k": 2},
        {"draw": 2, "answer": "8", "votes": 1, "leads": False, "margin": 0, "k": 2},
        {"draw": 4, "answer": "7", "votes": 2, "leads": True, "margin": 1, "k": 2},
        {"draw": 6, "answer": "7", "votes": 3, "leads": True, "margin": 2, "k": 2},
    ]
    assert world.facts_of("flag") == [
        {"draw": 3, "reason": "empty"},
        {"draw": 5, "reason": "failed", "error": "gone"},
    ]
    assert result.workflow is not None
    assert (result.workflow["total_samples"], result.workflow["discarded_samples"]) == (6, 2)


@pytest.mark.anyio
@pytest.mark.spec("MAKER-1")
async def test_each_draw_is_a_fresh_clone_of_the_worker() -> None:
    world = World({"judge": steps("7 7 7 7")})
    judge = AgentConfig(name="judge", instruction="Count.")
    async with world.runtime(voter(k=2), judge) as runtime:
        await runtime.agent("voter").send("one")
        await runtime.agent("voter").send("two")
        assert [message.text for message in runtime.agent("voter").history] == [
            "one",
            "7",
            "two",
            "7",
        ]
        assert len(runtime.agent("judge").history) == 0
    assert [len(seen.messages) for seen in world.asked("judge")] == [1, 1, 1, 1]
    assert [seen.text for seen in world.asked("judge")] == ["one", "one", "two", "two"]


@pytest.mark.anyio
@pytest.mark.spec("MAKER-2")
async def test_draws_run_at_the_same_time() -> None:
    world = World({"judge": lambda _: Say("7", delay=0.02)})
    await ask(world, voter(k=5))
    turns = [
        event.origin.agent + (" begins" if isinstance(event, TurnStarted) else " ends")
        for event in world.events
        if isinstance(event, TurnStarted | TurnFinished)
    ]
    assert turns[1:-1] == ["judge begins"] * 5 + ["judge ends"] * 5


@pytest.mark.anyio
@pytest.mark.spec("MAKER-2")
async def test_the_first_draws_decide_although_later_ones_end_sooner() -> None:
    world = World({"judge": [Say("a", delay=0.05), "b", Say("a", delay=0.03), "b", "a", "a"]})
    result = await ask(world, voter(k=2))
    assert result.text == "a"
    assert result.workflow is not None
    assert result.workflow["votes"] == {"a": 4, "b": 2}
    world.finish()


@pytest.mark.parametrize(
    ("match", "answers", "votes"),
    [
        ("exact", ["A b", "a  B", "A b"], {"A b": 2, "a  B": 1}),
        ("normalized", ["A b", "a  B"], {"A b": 2}),
        ("structured", ['{"n": 1, "m": 2}', "```json\n{\"m\":2,\"n\":1.0}\n```"],
         {'{"n": 1, "m": 2}': 2}),
    ],
)  # fmt: skip
@pytest.mark.anyio
async def test_match_strategies(match: str, answers: list[str], votes: dict[str, int]) -> None:
    k = 1 if match == "exact" else 2
    script: list[Step | str] = list(answers if match != "exact" else answers[:1])
    result = await ask(World({"judge": script}), voter(k=k, match_strategy=match))
    assert result.text == answers[0]
    if match != "exact":
        assert result.workflow is not None
        assert result.workflow["votes"] == votes
        return
    result = await ask(World({"judge": list(answers)}), voter(k=2, max_samples=3))
    assert result.workflow is not None
    assert result.workflow["votes"] == votes
    assert not result.workflow["converged"]


@pytest.mark.anyio
@pytest.mark.spec("MAKER-3")
async def test_long_answers_are_thrown_away_and_drawn_again() -> None:
    world = World({"judge": ["7", "well, let me think about it", "7"]})
    result = await ask(world, voter(k=2, red_flag_max_length=5))
    assert result.workflow is not None
    assert (result.workflow["total_samples"], result.workflow["discarded_samples"]) == (3, 1)
    assert world.facts_of("flag") == [{"draw": 2, "reason": "too_long"}]


@pytest.mark.anyio
@pytest.mark.spec("MAKER-4")
async def test_a_vote_that_does_not_converge_says_so() -> None:
    world = World({"judge": steps("a b a b a")})
    result = await ask(world, voter(k=3, max_samples=5))
    assert result.text == "a"
    assert result.workflow is not None
    assert result.workflow["converged"] is False
    assert result.workflow["margin"] == 1
    assert world.warnings == [
        "the vote did not converge: after 5 answers the winner is 1 of 3 votes ahead"
    ]


@pytest.mark.anyio
async def test_without_any_vote_the_turn_fails_and_says_why() -> None:
    world = World({"judge": ["", "far too long", Fail("gone"), ""]})
    with pytest.raises(RunError) as caught:
        await ask(world, voter(k=2, max_samples=4, red_flag_max_length=5))
    assert caught.value.message == (
        "none of the 4 answers of `judge` could vote: 2 empty, 1 too long, 1 failed"
    )


@pytest.mark.anyio
async def test_a_worker_that_only_fails_is_not_asked_for_ever() -> None:
    world = World({"judge": lambda _: Fail("no such model")})
    with pytest.raises(ModelError, match="no such model"):
        await ask(world, voter(k=3, max_samples=50))
    assert len(world.asked("judge")) == 3


@pytest.mark.anyio
async def test_limits_of_the_card_hold_for_all_draws() -> None:
    limits = RequestParams(usage_limits=UsageLimits(max_requests=4))
    world = World({"judge": lambda _: f"{len(world.seen)}"})
    with pytest.raises(LimitError, match="`max_requests` of 4"):
        await ask(world, voter(k=3, request_params=limits))
    assert len(world.asked("judge")) == 4


@pytest.mark.anyio
async def test_a_limit_is_no_failed_draw() -> None:
    """One more draw and the vote would end without having converged."""
    limits = RequestParams(usage_limits=UsageLimits(max_requests=3))
    world = World({"judge": steps("a b a")})
    with pytest.raises(LimitError, match="`max_requests` of 3"):
        await ask(world, voter(k=3, max_samples=4, request_params=limits))
    assert world.facts_of("flag") == []


@pytest.mark.anyio
async def test_the_cost_of_a_cancelled_vote_is_counted() -> None:
    world = World({"judge": lambda _: Delay(600)})
    judge = AgentConfig(name="judge", instruction="Count.")
    async with world.runtime(voter(k=3), judge) as runtime:
        async with anyio.create_task_group() as group:
            group.start_soon(runtime.agent("voter").send, "how many?")
            await until(lambda: len(world.asked("judge")) == 3)
            group.cancel_scope.cancel()
        assert runtime.agent("voter").tree_usage.requests == 3
        assert runtime.usage.requests == 3


@pytest.mark.anyio
async def test_more_votes_than_samples_are_refused() -> None:
    with pytest.raises(RunError, match="cannot get 6 votes ahead in `max_samples` of 5"):
        await ask(World(), voter(k=6, max_samples=5))


SHAPE = JsonOutput({"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]})


@pytest.mark.anyio
@pytest.mark.spec("MAKER-3")
async def test_a_structured_answer_is_voted_on_and_not_repaired() -> None:
    """What does not fit is discarded; the worker is not sent back to correct it."""
    world = World({"judge": ['{"n": "seven"}', '{"n": 7}', '{"n":7}']})
    result = await ask(world, voter(k=2, match_strategy="structured"), output=SHAPE)
    assert result.structured == {"n": 7}
    assert all(seen.structured for seen in world.asked("judge"))
    assert [len(seen.messages) for seen in world.asked("judge")] == [1, 1, 1]
    assert world.facts_of("flag") == [{"draw": 1, "reason": "unparseable"}]
    world.finish()


@pytest.mark.anyio
@pytest.mark.spec("MAKER-6")
async def test_auto_measures_once_then_votes_with_the_k_it_chose() -> None:
    seen: list[int] = []

    def play(_: object) -> str:
        seen.append(1)
        return "8" if len(seen) % 10 == 0 else "7"

    world = World({"judge": play})
    config = voter(k="auto", steps=1023, target_success=0.95, calibration_samples=100)
    judge = AgentConfig(name="judge", instruction="Count.")
    async with world.runtime(config, judge) as runtime:
        first = await runtime.agent("voter").generate("how many?")
        assert first.workflow is not None
        assert first.workflow["k"] == 7
        calibration: Any = first.workflow["calibration"]
        assert (calibration["p"], calibration["samples"]) == (0.9, 100)
        assert calibration["p_low"] == pytest.approx(0.8256, abs=1e-4)
        assert calibration["p_high"] == pytest.approx(0.9448, abs=1e-4)
        assert first.workflow["total_samples"] == 7
        assert len(seen) == 107
        async with anyio.create_task_group() as group:
            for _ in range(2):
                clone = runtime.clone("voter")
                group.start_soon(clone.send, "how many?")
        assert len(seen) <= 107 + 2 * 9


@pytest.mark.anyio
async def test_auto_refuses_a_worker_that_does_not_agree_with_itself() -> None:
    world = World({"judge": lambda _: f"{len(world.seen) % 2}"})
    with pytest.raises(RunError, match="only 10 of 20 answers count as right"):
        await ask(world, voter(k="auto"))


@pytest.mark.anyio
async def test_a_calibrator_measures_and_does_not_vote() -> None:
    world = World({"judge": ["7"] * 8 + ["8", ""]})
    judge = AgentConfig(name="judge", instruction="Count.")
    async with world.runtime(voter(k=2), judge) as runtime:
        maker = runtime.clone("voter")
        assert isinstance(maker, Maker)
        calibration, used = await maker.calibrator(10).measure("how many?")
        assert calibration == Calibration(Estimate(8, 9), Estimate(9, 10))
        assert used.requests == 10
        assert world.facts_of("vote") == []
        with pytest.raises(RunError, match="the right answer would be discarded itself: it is e"):
            await maker.calibrator(10, right=" ").measure("how many?")


@pytest.mark.anyio
async def test_the_record_stays_short_and_keeps_long_answers_apart() -> None:
    long = "x" * 5_000
    result = await ask(
        World({"judge": [long + "a", long + "b", long + "a", long + "a"]}), voter(k=2)
    )
    assert result.text == long + "a"
    shown = "x" * 2_000 + " [3001 characters more]"
    assert result.workflow is not None
    assert result.workflow["winner"] == shown
    assert result.workflow["votes"] == {shown: 3, shown + " (another)": 1}


@pytest.mark.anyio
async def test_any_type_may_be_the_worker_or_hold_the_vote() -> None:
    """A vote on a chain, as a step of a chain."""
    world = World({"judge": steps("7 8 7"), "writer": lambda request: f"[{_last(request)}]"})
    configs = [
        AgentConfig(name="outer", type="chain", sequence=("voter", "writer")),
        AgentConfig(name="voter", type="MAKER", worker="inner", k=1),
        AgentConfig(name="inner", type="chain", sequence=("judge",)),
        AgentConfig(name="judge", instruction="Count."),
        AgentConfig(name="writer", instruction="Write."),
    ]
    async with world.runtime(*configs) as runtime:
        assert await runtime.agent("outer").send("how many?") == "[7]"
    starts = [event.origin for event in world.events if isinstance(event, TurnStarted)]
    assert [origin.agent for origin in starts] == ["outer", "voter", "inner", "judge", "writer"]


@pytest.mark.anyio
async def test_a_message_with_more_than_text_reaches_every_worker_as_it_is() -> None:
    world = World({"judge": steps("7 7")})
    message = Message.user("how many?")
    judge = AgentConfig(name="judge", instruction="Count.")
    async with world.runtime(voter(k=2), judge) as runtime:
        await runtime.agent("voter").generate(message)
    assert all(seen.messages == (message,) for seen in world.asked("judge"))


def _last(request: Any) -> str:
    return request.messages[-1].text
