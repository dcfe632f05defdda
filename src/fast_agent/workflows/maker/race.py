"""Race: draws answers until one is `k` votes ahead, as many at once as are sure to be needed.

Draws are numbered as they start, and vote in that order whatever order they end in: one that ends
early waits for those before it. So answers that come quickly have no advantage, and the winner is
the one that drawing one by one would have found.

As many draws run at once as the vote cannot be decided without, by all that is known: the leader
still needs `k` less its margin, and what has ended early is taken into account. So running them at
once draws no answer more than drawing one by one does, and none is discarded when it is decided.

A draw that fails is discarded like one with a red flag; `k` that fail after each other mean that
something is wrong with more than a draw, and end the vote.

`Draws` are answers of fresh clones of a worker, read by the rules of a card.
"""

from __future__ import annotations

import json
import unicodedata
from typing import TYPE_CHECKING, Literal, TypeAlias

from anyio import create_task_group

from fast_agent.agents.output import unfenced
from fast_agent.errors import FastAgentError, LimitError
from fast_agent.messages.json_text import JsonTextError, parse_json
from fast_agent.text.frozen import frozen

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterator

    from anyio.abc import TaskGroup

    from fast_agent.agents.output import OutputShape
    from fast_agent.cards.agent_config import AgentConfig
    from fast_agent.messages.message import Message
    from fast_agent.models.model import OutputSchema
    from fast_agent.text.json_value import JsonValue
    from fast_agent.workflows.workflow_turn import WorkflowTurn


class Draws:
    """Draws answers to one request; each comes from a separate clone, independent of all others.

    A limit that is reached ends everything; any other failure of a clone is a sample without an
    answer.

    Args:
        config: The card of type `MAKER`.
        request: The user's message, which each clone gets as it is.
        turn: The turn it is for.
    """

    __slots__ = ("_request", "_shape", "_turn", "_worker", "ballot")

    def __init__(self, config: AgentConfig, request: Message, turn: WorkflowTurn) -> None:
        self.ballot = Ballot(config.match_strategy, config.red_flag_max_length, turn.output)
        self._shape = None if turn.output is None else _UncheckedShape(turn.output)
        self._worker = config.worker or ""
        self._request = request
        self._turn = turn

    async def __call__(self, _number: int) -> Sample:
        """Draw an answer.

        Raises:
            LimitError: A usage limit was reached.
        """
        turn = self._turn
        try:
            async with turn.clone(self._worker) as agent:
                result = await turn.ask(agent, self._request, output=self._shape)
        except LimitError:
            raise
        except FastAgentError as error:
            return Sample.failed(error)
        return self.ballot.read(result.text, result.stop_reason)


class _UncheckedShape:
    """A shape described to the worker; its answers are not corrected but voted on as they are.

    Args:
        shape: The shape.
    """

    def __init__(self, shape: OutputShape) -> None:
        self._shape = shape

    @property
    def schema(self) -> OutputSchema:
        """The schema passed to the model."""
        return self._shape.schema

    def parse(self, text: str) -> object:
        """Leave the answer as it is."""
        return text


Match: TypeAlias = Literal["exact", "normalized", "structured"]
"""When two answers count as the same."""
_CUT_SHORT = frozenset(
    {"maxTokens", "maxIterations", "repetition", "timeout", "cancelled", "error"}
)
"""Why an answer ends before it is whole."""
_WRITER = json.JSONEncoder(ensure_ascii=False, sort_keys=True, separators=(",", ":"))


class Ballot:
    """Reads answers by the rules of one vote.

    An answer with a red flag is discarded, never repaired: a model that slips in the form has
    more often slipped in the matter too.

    Args:
        match: When two answers count as the same: `exact`, the same text; `normalized`, the same
            but for letter case, white space and Unicode forms; `structured`, the same JSON value.
        max_length: Most characters of an answer, or None.
        shape: The shape a structured answer must have, or None.
    """

    __slots__ = ("_match", "_max_length", "_shape")

    def __init__(
        self,
        match: Match = "exact",
        max_length: int | None = None,
        shape: OutputShape | None = None,
    ) -> None:
        self._match: Match = match
        self._max_length = max_length
        self._shape = shape

    def read(self, text: str, stop_reason: str | None = None) -> Sample:
        """Return what an answer votes for.

        Args:
            text: The answer.
            stop_reason: Why it ended, or None.
        """
        if not text or text.isspace():
            return Sample(text, "", flag="empty")
        if self._max_length is not None and len(text) > self._max_length:
            return Sample(text, "", flag="too_long")
        if stop_reason in _CUT_SHORT:
            return Sample(text, "", flag="cut_short")
        if stop_reason == "refusal":
            return Sample(text, "", flag="refused")
        if self._match == "structured" or self._shape is not None:
            return self._read_value(text)
        return Sample(text, text if self._match == "exact" else normalized(text))

    def _read_value(self, text: str) -> Sample:
        try:
            found = parse_json(unfenced(text))
            value = found if self._shape is None else self._shape.parse(text)
        except (JsonTextError, ValueError):
            return Sample(text, "", flag="unparseable")
        match self._match:
            case "exact":
                key = text
            case "normalized":
                key = normalized(text)
            case "structured":
                key = canonical(found)
        return Sample(text, key, value)


