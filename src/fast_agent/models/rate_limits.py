"""Rate limits: requests in flight, requests and tokens per minute, for the models of a program."""

from __future__ import annotations

import time
from collections import deque
from contextlib import asynccontextmanager, nullcontext, suppress
from dataclasses import dataclass, replace
from logging import getLogger
from typing import TYPE_CHECKING, Final

import anyio
from anyio.to_thread import run_sync

from fast_agent.errors import SessionError
from fast_agent.models.model import compacts
from fast_agent.sessions.postgres import SCHEMES, open_database

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable, Mapping

    from fast_agent.config.settings import ModelLimits, Settings
    from fast_agent.models.model import DeltaSink, Model, ModelRequest, ModelResponse
    from fast_agent.models.spec import ModelSpec
    from fast_agent.sessions.postgres.database import Database

log = getLogger(__name__)

_WINDOW_SECONDS: Final = 60.0
_NOTED_SECONDS: Final = 1.0
"""Shortest wait that is shown to the user."""
_BLOCK_SECONDS: Final = 1.0
_AGAIN_SECONDS: Final = 0.1
"""Shortest wait for a database that grants nothing."""
_AWAY_SECONDS: Final = 10.0
"""How long a database is left alone that could not be reached."""


@dataclass(slots=True)
class _Sent:
    """Requests that were sent, and their tokens."""

    at: float
    tokens: float
    requests: float = 1


def _until_room(sent: Iterable[_Sent], limits: ModelLimits, tokens: float, start: float) -> float:
    """Return the seconds until one more request of so many tokens may be sent.

    Args:
        sent: What was sent after the start of the minute, the oldest first.
        limits: The limits.
        tokens: What it is expected to take.
        start: When the minute began that ends now.
    """
    known = list(sent)
    wait = 0.0
    for most, amounts, wanted in (
        (limits.requests_per_minute, [one.requests for one in known], 1.0),
        (limits.tokens_per_minute, [one.tokens for one in known], tokens),
    ):
        if most is None:
            continue
        # One request alone may be larger than the limit: it waits for an empty minute.
        room = most - wanted - sum(amounts)
        for one, amount in zip(known, amounts, strict=True):
            if room >= 0:
                break
            room += amount
            wait = max(wait, one.at - start)
    return wait


class _OwnUse:
    """What this process sent in the last minute."""

    def __init__(self, limits: ModelLimits, now: Callable[[], float]) -> None:
        self._limits = limits
        self._now = now
        self._sent: deque[_Sent] = deque()
        self._usual_tokens = 0.0

    async def take(self, waiting: int) -> _Sent | float:
        """Count a request, if it may be sent now; returns it, or the seconds until it may."""
        del waiting
        now = self._now()
        start = now - _WINDOW_SECONDS
        while self._sent and self._sent[0].at <= start:
            self._sent.popleft()
        wait = _until_room(self._sent, self._limits, self._usual_tokens, start)
        if wait > 0:
            return wait
        sent = _Sent(now, self._usual_tokens)
        self._sent.append(sent)
        return sent

    async def record_usage(self, sent: _Sent, tokens: int) -> None:
        """Set the tokens of an answered request, which the next one is expected to take too."""
        sent.tokens = self._usual_tokens = tokens


