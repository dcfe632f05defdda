from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from fast_agent.cards.agent_config import RequestParams
from fast_agent.errors import ContextError, ModelError
from fast_agent.messages.message import Message, ToolCall

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.agents.conftest import Doing, Script, Step

    from fast_agent.agents.live_agent import LlmAgent
    from fast_agent.models.model import ModelRequest
    from fast_agent.text.json_value import JsonObject

pytestmark = pytest.mark.anyio
LINES = "\n".join(f"line {number}" for number in range(200_000)) + "\nThe password is Ysgard."
URI = "session://results/c1"


def reading(arguments: JsonObject) -> Message:
    return Message("assistant", (), (ToolCall("r1", "read_result", {"uri": URI, **arguments}),))


async def answers(
    make_agent: Callable[..., LlmAgent],
    script: type[Script],
    doing: type[Doing],
    *steps: Step,
    seen: list[ModelRequest] | None = None,
    params: RequestParams | None = None,
) -> list[str]:
    """Run a turn whose one tool gives `LINES`; returns the texts of all results, as they came."""

    async def long(_call: object, _context: object) -> str:
        return LINES

    asked = Message("assistant", (), (ToolCall("c1", "long"),))
    model = script([asked, *steps], seen)
    agent = make_agent(model, tools=(doing("long", long),), params=params)
    await agent.generate("go")
    return [one.text for message in agent.history for one in message.tool_results]


async def test_a_model_is_given_head_and_tail_and_the_tool_that_reads_the_rest(
    make_agent: Callable[..., LlmAgent], script: type[Script], doing: type[Doing]
) -> None:
    seen: list[ModelRequest] = []
    whole = await answers(make_agent, script, doing, Message.assistant("done"), seen=seen)
    assert whole == [LINES]
    first, second = seen
    assert [spec.name for spec in first.tools] == ["long"]
    assert [spec.name for spec in second.tools] == ["long", "read_result"]
    shown = second.messages[-1].tool_results[0].text
    assert shown.startswith("line 0\nline 1\n")
    assert shown.endswith("The password is Ysgard.")
    assert URI in shown
    assert len(shown) < 33_200


async def test_a_short_result_brings_no_further_tool(
    make_agent: Callable[..., LlmAgent], script: type[Script], doing: type[Doing]
) -> None:
    seen: list[ModelRequest] = []
    params = RequestParams(tool_result_bytes={"long": 10_000_000})
    await answers(make_agent, script, doing, Message.assistant("done"), seen=seen, params=params)
    assert [spec.name for spec in seen[1].tools] == ["long"]
    assert seen[1].messages[-1].tool_results[0].text == LINES


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ({"max_chars": 12}, "line 0\nline \n[characters 0 to 12 of"),
        ({"offset": 7, "max_chars": 6}, "line 1\n[characters 7 to 13 of"),
        ({"offset": 7.0, "max_chars": 6}, "continue with `offset` 13]"),
        ({"offset": len(LINES) - 7}, "Ysgard.\n[characters"),
        ({"offset": len(LINES)}, "[there is nothing at character"),
        ({"find": "PASSWORD is"}, f"[character {LINES.index('password')}"),
        ({"find": "nowhere"}, "[`nowhere` is not in the result"),
        ({"find": "line 19999"}, "Ysgard"),
        ({"find": "line 1"}, "other places; search for a longer text]"),
        ({"find": "line 77"}, "[and 40 other places;"),
        ({"offset": -1}, "`offset` must be at least 0"),
        ({"uri": "session://results/c2"}, "did you mean `session://results/c1`?"),
        ({"uri": "c1", "max_chars": 6}, "line 0\n["),
        ({"near": "x"}, "`near` is not an argument of `read_result`"),
    ],
)
async def test_read_result_reads_pieces_and_finds_places(
    make_agent: Callable[..., LlmAgent],
    script: type[Script],
    doing: type[Doing],
    arguments: JsonObject,
    expected: str,
) -> None:
    texts = await answers(make_agent, script, doing, reading(arguments), Message.assistant("done"))
    assert expected in texts[1]
    assert len(texts[1]) < 31_000


async def test_where_a_conversation_is_too_long_old_results_go_first(
    make_agent: Callable[..., LlmAgent], script: type[Script], doing: type[Doing]
) -> None:
    async def long(_call: object, _context: object) -> str:
        return "x" * 30_000

    def picky(request: ModelRequest) -> Message | Exception:
        size = sum(len(one.text) for m in request.messages for one in m.tool_results)
        if size > 100_000:
            return ContextError("the conversation is too long")
        if request.messages[-1].tool_results:
            return Message.assistant("done")
        return Message("assistant", (), (ToolCall("c", "long"),))

    agent = make_agent(script([picky]), tools=(doing("long", long),))
    for _ in range(30):
        assert (await agent.generate("go")).text == "done"
    whole = [one.text for message in agent.history for one in message.tool_results]
    assert whole == ["x" * 30_000] * 30


async def test_a_model_that_never_has_room_ends_the_turn_with_its_words(
    make_agent: Callable[..., LlmAgent], script: type[Script], doing: type[Doing]
) -> None:
    seen: list[ModelRequest] = []
    error = ContextError("the conversation is too long")
    with pytest.raises(ModelError, match="too long"):
        await answers(make_agent, script, doing, error, seen=seen)
    assert len(seen) == 3  # the call, the whole result's head and tail, and less of it
