from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, TypeAlias

import anyio
import pytest
from pydantic import BaseModel
from typing_extensions import TypedDict

from fast_agent.agents.events import Event, TextStreamed, TurnFinished, TurnStarted
from fast_agent.errors import LimitError, ModelError, RunError
from fast_agent.messages.message import Message, TextContent, ToolCall
from fast_agent.models.offline import PassthroughModel
from fast_agent.trust.grant import Grant

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from fast_agent.agents.live_agent import LlmAgent
    from fast_agent.messages.message import StopReason
    from fast_agent.models.model import Model, ModelRequest
    from fast_agent.tools.tool import Tool, ToolContext

    MakeAgent: TypeAlias = Callable[..., LlmAgent]
    Script: TypeAlias = Callable[..., Model]
    Doing: TypeAlias = Callable[..., Tool]
    Asking: TypeAlias = Callable[..., Message]

pytestmark = pytest.mark.anyio


class City(BaseModel):
    name: str
    people: int


@dataclass
class Point:
    x: int
    y: int


class Entry(TypedDict):
    word: str


def template(message: Message) -> Message:
    return Message(message.role, message.content, is_template=True)


TEMPLATES = (template(Message.user("q")), template(Message.assistant("a")))


async def test_turns_sent_at_once_run_one_after_another_in_order(
    make_agent: MakeAgent, script: Script
) -> None:
    running = 0

    async def answer(request: ModelRequest) -> Message:
        nonlocal running
        running += 1
        assert running == 1
        await anyio.sleep(0.001)
        running -= 1
        return Message.assistant(f"re {request.messages[-1].text}")

    agent = make_agent(script([answer]))
    async with anyio.create_task_group() as group:
        for number in range(5):
            group.start_soon(agent.send, str(number))
    asked = [one.text for one in agent.history if one.role == "user"]
    assert asked == ["0", "1", "2", "3", "4"]


async def test_an_agent_that_would_wait_for_itself_gets_an_error(
    make_agent: MakeAgent, script: Script, doing: Doing, asking: Asking
) -> None:
    agents: list[LlmAgent] = []

    async def work(call: ToolCall, context: ToolContext) -> str:
        return await agents[0].send("again")

    model = script([asking(("c", "w")), Message.assistant("ok")])
    agents.append(make_agent(model, tools=[doing("w", work)]))
    assert await agents[0].send("go") == "ok"
    assert "from within its own turn" in agents[0].history[2].tool_results[0].text


@pytest.mark.spec("HIST-7")
async def test_clear_keeps_templates_and_clear_all_does_not(make_agent: MakeAgent) -> None:
    agent = make_agent(PassthroughModel(), templates=TEMPLATES)
    await agent.send("hi")
    agent.clear()
    assert list(agent.history) == list(TEMPLATES)
    await agent.send("hi")
    agent.clear(all=True)
    assert len(agent.history) == 0


async def test_clear_all_takes_the_templates_of_a_stateless_agent_too(
    make_agent: MakeAgent, script: Script
) -> None:
    seen: list[ModelRequest] = []
    model = script([Message.assistant("x")], seen)
    agent = make_agent(model, templates=TEMPLATES, use_history=False)
    agent.clear(all=True)
    await agent.send("hi")
    assert len(seen[0].messages) == 1


async def test_what_is_cleared_during_a_turn_stays_cleared(
    make_agent: MakeAgent, script: Script
) -> None:
    agents: list[LlmAgent] = []

    def clear(request: ModelRequest) -> Message:
        agents[0].clear()
        return Message.assistant("ok")

    agents.append(make_agent(script([clear])))
    await agents[0].send("hi")
    assert len(agents[0].history) == 0


async def test_load_history_takes_the_place_of_what_was_there(make_agent: MakeAgent) -> None:
    agent = make_agent(PassthroughModel(), templates=TEMPLATES)
    agent.load_history([Message.user("old"), Message.assistant("ans")])
    await agent.send("new")
    assert [one.text for one in agent.history] == ["old", "ans", "new", "new"]


async def test_history_read_before_a_turn_does_not_change(make_agent: MakeAgent) -> None:
    agent = make_agent(PassthroughModel())
    await agent.send("one")
    before = agent.history
    await agent.send("two")
    assert [one.text for one in before] == ["one", "one"]


@pytest.mark.spec("TURN-8")
async def test_usage_adds_up_over_turns(make_agent: MakeAgent, script: Script) -> None:
    agent = make_agent(script([Message.assistant("x")]))
    first = await agent.generate("a")
    await agent.generate("b")
    assert (first.usage.requests, first.usage.total_tokens) == (1, 15)
    assert (agent.usage.requests, agent.usage.total_tokens) == (2, 30)
    assert agent.tree_usage == agent.usage


