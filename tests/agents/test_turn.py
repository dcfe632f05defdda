from __future__ import annotations

import logging
from hashlib import sha256
from typing import TYPE_CHECKING, TypeAlias

import anyio
import pytest
from tests.patience import pass_seconds

from fast_agent.agents.events import Event, Warned
from fast_agent.cards.agent_config import RequestParams
from fast_agent.errors import ModelError, RunError, ToolError
from fast_agent.messages.message import NO_OBJECT, Message, TextContent, ToolCall, ToolResult
from fast_agent.models.offline import PassthroughModel

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from fast_agent.agents.live_agent import LlmAgent
    from fast_agent.models.model import Model, ModelRequest
    from fast_agent.tools.tool import Tool, ToolContext

    MakeAgent: TypeAlias = Callable[..., LlmAgent]
    Script: TypeAlias = Callable[..., Model]
    Doing: TypeAlias = Callable[..., Tool]
    Asking: TypeAlias = Callable[..., Message]
    ProblemOf: TypeAlias = Callable[[Iterable[Message]], str | None]

pytestmark = pytest.mark.anyio


@pytest.mark.spec("TURN-1")
async def test_a_turn_appends_the_message_and_its_answer(make_agent: MakeAgent) -> None:
    agent = make_agent(PassthroughModel())
    assert await agent.send("hi") == "hi"
    assert await agent.send(Message.user("again")) == "again"
    assert [(one.role, one.text) for one in agent.history] == [
        ("user", "hi"),
        ("assistant", "hi"),
        ("user", "again"),
        ("assistant", "again"),
    ]


async def test_the_model_is_given_system_history_and_tools(
    make_agent: MakeAgent, script: Script, doing: Doing
) -> None:
    seen: list[ModelRequest] = []

    async def work(call: ToolCall, context: ToolContext) -> str:
        return "done"

    agent = make_agent(
        script([Message.assistant("yes")], seen), tools=[doing("look", work)], use_history=True
    )
    await agent.send("one")
    await agent.send("two")
    assert seen[1].system == "be brief"
    assert [one.text for one in seen[1].messages] == ["one", "yes", "two"]
    assert [spec.name for spec in seen[1].tools] == ["look"]


@pytest.mark.spec("TURN-1")
async def test_tool_results_go_back_to_the_model_and_into_history(
    make_agent: MakeAgent, script: Script, doing: Doing, asking: Asking, problem_of: ProblemOf
) -> None:
    async def work(call: ToolCall, context: ToolContext) -> str:
        assert (context.agent_name, context.call_id) == ("alice", "c1")
        assert context.idempotency_key == sha256(f"{context.turn_id}:c1".encode()).hexdigest()
        return "4 degrees"

    model = script([asking(("c1", "weather")), Message.assistant("cold")])
    agent = make_agent(model, tools=[doing("weather", work)])
    result = await agent.generate("how is it?")
    assert (result.text, result.stop_reason) == ("cold", "endTurn")
    assert [one.tool_results[0].text for one in agent.history if one.tool_results] == ["4 degrees"]
    assert result.messages == tuple(agent.history)
    assert problem_of(agent.history) is None
    assert (result.usage.requests, result.usage.tool_calls) == (2, 1)
    assert result.usage.total_tokens == 30


async def test_a_tool_may_report_progress_without_a_listener(
    make_agent: MakeAgent, script: Script, doing: Doing, asking: Asking
) -> None:
    async def work(call: ToolCall, context: ToolContext) -> str:
        context.progress(1, 2, "half")
        return "done"

    model = script([asking(("c1", "look")), Message.assistant("seen")])
    agent = make_agent(model, tools=[doing("look", work)])
    await agent.generate("look")
    assert [one.tool_results[0].text for one in agent.history if one.tool_results] == ["done"]


