"""Model requests of a batch: as many at once as each provider takes, within the batch's limits."""

from __future__ import annotations

import random
import time
from collections import deque
from typing import TYPE_CHECKING, Final, TypeVar

from anyio import Event, move_on_after

from fast_agent.engine.run_rows import NOTHING_SPENT
from fast_agent.engine.run_steps import PausedError
from fast_agent.errors import ModelError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from fast_agent.engine.run_rows import BatchSpending
    from fast_agent.steps.steps import Work
    from fast_agent.text.json_value import JsonValue

T = TypeVar("T")

MAX_TRIES: Final = 8
"""How often a request is sent that fails in a way that may pass."""

MAX_WAIT_SECONDS: Final = 60.0
"""The longest wait without a `Retry-After`."""

MAX_QUOTA_SECONDS: Final = 6 * 3600.0
"""The longest time a batch waits for a quota; it stops where it would take longer."""


class Lane:
    """The requests to one model: their number at a time grows slowly and halves at a rate limit.

    Args:
        most: Most requests at a time.
        stop: Set when no request is sent any more.

    Attributes:
        allowed: How many may be under way now.
        open_at: When the next one may be sent, by the monotonic clock.
    """

    def __init__(self, most: int, stop: Event) -> None:
        self._most = most
        self._stop = stop
        self._under_way = 0
        self._waiting: deque[Event] = deque()
        self._lowered_at = 0.0
        self.allowed = float(most)
        self.open_at = 0.0

    async def enter(self) -> None:
        """Wait until another request may be sent, or none is any more; it counts until `leave`."""
        while not self._stop.is_set():
            if self._under_way >= max(1, int(self.allowed)):
                await self._wait_for_room()
                continue
            wait = self.open_at - time.monotonic()
            if wait <= 0:
                break
            # All of them at once would meet the same limit again.
            wait += random.uniform(0, min(1.0, wait / 4))  # noqa: S311
            with move_on_after(wait):
                await self._stop.wait()
        self._under_way += 1

    def leave(self) -> None:
        """Pass the room of an answered request to the next one."""
        self._under_way -= 1
        self._wake()

    async def _wait_for_room(self) -> None:
        event = Event()
        self._waiting.append(event)
        try:
            await event.wait()
        except BaseException:
            self._wake()  # the room that woke this one belongs to the next
            raise

    def raise_limit(self) -> None:
        """Allow a little more after an answer."""
        if self.allowed < self._most:
            self.allowed = min(float(self._most), self.allowed + 1 / self.allowed)
            self._wake()

    def lower_limit(self, seconds: float) -> None:
        """Allow half as many, and none for a while; once for requests that fail together."""
        now = time.monotonic()
        if now >= self._lowered_at:
            self.allowed = max(1.0, self.allowed / 2)
            self._lowered_at = now + min(seconds, 1.0)
        self.open_at = max(self.open_at, now + seconds)

    def wake_all(self) -> None:
        """Wake every waiting request: no more requests are sent."""
        while self._waiting:
            self._waiting.popleft().set()

    def _wake(self) -> None:
        while self._waiting:
            event = self._waiting.popleft()
            if not event.is_set():
                event.set()
                return


