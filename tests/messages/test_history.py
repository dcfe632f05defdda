from __future__ import annotations

import gc
import sys
from functools import partial
from timeit import repeat

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fast_agent.messages.history import History
from fast_agent.messages.message import Message

STEPS = st.lists(
    st.tuples(
        st.sampled_from(["append", "prefix", "extend", "extend_self"]),
        st.integers(0, 10_000),
        st.integers(0, 300),
    ),
    max_size=60,
)


def numbered(count: int, start: int = 0) -> list[Message]:
    return [Message.user(str(number)) for number in range(start, start + count)]


@pytest.mark.spec("TURN-2")
@given(STEPS)
def test_versions_never_see_each_other(steps: list[tuple[str, int, int]]) -> None:
    """Every version equals its own plain list, whatever is done to the others."""
    versions: list[tuple[History, list[Message]]] = [(History(), [])]
    made = 0
    for action, which, size in steps:
        history, model = versions[which % len(versions)]
        if action == "append":
            message = Message.user(str(made))
            versions.append((history.append(message), [*model, message]))
            made += 1
        elif action == "extend":
            added = numbered(size, made)
            versions.append((history.extend(iter(added)), model + added))
            made += size
        elif action == "extend_self":
            small, small_model = history.prefix(size), model[:size]
            versions.append((history.extend(small), model + small_model))
        else:
            versions.append((history.prefix(size), model[:size]))
    for history, model in versions:
        assert list(history) == model
        assert len(history) == len(model)


@given(st.integers(0, 400), st.integers(-450, 450), st.integers(-450, 450), st.integers(-3, 3))
def test_indexing_is_that_of_a_list(length: int, start: int, stop: int, step: int) -> None:
    messages = numbered(length)
    history = History(messages).append(Message.user("later")).prefix(length)
    cut = slice(start, stop, step or None)
    assert list(history[cut]) == messages[cut]
    assert list(history.iterate(start)) == messages[max(0, start) :]
    if -length <= start < length:
        assert history[start] == messages[start]
    else:
        with pytest.raises(IndexError):
            history[start]


def test_an_iterator_ends_where_its_history_ended() -> None:
    history = History(numbered(130))
    walker = iter(history)
    next(walker)
    history.extend(numbered(300))
    assert len(list(walker)) == 129


def test_iterating_a_suffix_does_not_walk_the_rest() -> None:
    short, long = History(numbered(1_000)), History(numbered(100_000))
    for history in (short, long):
        expected = numbered(200, len(history) - 200)
        assert list(history.iterate(len(history) - 200)) == expected
    best = [
        min(repeat(partial(walk_tail, history), number=20, repeat=15)) for history in (short, long)
    ]
    assert best[1] < best[0] * 8  # walking what is before the tail would be some 100 times slower


def walk_tail(history: History) -> list[Message]:
    return list(history.iterate(len(history) - 200))


def lines_run(action: object) -> int:
    assert callable(action)
    count = 0

    def trace(frame: object, event: str, argument: object) -> object:
        nonlocal count
        count += 1
        return trace

    before = sys.gettrace()
    gc.disable()  # what others do when it collects would be counted too
    sys.settrace(trace)  # type: ignore[arg-type]
    try:
        action()
    finally:
        sys.settrace(before)
        gc.enable()
    return count


@pytest.mark.spec("TURN-2")
def test_append_shares_and_a_fork_shares_full_chunks() -> None:
    history = History(numbered(1000))
    newer = history.append(Message.user("a"))
    assert newer._log is history._log
    other = history.append(Message.user("b"))
    assert other._log is not history._log
    shared = [one is two for one, two in zip(newer._log.chunks, other._log.chunks, strict=True)]
    assert shared == [True] * 7 + [False]
    assert newer[-1].text == "a"
    assert other[-1].text == "b"
    assert len(history) == 1000


@pytest.mark.spec("TURN-2")
def test_append_runs_the_same_steps_at_any_length() -> None:
    message = Message.user("x")
    histories = [History(numbered(length)) for length in (1, 100, 1_000, 10_000)]
    counts = {lines_run(partial(history.append, message)) for history in histories}
    assert len(counts) == 1


def test_equality() -> None:
    history = History(numbered(5))
    assert history == History(numbered(5))
    assert history != History(numbered(4))
    assert history.prefix(4) == History(numbered(4))
    assert history != numbered(5)
    assert history.append(Message.user("x")).prefix(5) == history
    with pytest.raises(TypeError):
        hash(history)