@pytest.mark.spec("TURN-3")
async def test_calls_of_one_response_run_at_the_same_time_and_answer_in_call_order(
    make_agent: MakeAgent, script: Script, doing: Doing, asking: Asking
) -> None:
    both_started = anyio.Event()
    started: list[str] = []

    async def meet(call: ToolCall, context: ToolContext) -> str:
        started.append(call.id)
        if len(started) == 2:
            both_started.set()
        with anyio.fail_after(60):
            await both_started.wait()
        if call.id == "a":
            await anyio.sleep(0.01)
        return call.id

    model = script([asking(("a", "meet"), ("b", "meet")), Message.assistant("ok")])
    agent = make_agent(model, tools=[doing("meet", meet)])
    await agent.send("go")
    assert [result.text for result in agent.history[2].tool_results] == ["a", "b"]


@pytest.mark.spec("TURN-4")
async def test_calls_run_one_after_another_when_asked_to(
    make_agent: MakeAgent, script: Script, doing: Doing, asking: Asking
) -> None:
    running: list[str] = []
    most = 0

    async def work(call: ToolCall, context: ToolContext) -> str:
        nonlocal most
        running.append(call.id)
        most = max(most, len(running))
        await anyio.sleep(0.001)
        running.remove(call.id)
        return ""

    model = script([asking(("a", "w"), ("b", "w"), ("c", "w")), Message.assistant("ok")])
    params = RequestParams(parallel_tool_calls=False)
    agent = make_agent(model, tools=[doing("w", work)], params=params)
    await agent.send("go")
    assert most == 1


@pytest.mark.spec("TURN-5")
@pytest.mark.parametrize("others", [0, 2])
async def test_a_tool_that_raises_gives_an_error_result_and_a_traceback_in_the_log(
    make_agent: MakeAgent,
    script: Script,
    doing: Doing,
    asking: Asking,
    caplog: pytest.LogCaptureFixture,
    others: int,
) -> None:
    async def work(call: ToolCall, context: ToolContext) -> str:
        if call.id == "bad":
            raise KeyError("nowhere")
        return "fine"

    calls = [("bad", "w"), *((f"c{index}", "w") for index in range(others))]
    model = script([asking(*calls), Message.assistant("ok")])
    agent = make_agent(model, tools=[doing("w", work)])
    with caplog.at_level(logging.WARNING):
        assert await agent.send("go") == "ok"
    bad, *fine = agent.history[2].tool_results
    assert bad.is_error
    assert bad.text == "tool `w` failed: KeyError: 'nowhere'"
    assert [result.text for result in fine] == ["fine"] * others
    assert "Traceback" in caplog.text


@pytest.mark.parametrize("others", [0, 2])
async def test_a_cancellation_that_escapes_a_tool_does_not_end_the_turn(
    make_agent: MakeAgent, script: Script, doing: Doing, asking: Asking, others: int
) -> None:
    async def work(call: ToolCall, context: ToolContext) -> str:
        if call.id == "bad":
            raise anyio.get_cancelled_exc_class()
        await anyio.sleep(0.01)
        return "fine"

    calls = [("bad", "w"), *((f"c{index}", "w") for index in range(others))]
    agent = make_agent(script([asking(*calls), Message.assistant("ok")]), tools=[doing("w", work)])
    assert await agent.send("go") == "ok"
    texts = [result.text for result in agent.history[2].tool_results]
    assert texts == ["tool `w` was cancelled"] + ["fine"] * others


async def test_an_unknown_tool_is_an_error_result_with_close_names(
    make_agent: MakeAgent, script: Script, doing: Doing, asking: Asking
) -> None:
    async def work(call: ToolCall, context: ToolContext) -> str:
        return ""

    model = script([asking(("c", "wether")), Message.assistant("ok")])
    agent = make_agent(model, tools=[doing("weather", work)])
    result = await agent.generate("go")
    refused = agent.history[2].tool_results[0]
    assert refused.is_error
    assert "did you mean `weather`?" in refused.text
    assert result.usage.tool_calls == 0


