"""Small models and tools the turn tests are played with."""

from __future__ import annotations

from dataclasses import replace
from inspect import isawaitable
from typing import TYPE_CHECKING, TypeAlias

import pytest

from fast_agent.agents.live_agent import LlmAgent
from fast_agent.agents.offered_tools import ReadResult
from fast_agent.agents.runtime_options import numbered
from fast_agent.agents.turn_context import DEFAULT_PLAN, TOP, CompactionPlan, TurnContext, TurnSetup
from fast_agent.cards.agent_config import AgentConfig, RequestParams
from fast_agent.messages.message import Message, TextContent, ToolCall, ToolResult
from fast_agent.models.model import ModelRequest, ModelResponse, TextDelta, ToolSpec, Usage
from fast_agent.runtime.blueprint import result_limits
from fast_agent.tools.toolbox import Toolbox

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable, Sequence

    from fast_agent.models.model import DeltaSink, Model
    from fast_agent.tools.hooks import TurnHooks
    from fast_agent.tools.tool import Tool, ToolContext, Toolset, ToolSource

Answer: TypeAlias = "Message | Exception"
Step: TypeAlias = "Answer | Callable[[ModelRequest], Answer | Awaitable[Answer]]"


class Script:
    """A model that plays its steps one after another; the last one again and again."""

    def __init__(self, steps: Sequence[Step], seen: list[ModelRequest] | None = None) -> None:
        self._steps = list(steps)
        self._seen = [] if seen is None else seen

    @property
    def name(self) -> str:
        return "script"

    async def request(
        self, request: ModelRequest, on_delta: DeltaSink | None = None
    ) -> ModelResponse:
        self._seen.append(replace(request, messages=tuple(request.messages)))
        step = self._steps.pop(0) if len(self._steps) > 1 else self._steps[0]
        if not isinstance(step, Message | Exception):
            answer = step(request)
            step = await answer if isawaitable(answer) else answer
        if isinstance(step, Exception):
            raise step
        if on_delta is not None:
            on_delta(TextDelta(step.text))
        return ModelResponse(step, Usage(10, 5, requests=1))

    async def aclose(self) -> None:
        pass


class Doing:
    """A tool that is one async function of its arguments, answering text."""

    def __init__(
        self, name: str, work: Callable[[ToolCall, ToolContext], Awaitable[str | ToolResult]]
    ) -> None:
        self.spec = ToolSpec(name, f"does {name}", {"type": "object"})
        self.source: ToolSource = "function"
        self.server_name = None
        self.repeatable = True
        self._work = work

    async def call(self, call: ToolCall, context: ToolContext) -> ToolResult:
        done = await self._work(call, context)
        if isinstance(done, ToolResult):
            return done
        return ToolResult(call.id, (TextContent(done),))


def make_agent(
    model: Model,
    *,
    name: str = "alice",
    tools: Sequence[Tool] = (),
    toolsets: Sequence[Toolset] = (),
    params: RequestParams | None = None,
    templates: Iterable[Message] = (),
    use_history: bool | None = None,
    max_iterations: int | None = None,
    context: TurnContext = TOP,
    hooks: TurnHooks | None = None,
    window: int | None = None,
    known_window: int | None = None,
    compaction: CompactionPlan = DEFAULT_PLAN,
    trims: bool = False,
) -> LlmAgent:
    async def render() -> str:
        return "be brief"

    config = AgentConfig(
        name=name, instruction="be brief", use_history=use_history, trim_tool_history=trims
    )
    params = replace(params or RequestParams(), max_iterations=max_iterations)
    setup = TurnSetup(
        config=config,
        model=model,
        render=render,
        tools=Toolbox(tools, toolsets, reader=lambda: (ReadResult(),)),
        params=params,
        hooks=hooks,
        results=result_limits(params),
        window=window,
        known_window=lambda: known_window,
        compaction=compaction,
    )
    return LlmAgent(setup, templates=templates, new_id=numbered("turn"), context=context)


def asking(*calls: tuple[str, str], text: str = "") -> Message:
    """An assistant message that calls tools: (call id, tool name) each."""
    content = (TextContent(text),) if text else ()
    tool_calls = tuple(ToolCall(call_id, name) for call_id, name in calls)
    return Message("assistant", content, tool_calls, stop_reason="toolUse")


def problem_of(messages: Iterable[Message]) -> str | None:
    """Return why a provider would refuse `messages`; None when it would not."""
    open_calls: list[str] = []
    last = None
    for index, message in enumerate(messages):
        if message.role == last:
            return f"message {index} has the role of the one before"
        if [result.id for result in message.tool_results] != open_calls:
            return f"message {index} does not answer exactly the calls before it"
        if not (message.content or message.tool_calls or message.tool_results):
            return f"message {index} is empty"
        open_calls = [call.id for call in message.tool_calls]
        last = message.role
    return f"{open_calls} are not answered" if open_calls else None


@pytest.fixture(scope="session", name="script")
def _script() -> type[Script]:
    return Script


@pytest.fixture(scope="session", name="doing")
def _doing() -> type[Doing]:
    return Doing


@pytest.fixture(scope="session", name="make_agent")
def _make_agent() -> Callable[..., LlmAgent]:
    return make_agent


@pytest.fixture(scope="session", name="asking")
def _asking() -> Callable[..., Message]:
    return asking


@pytest.fixture(scope="session", name="problem_of")
def _problem_of() -> Callable[[Iterable[Message]], str | None]:
    return problem_of
