"""Rate limits, on a clock that only sleeping moves."""

from __future__ import annotations

import anyio
import pytest
from tests.models.conftest import OpenAIWire as Wired
from tests.models.conftest import StartWire

from fast_agent.config.settings import ModelLimits, ProviderSettings, Settings
from fast_agent.messages.message import Message
from fast_agent.models.create import ModelFactory
from fast_agent.models.model import DeltaSink, ModelRequest, ModelResponse, Usage
from fast_agent.models.rate_limits import LimitedModel, RateLimiter

pytestmark = pytest.mark.anyio

HELLO = ModelRequest("", [Message.user("hello")])


class Clock:
    def __init__(self) -> None:
        self.time = 1000.0

    def now(self) -> float:
        return self.time

    async def sleep(self, seconds: float) -> None:
        await anyio.lowlevel.checkpoint()
        self.time += seconds


class Timed:
    """A model that notes when it is asked, and how many requests it has at once."""

    name = "generic.m"

    def __init__(self, clock: Clock, tokens: int = 10) -> None:
        self.clock = clock
        self.tokens = tokens
        self.asked: list[float] = []
        self.flying = self.most = 0

    async def request(
        self, request: ModelRequest, on_delta: DeltaSink | None = None
    ) -> ModelResponse:
        self.asked.append(self.clock.time - 1000)
        self.flying += 1
        self.most = max(self.most, self.flying)
        await anyio.lowlevel.checkpoint()
        self.flying -= 1
        return ModelResponse(Message.assistant("hi"), Usage(self.tokens, 0, requests=1))

    async def aclose(self) -> None:
        """It holds nothing."""


def limited(limits: ModelLimits, tokens: int = 10) -> tuple[Timed, LimitedModel]:
    clock = Clock()
    model = Timed(clock, tokens)
    limiter = RateLimiter("generic", limits, now=clock.now, sleep=clock.sleep)
    return model, LimitedModel(model, limiter, now=clock.now)


async def ask_at_once(model: LimitedModel, count: int) -> list[tuple[str, ...]]:
    notes: list[tuple[str, ...]] = []

    async def ask() -> None:
        notes.append((await model.request(HELLO)).notes)

    async with anyio.create_task_group() as group:
        for _ in range(count):
            group.start_soon(ask)
    return notes


@pytest.mark.spec("MODEL-22")
async def test_no_minute_has_more_requests_than_allowed() -> None:
    model, limit = limited(ModelLimits(requests_per_minute=3))
    notes = await ask_at_once(limit, 7)
    assert model.asked == [0, 0, 0, 60, 60, 60, 120]
    assert notes[0] == ()
    assert notes[-1] == ("`generic.m` waited 120 s for the limits of `generic`",)


@pytest.mark.spec("MODEL-22")
async def test_no_minute_has_more_tokens_than_allowed() -> None:
    model, limit = limited(ModelLimits(tokens_per_minute=250), tokens=100)
    for _ in range(5):
        await limit.request(HELLO)
    assert model.asked == [0, 0, 60, 60, 120]


async def test_a_request_larger_than_the_limit_waits_for_an_empty_minute() -> None:
    model, limit = limited(ModelLimits(tokens_per_minute=50), tokens=100)
    for _ in range(3):
        await limit.request(HELLO)
    assert model.asked == [0, 60, 120]


@pytest.mark.spec("MODEL-22")
async def test_no_more_are_in_flight_than_allowed() -> None:
    model, limit = limited(ModelLimits(in_flight=2))
    await ask_at_once(limit, 9)
    assert (model.most, len(model.asked)) == (2, 9)


async def test_a_cancelled_wait_makes_room() -> None:
    model, limit = limited(ModelLimits(in_flight=1))
    with anyio.CancelScope() as scope:
        scope.cancel()
        await limit.request(HELLO)
    await limit.request(HELLO)
    assert len(model.asked) == 1


async def test_agents_of_a_program_share_the_limits_of_their_provider(
    start_wire: StartWire,
) -> None:
    wire = start_wire(Wired.answer(content="a"), Wired.answer(content="b"))
    settings = Settings(
        model_limits={"lab": ModelLimits(in_flight=1)},
        endpoints={"lab": ProviderSettings(base_url=wire.url)},
    )
    factory = ModelFactory(settings, {})
    first, second = factory.create("lab.x"), factory.create("lab.y.high")
    assert isinstance(first, LimitedModel)
    assert isinstance(second, LimitedModel)
    assert first._limiter is second._limiter
    assert (await first.request(HELLO)).message.text == "a"
    assert (await second.request(HELLO)).message.text == "b"
    await first.aclose()
    await second.aclose()
    assert not isinstance(factory.create("generic.z"), LimitedModel)