async def test_no_tool_is_called_with_arguments_that_are_no_object(
    make_agent: MakeAgent, script: Script, doing: Doing
) -> None:
    async def work(call: ToolCall, context: ToolContext) -> str:
        raise AssertionError(call)

    call = ToolCall("c", "weather", {NO_OBJECT: '{"city": "Par'})
    model = script([Message("assistant", tool_calls=(call,)), Message.assistant("ok")])
    agent = make_agent(model, tools=[doing("weather", work)])
    result = await agent.generate("go")
    refused = agent.history[2].tool_results[0]
    assert refused.is_error
    words = 'the arguments of `weather` are not a JSON object: {"city": "Par'
    assert (refused.text, result.usage.tool_calls) == (words, 0)


async def test_a_result_with_a_wrong_id_is_put_right(
    make_agent: MakeAgent, script: Script, doing: Doing, asking: Asking, problem_of: ProblemOf
) -> None:
    async def work(call: ToolCall, context: ToolContext) -> ToolResult:
        return ToolResult("other", (TextContent("x"),))

    agent = make_agent(
        script([asking(("c", "w")), Message.assistant("ok")]), tools=[doing("w", work)]
    )
    await agent.send("go")
    assert problem_of(agent.history) is None


async def test_call_ids_are_made_unique_within_a_history(
    make_agent: MakeAgent, script: Script, doing: Doing, asking: Asking, problem_of: ProblemOf
) -> None:
    async def work(call: ToolCall, context: ToolContext) -> str:
        assert context.call_id == call.id
        return call.id

    steps = [asking(("1", "w"), ("1", "w"), ("", "w")), Message.assistant("ok")] * 3
    agent = make_agent(script(steps), tools=[doing("w", work)])
    for _ in range(3):
        await agent.send("go")
    ids = [call.id for one in agent.history for call in one.tool_calls]
    assert len(ids) == len(set(ids)) == 9
    assert ids[0] == "1"
    assert problem_of(agent.history) is None


async def test_the_native_form_is_dropped_when_an_id_is_changed(
    make_agent: MakeAgent, script: Script, doing: Doing
) -> None:
    async def work(call: ToolCall, context: ToolContext) -> str:
        return ""

    call = ToolCall("1", "w")
    message = Message("assistant", (), (call,), native={"id": "1"}, stop_reason="toolUse")
    ok = Message.assistant("ok")
    agent = make_agent(script([message, message, ok]), tools=[doing("w", work)])
    await agent.send("go")
    assert [one.native for one in agent.history if one.tool_calls] == [{"id": "1"}, None]


@pytest.mark.spec("TURN-6")
async def test_max_iterations_ends_the_turn_and_leaves_a_valid_history(
    make_agent: MakeAgent, script: Script, doing: Doing, asking: Asking, problem_of: ProblemOf
) -> None:
    made: list[str] = []

    async def work(call: ToolCall, context: ToolContext) -> str:
        made.append(call.id)
        return ""

    agent = make_agent(script([asking(("c", "w"))]), tools=[doing("w", work)], max_iterations=3)
    result = await agent.generate("go")
    assert result.stop_reason == "maxIterations"
    assert (result.usage.requests, len(made)) == (3, 2)
    assert "max_iterations" in result.text
    assert problem_of(agent.history) is None
    await agent.generate("again")
    assert problem_of(agent.history) is None


@pytest.mark.spec("TURN-6")
@pytest.mark.parametrize(
    ("tools", "given", "requests"), [(False, None, 3), (False, 5, 5), (True, None, 99)]
)
async def test_a_model_that_always_calls_tools_is_stopped_soon_where_there_are_none(
    make_agent: MakeAgent,
    script: Script,
    doing: Doing,
    asking: Asking,
    problem_of: ProblemOf,
    tools: bool,
    given: int | None,
    requests: int,
) -> None:
    async def work(call: ToolCall, context: ToolContext) -> str:
        return ""

    there = [doing("w", work)] if tools else []
    agent = make_agent(script([asking(("c", "w"))]), tools=there, max_iterations=given)
    result = await agent.generate("go")
    assert (result.stop_reason, result.usage.requests) == ("maxIterations", requests)
    assert problem_of(agent.history) is None


