from __future__ import annotations

import sys
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fast_agent.tools.bounded_output import BoundedOutput


def filled(head: int, tail: int, *pieces: bytes) -> BoundedOutput:
    output = BoundedOutput(head, tail)
    for piece in pieces:
        output.add(piece)
    return output


@pytest.mark.parametrize(
    ("pieces", "text"),
    [
        ((), ""),
        ((b"abc",), "abc"),
        ((b"abcdef", b"gh"), "abcdefgh"),
        ((b"abcdef", b"ghi"), "abcd\n[… 1 byte left out …]\nfghi"),
        ((b"abcdefghij",), "abcd\n[… 2 bytes left out …]\nghij"),
        ((b"a",) * 12, "aaaa\n[… 4 bytes left out …]\naaaa"),
        ((b"\xff\0",), "\ufffd\ufffd"),
        ((b"abc\xc3\xa9fghi\xe2\x82\xac",), "abc\n[… 4 bytes left out …]\ni€"),
        ((b"abcdef\xe2\x82\xacghi",), "abcd\n[… 4 bytes left out …]\nghi"),
    ],
)
def test_ends_are_kept_and_the_rest_is_counted(pieces: tuple[bytes, ...], text: str) -> None:
    assert filled(4, 4, *pieces).text() == text


@given(
    st.text(alphabet="aé€😀\n", max_size=60),
    st.integers(0, 12),
    st.integers(0, 12),
    st.lists(st.integers(0, 200), max_size=5),
)
def test_what_is_kept_is_the_beginning_and_the_end(
    text: str, head: int, tail: int, cuts: list[int]
) -> None:
    data = text.encode()
    places = sorted({min(cut, len(data)) for cut in cuts} | {0, len(data)})
    pieces = [data[start:end] for start, end in pairwise(places)]
    output = filled(head, tail, *pieces)
    assert output.total == len(data)
    assert output.omitted == max(0, len(data) - head - tail)
    if output.omitted:
        first, _, rest = output.text().partition("\n[… ")
        count, _, rest = rest.partition(" byte")
        last = rest.partition("\n")[2]
        assert int(count.replace(",", "")) == output.omitted
        assert text.startswith(first)
        assert text.endswith(last)
        assert head - 4 < len(first.encode()) <= head or not first
        assert tail - 4 < len(last.encode()) <= tail or not last
    else:
        assert output.text() == text


def test_memory_does_not_grow_with_the_output() -> None:
    output = BoundedOutput(1000, 1000)
    for _ in range(2000):
        output.add(b"x" * 50_000)
    assert output.total == 100_000_000
    assert sys.getsizeof(output._head) + sys.getsizeof(output._tail) < 200_000
