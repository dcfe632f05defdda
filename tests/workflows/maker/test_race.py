"""The race: the winner is that of drawing one by one, whatever order draws end in."""

from __future__ import annotations

import math
from collections import Counter
from contextlib import suppress
from random import Random
from statistics import mean, stdev
from typing import TYPE_CHECKING

import anyio
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fast_agent.errors import LimitError, ModelError
from fast_agent.workflows.maker.calibration import task_success, votes_per_step
from fast_agent.workflows.maker.race import Sample, Tally, Verdict, hold_vote, vote_at_once

if TYPE_CHECKING:
    from collections.abc import Sequence


FLAGGED = Sample("", "", flag="empty")


FAILED = Sample.failed(ModelError("gone"))


def sample(letter: str) -> Sample:
    """A vote for a letter, a red flag for `-`, a failure for `!`."""
    return {"-": FLAGGED, "!": FAILED}.get(letter) or Sample(letter, letter)


class Worker:
    """Gives draw n the n-th answer; draws end in an order of their own.

    Args:
        answers: The answers by draw.
        ranks: Of the draws at work, the one with the least rank ends next.
    """

    def __init__(self, answers: Sequence[Sample], ranks: Sequence[float]) -> None:
        self.answers = answers
        self.ranks = ranks
        self.at_work: dict[int, anyio.Event] = {}
        self.most_at_work = 0
        self.begun = 0
        self.at_work_then: list[int] = []  # as each draw began, itself included

    async def draw(self, number: int) -> Sample:
        self.begun += 1
        self.at_work[number] = anyio.Event()
        self.most_at_work = max(self.most_at_work, len(self.at_work))
        self.at_work_then.append(len(self.at_work))
        try:
            await self.at_work[number].wait()
        finally:
            del self.at_work[number]
        return self.answers[number - 1]

    async def let_end(self) -> None:
        """Let draws end one after another until none is left."""
        while True:
            for _ in range(8):  # enough for a draw to end and the next ones to begin
                await anyio.lowlevel.checkpoint()
            if not self.at_work:
                return
            self.at_work[min(self.at_work, key=lambda one: self.ranks[one - 1])].set()


async def vote_in_order_of(
    worker: Worker, k: int, max_samples: int
) -> tuple[Verdict | None, list[tuple[int, str]]]:
    """Return the verdict, None where the vote failed, and what was heard."""
    heard: list[tuple[int, str]] = []
    verdict: Verdict | None = None

    async def vote() -> None:
        nonlocal verdict
        with suppress(ModelError):
            verdict = await hold_vote(
                worker.draw,
                k=k,
                max_samples=max_samples,
                on_sample=lambda number, one, _: heard.append((number, one.key)),
            )

    async with anyio.create_task_group() as group:
        group.start_soon(vote)
        await worker.let_end()
    return verdict, heard


@given(
    st.text("aaaabbc-!", min_size=60, max_size=60),
    st.randoms(use_true_random=False),
    st.integers(1, 6),
    st.integers(1, 60),
)
@pytest.mark.spec("MAKER-2")
def test_any_order_of_ending_gives_the_verdict_of_drawing_one_by_one(
    letters: str, random: Random, k: int, max_samples: int
) -> None:
    """The same winner, the same votes, and not one draw more: none was thrown away."""
    answers = [sample(letter) for letter in letters]
    drawn: list[tuple[int, str]] = []

    def draw(number: int) -> Sample:
        drawn.append((number, answers[number - 1].key))
        return answers[number - 1]

    expected: Verdict | None = None
    with suppress(ModelError):
        expected = vote_at_once(draw, k=k, max_samples=max_samples)
    worker = Worker(answers, [random.random() for _ in letters])
    verdict, heard = anyio.run(vote_in_order_of, worker, k, max_samples)
    assert verdict == expected
    assert heard == drawn
    assert worker.begun == len(drawn)