async def test_a_failed_first_request_leaves_no_trace(
    make_agent: MakeAgent, script: Script
) -> None:
    agent = make_agent(script([ModelError("down"), Message.assistant("hello")]))
    with pytest.raises(ModelError, match="down"):
        await agent.send("hi")
    assert len(agent.history) == 0
    await agent.send("hi")
    assert [one.text for one in agent.history] == ["hi", "hello"]


async def test_a_failure_after_tool_calls_keeps_them(
    make_agent: MakeAgent, script: Script, doing: Doing, asking: Asking, problem_of: ProblemOf
) -> None:
    async def work(call: ToolCall, context: ToolContext) -> str:
        return "paid"

    steps = [asking(("c", "pay")), ModelError("down"), Message.assistant("ok")]
    agent = make_agent(script(steps), tools=[doing("pay", work)])
    with pytest.raises(ModelError):
        await agent.send("go")
    assert agent.history[2].tool_results[0].text == "paid"
    assert agent.history[-1].stop_reason == "error"
    await agent.send("and now?")
    assert problem_of(agent.history) is None


async def test_what_is_no_error_of_ours_becomes_one(
    make_agent: MakeAgent, script: Script, caplog: pytest.LogCaptureFixture
) -> None:
    agent = make_agent(script([ValueError("odd")]))
    with pytest.raises(RunError, match="agent `alice` failed: ValueError: odd"):
        await agent.send("hi")
    assert "Traceback" in caplog.text


async def test_a_model_that_takes_too_long_is_a_model_error(
    make_agent: MakeAgent, script: Script
) -> None:
    async def sleep(request: ModelRequest) -> Message:
        pass_seconds(10)
        await anyio.sleep(600)
        return Message.assistant("late")

    agent = make_agent(script([sleep]), params=RequestParams(timeout_seconds=10))
    with pytest.raises(ModelError, match=r"did not answer within 10 s"):
        await agent.send("hi")


async def test_use_history_false_starts_every_turn_from_the_templates(
    make_agent: MakeAgent, script: Script
) -> None:
    seen: list[ModelRequest] = []
    templates = [Message("user", (TextContent("q"),), is_template=True)]
    templates.append(Message("assistant", (TextContent("a"),), is_template=True))
    agent = make_agent(
        script([Message.assistant("x")], seen), templates=templates, use_history=False
    )
    for text in ("one", "two"):
        await agent.send(text)
    assert [one.text for one in seen[1].messages] == ["q", "a", "two"]
    assert list(agent.history) == templates


async def test_templates_that_end_with_the_user_are_joined_to_the_message(
    make_agent: MakeAgent, script: Script, problem_of: ProblemOf
) -> None:
    seen: list[ModelRequest] = []
    template = Message("user", (TextContent("context"),), is_template=True)
    agent = make_agent(script([Message.assistant("x")], seen), templates=[template])
    await agent.send("one")
    await agent.send("two")
    assert [one.text for one in seen[1].messages] == ["context\none", "x", "two"]
    assert [one.text for one in agent.history] == ["context", "one", "x", "two", "x"]


async def test_a_server_lost_in_a_turn_does_not_end_it(
    make_agent: MakeAgent, script: Script, doing: Doing, asking: Asking
) -> None:
    events: list[Event] = []
    asked = 0

    async def work(call: ToolCall, context: ToolContext) -> str:
        return "done"

    class Failing:
        async def tools(self) -> list[Tool]:
            nonlocal asked
            asked += 1
            if asked > 1:
                raise ToolError("server `far` is lost")
            return [doing("w", work)]

    steps = [asking(("a", "w")), asking(("b", "w")), Message.assistant("ok")]
    agent = make_agent(script(steps), toolsets=[Failing()])
    assert (await agent.generate("go", listener=events.append)).text == "ok"
    assert agent.history[4].tool_results[0].text == "done"
    warnings = [event.message for event in events if isinstance(event, Warned)]
    assert warnings == ["server `far` is lost"] * 2
    with pytest.raises(ToolError, match="is lost"):
        await agent.send("again")