class SharedUse:
    """What all processes that use a PostgreSQL database send of one entry of `model_limits`.

    A process reserves requests for a second ahead, as many as it sent in the second before, so that
    it asks the database about once a second. What it did not send is
    counted out again.

    Args:
        name: The entry.
        limits: Its limits.
        database: The database.
        now: A clock that only goes forward, in seconds.
    """

    def __init__(
        self,
        name: str,
        limits: ModelLimits,
        database: Database,
        now: Callable[[], float] = time.monotonic,
    ) -> None:
        self._name = name
        self._limits = limits
        self._database = database
        self._now = now
        self._own = _OwnUse(limits, now)
        self._own_until = 0.0
        self._lock = anyio.Lock()
        self._is_listed = False
        self._usual_tokens = 0.0
        self._block = _Sent(0.0, 0.0, 0.0)
        self._block_end = 0.0
        self._left = 0
        self._owed = 0.0

    async def take(self, waiting: int) -> _Sent | float:
        """Count a request, if it may be sent now; returns it, or the seconds until it may.

        Args:
            waiting: How many requests of this process wait behind it.
        """
        async with self._lock:
            return await self._take(waiting)

    async def _take(self, waiting: int) -> _Sent | float:
        now = self._now()
        if now < self._own_until:
            return await self._own.take(waiting)
        if now >= self._block_end or not self._left:
            try:
                wait = await self._reserve(max(1 + waiting, self._expected(now)))
            except SessionError as error:
                log.warning("%s: limits of `%s` hold for each process", error.message, self._name)
                self._own_until = now + _AWAY_SECONDS
                return await self._own.take(waiting)
            if wait > 0:
                return wait
            self._block_end = now + _BLOCK_SECONDS
        self._left -= 1
        return _Sent(self._block.at, self._block.tokens)

    def _expected(self, now: float) -> int:
        """Return how many requests the next second may have, by those of the last one."""
        sent = int(self._block.requests) - self._left
        if now < self._block_end:  # all are gone before its end
            return 2 * sent
        return sent if now < self._block_end + _BLOCK_SECONDS else 1

    async def record_usage(self, sent: _Sent, tokens: int) -> None:
        """Count the tokens of an answered request, with the next question of the database."""
        if self._now() >= self._own_until:
            self._owed += tokens - sent.tokens
        self._usual_tokens = tokens
        await self._own.record_usage(sent, tokens)
        if self._limits.tokens_per_minute is None:
            return
        async with self._lock:
            if self._owed and self._now() >= self._block_end:
                with suppress(SessionError):  # the next request asks again
                    await self._reserve(0)

    async def _reserve(self, wanted: int) -> float:
        """Reserve up to so many requests; returns the seconds until there is one."""
        most, block, tokens = self._limits, self._block, self._usual_tokens
        left, owed = self._left, self._owed
        values = {
            "name": self._name,
            "wanted": wanted,
            "tokens": tokens,
            "at": int(block.at),
            "returned": float(-left),
            "owed": owed - left * block.tokens,
            "requests": most.requests_per_minute,
            "most_tokens": most.tokens_per_minute,
        }
        granted, seconds, now = await run_sync(self._ask, values)
        self._left = int(granted)
        self._owed -= owed  # answers may have come since
        self._block = _Sent(float(now), tokens, float(granted))
        if granted or not wanted:
            return 0.0
        sent = [_Sent(float(at), use[1], use[0]) for at, use in seconds.items()]
        sent.sort(key=lambda one: one.at)
        # A second that began a minute ago may have requests of the minute that ends now.
        wait = _until_room(sent, most, tokens, now - _WINDOW_SECONDS - 1)
        return max(wait, _AGAIN_SECONDS)

    def _ask(self, values: Mapping[str, object]) -> tuple[float, dict[str, list[float]], int]:
        """Ask the database: what is granted, what was sent in each second, and the time."""
        if not self._is_listed:
            self._database.query(
                "INSERT INTO fast_agent_limit (name) VALUES (%s) ON CONFLICT DO NOTHING",
                [self._name],
            )
            self._is_listed = True
        (found,) = self._database.query(_RESERVE, values)
        return found