class ModelRequests:
    """Sends the model requests of a batch.

    A rate limit lowers how many requests of the model are under way, for all runs; a quota stops
    them until the provider takes them again. The limits of the batch are checked before each
    request, counting what those under way may still use.

    Args:
        most: Most requests to one model at a time.
        max_cost: Most US dollars of the batch, or None.
        max_tokens: Most tokens of the batch, or None.
        notify: Called with what a user should know, one line each.
        spent: What the answers of former lives of the batch used.
        is_free: Whether a model costs nothing, as one that runs here.

    Attributes:
        paused: Why no request is sent any more; None while they are.
        waits_until: When requests to a model are sent again, in seconds since 1970, by model.
    """

    def __init__(
        self,
        most: int,
        *,
        max_cost: float | None = None,
        max_tokens: int | None = None,
        notify: Callable[[str], None],
        spent: BatchSpending = NOTHING_SPENT,
        is_free: Callable[[str], bool] = lambda _: False,
    ) -> None:
        self._most = most
        self._max_nanodollars = None if max_cost is None else max_cost * 1e9
        self._max_tokens = max_tokens
        self._notify = notify
        self._is_free = is_free
        self._lanes: dict[str, Lane] = {}
        self._under_way = 0
        self._largest = spent.largest_nanodollars, spent.largest_tokens
        self._changed: Event | None = None
        self._stop = Event()
        self.nanodollars, self.tokens = spent.nanodollars, spent.tokens
        self.requests = 0
        self.paused: PausedError | None = None
        self.waits_until: dict[str, float] = {}

    async def send(self, model: str, work: Work[T]) -> T:
        """Ask a model; see `Requests.send`."""
        lane = self._lanes.get(model)
        if lane is None:
            lane = self._lanes[model] = Lane(self._most, self._stop)
        tries = 0
        while True:
            await lane.enter()
            try:
                answer = await self._sent(work)
            except ModelError as error:
                tries += 1
                wait = self._wait_after(model, error, tries)
                if wait is None:
                    raise
                lane.lower_limit(wait)
            else:
                lane.raise_limit()
                self.waits_until.pop(model, None)
                return answer
            finally:
                lane.leave()

    async def _sent(self, work: Work[T]) -> T:
        await self._reserve()
        self._under_way += 1
        try:
            return await work()
        finally:
            self._under_way -= 1
            self._notify_change()

    def record(self, model: str, used: Mapping[str, JsonValue]) -> None:
        """Count what an answer used; see `Requests.record`."""
        cost = _count_of(used, "nanodollars")
        tokens = _count_of(used, "input_tokens") + _count_of(used, "output_tokens")
        self.requests += 1
        self.nanodollars += cost
        self.tokens += tokens
        self._largest = max(self._largest[0], cost), max(self._largest[1], tokens)
        self._notify_change()
        if self._max_nanodollars is None or used.get("priced") or self._is_free(model):
            return
        self.stop(
            PausedError(
                "the price of a model is not known, so `--limit-cost` cannot be enforced",
                hint="set it in `model_facts`, or use `--limit-tokens`",
            )
        )

    def stop(self, error: PausedError) -> PausedError:
        """Send no request any more; those under way finish.

        Args:
            error: Why.

        Returns:
            The first reason.
        """
        if self.paused is None:
            self.paused = error
            self._stop.set()
            for lane in self._lanes.values():
                lane.wake_all()
            self._notify_change()
        return self.paused

    async def _reserve(self) -> None:
        """Wait until the request cannot exceed the limits of the batch.

        Near a limit, requests go one at a time: what those under way use decides about the next.

        Raises:
            PausedError: It would exceed one.
        """
        while self.paused is None:
            if self._max_nanodollars is None and self._max_tokens is None:
                return
            if not self._under_way:
                reached = self._limit_reached(1)
                if reached is None:
                    return
                raise self.stop(reached)
            # Before the first answer the cost of one is unknown.
            if self._largest != (0, 0) and self._limit_reached(self._under_way + 1) is None:
                return
            self._changed = self._changed or Event()
            await self._changed.wait()
        raise self.paused

    def _limit_reached(self, requests: int) -> PausedError | None:
        """Return the limit that so many more requests may exceed; None where none is."""
        for limit, used, largest, name in (
            (self._max_nanodollars, self.nanodollars, self._largest[0], "cost"),
            (self._max_tokens, self.tokens, self._largest[1], "tokens"),
        ):
            if limit is not None and (used >= limit or used + largest * requests > limit):
                shown = f"${used / 1e9:.4f}" if name == "cost" else f"{used:,} tokens"
                return PausedError(
                    f"the batch reached its limit: {shown} used",
                    hint=f"run it again with a higher `--limit-{name}` to resume",
                )
        return None

    def _notify_change(self) -> None:
        # An event cannot be reset: those that wait hold the one that is set here.
        if self._changed is not None:
            self._changed.set()
            self._changed = None

    def _wait_after(self, model: str, error: ModelError, tries: int) -> float | None:
        """Return how long to wait before another try; None for no other try."""
        if error.is_quota:
            seconds = error.retry_after
            if seconds is None or seconds > MAX_QUOTA_SECONDS:
                until = None if seconds is None else time.time() + seconds
                when = "" if until is None else f"; it is open again at {_clock(until)}"
                raise self.stop(
                    PausedError(
                        f"{error.message}{when}",
                        hint="run the same command again later to resume",
                        until=until,
                    )
                )
            self._note_wait(model, f"{error.message}: paused", seconds)
            return seconds
        if not error.is_passing or tries >= MAX_TRIES:
            return None
        wait = min(MAX_WAIT_SECONDS, 0.5 * 2**tries)
        if error.retry_after is not None:
            wait = error.retry_after
            if wait >= MAX_WAIT_SECONDS:
                self._note_wait(model, error.message, wait)
        return wait

    def _note_wait(self, model: str, message: str, seconds: float) -> None:
        until = time.time() + seconds
        if self.waits_until.get(model, 0.0) < until - 1:
            self._notify(f"{message} until {_clock(until)}")
        self.waits_until[model] = until


def _clock(moment: float) -> str:
    return time.strftime("%H:%M:%S", time.localtime(moment))


def _count_of(used: Mapping[str, JsonValue], name: str) -> int:
    value = used.get(name)
    return value if isinstance(value, int) else 0
