from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, TypeAlias

import anyio
import pytest
from tests.patience import pass_seconds

from fast_agent.agents.delegation.agent_tool import ChildCallLimits, agent_tool, describe
from fast_agent.agents.delegation.child_history import HistoryRoute
from fast_agent.agents.events import ChildFinished, ChildStarted, Event, TurnStarted
from fast_agent.cards.agent_config import AgentConfig, RequestParams, UsageLimits
from fast_agent.errors import LimitError, RunError
from fast_agent.messages.history import check_validity
from fast_agent.messages.message import Message, ToolCall
from fast_agent.models.offline import PassthroughModel
from fast_agent.models.script import Fail, ScriptedModel

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from fast_agent.agents.live_agent import LlmAgent
    from fast_agent.models.model import Model, ModelRequest
    from fast_agent.tools.tool import Tool

    MakeAgent: TypeAlias = Callable[..., LlmAgent]
    Script: TypeAlias = Callable[..., Model]
    Asking: TypeAlias = Callable[..., Message]
    ChildTool: TypeAlias = Callable[..., Tool]

KID = AgentConfig(name="kid", instruction="Draw.\n\nIn detail.")
BOSS = AgentConfig(name="boss", agents=("kid",))


@pytest.fixture(name="child_tool")
def _child_tool(make_agent: MakeAgent) -> ChildTool:
    """Make the tool of a child whose clones each get a model from `new_model`."""

    def make(
        new_model: Callable[[], Model],
        *,
        child: AgentConfig = KID,
        parent: AgentConfig = BOSS,
        crew: ChildCallLimits | None = None,
        tools: Iterable[Tool] = (),
        params: RequestParams | None = None,
        made: list[LlmAgent] | None = None,
    ) -> Tool:
        def clone(messages: Iterable[Message]) -> LlmAgent:
            agent = make_agent(
                new_model(), name=child.name, templates=messages, tools=tools, params=params
            )
            if made is not None:
                made.append(agent)
            return agent

        return agent_tool(child, clone, crew or ChildCallLimits(parent), HistoryRoute(child.name))

    return make


def call_kid(message: str, call_id: str = "c") -> Message:
    call = ToolCall(call_id, "agent__kid", {"message": message})
    return Message("assistant", (), (call,), stop_reason="toolUse")


@pytest.mark.spec("CARD-58", "CARD-59", "CARD-84", "CARD-85")
@pytest.mark.anyio
async def test_a_child_answers_and_sees_nothing_of_its_parent(
    make_agent: MakeAgent, script: Script, child_tool: ChildTool
) -> None:
    seen: list[ModelRequest] = []
    tool = child_tool(lambda: script([Message.assistant("a cat")], seen))
    boss = make_agent(script([call_kid("draw"), Message.assistant("ok")]), tools=[tool])
    await boss.send("a secret")
    assert boss.history[2].tool_results[0].text == "a cat"
    assert [one.text for one in seen[0].messages] == ["draw"]


@pytest.mark.spec("CARD-85", "CHILD-1")
@pytest.mark.anyio
async def test_each_call_runs_on_a_clone_of_its_own(
    make_agent: MakeAgent, script: Script, child_tool: ChildTool
) -> None:
    made: list[LlmAgent] = []
    tool = child_tool(PassthroughModel, made=made)
    steps = [call_kid("***FIXED_RESPONSE no"), call_kid("draw"), Message.assistant("ok")]
    boss = make_agent(script(steps), tools=[tool])
    await boss.send("go")
    answers = [one.text for message in boss.history for one in message.tool_results]
    assert answers == ["no", "draw"]
    assert len(made) == 2
    with pytest.raises(RunError, match="is closed"):
        await made[0].send("hi")


