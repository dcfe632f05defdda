"""Engine: what carries durable runs, and what can be asked of the runs it carries.

The embedded engine keeps runs in SQLite files of this machine; another one may carry them on a
cluster. Commands use this seam only, so that `fast-agent runs` shows runs of all of them alike.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Literal, Protocol, TypeAlias

from fast_agent.text.frozen import frozen

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Sequence

    from fast_agent.steps.steps import Key
    from fast_agent.text.json_value import JsonObject, JsonValue

RunState: TypeAlias = Literal["queued", "running", "waiting", "done", "failed", "cancelled"]
"""Where a run stands; `waiting` is for an answer of a human."""

StepState: TypeAlias = Literal["begun", "done", "failed", "cancelled"]
"""Where a step stands."""

ENDED: Final[frozenset[RunState]] = frozenset({"done", "failed", "cancelled"})
"""The final states of a run."""


@frozen
class RunAnswer:
    """What a run answered.

    Args:
        output: The text, or the value of a structured answer.
        used: Tokens, requests and tool calls.
        cost: The price in US dollars; None where it is not known.
    """

    output: JsonValue
    used: JsonObject
    cost: float | None = None


@frozen
class RunFilter:
    """Which runs are wanted.

    Args:
        name: The id of a run or of a batch, or a prefix of it; empty for all.
        states: The states they are in; empty for all.
        limit: Most runs, or None.
    """

    name: str = ""
    states: frozenset[RunState] = frozenset()
    limit: int | None = None


@frozen
class RunFacts:
    """A run as it is listed.

    Args:
        id: Its id.
        batch: The batch it belongs to; empty for none.
        item: Its place in the batch, from 0.
        key: What it is known by in its batch.
        agent: The agent its message went to.
        message: The message.
        state: Where it stands.
        attempt: How often it was started.
        edition: Digest of the cards it began with, or None.
        output: What it answered, or None.
        error: Why it failed, or None.
        used: What it used, or None.
        cost: Its price in US dollars, or None.
        began: When it was first started, in seconds since 1970, or None.
        ended: When it ended, or None.
    """

    id: str
    batch: str
    item: int
    key: str
    agent: str
    message: JsonValue
    state: RunState
    attempt: int
    edition: str | None
    output: JsonValue
    error: JsonValue
    used: JsonValue
    cost: float | None
    began: float | None
    ended: float | None


@frozen
class StepFacts:
    """A step as it is shown.

    Args:
        key: Its place in the run.
        state: Where it stands.
        began: When it was first asked, in seconds since 1970.
        at: When its state was written.
        tries: How often it was asked.
        used: What it used, or None.
        asked: The question.
        gave: The answer, or the kind, message and hint of an error, or None.
    """

    key: Key
    state: StepState
    began: float
    at: float
    tries: int
    used: JsonValue
    asked: JsonValue
    gave: JsonValue


@frozen
class RunEvent:
    """Something that happened in a run.

    Args:
        at: When, in seconds since 1970; the offset to continue after.
        state: Where the run stands; None where the event is that of a step.
        step: The step, or None.
    """

    at: float
    state: RunState | None = None
    step: StepFacts | None = None


class Runs(Protocol):
    """The runs an engine carries: read, watched, and cancelled from any process."""

    def runs(self, wanted: RunFilter) -> AsyncIterator[RunFacts]:
        """Return runs, those of the newest batch first."""
        ...

    async def find(self, run_id: str) -> RunFacts:
        """Return a run by its id, or by a prefix of it.

        Raises:
            RunError: There is none, or there are several.
        """
        ...

    async def steps(self, run_id: str) -> Sequence[StepFacts]:
        """Return the steps of a run, in the order they began."""
        ...

    def tail(self, run_id: str, after: float = 0.0) -> AsyncIterator[RunEvent]:
        """Return what happens in a run as it happens, until its end.

        Args:
            run_id: Its id.
            after: Leave out what happened before, in seconds since 1970.
        """
        ...

    async def cancel(self, run_id: str) -> bool:
        """Cancel a run; its answered steps are kept.

        Returns:
            Whether it had not ended yet.
        """
        ...
