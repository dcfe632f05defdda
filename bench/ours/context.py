"""Long conversations: turns with a tool result of 100 KB each in a window of 128,000 tokens."""

from __future__ import annotations

import json
import logging
import re
import sys
import time
from dataclasses import replace
from typing import TYPE_CHECKING

import anyio

from fast_agent.agents.history.compaction import compact, size_of_view
from fast_agent.agents.history.transcript import Transcript
from fast_agent.agents.live_agent import LlmAgent
from fast_agent.agents.offered_tools import ReadResult
from fast_agent.agents.runtime_options import numbered
from fast_agent.agents.turn_context import TurnSetup
from fast_agent.cards.agent_config import AgentConfig, RequestParams
from fast_agent.errors import ContextError, FastAgentError
from fast_agent.messages.history import RESULTS
from fast_agent.messages.message import Message, ToolCall
from fast_agent.models.model import ModelResponse, Usage
from fast_agent.runtime.blueprint import result_limits
from fast_agent.tools.functions.function import FunctionTool
from fast_agent.tools.toolbox import Toolbox

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from fast_agent.models.model import DeltaSink, ModelRequest

WINDOW = 128_000
FACTS, LATER = 100, 50


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


class Archivist(Reader):
    """A model that follows its instruction: it keeps addresses in summaries, and reads them again.

    It reads a page each turn, each with the code of a box in its middle, and is asked for a code 50
    turns later. It answers from what it is given, else from a result it finds an address of.
    """

    async def request(
        self, request: ModelRequest, on_delta: DeltaSink | None = None
    ) -> ModelResponse:
        """Answer."""
        response = await super().request(request, on_delta)  # refuses what is too long
        last = request.messages[-1]
        if request.system.startswith("You summarize"):
            answer = Message.assistant("\n".join(_addresses(last.text)))
        elif not last.tool_results:
            answer = self._ask(last.text, request.messages)
        else:
            answer = Message.assistant(_code(last.tool_results[-1].text) or "so it is")
        return replace(response, message=answer)

    def _ask(self, question: str, messages: Sequence[Message]) -> Message:
        number = question.rpartition(" ")[2]
        if question.startswith("read"):
            call = ToolCall(f"call-{number}", "page", {"number": int(number)})
            return Message("assistant", (), (call,))
        said = [one.text for one in messages]
        said += [result.text for one in messages for result in one.tool_results]
        known = next(filter(None, (_code(text, number) for text in said)), None)
        if known is not None:
            return Message.assistant(known)
        lines = (line for text in said for line in _addresses(text))
        line = next((line for line in lines if line.startswith(f"box {number}: ")), None)
        if line is None:
            return Message.assistant("unknown")
        uri = line.rpartition(" ")[2]
        call = ToolCall(
            f"again-{number}", "read_result", {"uri": uri, "find": f"of box {number} is"}
        )
        return Message("assistant", (), (call,))


def _code(text: str, number: str = r"\d+") -> str | None:
    found = re.search(rf"the code of box {number} is (\w+)", text)
    return None if found is None else found[1]


def _addresses(text: str) -> list[str]:
    """Return the boxes a text speaks of, each with the address of the page about it."""
    kept: dict[str, str] = {}
    box = ""
    for found in re.finditer(rf"a page about box (\d+)|({RESULTS}[\w-]+)", text):
        if found[1]:
            box = found[1]
        elif box:
            kept.setdefault(box, found[2])
    kept |= dict(re.findall(rf"box (\d+): ({RESULTS}[\w-]+)", text))
    return [f"box {number}: {uri}" for number, uri in kept.items()]


def page(number: int) -> str:
    """Read a page of 100 KB with a code in its middle.

    Args:
        number: The number of the box.
    """
    half = "a line of a long page, as they are\n" * 1_450
    return f"a page about box {number}\n{half}the code of box {number} is x{number * 7919}\n{half}"


async def facts(most: int) -> int:
    """Return how many of the codes read in the first turns are known 50 turns later."""
    agent = _agent(Archivist(), page)
    known = 0
    for number in range(most + LATER):
        await agent.send(f"read page {number}")
        asked = number - LATER
        if asked >= 0:
            known += await agent.send(f"code of box {asked}") == f"x{asked * 7919}"
    return known


def fetch() -> str:
    """Fetch a long page."""
    return "a line of a long page, as they are\n" * 2_900


async def turns(most: int) -> int:
    """Return how many turns there were before one failed."""
    agent = _agent(Reader(), fetch)
    for number in range(most):
        try:
            await agent.send(f"question {number}")
        except FastAgentError as error:
            print(error.message, file=sys.stderr)
            return number
    return most


def _agent(model: Reader, function: Callable[..., str]) -> LlmAgent:
    async def render() -> str:
        return "be brief"

    params = RequestParams()
    setup = TurnSetup(
        config=AgentConfig(name="reader"),
        model=model,
        render=render,
        tools=Toolbox((FunctionTool(function),), reader=lambda: (ReadResult(),)),
        params=params,
        results=result_limits(params),
    )
    return LlmAgent(setup, new_id=numbered("turn"))


async def compaction() -> float:
    """Return the milliseconds a compaction of 200,000 tokens takes beside its model."""
    text = "x " * 2_000
    exchange = (Message.user(text), Message.assistant(text))
    conversation = Transcript(exchange * 100)
    if size_of_view(conversation.history) < 200_000:
        sys.exit("the conversation is too short")

    async def ask(_system: str, _text: str) -> str:
        return "a summary"

    start = time.perf_counter()
    conversation.compact(await compact(conversation, len(conversation.history), ask))
    return (time.perf_counter() - start) * 1000


async def main(most: int) -> None:
    """Measure."""
    done, known = await turns(most), await facts(FACTS)
    times = sorted([await compaction() for _ in range(5)])
    print(json.dumps({"turns": done, "facts": known, "compaction": times[2]}))


logging.disable(logging.WARNING)  # what room is made for is said each time
anyio.run(main, int(sys.argv[1]))