@pytest.mark.spec("CHILD-2")
@pytest.mark.anyio
async def test_children_of_one_response_run_at_once_up_to_max_parallel(
    make_agent: MakeAgent, script: Script, child_tool: ChildTool
) -> None:
    running = most = 0

    async def answer(request: ModelRequest) -> Message:
        nonlocal running, most
        running += 1
        most = max(most, running)
        await anyio.sleep(0.005)
        running -= 1
        return Message.assistant(request.messages[-1].text)

    tool = child_tool(lambda: script([answer]), parent=replace(BOSS, max_parallel=2))
    calls = tuple(ToolCall(str(n), "agent__kid", {"message": f"m{n}"}) for n in range(5))
    asks = Message("assistant", (), calls, stop_reason="toolUse")
    boss = make_agent(script([asks, Message.assistant("ok")]), tools=[tool])
    await boss.send("go")
    assert most == 2
    assert [one.text for one in boss.history[2].tool_results] == ["m0", "m1", "m2", "m3", "m4"]


@pytest.mark.spec("CHILD-3")
@pytest.mark.anyio
async def test_a_child_that_takes_too_long_is_an_error_result_naming_the_limit(
    make_agent: MakeAgent, script: Script, child_tool: ChildTool
) -> None:
    ended: list[str] = []

    async def sleep(request: ModelRequest) -> Message:
        try:
            pass_seconds(10)
            await anyio.sleep(600)
        finally:
            ended.append("cancelled")
        return Message.assistant("late")

    tool = child_tool(lambda: script([sleep]), parent=replace(BOSS, child_timeout_sec=10))
    boss = make_agent(script([call_kid("draw"), Message.assistant("ok")]), tools=[tool])
    assert await boss.send("go") == "ok"
    result = boss.history[2].tool_results[0]
    assert result.is_error
    assert result.text == (
        "agent `kid` failed: it did not answer within the 10 s of `child_timeout_sec`"
    )
    assert ended == ["cancelled"]


@pytest.mark.anyio
async def test_a_child_that_fails_is_an_error_result_naming_it(
    make_agent: MakeAgent, script: Script, child_tool: ChildTool
) -> None:
    tool = child_tool(lambda: script([RuntimeError("no ink")]))
    boss = make_agent(script([call_kid("draw"), Message.assistant("ok")]), tools=[tool])
    assert await boss.send("go") == "ok"
    result = boss.history[2].tool_results[0]
    assert result.is_error
    assert result.text.startswith("agent `kid` failed:")
    assert "no ink" in result.text


@pytest.mark.anyio
async def test_cancelling_the_parent_cancels_its_children(
    make_agent: MakeAgent, script: Script, child_tool: ChildTool
) -> None:
    begun, ended = anyio.Event(), anyio.Event()
    made: list[LlmAgent] = []

    async def sleep(request: ModelRequest) -> Message:
        begun.set()
        try:
            await anyio.sleep(600)
        finally:
            ended.set()
        return Message.assistant("late")

    tool = child_tool(lambda: script([sleep]), made=made)
    boss = make_agent(script([call_kid("draw"), Message.assistant("ok")]), tools=[tool])
    async with anyio.create_task_group() as group:
        group.start_soon(boss.send, "go")
        await begun.wait()
        group.cancel_scope.cancel()
    assert ended.is_set()
    assert check_validity(boss.history) == []
    assert check_validity(made[0].history) == []
    with pytest.raises(RunError, match="is closed"):
        await made[0].send("hi")


@pytest.mark.spec("TURN-8")
@pytest.mark.anyio
async def test_what_children_use_counts_for_the_parent(
    make_agent: MakeAgent, script: Script, child_tool: ChildTool
) -> None:
    tool = child_tool(lambda: script([Message.assistant("a cat")]))
    steps = [call_kid("one"), call_kid("two"), Message.assistant("ok")]
    boss = make_agent(script(steps), tools=[tool])
    result = await boss.generate("go")
    assert (result.usage.requests, result.tree_usage.requests) == (3, 5)
    assert (boss.usage.requests, boss.tree_usage.requests) == (3, 5)
    assert boss.tree_usage.total_tokens == 5 * 15


