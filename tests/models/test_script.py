from __future__ import annotations

import re
from collections import Counter
from typing import TYPE_CHECKING

import anyio
import pytest

from fast_agent.errors import ModelError
from fast_agent.messages.message import Message, TextContent, ToolResult
from fast_agent.models.model import (
    Delta,
    ModelRequest,
    ModelResponse,
    TextDelta,
    ThinkingDelta,
    Usage,
)
from fast_agent.models.script import (
    Call,
    Choose,
    Delay,
    Fail,
    Say,
    Script,
    ScriptedModel,
    Together,
)

if TYPE_CHECKING:
    from fast_agent.models.script import Step

pytestmark = pytest.mark.anyio


async def ask(
    model: ScriptedModel, text: str = "go", deltas: list[Delta] | None = None
) -> ModelResponse:
    sink = None if deltas is None else deltas.append
    return await model.request(ModelRequest("", [Message.user(text)]), sink)


@pytest.mark.spec("MODEL-7")
async def test_steps_answer_in_order() -> None:
    model = ScriptedModel(
        [
            "plain",
            Call("add", {"a": 1}),
            Together((Call("x"), Call("y", {"b": 2})), Say("both")),
            Say("cut", stop_reason="maxTokens", usage=Usage(input_tokens=7, requests=1)),
        ]
    )
    assert (await ask(model)).message == Message.assistant("plain")
    one = (await ask(model)).message
    assert (one.stop_reason, one.content) == ("toolUse", ())
    assert [(call.name, call.arguments) for call in one.tool_calls] == [("add", {"a": 1})]
    both = (await ask(model)).message
    assert both.text == "both"
    assert [call.name for call in both.tool_calls] == ["x", "y"]
    assert len({call.id for call in both.tool_calls}) == 2
    last = await ask(model)
    assert last.message.stop_reason == "maxTokens"
    assert last.usage == Usage(input_tokens=7, requests=1)
    await model.aclose()


async def test_pieces_and_thinking_are_streamed() -> None:
    deltas: list[Delta] = []
    model = ScriptedModel([Say("ab", pieces=("a", "b"), thinking="hm"), "whole"])
    message = (await ask(model, deltas=deltas)).message
    assert deltas == [ThinkingDelta("hm"), TextDelta("a"), TextDelta("b")]
    assert message.text == "ab"
    assert message.channels == {"reasoning": (TextContent("hm"),)}
    await ask(model, deltas=deltas)
    assert deltas[3:] == [TextDelta("whole")]


def test_pieces_must_make_up_the_text() -> None:
    with pytest.raises(ValueError, match="pieces"):
        Say("abc", pieces=("a", "b"))


async def test_a_failure_is_a_model_error_and_counts_as_used() -> None:
    model = ScriptedModel([Fail("overloaded", hint="wait"), "fine"])
    with pytest.raises(ModelError, match="overloaded") as caught:
        await ask(model)
    assert caught.value.hint == "wait"
    assert (await ask(model)).message.text == "fine"
    await model.aclose()


async def test_delays_wait() -> None:
    model = ScriptedModel([Delay(0.02), Say("late", delay=0.02)])
    begun = anyio.current_time()
    assert (await ask(model)).message.text == "late"
    assert anyio.current_time() - begun >= 0.04
    await model.aclose()


@pytest.mark.parametrize("expect", ["the time", re.compile(r"time.*\?$")])
async def test_what_was_expected_is_checked(expect: str | re.Pattern[str]) -> None:
    model = ScriptedModel([Say("noon", expect=expect), Say("x", expect=expect)])
    assert (await ask(model, "what is the time now?")).message.text == "noon"
    with pytest.raises(ModelError) as caught:
        await ask(model, "good\nmorning")
    assert "step 2 expects" in caught.value.message
    assert (expect if isinstance(expect, str) else expect.pattern) in caught.value.message
    assert "but was asked `good morning`" in caught.value.message


async def test_results_of_tools_can_be_expected() -> None:
    model = ScriptedModel([Say("ok", expect="42")])
    done = Message("user", tool_results=(ToolResult("c", (TextContent("it is 42"),)),))
    assert (await model.request(ModelRequest("", [done]))).message.text == "ok"


async def test_a_script_that_ran_out_says_so() -> None:
    model = ScriptedModel(["one"])
    await ask(model)
    with pytest.raises(ModelError, match="no step left; all 1 were used"):
        await ask(model)
    await model.aclose()


@pytest.mark.spec("MODEL-8")
async def test_what_was_not_used_is_listed_once() -> None:
    model = ScriptedModel(["one", Call("add"), Say("rest", times=3), Fail("no")])
    await ask(model)
    await ask(model)
    await ask(model)
    with pytest.raises(ModelError) as caught:
        await model.aclose()
    assert caught.value.message == (
        "the script was not used up: step 3: says `rest` (1 of 3 times); step 4: fails with `no`"
    )
    await model.aclose()


async def test_a_script_that_failed_is_not_blamed_again() -> None:
    model = ScriptedModel([Say("a", expect="never"), "b"])
    with pytest.raises(ModelError):
        await ask(model)
    await model.aclose()
    with pytest.raises(ModelError, match="step 2"):
        model.finish()


async def test_steps_repeat() -> None:
    model = ScriptedModel([Say("a", times=2), Say("b", times=None)])
    texts = [(await ask(model)).message.text for _ in range(5)]
    assert texts == ["a", "a", "b", "b", "b"]
    await model.aclose()


def test_nothing_may_follow_a_step_that_repeats_for_ever() -> None:
    with pytest.raises(ModelError, match="nothing after step 1"):
        ScriptedModel([Say("a", times=None), "b"])


@pytest.mark.spec("MODEL-7")
async def test_choices_are_drawn_by_weight_and_seed() -> None:
    noise = Choose(((3, Say("right")), (1, Say("wrong"))), times=400)

    async def draw(seed: int) -> list[str]:
        model = ScriptedModel([noise], seed=seed)
        return [(await ask(model)).message.text for _ in range(400)]

    first = await draw(1)
    assert first == await draw(1)
    assert first != await draw(2)
    assert 0.65 < Counter(first)["right"] / 400 < 0.85


@pytest.mark.spec("MODEL-7")
async def test_a_function_may_answer() -> None:
    def answer(request: ModelRequest, index: int) -> Step | str:
        heard = request.messages[-1].text
        return f"{index}: {heard}" if index < 2 else Fail("enough")

    model = ScriptedModel(answer)
    assert (await ask(model, "a")).message.text == "0: a"
    assert (await ask(model, "b")).message.text == "1: b"
    with pytest.raises(ModelError, match="enough"):
        await ask(model)
    await model.aclose()


async def test_models_of_one_script_take_turns_and_its_owner_finishes_it() -> None:
    script = Script((Say("a"), Say("b"), Say("c")))
    left, right = ScriptedModel(script), ScriptedModel(script)
    assert (await ask(left)).message.text == "a"
    assert (await ask(right)).message.text == "b"
    await left.aclose()
    await right.aclose()
    with pytest.raises(ModelError, match="step 3: says `c`"):
        script.finish()