@given(st.text("aaab-", min_size=30, max_size=30), st.integers(1, 5), st.integers(1, 30))
def test_one_by_one_is_the_rule_as_it_is_written(letters: str, k: int, max_samples: int) -> None:
    """Draw until one answer has k votes more than any other; flagged draws do not vote."""
    counts: Counter[str] = Counter()
    drawn = 0
    ahead = 0
    while ahead < k and drawn < max_samples:
        letter = letters[drawn]
        drawn += 1
        if letter != "-":
            counts[letter] += 1
            ranked = [count for _, count in counts.most_common(2)] + [0]
            ahead = ranked[0] - ranked[1]
    verdict = vote_at_once(lambda n: sample(letters[n - 1]), k=k, max_samples=max_samples)
    assert verdict.total_samples == drawn
    assert verdict.discarded_samples == letters[:drawn].count("-")
    assert {one.key: count for one, count in verdict.votes} == counts
    assert (verdict.margin, verdict.converged) == (ahead, ahead >= k)
    if counts:
        assert verdict.winner is not None
        assert counts[verdict.winner.key] == max(counts.values())
    else:
        assert verdict.winner is None


@pytest.mark.anyio
async def test_as_many_draws_run_at_once_as_are_sure_to_be_needed() -> None:
    worker = Worker([sample(one) for one in "aaaaa"], [5, 4, 3, 2, 1])
    verdict, _ = await vote_in_order_of(worker, 5, 50)
    assert verdict is not None
    assert (worker.most_at_work, verdict.total_samples) == (5, 5)


@pytest.mark.anyio
async def test_what_ended_early_lets_the_next_draws_begin_before_the_first_has_ended() -> None:
    """Of `?ab`, even if the first is an `a`, two more are needed: they begin at once."""
    worker = Worker([sample(one) for one in "aabaa"], [9, 1, 2, 3, 4])
    verdict, _ = await vote_in_order_of(worker, 3, 50)
    assert verdict is not None
    assert worker.at_work_then == [1, 2, 3, 2, 3]
    assert (verdict.total_samples, verdict.margin) == (5, 3)


@pytest.mark.anyio
async def test_a_winner_that_came_late_still_wins() -> None:
    """Three quick answers of one kind do not win over the earlier draws they overtook."""
    answers = [sample(one) for one in "abbbaaaaaaa"]
    worker = Worker(answers, [9, 1, 2, 3, 8, 8, 8, 8, 8, 8, 8])
    verdict, _ = await vote_in_order_of(worker, 4, 50)
    assert verdict is not None
    assert verdict == vote_at_once(lambda n: answers[n - 1], k=4, max_samples=50)
    assert verdict.winner is not None
    assert verdict.winner.key == "a"


@pytest.mark.parametrize("p", [0.6, 0.7, 0.8, 0.9])
@pytest.mark.parametrize("k", [2, 3, 4])
@pytest.mark.anyio
@pytest.mark.spec("MAKER-2")
async def test_votes_of_draws_that_overtake_each_other_keep_the_odds_of_theory(
    p: float, k: int
) -> None:
    """Seeded, so that it is a fact and not a matter of luck; wrong answers take longer."""
    runs, random = 400, Random(f"{p} {k}")
    won = 0
    drawn: list[int] = []

    async def draw(number: int) -> Sample:
        right = random.random() < p
        for _ in range(0 if right else random.randrange(6)):
            await anyio.lowlevel.checkpoint()
        return sample("a" if right else "b")

    for _ in range(runs):
        verdict = await hold_vote(draw, k=k, max_samples=10_000)
        assert verdict.converged
        assert verdict.winner is not None
        won += verdict.winner.key == "a"
        drawn.append(verdict.total_samples)
    theory = task_success(p, k, 1)
    spread = math.sqrt(theory * (1 - theory) / runs)
    assert abs(won / runs - theory) <= max(2.58 * spread, 1 / runs)
    assert abs(mean(drawn) - votes_per_step(p, k)) <= 2.58 * stdev(drawn) / math.sqrt(runs)