@pytest.mark.spec("TURN-9")
@pytest.mark.anyio
async def test_limits_of_the_parent_hold_for_its_children(
    make_agent: MakeAgent, script: Script, child_tool: ChildTool
) -> None:
    tool = child_tool(lambda: script([Message.assistant("a cat")]))
    steps = [call_kid("one"), call_kid("two"), Message.assistant("ok")]
    params = RequestParams(usage_limits=UsageLimits(max_requests=3))
    boss = make_agent(script(steps), name="boss", tools=[tool], params=params)
    with pytest.raises(LimitError, match="agent `boss` reached its usage limit `max_requests`"):
        await boss.send("go")
    last = boss.history[4].tool_results[0]
    assert last.is_error
    assert "agent `kid` failed: agent `boss` reached" in last.text
    assert boss.tree_usage.requests == 3


@pytest.mark.anyio
async def test_children_at_work_together_do_not_pass_a_limit_between_them(
    make_agent: MakeAgent, script: Script, child_tool: ChildTool
) -> None:
    async def answer(request: ModelRequest) -> Message:
        await anyio.sleep(0.002)
        return Message.assistant("a cat")

    tool = child_tool(lambda: script([answer]))
    calls = tuple(ToolCall(str(n), "agent__kid", {"message": "draw"}) for n in range(10))
    asks = Message("assistant", (), calls, stop_reason="toolUse")
    params = RequestParams(usage_limits=UsageLimits(max_requests=5))
    boss = make_agent(script([asks]), name="boss", tools=[tool], params=params)
    with pytest.raises(LimitError):
        await boss.send("go")
    assert boss.tree_usage.requests == 5
    answered = [one.is_error for one in boss.history[2].tool_results]
    assert answered == [False] * 4 + [True] * 6


@pytest.mark.anyio
async def test_limits_of_a_child_end_the_child_only(
    make_agent: MakeAgent, script: Script, child_tool: ChildTool
) -> None:
    params = RequestParams(usage_limits=UsageLimits(max_requests=1))
    again = Message("assistant", (), (ToolCall("1", "none"),), stop_reason="toolUse")
    tool = child_tool(lambda: script([again]), params=params)
    boss = make_agent(script([call_kid("draw"), Message.assistant("ok")]), tools=[tool])
    assert await boss.send("go") == "ok"
    assert "`kid` reached its usage limit" in boss.history[2].tool_results[0].text


@pytest.mark.spec("CHILD-5")
@pytest.mark.anyio
async def test_agents_nest_only_so_deep(
    make_agent: MakeAgent, script: Script, child_tool: ChildTool
) -> None:
    answers: list[str] = []

    def nested(crew: ChildCallLimits) -> Tool:
        # Each clone of the child may call the child again, without end.
        def heard(request: ModelRequest) -> Message:
            answers.append(request.messages[-1].tool_results[0].text)
            return Message.assistant("back")

        tools: list[Tool] = []
        tool = child_tool(lambda: script([call_kid("deeper"), heard]), crew=crew, tools=tools)
        tools.append(tool)
        return tool

    tool = nested(ChildCallLimits(BOSS, max_depth=3))
    boss = make_agent(script([call_kid("draw"), Message.assistant("ok")]), tools=[tool])
    await boss.send("go")
    assert answers == [
        "agent `kid` failed: agents may call each other 3 deep at most",
        "back",
        "back",
    ]