async def test_a_turn_does_not_start_with_an_assistant_message(make_agent: MakeAgent) -> None:
    agent = make_agent(PassthroughModel())
    with pytest.raises(RunError, match="starts with a user message"):
        await agent.send(Message.assistant("hi"))


async def test_an_agent_closes_its_model_once(
    make_agent: MakeAgent, script: Script, monkeypatch: pytest.MonkeyPatch
) -> None:
    closed: list[str] = []
    model = script([Message.assistant("hi")])

    async def aclose() -> None:
        closed.append("model")

    monkeypatch.setattr(model, "aclose", aclose)
    agent = make_agent(model)
    await agent.aclose()
    await agent.aclose()
    assert closed == ["model"]


async def test_a_closed_agent_takes_no_message(make_agent: MakeAgent) -> None:
    agent = make_agent(PassthroughModel())
    await agent.aclose()
    await agent.aclose()
    with pytest.raises(RunError, match="agent `alice` is closed"):
        await agent.send("hi")


@pytest.mark.spec("TURN-10")
async def test_a_listener_hears_the_turn_and_makes_the_model_stream(
    make_agent: MakeAgent, script: Script
) -> None:
    events: list[Event] = []
    agent = make_agent(script([Message.assistant("hello")]))
    result = await agent.generate("hi", listener=events.append)
    kinds = [type(event).__name__ for event in events]
    assert kinds == [
        "TurnStarted",
        "ModelRequested",
        "TextStreamed",
        "ModelAnswered",
        "TurnFinished",
    ]
    assert isinstance(events[0], TurnStarted)
    assert events[0].origin.agent == "alice"
    assert {event.origin.turn_id for event in events} == {result.turn_id}
    assert isinstance(events[2], TextStreamed)
    assert events[2].text == "hello"


async def test_a_turn_that_fails_is_reported_to_listeners_too(
    make_agent: MakeAgent, script: Script
) -> None:
    events: list[Event] = []
    agent = make_agent(script([ModelError("down")]))
    with pytest.raises(ModelError):
        await agent.generate("hi", listener=events.append)
    last = events[-1]
    assert isinstance(last, TurnFinished)
    assert (last.stop_reason, last.error) == ("error", "down")


async def test_nobody_listening_asks_for_no_stream(make_agent: MakeAgent) -> None:
    asked: list[bool] = []

    class Watching(PassthroughModel):
        async def request(self, request: ModelRequest, on_delta: object = None):
            asked.append(on_delta is not None)
            return await super().request(request, None)

    await make_agent(Watching()).send("hi")
    assert asked == [False]


@pytest.mark.spec("PY-3")
async def test_structured_answers_of_each_kind(make_agent: MakeAgent) -> None:
    agent = make_agent(PassthroughModel())
    city = await agent.structured('{"name": "Bern", "people": 134000}', City)
    assert city == City(name="Bern", people=134000)
    assert await agent.structured('{"x": 1, "y": 2}', Point) == Point(1, 2)
    assert await agent.structured('```json\n{"word": "sea"}\n```', Entry) == {"word": "sea"}
    assert await agent.structured("[1, 2]", list[int]) == [1, 2]
    assert await agent.structured('{"n": 1}', {"type": "object", "required": ["n"]}) == {"n": 1}


async def test_a_structured_request_tells_the_model_the_schema(
    make_agent: MakeAgent, script: Script
) -> None:
    seen: list[ModelRequest] = []
    agent = make_agent(script([Message.assistant('{"x": 1, "y": 2}')], seen))
    await agent.structured("where?", Point)
    asked = seen[0].output_schema
    assert asked is not None
    assert asked.name == "Point"
    assert asked.schema["required"] == ["x", "y"]


@pytest.mark.spec("ANSWER-2")
@pytest.mark.parametrize(
    ("reason", "message"), [("refusal", "refused to answer: I will not"), ("maxTokens", "was cut")]
)
async def test_a_refused_or_cut_answer_is_not_paid_for_twice(
    make_agent: MakeAgent, script: Script, reason: StopReason, message: str
) -> None:
    seen: list[ModelRequest] = []
    agent = make_agent(script([Message.assistant("I will not", reason)], seen))
    with pytest.raises(RunError, match=message):
        await agent.structured("where?", Point)
    assert len(seen) == 1


