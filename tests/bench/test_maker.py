"""The yardstick of the MAKER figures: what counts as in line with theory."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import pytest
from bench.maker import _draws_fit, _success_fits, _tail
from bench.setup import Setup

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize(("trials", "share"), [(10, 0.3), (3000, 0.0002), (3000, 0.31)])
def test_the_tail_of_the_binomial_distribution(trials: int, share: float) -> None:
    def exactly(hits: int) -> float:
        log = math.lgamma(trials + 1) - math.lgamma(hits + 1) - math.lgamma(trials - hits + 1)
        return math.exp(log + hits * math.log(share) + (trials - hits) * math.log1p(-share))

    for hits in (0, 3, 7, 10):
        total = sum(exactly(number) for number in range(hits + 1))
        assert _tail(trials, share, hits) == pytest.approx(total, rel=1e-9)
    assert _tail(trials, share, trials) == pytest.approx(1)


@pytest.mark.parametrize(
    ("won", "fits"), [(2077, True), (2020, True), (2140, True), (2005, False), (2150, False)]
)
def test_wins_far_from_theory_are_reported(won: int, fits: bool) -> None:
    """Of 3,000 votes with p = 0.6 and k = 2, 2,077 are expected to be won, give or take 65."""
    assert _success_fits({"p": 0.6, "k": 2, "runs": 3000, "won": won}) is fits


def test_draws_far_from_theory_are_reported() -> None:
    theory = 2 / 0.2 * (1 - (2 / 3) ** 2) / (1 + (2 / 3) ** 2)
    for mean, fits in ((theory, True), (theory + 0.1, True), (theory + 0.3, False)):
        draws = 3000 * mean
        cell = {"p": 0.6, "k": 2, "runs": 3000, "draws": draws, "squares": 3000 * (mean**2 + 6)}
        assert _draws_fit(cell) is fits


def test_votes_are_held_for_every_p_and_k(tmp_path: Path) -> None:
    cells = Setup(tmp_path).ours("votes.py", 20)["cells"]
    assert [(one["p"], one["k"]) for one in cells] == [
        (p, k) for p in (0.6, 0.7, 0.8, 0.9) for k in (2, 3, 4)
    ]
    assert all(one["draws"] >= one["k"] * 20 for one in cells)
