from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

import pytest
from anyio import Event, create_task_group, fail_after, sleep_forever
from anyio.lowlevel import checkpoint

from fast_agent.agents.budget import SET_ASIDE, Budget, Meter
from fast_agent.agents.turn_context import TurnContext
from fast_agent.cards.agent_config import RequestParams, UsageLimits
from fast_agent.errors import LimitError, ModelError
from fast_agent.messages.history import check_validity
from fast_agent.messages.message import Message, ToolCall
from fast_agent.models.model import Usage

if TYPE_CHECKING:
    from collections.abc import Callable

    from fast_agent.agents.live_agent import LlmAgent
    from fast_agent.models.model import Model, ModelRequest
    from fast_agent.tools.tool import Tool, ToolContext

    MakeAgent: TypeAlias = Callable[..., LlmAgent]
    Script: TypeAlias = Callable[..., Model]
    Doing: TypeAlias = Callable[..., Tool]
    Asking: TypeAlias = Callable[..., Message]


def limited(
    requests: int | None = None, tokens: int | None = None, calls: int | None = None
) -> RequestParams:
    limits = UsageLimits(max_requests=requests, max_total_tokens=tokens, max_tool_calls=calls)
    return RequestParams(usage_limits=limits)


def test_a_refused_request_is_charged_to_nobody() -> None:
    child, parent = Meter("child"), Meter("parent", UsageLimits(max_requests=1))
    budget = Budget((child, parent))
    budget.take_request()
    with pytest.raises(LimitError, match="agent `parent` reached its usage limit `max_requests`"):
        budget.take_request()
    assert child.usage.requests == parent.usage.requests == 1


@pytest.mark.parametrize("cache", [(2, 1), (2, 0), (0, 1), (0, 0)])
def test_an_answer_charges_tokens_and_the_requests_it_took_besides(cache: tuple[int, int]) -> None:
    meter = Meter("a")
    budget = Budget((meter,))
    budget.take_request()
    budget.record_usage(Usage(10, 5, *cache, requests=3))
    assert meter.usage == Usage(10, 5, *cache, requests=3)


@pytest.mark.spec("TURN-9")
@pytest.mark.anyio
async def test_max_requests_holds_over_the_life_of_the_agent(
    make_agent: MakeAgent, script: Script
) -> None:
    agent = make_agent(script([Message.assistant("x")]), params=limited(requests=2))
    await agent.send("a")
    await agent.send("b")
    with pytest.raises(LimitError, match="`alice` reached its usage limit `max_requests` of 2"):
        await agent.send("c")
    assert agent.usage.requests == 2
    assert [one.text for one in agent.history] == ["a", "x", "b", "x"]


@pytest.mark.anyio
async def test_max_total_tokens_stops_before_the_next_request(
    make_agent: MakeAgent, script: Script
) -> None:
    agent = make_agent(script([Message.assistant("x")]), params=limited(tokens=15))
    await agent.send("a")
    with pytest.raises(LimitError, match="`max_total_tokens` of 15"):
        await agent.send("b")


@pytest.mark.spec("TURN-9")
@pytest.mark.anyio
@pytest.mark.parametrize("parallel", [True, False])
async def test_max_tool_calls_lets_run_what_is_left_and_no_more(
    make_agent: MakeAgent, script: Script, doing: Doing, asking: Asking, parallel: bool
) -> None:
    made: list[str] = []

    async def work(call: ToolCall, context: ToolContext) -> str:
        made.append(call.id)
        return "done"

    params = RequestParams(usage_limits=UsageLimits(max_tool_calls=2), parallel_tool_calls=parallel)
    calls = asking(("a", "w"), ("b", "w"), ("c", "w"))
    agent = make_agent(script([calls]), tools=[doing("w", work)], params=params)
    with pytest.raises(LimitError, match="`max_tool_calls` of 2"):
        await agent.send("go")
    assert made == ["a", "b"]
    assert check_validity(agent.history) == []
    results = agent.history[2].tool_results
    assert [result.is_error for result in results] == [False, False, True]
    assert "max_tool_calls" in results[2].text


@pytest.mark.spec("TURN-9")
@pytest.mark.anyio
async def test_a_limit_above_holds_for_what_is_below(make_agent: MakeAgent, script: Script) -> None:
    above = Meter("boss", UsageLimits(max_requests=1))
    agent = make_agent(script([Message.assistant("x")]), context=TurnContext(meters=(above,)))
    await agent.send("a")
    with pytest.raises(LimitError, match="agent `boss`"):
        await agent.send("b")
    assert above.usage.total_tokens == 15


@pytest.mark.spec("TURN-9")
@pytest.mark.anyio
async def test_requests_made_at_once_pass_a_limit_of_tokens_by_the_last_one_only() -> None:
    meter = Meter("boss", UsageLimits(max_total_tokens=35))
    at_work = most = 0

    async def ask() -> None:
        nonlocal at_work, most
        budget = Budget((meter,))
        try:
            await budget.wait_for_room()
        except LimitError:
            return
        budget.take_request()
        at_work += 1
        most = max(most, at_work)
        await checkpoint()
        at_work -= 1
        budget.record_usage(Usage(6, 4, requests=1))

    async with create_task_group() as group:
        for _ in range(9):
            group.start_soon(ask)
    assert most == 1
    assert meter.usage.total_tokens == 40
    assert meter.usage.requests == 4


@pytest.mark.anyio
async def test_requests_far_from_a_limit_of_tokens_do_not_wait() -> None:
    meter = Meter("boss", UsageLimits(max_total_tokens=100 * SET_ASIDE))
    budgets = [Budget((meter,)) for _ in range(20)]
    for budget in budgets:
        with fail_after(60):
            await budget.wait_for_room()
        budget.take_request()
    assert meter.usage.requests == 20


@pytest.mark.anyio
async def test_what_is_set_aside_grows_with_the_dearest_request() -> None:
    meter = Meter("boss", UsageLimits(max_total_tokens=10 * SET_ASIDE))
    budget = Budget((meter,))
    budget.take_request()
    assert meter.has_room()
    budget.record_usage(Usage(3 * SET_ASIDE, 0, requests=1))
    budget.take_request()
    assert meter.has_room()
    budget.take_request()
    assert not meter.has_room()


@pytest.mark.anyio
async def test_a_request_that_fails_or_is_cancelled_makes_room(
    make_agent: MakeAgent, script: Script
) -> None:
    above = Meter("boss", UsageLimits(max_total_tokens=100))
    started = Event()

    async def hang(request: ModelRequest) -> Message:
        del request
        started.set()
        await sleep_forever()
        raise AssertionError

    hanging = make_agent(script([hang]), name="hanging", context=TurnContext(meters=(above,)))
    failing = make_agent(
        script([ModelError("down")]), name="bad", context=TurnContext(meters=(above,))
    )
    sound = make_agent(
        script([Message.assistant("x")]), name="good", context=TurnContext(meters=(above,))
    )
    async with create_task_group() as group:
        group.start_soon(hanging.send, "a")
        await started.wait()
        assert not above.has_room()
        group.cancel_scope.cancel()
    with pytest.raises(ModelError, match="down"):
        await failing.send("b")
    with fail_after(60):
        assert await sound.send("c") == "x"


def test_the_agent_whose_bound_of_money_holds_is_named() -> None:
    requests, money = UsageLimits(max_requests=1), UsageLimits(max_cost=0.5)
    assert Budget((Meter("a"), Meter("b", requests))).money_bound is None
    assert Budget((Meter("a", requests), Meter("b", money))).money_bound == "b"
