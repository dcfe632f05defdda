from __future__ import annotations

import pytest
from tests.models.conftest import HELLO, KEY, StartWire, ask_of
from tests.models.conftest import OpenAIWire as Wired

from fast_agent.config.settings import Settings, StatedFacts
from fast_agent.models.check import Endpoint
from fast_agent.models.facts import ModelFacts, facts_of, stated_facts
from fast_agent.models.model import Usage
from fast_agent.models.providers.provider import ProviderModel
from fast_agent.models.spec import parse_model_spec


def facts(provider: str, model: str, base_url: str | None = None) -> ModelFacts:
    return facts_of(Endpoint(provider=provider, model=model, base_url=base_url))


@pytest.mark.spec("CONTEXT-1")
def test_a_known_model_has_a_window_and_a_price() -> None:
    known = facts("openai", "gpt-5")
    assert known.window == 400_000
    assert known.price(Usage(1_000_000, 1_000_000, requests=1)) == 11_250_000_000
    cached = known.price(Usage(1_000_000, 0, cache_read_tokens=1_000_000, requests=1))
    assert cached == 125_000_000
    assert facts("xai", "grok-4").window == 256_000


@pytest.mark.spec("CONTEXT-1", "T-B2.1", "T-B2.2")
@pytest.mark.parametrize(
    ("provider", "model", "base_url"),
    [
        ("openai", "no-such-model", None),
        ("generic", "gpt-5", "http://127.0.0.1:1/v1"),
        ("openai", "gpt-5", "http://127.0.0.1:1/v1"),
    ],
)
def test_what_is_not_known_is_not_guessed(provider: str, model: str, base_url: str | None) -> None:
    unknown = facts(provider, model, base_url)
    assert (unknown.window, unknown.price(Usage(1, 1, requests=1))) == (None, None)
    assert not unknown.is_priced


@pytest.mark.spec("T-B2.1")
def test_the_configuration_is_asked_first() -> None:
    stated = StatedFacts(context_window=8_000, input_cost=2.0, output_cost=4.0)
    settings = Settings(model_facts={"generic.qwen3": stated, "gpt": StatedFacts(input_cost=1.0)})
    spec = parse_model_spec("generic.qwen3?temperature=0")
    assert stated_facts(spec, settings) == stated
    assert stated_facts(parse_model_spec("gpt"), settings).input_cost == 1.0
    known = facts_of(Endpoint(provider="openai", model="gpt-5"), stated)
    assert known.window == 8_000
    assert known.price(Usage(500_000, 250_000, requests=1)) == 2_000_000_000


@pytest.mark.anyio
async def test_a_response_carries_window_and_price(start_wire: StartWire) -> None:
    asked = ask_of(start_wire, Wired.answer(content="hi"))
    endpoint = Endpoint(provider="generic", model="m", api_key=KEY, base_url=f"{asked.wire.url}/v1")
    model = ProviderModel(
        endpoint, stated=StatedFacts(context_window=64, input_cost=1.0, output_cost=1.0)
    )
    response = await model.request(HELLO)
    await model.aclose()
    await asked.model.aclose()
    assert response.window == 64
    assert response.usage.cost == pytest.approx(15e-6)


def test_a_price_of_input_alone_prices_nothing() -> None:
    facts = ModelFacts(StatedFacts(input_cost=1.0))
    assert not facts.is_priced
    assert facts.price(Usage(10, 5, requests=1)) is None
