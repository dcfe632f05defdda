"""Models that stand in for each other, and endpoints of the configuration."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

import pytest
from tests.models.conftest import HELLO, KEY, ask_of
from tests.models.conftest import OpenAIWire as Wired

from fast_agent.cards.load import load_cards
from fast_agent.config.settings import NO_SETTINGS, ProviderSettings, Settings
from fast_agent.errors import ContextError, ModelError
from fast_agent.models.check import check_model, select_model
from fast_agent.models.create import ModelFactory
from fast_agent.models.fallback import FallbackModel
from fast_agent.models.model import SkippingModel, TextDelta, ThinkingDelta
from fast_agent.models.script import Fail, Say, Script, ScriptedModel, as_steps
from fast_agent.models.spec import parse_models

if TYPE_CHECKING:
    from pathlib import Path

    from tests.models.conftest import Reply, StartWire, Wire

    from fast_agent.models.model import Model

pytestmark = pytest.mark.anyio


def two(start_wire: StartWire, first: list[Reply], second: list[Reply]) -> tuple[Wire, Wire, Model]:
    a, b = start_wire(*first), start_wire(*second)
    settings = Settings(
        endpoints={
            "a": ProviderSettings(base_url=f"{a.url}/v1", api_key=KEY, headers={"X-Team": "blue"}),
            "b": ProviderSettings(base_url=f"{b.url}/v1", service_tier="flex"),
        }
    )
    factory = ModelFactory(settings, {"OPENAI_API_KEY": "not-for-these"})
    return a, b, factory.create("a.m1, b.m2.low")


@pytest.mark.spec("MODEL-20")
async def test_the_next_model_answers_where_one_fails_and_says_so(start_wire: StartWire) -> None:
    broken = Wired.error(400, "no such parameter")
    again = [Wired.answer(content="one"), Wired.answer(content="two")]
    a, b, model = two(start_wire, [broken], again)
    assert model.name == "a.m1, b.m2.low"
    first = await model.request(HELLO)
    second = await model.request(HELLO)
    await model.aclose()
    assert (first.message.text, second.message.text) == ("one", "two")
    [note] = first.notes
    assert "`a.m1` rejected the request" in note
    assert "`b.m2.low` answers" in note
    assert second.notes == ()
    assert len(a.seen) == 1  # it failed a moment ago, so it is not asked first again
    assert len(b.seen) == 2


@pytest.mark.spec("MODEL-21")
async def test_an_endpoint_gets_its_own_key_and_headers_alone(start_wire: StartWire) -> None:
    failing = [Wired.error(400, "no")]
    a, b, model = two(start_wire, failing, [Wired.answer(content="one")])
    await model.request(HELLO)
    await model.aclose()
    [to_a], [to_b] = a.seen, b.seen
    assert to_a.headers["authorization"] == f"Bearer {KEY}"
    assert to_a.headers["x-team"] == "blue"
    assert "x-team" not in to_b.headers
    assert KEY not in str(to_b.headers)
    assert "not-for-these" not in str(to_a.headers) + str(to_b.headers)
    assert (to_b.body["model"], to_b.body["service_tier"]) == ("m2", "flex")


@pytest.mark.spec("MODEL-20")
async def test_where_none_answers_the_error_says_why_of_each(start_wire: StartWire) -> None:
    a, b = [Wired.error(400, "bad request")], [Wired.error(401, "who are you")]
    _, _, model = two(start_wire, a, b)
    with pytest.raises(ModelError, match="no model answered") as caught:
        await model.request(HELLO)
    await model.aclose()
    assert "bad request" in caught.value.message
    assert "refused the API key" in caught.value.message


async def test_a_conversation_that_is_too_long_is_not_sent_to_the_next(
    start_wire: StartWire,
) -> None:
    long = Wired.error(400, "maximum context length is 5 tokens", "context_length_exceeded")
    _, b, model = two(start_wire, [long], [Wired.answer(content="no")])
    with pytest.raises(ContextError):
        await model.request(HELLO)
    await model.aclose()
    assert b.seen == []


async def test_the_next_is_not_asked_once_a_piece_was_shown(start_wire: StartWire) -> None:
    _, b, model = two(
        start_wire, [Wired.stream({"content": "hal"}, finish=None, cut=True)], [Wired.answer()]
    )
    heard: list[object] = []
    with pytest.raises(ModelError, match="was lost"):
        await model.request(HELLO, heard.append)
    await model.aclose()
    assert (len(heard), b.seen) == (1, [])


async def test_a_model_that_failed_is_first_again_after_a_minute() -> None:
    clock = [0.0]
    failing = ModelFactory(NO_SETTINGS, {}).create("openai.x")
    good = ModelFactory(NO_SETTINGS, {}).create("passthrough")
    model = FallbackModel((failing, good), now=lambda: clock[0])
    notes: list[int] = []
    for clock[0] in (0.0, 1.0, 61.0):
        notes.append(len((await model.request(HELLO)).notes))
    await model.aclose()
    assert notes == [1, 0, 1]


@pytest.mark.parametrize("asked_before", [1, 2, 3])
async def test_a_resumed_run_continues_the_scripts_of_its_fallback_models(
    asked_before: int,
) -> None:
    def two_scripts() -> FallbackModel:
        first = ScriptedModel(Script([Fail("overloaded"), Say("third")]), "first")
        second = ScriptedModel(Script(as_steps(["one", "two"])), "second")
        return FallbackModel((first, second), now=lambda: 0.0)

    async def answers(model: FallbackModel, count: int) -> list[str]:
        return [(await model.request(HELLO)).message.text for _ in range(count)]

    assert await answers(two_scripts(), 3) == ["one", "two", "third"]
    resumed = two_scripts()
    for _ in range(asked_before):
        # The step asks a model only for what the run has not recorded, and skips the rest.
        assert isinstance(resumed, SkippingModel)
        assert resumed.skip()
    assert await answers(resumed, 3 - asked_before) == ["one", "two", "third"][asked_before:]
    assert not resumed.skip()  # both scripts are used up


@pytest.mark.spec("MODEL-20")
async def test_a_card_lists_models_and_the_flag_separates_them_by_commas(tmp_path: Path) -> None:
    path = tmp_path / "a.md"
    path.write_text("---\nmodel: [sonnet, passthrough]\n---\nHi\n")
    [card] = load_cards([path]).cards
    assert card.config.model == ("sonnet", "passthrough")
    chosen = select_model(card.config, NO_SETTINGS, {}, cwd=tmp_path)
    assert chosen.text == "sonnet, passthrough"
    assert check_model(chosen.text, NO_SETTINGS, {}) == ()
    assert [spec.provider for spec in parse_models("gpt.low,passthrough")] == [
        "openai",
        "passthrough",
    ]
    problems = check_model("sonet, gtp", NO_SETTINGS, {})
    assert [problem.code for problem in problems] == ["FA501", "FA501"]


def test_an_alias_names_one_model() -> None:
    with pytest.raises(ModelError, match="matches several models"):
        parse_models("best", {"best": "sonnet, gpt"})


def test_the_key_of_a_card_goes_to_the_provider_of_its_first_model_alone() -> None:
    model = ModelFactory(NO_SETTINGS, {}).create("openai.a, deepseek.b, openai.c", api_key=KEY)
    inner = cast("FallbackModel", model)._models
    keys = [getattr(one, "_endpoint").api_key for one in inner]  # noqa: B009
    assert keys == [KEY, None, KEY]


async def test_a_stream_that_breaks_while_thinking_is_asked_again(start_wire: StartWire) -> None:
    cut = Wired.stream({"content": "<think>hm"}, finish=None, cut=True)
    asked = ask_of(start_wire, cut, Wired.stream({"content": "hi"}))
    response = await asked.model.request(HELLO, asked.deltas.append)
    await asked.model.aclose()
    assert response.message.text == "hi"
    assert asked.deltas == [ThinkingDelta("hm"), TextDelta("hi")]
