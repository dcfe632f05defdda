"""Who gives way when there is no room."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fast_agent.serve.fair_share import FairShare, owner_of


def held_by(most: int, *owners: str) -> FairShare[int]:
    """Things numbered from 0, in the order of their last use."""
    shares: FairShare[int] = FairShare(most)
    for number, owner in enumerate(owners):
        shares.add(number, owner)
    return shares


@pytest.mark.spec("TR-N2.1a")
@pytest.mark.parametrize(
    ("owners", "busy", "newcomer", "ends"),
    [
        ("abbb", (), "c", 1),
        ("abbb", (), "a", 1),
        ("abbb", (), "b", 1),
        ("abbb", (1,), "c", 2),
        ("aabb", (), "c", 0),
        # All that the largest holds is in use: it loses one to others, and gets no more itself.
        ("abbb", (1, 2, 3), "c", 1),
        ("abbb", (1, 2, 3), "a", 1),
        ("abbb", (1, 2, 3), "b", None),
        ("aaaa", (0, 1, 2, 3), "a", None),
    ],
)
def test_who_gives_way(owners: str, busy: tuple[int, ...], newcomer: str, ends: int | None) -> None:
    shares = held_by(len(owners), *owners)
    assert shares.full
    assert shares.to_end(newcomer, lambda one: one not in busy) == ends


def test_use_puts_a_thing_last() -> None:
    shares = held_by(3, "a", "a", "a")
    shares.use(0)
    assert shares.to_end("b", lambda _: True) == 1
    shares.remove(1)
    shares.remove(1)
    shares.use(1)
    assert (len(shares), shares.full) == (2, False)
    assert shares.to_end("b", lambda _: True) == 2


def test_a_client_with_little_keeps_what_it_uses() -> None:
    owners = [str(number) for number in range(100)]
    shares = held_by(100, *owners)
    assert shares.to_end("new", lambda _: False) is None
    assert shares.to_end("new", lambda one: one == 70) == 70


@given(st.lists(st.tuples(st.sampled_from("abcde"), st.booleans()), max_size=60))
def test_no_client_with_an_even_share_loses_anything(steps: list[tuple[str, bool]]) -> None:
    most = 10
    shares: FairShare[int] = FairShare(most)
    count: dict[str, int] = {}
    owners: dict[int, str] = {}
    for number, (owner, idle) in enumerate(steps):
        if shares.full:
            ends = shares.to_end(owner, lambda _, idle=idle: idle)
            if ends is None:
                assert not idle
                continue
            assert count[owners[ends]] == max(count.values())
            count[owners[ends]] -= 1
            shares.remove(ends)
        shares.add(number, owner)
        owners[number] = owner
        count[owner] = count.get(owner, 0) + 1
        assert len(shares) <= most


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("127.0.0.1", "127.0.0.2", False),
        ("10.0.0.1", "10.0.0.1", True),
        ("2001:db8::1", "2001:db8::ffff:2", True),
        ("2001:db8:0:1::1", "2001:db8:0:2::1", False),
        ("2001:db8:0:1::1", "2001:db8:0:1:8000::1", True),
        ("2001:db8:0:2::1", "2001:db8:0:3::1", False),
        ("::ffff:10.0.0.1", "::ffff:10.0.0.2", False),
        ("::ffff:10.0.0.1", "10.0.0.1", True),
        ("testclient", "other", False),
        ("", "", True),
    ],
)
def test_owners(one: str, other: str, same: bool) -> None:
    assert (owner_of(one) == owner_of(other)) == same
