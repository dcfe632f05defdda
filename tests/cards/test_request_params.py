from __future__ import annotations

from dataclasses import fields

from hypothesis import given
from hypothesis import strategies as st

from fast_agent.cards.agent_config import NO_PARAMS, RequestParams, UsageLimits

COUNTS = st.none() | st.integers(1, 3)
LIMITS = st.builds(
    UsageLimits,
    max_requests=COUNTS,
    max_total_tokens=COUNTS,
    max_tool_calls=COUNTS,
    max_cost=st.none() | st.floats(0.5, 2.0),
)
PARAMS = st.builds(
    RequestParams,
    max_tokens=COUNTS,
    temperature=st.none() | st.just(0.0),
    parallel_tool_calls=st.none() | st.booleans(),
    usage_limits=st.none() | LIMITS,
    extra_body=st.none() | st.dictionaries(st.sampled_from("ab"), st.integers(0, 2)),
)


@given(upper=PARAMS, lower=PARAMS)
def test_what_is_set_above_wins_and_the_rest_shows_through(
    upper: RequestParams, lower: RequestParams
) -> None:
    merged = upper.over(lower)
    for item in fields(RequestParams):
        above, below = getattr(upper, item.name), getattr(lower, item.name)
        got = getattr(merged, item.name)
        if isinstance(above, UsageLimits) and isinstance(below, UsageLimits):
            assert got == above.over(below)
        elif isinstance(above, dict) and isinstance(below, dict):
            assert got == below | above
        else:
            assert got == (below if above is None else above)


@given(upper=LIMITS, lower=LIMITS)
def test_limits_are_merged_one_by_one(upper: UsageLimits, lower: UsageLimits) -> None:
    merged = upper.over(lower)
    for item in fields(UsageLimits):
        above = getattr(upper, item.name)
        assert getattr(merged, item.name) == (getattr(lower, item.name) if above is None else above)


@given(one=PARAMS, two=PARAMS, three=PARAMS)
def test_it_does_not_matter_which_two_are_merged_first(
    one: RequestParams, two: RequestParams, three: RequestParams
) -> None:
    assert one.over(two).over(three) == one.over(two.over(three))


@given(PARAMS)
def test_nothing_changes_nothing(params: RequestParams) -> None:
    assert params.over(NO_PARAMS) == params == NO_PARAMS.over(params)