def normalized(text: str) -> str:
    """Return `text` without what `normalized` answers may differ in."""
    return " ".join(unicodedata.normalize("NFKC", text).casefold().split())


def canonical(value: JsonValue) -> str:
    """Return one text for all ways to write a JSON value; the order of keys is none of it."""
    return _WRITER.encode(_plain_numbers(value))


def _plain_numbers(value: JsonValue) -> JsonValue:
    """Write 1.0 and 1e0 as 1, for JSON has one kind of number."""
    if isinstance(value, float) and value.is_integer():
        return int(value)
    if isinstance(value, list):
        return [_plain_numbers(item) for item in value]
    if isinstance(value, dict):
        return {key: _plain_numbers(item) for key, item in value.items()}
    return value


Draw: TypeAlias = "Callable[[int], Awaitable[Sample]]"
"""Draws the answer of a number, from 1."""
SampleListener: TypeAlias = "Callable[[int, Sample, Tally], None]"
"""Hears of each draw in its order: its number, what it gave, the votes after it."""


@frozen
class Verdict:
    """How a vote ended.

    Args:
        winner: The first answer of those that won; None where no answer voted.
        votes: The first answer of each kind, with its votes, in the order they were drawn.
        total_samples: How many answers were drawn, flagged ones too.
        discarded_samples: How many of them were flagged.
        margin: How many votes the winner is ahead of the next.
        converged: Whether the margin is what was wanted.
    """

    winner: Sample | None
    votes: tuple[tuple[Sample, int], ...]
    total_samples: int
    discarded_samples: int
    margin: int
    converged: bool


async def hold_vote(
    draw: Draw, *, k: int, max_samples: int, on_sample: SampleListener | None = None
) -> Verdict:
    """Draw until an answer is `k` votes ahead or `max_samples` were drawn.

    Args:
        draw: Draws an answer; called for several at once.
        k: Votes the winner must be ahead by, from 1.
        max_samples: Most answers drawn, from 1.
        on_sample: Called with each draw, in order.

    Raises:
        FastAgentError: What `draw` raised, or what `k` draws after each other failed with; the
            draws at work are then cancelled.
    """
    race = _Race(k, max_samples, on_sample)
    async with create_task_group() as group:
        await _draw_on(race, draw, group)
    if race.failure is not None:
        raise race.failure
    return race.verdict()


def vote_at_once(
    draw: Callable[[int], Sample],
    *,
    k: int,
    max_samples: int,
    on_sample: SampleListener | None = None,
) -> Verdict:
    """Do the same with draws that need no waiting, one by one; the verdict is the same."""
    race = _Race(k, max_samples, on_sample)
    while race.missing() > 0:
        number = race.begin()
        race.end(number, draw(number))
    if race.failure is not None:
        raise race.failure
    return race.verdict()


async def _draw_on(race: _Race, draw: Draw, group: TaskGroup) -> None:
    """Draw as long as draws are missing: one here, and further ones in separate tasks.

    Draws vote in the order they start, so none starts here while another waits for its task to.
    """
    while (missing := race.missing()) > 0:
        here = race.begin() if race.not_started == 0 else None
        for _ in range(missing if here is None else missing - 1):
            race.not_started += 1
            group.start_soon(_run, race, draw, group, race.begin())
        if here is None:
            return
        await _run_one(race, draw, group, here)


async def _run(race: _Race, draw: Draw, group: TaskGroup, number: int) -> None:
    race.not_started -= 1
    await _run_one(race, draw, group, number)
    await _draw_on(race, draw, group)


async def _run_one(race: _Race, draw: Draw, group: TaskGroup, number: int) -> None:
    try:
        sample = await draw(number)
        race.end(number, sample)
    except FastAgentError as error:
        race.failure = race.failure or error
    if race.failure is not None:
        group.cancel_scope.cancel()