@pytest.mark.spec("ANSWER-2")
async def test_a_repair_names_the_path_and_no_library(
    make_agent: MakeAgent, script: Script
) -> None:
    seen: list[ModelRequest] = []
    wrong, right = '[{"x": 1, "y": "up"}]', '[{"x": 1, "y": 2}]'
    agent = make_agent(script([Message.assistant(wrong), Message.assistant(right)], seen))
    assert await agent.structured("where?", list[Point]) == [Point(1, 2)]
    asked = seen[1].messages[-1].text
    assert "$[0].y: input should be a valid integer" in asked
    assert "http" not in asked


@pytest.mark.parametrize("use_history", [True, False])
async def test_a_wrong_structured_answer_is_sent_back_once(
    make_agent: MakeAgent, script: Script, use_history: bool
) -> None:
    seen: list[ModelRequest] = []
    wrong, right = Message.assistant('{"x": "far"}'), Message.assistant('{"x": 1, "y": 2}')
    agent = make_agent(script([wrong, right], seen), use_history=use_history)
    assert await agent.structured("where?", Point) == Point(1, 2)
    assert [one.role for one in seen[1].messages] == ["user", "assistant", "user"]
    assert "unable to parse string as an integer" in seen[1].messages[-1].text


async def test_a_second_wrong_structured_answer_is_an_error(
    make_agent: MakeAgent, script: Script
) -> None:
    agent = make_agent(script([Message.assistant("no idea")]))
    with pytest.raises(RunError, match="returned an invalid structured answer"):
        await agent.structured("where?", {"type": "integer"})
    assert [one.role for one in agent.history] == ["user", "assistant"] * 2


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("no idea", "it is not JSON: expecting value at line 1, column 1"),
        ("[1,\n2", "it is not JSON: expecting ',' delimiter at line 2, column 2"),
        ("[" * 200_000, "it is nested too deeply"),
        ('"one"', "is not of type 'integer'"),
    ],
)
async def test_what_is_wrong_with_a_structured_answer_is_reported(
    make_agent: MakeAgent, script: Script, text: str, problem: str
) -> None:
    agent = make_agent(script([Message.assistant(text)]))
    with pytest.raises(RunError) as caught:
        await agent.structured("where?", {"type": "integer"})
    assert problem in caught.value.message
    assert "`model`" in (caught.value.hint or "")


async def test_a_structured_answer_that_does_not_come_in_time_is_an_error(
    make_agent: MakeAgent, script: Script, doing: Doing, asking: Asking
) -> None:
    async def work(call: ToolCall, context: ToolContext) -> str:
        return ""

    # The text beside the last call has the wanted shape, and is no answer all the same.
    model = script([asking(("c", "w"), text='{"x": 1, "y": 2}')])
    agent = make_agent(model, tools=[doing("w", work)], max_iterations=2)
    with pytest.raises(RunError, match="stopped before it gave a structured answer") as caught:
        await agent.structured("where?", Point)
    assert "max_iterations" in (caught.value.hint or "")


async def test_a_schema_that_is_none_is_an_error(make_agent: MakeAgent) -> None:
    agent = make_agent(PassthroughModel())
    with pytest.raises(RunError, match="not valid"):
        await agent.structured("1", {"type": "wholenumber"})


async def test_with_resource_without_servers_says_what_to_do(make_agent: MakeAgent) -> None:
    agent = make_agent(PassthroughModel())
    with pytest.raises(RunError, match="has no servers"):
        await agent.with_resource("sum up", "docs", "resource://a")


async def test_content_of_a_message_is_kept_whole(make_agent: MakeAgent) -> None:
    agent = make_agent(PassthroughModel())
    message = Message("user", (TextContent("a"), TextContent("b")))
    assert await agent.send(message) == "a\nb"
    assert agent.history[0] is message


@pytest.mark.parametrize("approved", [True, False])
async def test_turns_of_a_found_card_are_bounded_until_it_is_approved(
    make_agent: MakeAgent,
    script: Script,
    doing: Doing,
    asking: Asking,
    tmp_path: Path,
    *,
    approved: bool,
) -> None:
    async def look(_call: ToolCall, _context: ToolContext) -> str:
        return "seen"

    calls = [asking((f"c{number}", "look")) for number in range(60)]
    model = script([*calls, Message.assistant("done")])
    agent = make_agent(model, tools=(doing("look", look),), max_iterations=99)
    grant = Grant(tmp_path, approved=lambda: approved)
    agent._config = replace(agent.config, grant=grant)
    if approved:
        assert await agent.send("go") == "done"
    else:
        with pytest.raises(LimitError, match="reached 50 model requests"):
            await agent.send("go")