@pytest.mark.anyio
async def test_without_a_vote_there_is_no_winner() -> None:
    verdict = await hold_vote(Worker([FLAGGED] * 9, range(9)).draw, k=2, max_samples=0)
    assert verdict.winner is None
    verdict = vote_at_once(lambda _: FLAGGED, k=2, max_samples=7)
    assert (verdict.total_samples, verdict.discarded_samples, verdict.winner) == (7, 7, None)
    assert not verdict.converged


@pytest.mark.anyio
async def test_a_draw_that_fails_now_and_then_is_drawn_again() -> None:
    lost = Sample.failed(ModelError("gone"))
    answers = [lost, sample("a"), lost, sample("a")]
    worker = Worker(answers, [1, 2, 3, 4])
    verdict, _ = await vote_in_order_of(worker, 2, 50)
    assert verdict is not None
    assert verdict == vote_at_once(lambda n: answers[n - 1], k=2, max_samples=50)
    assert (verdict.total_samples, verdict.discarded_samples) == (4, 2)


@pytest.mark.anyio
async def test_as_many_failures_after_each_other_as_votes_are_wanted_end_the_vote() -> None:
    answers = [sample("a"), *[Sample.failed(ModelError(f"gone {n}")) for n in range(9)]]
    with pytest.raises(ModelError, match="gone 2"):
        vote_at_once(lambda n: answers[n - 1], k=3, max_samples=50)

    async def draw(number: int) -> Sample:
        for _ in range(10 - number):
            await anyio.lowlevel.checkpoint()
        return answers[number - 1]

    with pytest.raises(ModelError, match="gone 2"):
        await hold_vote(draw, k=3, max_samples=50)


@pytest.mark.anyio
async def test_a_limit_ends_the_vote_and_the_draws_at_work() -> None:
    ended: list[int] = []

    async def draw(number: int) -> Sample:
        if number == 2:
            raise LimitError("spent")
        try:
            await anyio.sleep_forever()
        finally:
            ended.append(number)
        raise AssertionError

    with pytest.raises(LimitError, match="spent"):
        await hold_vote(draw, k=3, max_samples=50)
    assert sorted(ended) == [1, 3]


def test_the_sooner_of_two_equals_leads_when_the_samples_are_used_up() -> None:
    seen: list[str | None] = []

    def on_sample(_number: int, _sample: Sample, tally: Tally) -> None:
        seen.append(tally.leader)

    verdict = vote_at_once(lambda n: sample("abba"[n - 1]), k=3, max_samples=4, on_sample=on_sample)
    assert seen == ["a", "a", "b", "b"]
    assert verdict.winner == sample("b")
    assert (verdict.margin, verdict.converged) == (0, False)


@pytest.mark.anyio
async def test_draws_start_in_the_order_of_their_numbers() -> None:
    started: list[int] = []

    async def draw(number: int) -> Sample:
        started.append(number)
        return sample("ab-a!ab-aaaa"[number - 1])

    await hold_vote(draw, k=3, max_samples=50)
    assert started == list(range(1, 11))


@given(st.text("abcd", max_size=40), st.integers(1, 6))
def test_the_margin_is_that_of_the_two_highest_counts(votes: str, k: int) -> None:
    tally = Tally(k)
    for number, vote in enumerate(votes, 1):
        tally.add(vote)
        counts = Counter(votes[:number])
        ranked = [count for _, count in counts.most_common()]
        assert tally.votes == counts
        assert tally.leader is not None
        assert counts[tally.leader] == ranked[0]
        assert tally.margin == ranked[0] - (ranked[1] if len(ranked) > 1 else 0)
        assert tally.decided == (tally.margin >= k)


def test_of_equals_the_one_that_was_there_first_leads() -> None:
    tally = Tally(3)
    for vote in "abba":
        tally.add(vote)
    assert (tally.leader, tally.margin) == ("b", 0)


def test_no_votes_decide_nothing() -> None:
    assert (Tally(1).leader, Tally(1).margin, Tally(1).decided) == (None, 0, False)
