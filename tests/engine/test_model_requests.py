"""How many requests of a batch go to a model at once."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

import anyio
import pytest

from fast_agent.engine.model_requests import Lane, ModelRequests
from fast_agent.errors import ModelError

if TYPE_CHECKING:
    from fast_agent.text.json_value import JsonValue

pytestmark = pytest.mark.anyio


def rate_limited() -> ModelError:
    error = ModelError("too many requests")
    error.is_passing, error.retry_after = True, 0.01
    return error


@pytest.mark.spec("BATCH-13")
async def test_fewer_go_at_once_after_a_rate_limit_and_slowly_more_again() -> None:
    lane = Lane(16, anyio.Event())
    for _ in range(3):  # they failed together: one limit
        lane.lower_limit(0.2)
    assert lane.allowed == 8
    await anyio.sleep(0.25)
    lane.lower_limit(0.01)
    assert lane.allowed == 4
    for _ in range(4):
        lane.raise_limit()
    assert 4.8 < lane.allowed < 5
    for _ in range(1000):
        lane.raise_limit()
    assert lane.allowed == 16
    for _ in range(10):
        await anyio.sleep(0.02)
        lane.lower_limit(0.01)
    assert lane.allowed == 1


@pytest.mark.spec("BATCH-13")
async def test_a_limit_of_one_model_leaves_the_others_alone() -> None:
    rng = random.Random(5)
    requests = ModelRequests(8, notify=lambda _: None)
    under_way = {"limited": 0, "free": 0}
    most = {"limited": 0, "free": 0}
    tried = {"limited": 0, "free": 0}

    async def ask(model: str) -> str:
        async def work() -> str:
            under_way[model] += 1
            most[model] = max(most[model], under_way[model])
            await anyio.sleep(rng.uniform(0, 0.002))
            under_way[model] -= 1
            tried[model] += 1
            if model == "limited" and under_way[model] >= 3:
                raise rate_limited()
            return model

        return await requests.send(model, work)

    async with anyio.create_task_group() as tasks:
        for number in range(60):
            tasks.start_soon(ask, ("limited", "free")[number % 2])
    assert most["free"] == 8
    assert tried["free"] == 30
    assert tried["limited"] >= 30
    assert requests.paused is None


@pytest.mark.spec("BATCH-13")
async def test_retry_after_holds_back_every_request_of_the_model() -> None:
    lane = Lane(4, anyio.Event())
    lane.lower_limit(0.2)
    begun = anyio.current_time()
    waits: list[float] = []

    async def go() -> None:
        await lane.enter()
        waits.append(anyio.current_time() - begun)
        lane.leave()

    async with anyio.create_task_group() as tasks:
        for _ in range(4):
            tasks.start_soon(go)
    assert min(waits) >= 0.2


@pytest.mark.parametrize(
    ("model", "used", "stops"),
    [
        ("cloud", {"input_tokens": 1}, True),
        ("cloud", {"input_tokens": 1, "priced": 0}, True),
        ("cloud", {"input_tokens": 1, "priced": 1, "nanodollars": 5}, False),
        ("local", {"input_tokens": 1}, False),
    ],
)
async def test_a_limit_of_cost_needs_prices_of_models_that_cost_something(
    model: str, used: dict[str, JsonValue], stops: bool
) -> None:
    requests = ModelRequests(
        1, max_cost=1.0, notify=lambda _: None, is_free=lambda model: model == "local"
    )
    requests.record(model, used)
    assert (requests.paused is not None) is stops
    unlimited = ModelRequests(1, notify=lambda _: None)
    unlimited.record(model, used)
    assert unlimited.paused is None