@pytest.mark.spec("CHILD-4")
@pytest.mark.anyio
async def test_a_child_with_a_form_of_its_own_gets_the_whole_object(
    make_agent: MakeAgent, script: Script, child_tool: ChildTool
) -> None:
    schema = {"properties": {"what": {"type": "string"}, "wide": {"type": "integer"}}}
    child = replace(KID, tool_input_schema={**schema, "required": ["what"]})
    tool = child_tool(PassthroughModel, child=child)
    calls = (
        ToolCall("1", "agent__kid", {"what": "猫", "wide": 3}),
        ToolCall("2", "agent__kid", {"wide": "very"}),
    )
    asks = Message("assistant", (), calls, stop_reason="toolUse")
    boss = make_agent(script([asks, Message.assistant("ok")]), tools=[tool])
    await boss.send("go")
    good, bad = boss.history[2].tool_results
    assert good.text == '{"what": "猫", "wide": 3}'
    assert bad.is_error
    assert "$.wide: 'very' is not of type 'integer'" in bad.text
    assert "'what' is a required property" in bad.text


@pytest.mark.spec("CARD-84")
@pytest.mark.anyio
@pytest.mark.parametrize("arguments", [{}, {"message": 3}, {"text": "x"}])
async def test_a_call_without_a_message_is_an_error_result(
    make_agent: MakeAgent, script: Script, child_tool: ChildTool, arguments: dict[str, object]
) -> None:
    asks = Message("assistant", (), (ToolCall("1", "agent__kid", arguments),))  # pyright: ignore[reportArgumentType]
    tool = child_tool(PassthroughModel)
    boss = make_agent(script([asks, Message.assistant("ok")]), tools=[tool])
    await boss.send("go")
    assert "its only argument is `message`" in boss.history[2].tool_results[0].text


@pytest.mark.anyio
async def test_events_of_a_child_carry_the_call_they_serve(
    make_agent: MakeAgent, script: Script, child_tool: ChildTool
) -> None:
    events: list[Event] = []
    tool = child_tool(PassthroughModel, parent=replace(BOSS, max_display_instances=7))
    boss = make_agent(script([call_kid("draw", "c9"), Message.assistant("ok")]), tools=[tool])
    result = await boss.generate("go", listener=events.append)
    started = [event for event in events if isinstance(event, ChildStarted)]
    finished = [event for event in events if isinstance(event, ChildFinished)]
    assert [(one.child, one.call_id, one.instance) for one in started] == [("kid", "c9", 1)]
    assert started[0].max_display_instances == 7
    assert started[0].origin.turn_id == result.turn_id
    assert [one.error for one in finished] == [None]
    turns = [event for event in events if isinstance(event, TurnStarted)]
    assert [(one.origin.agent, one.origin.parent_call_id) for one in turns] == [
        ("alice", None),
        ("kid", "c9"),
    ]


@pytest.mark.anyio
async def test_the_event_of_a_child_that_failed_says_why_in_short(
    make_agent: MakeAgent, script: Script, child_tool: ChildTool
) -> None:
    events: list[Event] = []
    tool = child_tool(lambda: ScriptedModel([Fail("no pencil")]))
    boss = make_agent(script([call_kid("draw"), Message.assistant("ok")]), tools=[tool])
    await boss.generate("go", listener=events.append)
    assert [one.error for one in events if isinstance(one, ChildFinished)] == ["no pencil"]
    assert boss.history[2].tool_results[0].text == "agent `kid` failed: no pencil"


@pytest.mark.spec("CARD-86", "CHILD-5")
def test_an_agent_is_no_tool_of_itself(child_tool: ChildTool) -> None:
    with pytest.raises(RunError, match="cannot be a tool of itself"):
        child_tool(PassthroughModel, parent=KID)


@pytest.mark.spec("CARD-5", "CARD-83")
def test_a_tool_is_described_by_description_else_first_paragraph() -> None:
    assert describe(replace(KID, description=" Draws. ")) == "Draws."
    assert describe(KID) == "Draw."
    assert describe(AgentConfig(name="kid")) == "sends a message to the agent `kid`"
    long = describe(AgentConfig(name="kid", instruction="word " * 400))
    assert len(long) <= 1002
    assert long.endswith("word …")