_RESERVE: Final = """
WITH held AS MATERIALIZED (
    SELECT seconds FROM fast_agent_limit WHERE name = %(name)s FOR UPDATE
),
clock AS MATERIALIZED (
    SELECT floor(extract(epoch FROM clock_timestamp()))::bigint AS now FROM held
),
known AS (
    SELECT at, sum(requests) AS requests, sum(tokens) AS tokens FROM (
        SELECT key::bigint AS at, (value->>0)::float8 AS requests, (value->>1)::float8 AS tokens
            FROM held, jsonb_each(held.seconds)
        UNION ALL SELECT %(at)s::bigint, %(returned)s::float8, %(owed)s::float8
    ) AS one, clock WHERE at >= clock.now - 60 GROUP BY at
),
used AS (
    SELECT coalesce(sum(requests), 0) AS requests, coalesce(sum(tokens), 0) AS tokens FROM known
),
room AS MATERIALIZED (
    SELECT CASE
        WHEN %(wanted)s > 0 AND used.requests <= 0 AND used.tokens <= 0
            THEN greatest(1, least(%(wanted)s, %(requests)s::bigint,
                floor(%(most_tokens)s::bigint / nullif(%(tokens)s::float8, 0))))
        ELSE greatest(0, least(%(wanted)s, %(requests)s::bigint - used.requests,
            floor((%(most_tokens)s::bigint - used.tokens) / nullif(%(tokens)s::float8, 0)),
            CASE WHEN used.tokens > %(most_tokens)s::bigint THEN 0 END))
    END AS granted FROM used
),
after AS MATERIALIZED (
    SELECT jsonb_object_agg(at, jsonb_build_array(requests, tokens)) AS seconds FROM (
        SELECT at, sum(requests) AS requests, sum(tokens) AS tokens FROM (
            SELECT at, requests, tokens FROM known UNION ALL
            SELECT clock.now, room.granted, room.granted * %(tokens)s::float8 FROM clock, room
        ) AS one GROUP BY at
    ) AS merged
)
UPDATE fast_agent_limit AS kept SET seconds = after.seconds FROM after, room, clock
WHERE kept.name = %(name)s
RETURNING room.granted, after.seconds, clock.now
"""
"""Count requests if there is room for them, by whole seconds and the clock of the database.

The row is locked first: what an update computes from the row itself, it computes from a row that
another process may have changed in between.
"""


class RateLimiter:
    """Lets requests through as limits allow, in the order they come.

    Args:
        name: What the configuration calls it: a model, a provider or an endpoint.
        limits: The limits; those of a minute hold for all that `use` counts.
        use: What was sent; None counts what this process sends.
        now: The time in seconds, from any start.
        sleep: Waits so many seconds.
    """

    def __init__(
        self,
        name: str,
        limits: ModelLimits,
        use: SharedUse | None = None,
        *,
        now: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], Awaitable[None]] = anyio.sleep,
    ) -> None:
        self.name = name
        self._use = use or _OwnUse(limits, now)
        self._sleep = sleep
        self._line = anyio.Lock()
        most = limits.in_flight
        self._flights = nullcontext() if most is None else anyio.Semaphore(most)

    @asynccontextmanager
    async def request(self) -> AsyncGenerator[_Sent]:
        """Wait until a request may be sent, and count it; `record_usage` sets its tokens."""
        async with self._flights:
            async with self._line:
                waiting = self._line.statistics().tasks_waiting
                while not isinstance(sent := await self._use.take(waiting), _Sent):
                    await self._sleep(sent)
            yield sent

    async def record_usage(self, sent: _Sent, tokens: int) -> None:
        """Set the tokens of an answered request, which the next one is expected to take too."""
        await self._use.record_usage(sent, tokens)


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
            await self._limiter.record_usage(sent, response.usage.total_tokens)
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


def shared_use(name: str, limits: ModelLimits, settings: Settings) -> SharedUse | None:
    """Return what all processes of a database send of an entry; None where each has its own.

    Args:
        name: The entry.
        limits: Its limits.
        settings: The configuration; its database is that of sessions, or of parts of runs.

    Raises:
        ConfigError: The extra `postgres` is not installed, or the address is wrong.
    """
    if limits.requests_per_minute is None and limits.tokens_per_minute is None:
        return None
    places = {"sessions.url": settings.sessions.url, "temporal.parts": settings.temporal.parts}
    for setting, place in places.items():
        if place and place.startswith(SCHEMES):
            return SharedUse(name, limits, open_database(place, setting))
    return None
