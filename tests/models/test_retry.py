from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from fast_agent.models.retry import RetryPolicy

jitters = st.floats(0, 1)


@given(st.integers(1, 40), jitters)
def test_waits_grow_to_a_bound(attempt: int, jitter: float) -> None:
    policy = RetryPolicy()
    wait = policy.wait(attempt, None, jitter)
    assert 0 < wait <= policy.longest_wait
    assert policy.wait(attempt + 1, None, jitter) >= wait


@given(st.floats(0, 3600), jitters)
def test_what_the_provider_asks_is_a_minimum(asked: float, jitter: float) -> None:
    assert asked <= RetryPolicy().wait(1, asked, jitter) <= asked * 1.25
