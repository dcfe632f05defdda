"""Runs and steps, as stores keep them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, NamedTuple, Protocol

if TYPE_CHECKING:
    from collections.abc import Mapping

    from fast_agent.engine.engine import RunState
    from fast_agent.steps.steps import Key
    from fast_agent.text.json_value import JsonValue

BEGUN: Final = 0
DONE: Final = 1
FAILED: Final = 2
CANCELLED: Final = 3


class RunRow(NamedTuple):
    """A run as the database holds it.

    Args:
        id: Its id.
        item: Its place among the runs of its batch, from 0.
        key: What it is known by in its batch.
        edition: Digest of the cards it began with; None before it began.
        agent: The agent its message goes to.
        input: The message, as JSON.
        state: Where it stands.
        fence: How often a process took it.
        attempt: How often it was started.
        output: The answer as JSON, or None.
        error: The error as JSON, or None.
        used: What it used, as JSON, or None.
        cost: Its price in US dollars, or None.
        began: When it was first started, in seconds since 1970, or None.
        ended: When it ended, or None.
    """

    id: str
    item: int
    key: str
    edition: str | None
    agent: str
    input: str
    state: RunState
    fence: int
    attempt: int
    output: str | None
    error: str | None
    used: str | None
    cost: float | None
    began: float | None
    ended: float | None


@dataclass(slots=True)
class StepRow:
    """A step as the database holds it.

    Args:
        key: Its place.
        asked: The question, as JSON.
        state: `BEGUN`, `DONE`, `FAILED` or `CANCELLED`.
        gave: The answer, or the error, as JSON; None for none.
        used: What it used, as JSON, or None.
        began: When it was first asked, in seconds since 1970.
        at: When its state was written.
        tries: How often it was asked.
    """

    key: Key
    asked: str
    state: int
    gave: str | None
    used: str | None
    began: float
    at: float
    tries: int


class BatchSpending(NamedTuple):
    """What the answers of a batch used, in billionths of a dollar and in tokens.

    Args:
        nanodollars: All of them together.
        tokens: All of them together.
        largest_nanodollars: The most of one answer.
        largest_tokens: The most of one answer.
        unpriced: How many answers have no known price.
    """

    nanodollars: int = 0
    tokens: int = 0
    largest_nanodollars: int = 0
    largest_tokens: int = 0
    unpriced: int = 0


NOTHING_SPENT: Final = BatchSpending()


class NewRun(NamedTuple):
    """A run to be queued.

    Args:
        item: Its place in the batch, from 0.
        key: What it is known by in its batch.
        agent: The agent its message goes to.
        input: The message, as JSON.
    """

    item: int
    key: str
    agent: str
    input: str


class StepStore(Protocol):
    """Keeps the steps of a run; see `RunStore`."""

    @property
    def parts(self) -> Mapping[str, JsonValue]:
        """All pieces."""
        ...

    def steps(self, run_id: str) -> list[StepRow]:
        """Return the steps of a run, in the order they began."""
        ...

    def write_step(
        self,
        run: RunRow,
        key: Key,
        asked: str,
        state: int,
        gave: str | None = None,
        used: str | None = None,
    ) -> None:
        """Write a step, where this process still has the run."""
        ...

    def flush(self) -> None:
        """Write everything to the file at once."""
        ...

    def sync(self) -> None:
        """Write everything to the disk itself."""
        ...

    async def barrier(self) -> None:
        """Wait until what was written outlasts this process."""
        ...

    async def shared(self) -> None:
        """Wait until what was written is where other servers continue the run."""
        ...

    def store_part(self, digest: str, value: JsonValue) -> None:
        """Keep a piece of questions and answers, once."""
        ...

    def part(self, digest: str) -> JsonValue:
        """Return a piece."""
        ...
