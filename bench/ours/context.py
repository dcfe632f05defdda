"""Long conversations: turns with a tool result of 100 KB each in a window of 128,000 tokens."""

from __future__ import annotations

import json
import logging
import sys
import time
from typing import TYPE_CHECKING

import anyio

from fast_agent.agents.compaction import compact, size_of_view
from fast_agent.agents.conversation import Conversation
from fast_agent.agents.llm_agent import LlmAgent
from fast_agent.agents.offered_tools import ReadResult
from fast_agent.agents.runtime_options import numbered
from fast_agent.agents.turn_setup import TurnSetup
from fast_agent.cards.agent_config import AgentConfig
from fast_agent.cards.request_params import RequestParams
from fast_agent.errors import ContextError, FastAgentError
from fast_agent.messages.message import Message, ToolCall
from fast_agent.models.model import ModelResponse
from fast_agent.models.usage import Usage
from fast_agent.runtime.blueprint import result_limits
from fast_agent.tools.function import FunctionTool
from fast_agent.tools.toolbox import Toolbox

if TYPE_CHECKING:
    from fast_agent.models.model import DeltaSink, ModelRequest

WINDOW = 128_000


class Reader:
    """A model that calls `fetch` once a turn and refuses more than its window holds."""

    @property
    def name(self) -> str:
        """Its name."""
        return "reader"

    async def request(
        self, request: ModelRequest, on_delta: DeltaSink | None = None
    ) -> ModelResponse:
        """Answer."""
        del on_delta
        messages = request.messages
        size = sum(
            len(one.text) + sum(len(result.text) for result in one.tool_results) for one in messages
        )
        if size // 4 > WINDOW:
            raise ContextError("too long")
        if request.system.startswith("You summarize") or messages[-1].tool_results:
            answer = Message.assistant("so it is")
        else:
            answer = Message("assistant", (), (ToolCall("c", "fetch", {}),))
        return ModelResponse(answer, Usage(size // 4, 10, requests=1), WINDOW)

    async def aclose(self) -> None:
        """Do nothing."""


def fetch() -> str:
    """Fetch a long page."""
    return "a line of a long page, as they are\n" * 2_900


async def turns(most: int) -> int:
    """Return how many turns there were before one failed."""

    async def render() -> str:
        return "be brief"

    params = RequestParams()
    setup = TurnSetup(
        config=AgentConfig(name="reader"),
        model=Reader(),
        render=render,
        tools=Toolbox((FunctionTool(fetch),), reader=lambda: (ReadResult(),)),
        params=params,
        results=result_limits(params),
    )
    agent = LlmAgent(setup, new_id=numbered("turn"))
    for number in range(most):
        try:
            await agent.send(f"question {number}")
        except FastAgentError as error:
            print(error.message, file=sys.stderr)
            return number
    return most


async def compaction() -> float:
    """Return the milliseconds a compaction of 200,000 tokens takes beside its model."""
    text = "x " * 2_000
    exchange = (Message.user(text), Message.assistant(text))
    conversation = Conversation(exchange * 100)
    if size_of_view(conversation.history) < 200_000:
        sys.exit("the conversation is too short")

    async def ask(_system: str, _text: str) -> str:
        return "a summary"

    start = time.perf_counter()
    conversation.compact(await compact(conversation, len(conversation.history), ask))
    return (time.perf_counter() - start) * 1000


async def main(most: int) -> None:
    """Measure."""
    done = await turns(most)
    times = sorted([await compaction() for _ in range(5)])
    print(json.dumps({"turns": done, "compaction": times[2]}))


logging.disable(logging.WARNING)  # what room is made for is said each time
anyio.run(main, int(sys.argv[1]))
