"""Making room in a context window before the model refuses a conversation."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from fast_agent.agents.events import ModelAnswered, Warned
from fast_agent.agents.history.compaction import parts_of, size_of_view
from fast_agent.agents.turn_context import CompactionPlan
from fast_agent.cards.agent_config import RequestParams, UsageLimits
from fast_agent.errors import ContextError, LimitError
from fast_agent.messages.message import Message, ToolCall
from fast_agent.models.model import ContextUse, ModelResponse, Usage

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.agents.conftest import Doing

    from fast_agent.agents.events import Event
    from fast_agent.agents.live_agent import LlmAgent
    from fast_agent.agents.turn_context import TurnContext
    from fast_agent.models.model import DeltaSink, ModelRequest

pytestmark = pytest.mark.anyio


class Counting:
    """A model that counts what it is given as a provider does, and refuses what is too long."""

    def __init__(self, window: int, calls: int = 0, nanodollars: int = 0) -> None:
        self._window = window
        self._calls = calls
        self._price = nanodollars
        self.refused = 0
        self.sizes: list[int] = []
        self.last: tuple[Message, ...] = ()

    @property
    def name(self) -> str:
        return "counting"

    async def request(
        self, request: ModelRequest, on_delta: DeltaSink | None = None
    ) -> ModelResponse:
        del on_delta
        self.last = tuple(request.messages)
        size = sum(len(m.text) + sum(len(r.text) for r in m.tool_results) for m in self.last) // 4
        self.sizes.append(size)
        if size > self._window:
            self.refused += 1
            raise ContextError("too long")
        summarizes = request.system.startswith("You summarize")
        text = "a summary" if summarizes else "done"
        answer = Message.assistant(text)
        if self._calls and not summarizes:
            self._calls -= 1
            answer = Message("assistant", (), (ToolCall(f"c{self._calls}", "work"),))
        usage = Usage(size, 1, requests=1, nanodollars=self._price, priced=1)
        return ModelResponse(answer, usage, self._window)

    async def aclose(self) -> None:
        pass


@pytest.mark.spec("CONTEXT-1")
async def test_an_answer_says_how_full_the_window_is(make_agent: Callable[..., LlmAgent]) -> None:
    heard: list[Event] = []
    agent = make_agent(Counting(1_000, nanodollars=2_000))
    result = await agent.generate("x" * 400, listener=heard.append)
    assert result.context == agent.conversation.use == ContextUse(101, 1_000)
    assert result.context is not None
    assert result.context.to_json() == {"used": 101, "window": 1_000, "share": 0.101}
    assert [one.context for one in heard if isinstance(one, ModelAnswered)] == [result.context]
    assert result.usage.cost == pytest.approx(2e-6)
    assert (result.usage + Usage(requests=1)).cost is None


@pytest.mark.spec("CONTEXT-2")
@pytest.mark.parametrize("stated", [True, False], ids=["configured", "known"])
async def test_room_is_made_before_the_model_refuses(
    make_agent: Callable[..., LlmAgent], stated: bool
) -> None:
    heard: list[Event] = []
    model = Counting(10_000 if stated else 1_000)
    agent = make_agent(model, window=1_000 if stated else None)
    for number in range(40):
        await agent.generate(f"{number} " + "x" * 400, listener=heard.append)
    assert model.refused == 0
    assert 800 < max(model.sizes) <= 1_000
    assert len(agent.history) == 80
    warned = [one.message for one in heard if isinstance(one, Warned)]
    assert any("fills 85% of the context window of `counting`" in one for one in warned)


@pytest.mark.spec("CONTEXT-2")
async def test_room_is_made_in_the_middle_of_a_turn_too(
    make_agent: Callable[..., LlmAgent], doing: type[Doing]
) -> None:
    async def work(_call: object, _context: object) -> str:
        return "r" * 1_200

    model = Counting(2_000, calls=30)
    agent = make_agent(model, tools=(doing("work", work),))
    assert await agent.send("do it") == "done"
    assert model.refused == 0
    assert len(agent.history) == 62


@pytest.mark.spec("CONTEXT-2")
async def test_a_share_of_its_own_and_another_agent_for_the_summary(
    make_agent: Callable[..., LlmAgent],
) -> None:
    asked: list[str] = []

    async def ask(system: str, text: str, context: TurnContext) -> str:
        del context
        asked.append(text)
        assert system.startswith("You summarize")
        return "the other summary"

    model = Counting(1_000)
    agent = make_agent(model, compaction=CompactionPlan(0.3, ask))
    for _ in range(4):
        await agent.send("x" * 400)
    assert asked
    assert max(model.sizes) <= 400
    assert "the other summary" in model.last[0].text


async def test_compaction_that_is_off_leaves_the_conversation_to_the_model(
    make_agent: Callable[..., LlmAgent],
) -> None:
    model = Counting(1_000)
    agent = make_agent(model, compaction=CompactionPlan(None))
    for _ in range(9):
        await agent.send("x" * 400)
    with pytest.raises(ContextError):
        await agent.send("x" * 400)
    assert model.refused == 1
    assert agent.conversation.compaction is None


@pytest.mark.spec("CONTEXT-3")
async def test_money_is_bounded(make_agent: Callable[..., LlmAgent]) -> None:
    params = RequestParams(usage_limits=UsageLimits(max_cost=0.003))
    agent = make_agent(Counting(1_000, nanodollars=1_000_000), params=params)
    for _ in range(3):
        await agent.send("x")
    with pytest.raises(LimitError, match=r"usage limit `max_cost` of 0\.003"):
        await agent.send("x")


@pytest.mark.spec("CONTEXT-4")
@pytest.mark.parametrize("calls", [2, 4])
async def test_only_the_last_tool_call_of_earlier_turns_is_given_again(
    make_agent: Callable[..., LlmAgent], doing: type[Doing], calls: int
) -> None:
    async def work(_call: object, _context: object) -> str:
        return "result"

    model = Counting(10_000, calls=calls)
    agent = make_agent(model, tools=(doing("work", work),), trims=True)
    await agent.send("first")
    await agent.send("second")
    kinds = [
        "calls" if m.tool_calls else "results" if m.tool_results else m.text for m in model.last
    ]
    assert kinds == ["first", "calls", "results", "done", "second"]
    assert len(agent.history) == 4 + 2 * calls


def test_the_parts_of_a_context_add_up() -> None:
    from fast_agent.messages.history import History
    from fast_agent.messages.message import TextContent, ToolResult

    call = Message("assistant", (), (ToolCall("c", "work", {"a": 1}),))
    result = Message("user", tool_results=(ToolResult("c", (TextContent("r" * 80),)),))
    view = History((Message.user("q" * 40), call, result))
    system = "be brief\n<available_skills>\n<skill>x</skill></available_skills>\n"
    parts = parts_of(system, (), view)
    assert parts["results"] == 20
    assert parts["skills"] == 13
    assert parts["system"] + parts["skills"] == (len(system) + 3) // 4
    assert parts["history"] + parts["results"] == size_of_view(view)
