"""Rate limits: requests in flight, requests and tokens per minute, for the models of a program."""

from __future__ import annotations

import time
from collections import deque
from contextlib import asynccontextmanager, nullcontext
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

import anyio

from fast_agent.models.model import compacts

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Awaitable, Callable

    from fast_agent.config.settings import ModelLimits, Settings
    from fast_agent.models.model import DeltaSink, Model, ModelRequest, ModelResponse
    from fast_agent.models.spec import ModelSpec

_WINDOW_SECONDS: Final = 60.0
_NOTED_SECONDS: Final = 1.0
"""Shortest wait that is shown to the user."""


@dataclass(slots=True)
class _Sent:
    at: float
    tokens: int


class RateLimiter:
    """Lets requests through as limits allow, in the order they come.

    Args:
        name: What the configuration calls it: a model, a provider or an endpoint.
        limits: The limits.
        now: The time in seconds, from any start.
        sleep: Waits so many seconds.
    """

    def __init__(
        self,
        name: str,
        limits: ModelLimits,
        *,
        now: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], Awaitable[None]] = anyio.sleep,
    ) -> None:
        self.name = name
        self._limits = limits
        self._now = now
        self._sleep = sleep
        self._sent: deque[_Sent] = deque()
        self._usual_tokens = 0
        self._line = anyio.Lock()
        most = limits.in_flight
        self._flights = nullcontext() if most is None else anyio.Semaphore(most)

    @asynccontextmanager
    async def request(self) -> AsyncGenerator[_Sent]:
        """Wait until a request may be sent, and count it; `settle` sets its tokens."""
        async with self._flights:
            async with self._line:
                while (wait := self._wait()) > 0:
                    await self._sleep(wait)
                sent = _Sent(self._now(), self._usual_tokens)
                self._sent.append(sent)
            yield sent

    def settle(self, sent: _Sent, tokens: int) -> None:
        """Set the tokens of an answered request, which the next one is expected to take too."""
        sent.tokens = self._usual_tokens = tokens

    def _wait(self) -> float:
        """Return the seconds until the next request may be sent."""
        start = self._now() - _WINDOW_SECONDS
        while self._sent and self._sent[0].at <= start:
            self._sent.popleft()
        wait = 0.0
        most = self._limits.requests_per_minute
        if most is not None and len(self._sent) >= most:
            wait = self._sent[len(self._sent) - most].at - start
        room = self._limits.tokens_per_minute
        if room is not None:
            # One request alone may be larger than the limit: it waits for an empty minute.
            room -= self._usual_tokens + sum(one.tokens for one in self._sent)
            for one in self._sent:
                if room >= 0:
                    break
                room += one.tokens
                wait = max(wait, one.at - start)
        return wait


class LimitedModel:
    """A model whose requests wait for a rate limit.

    Args:
        model: The model.
        limiter: The limiter it shares with others.
        now: The time in seconds, from any start.
    """

    def __init__(
        self, model: Model, limiter: RateLimiter, *, now: Callable[[], float] = time.monotonic
    ) -> None:
        self._model = model
        self._limiter = limiter
        self._now = now

    @property
    def name(self) -> str:
        """The spec it was made from."""
        return self._model.name

    @property
    def compacts(self) -> bool:
        """Whether its provider has a compact form of conversations."""
        return compacts(self._model)

    async def request(
        self, request: ModelRequest, on_delta: DeltaSink | None = None
    ) -> ModelResponse:
        """Answer one request, as soon as the limit allows.

        Raises:
            ModelError: As the model itself.
        """
        begun = self._now()
        async with self._limiter.request() as sent:
            waited = self._now() - begun
            response = await self._model.request(request, on_delta)
            self._limiter.settle(sent, response.usage.total_tokens)
        if waited < _NOTED_SECONDS:
            return response
        note = f"`{self.name}` waited {waited:.0f} s for the limits of `{self._limiter.name}`"
        return replace(response, notes=(note, *response.notes))

    async def aclose(self) -> None:
        """Release what the model holds; safe to call twice."""
        await self._model.aclose()


def limits_name(spec: ModelSpec, settings: Settings) -> str | None:
    """Return the entry of `model_limits` for a model: its own, that of its endpoint or provider."""
    limits = settings.model_limits
    names = (spec.given, spec.text, f"{spec.provider}.{spec.name}", spec.endpoint or spec.provider)
    return next((name for name in names if name in limits), None)