class _Race:
    """A vote that is going on."""

    __slots__ = (
        "_begun",
        "_discarded",
        "_early",
        "_failed",
        "_first",
        "_hear",
        "_most",
        "_taken",
        "failure",
        "not_started",
        "tally",
    )

    def __init__(self, k: int, most: int, on_sample: SampleListener | None) -> None:
        self.tally = Tally(k)
        self.failure: FastAgentError | None = None
        self.not_started = 0
        self._most = most
        self._hear = on_sample
        self._begun = 0
        self._taken = 0
        self._early: dict[int, Sample] = {}
        self._first: dict[str, Sample] = {}
        self._discarded = 0
        self._failed = 0

    def begin(self) -> int:
        """Number a draw that starts."""
        self._begun += 1
        return self._begun

    def end(self, number: int, sample: Sample) -> None:
        """Take in what a draw gave, when all before it have been taken in."""
        if number != self._taken + 1:
            self._early[number] = sample
            return
        self._take(sample)
        while self._early and self.failure is None:
            following = self._early.pop(self._taken + 1, None)
            if following is None:
                break
            self._take(following)

    def missing(self) -> int:
        """Return how many more draws to start: those without which nothing can be decided."""
        if self.failure is not None:
            return 0
        tally = self.tally
        if self._early:
            needed = self._needed()
        else:
            at_work = self._begun - self._taken
            needed = tally.k - max(tally.margin, self._failed) - at_work
        return min(needed, self._most - self._begun)

    def verdict(self) -> Verdict:
        """Return the verdict."""
        tally = self.tally
        votes = tuple([(self._first[key], count) for key, count in tally.votes.items()])
        return Verdict(
            None if tally.leader is None else self._first[tally.leader],
            votes,
            self._taken,
            self._discarded,
            tally.margin,
            tally.decided,
        )

    def _take(self, sample: Sample) -> None:
        self._taken += 1
        if sample.flag is None:
            self.tally.add(sample.key)
            self._first.setdefault(sample.key, sample)
        else:
            self._discarded += 1
        self._failed = 0 if sample.failure is None else self._failed + 1
        if self._failed >= self.tally.k:
            self.failure = sample.failure
        if self._hear is not None:
            self._hear(self._taken, sample, self.tally)

    def _needed(self) -> int:
        """Return how many draws it takes at least after those started, whatever they return.

        An answer can win soonest when all that is still unknown votes for it; and the vote can end
        without a winner soonest when all that is still unknown fails.
        """
        return min(self._needed_to_fail(), *map(self._needed_by, self._candidates()))

    def _needed_to_fail(self) -> int:
        failed = self._failed
        for number in range(self._taken + 1, self._begun + 1):
            sample = self._early.get(number)
            failed = failed + 1 if sample is None or sample.failure is not None else 0
            if failed >= self.tally.k:
                return 0
        return self.tally.k - failed

    def _candidates(self) -> Iterator[str]:
        yield from self.tally.votes
        yield from {sample.key for sample in self._early.values() if sample.flag is None}
        if not self.tally.votes:
            yield ""

    def _needed_by(self, key: str) -> int:
        votes = dict(self.tally.votes)
        own = votes.pop(key, 0)
        most = max(votes.values(), default=0)
        for number in range(self._taken + 1, self._begun + 1):
            sample = self._early.get(number)
            if sample is None or (sample.flag is None and sample.key == key):
                own += 1
            elif sample.flag is None:
                votes[sample.key] = votes.get(sample.key, 0) + 1
                most = max(most, votes[sample.key])
            if own - most >= self.tally.k:
                return 0
        return self.tally.k - (own - most)


class Tally:
    """Counts votes until one answer is `k` ahead of every other.

    Args:
        k: Votes the winner must be ahead by.

    Attributes:
        votes: Votes by key, in the order the keys were first voted for.
        leader: The key with the most votes; of several, the one that had as many first.
        margin: How many votes the leader is ahead of the next.
    """

    __slots__ = ("_second", "k", "leader", "margin", "votes")

    def __init__(self, k: int) -> None:
        self.k = k
        self.votes: dict[str, int] = {}
        self.leader: str | None = None
        self.margin = 0
        self._second = 0

    @property
    def decided(self) -> bool:
        """Whether the leader has won."""
        return self.margin >= self.k

    def add(self, key: str) -> None:
        """Count a vote."""
        votes = self.votes
        count = votes.get(key, 0) + 1
        votes[key] = count
        leader = self.leader
        if leader is None or key == leader:
            self.leader = key
            self.margin = count - self._second
            return
        most = votes[leader]
        if count > most:
            self.leader, self._second = key, most
        elif count > self._second:
            self._second = count
        self.margin = votes[self.leader or key] - self._second


Flag: TypeAlias = Literal["empty", "too_long", "cut_short", "refused", "unparseable", "failed"]
"""Why an answer does not vote."""


@frozen
class Sample:
    """An answer, and what it votes for.

    Args:
        text: The answer as it was given.
        key: What it votes for; answers with the same key count as the same.
        value: The value of a structured answer, or None.
        flag: Why it does not vote, or None.
        failure: What went wrong, where no answer came at all.
    """

    text: str
    key: str
    value: object = None
    flag: Flag | None = None
    failure: FastAgentError | None = None

    @classmethod
    def failed(cls, failure: FastAgentError) -> Sample:
        """Make the sample of a draw that gave no answer."""
        return cls("", "", flag="failed", failure=failure)
