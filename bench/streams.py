"""Two hundred conversations that stream at once, beside the provider's SDK alone."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bench.comparison import compare
from bench.figure import Figure, Goal
from bench.samples import Samples

if TYPE_CHECKING:
    from collections.abc import Iterator

    from bench.comparison import Values
    from bench.setup import Peer, Setup

CONVERSATIONS = 200
RATE = 50
ROUNDS = 3


def figures(setup: Setup) -> Iterator[Figure]:
    """Measure the processor share of streams, and how late their tokens come."""
    tokens = 100 if setup.quick else 500

    def measure(side: str) -> Values:
        return setup.ours("streams.py", side, CONVERSATIONS, RATE, tokens)

    def theirs(peer: Peer) -> Values:
        # So few tokens that it ends: what comes late then is no measure beside ours.
        found = setup.theirs(peer, "streams.py", CONVERSATIONS, RATE, tokens // 5)
        return {"cores": found["cores"]}

    done = compare(
        setup,
        lambda: measure("ours"),
        limit=lambda: measure("sdk"),
        peer=theirs,
        rounds=ROUNDS,
    )
    what = f"{CONVERSATIONS} conversations at {RATE} tokens/s each"
    yield done.figure("cores", f"{what}: processors used", "", Goal(1))
    yield done.figure("late", f"{what}: 99 of 100 tokens come within", "ms")
    pairs = zip(done.ours["late"].values, done.limit["late"].values, strict=True)
    yield Figure(
        name=f"{what}: the same, beyond the SDK's",
        unit="ms",
        ours=Samples.of(ours - bare for ours, bare in pairs),
        goal=Goal(50),
    )
