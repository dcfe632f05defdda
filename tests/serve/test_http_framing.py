"""Where requests end: heads and bodies in any pieces, and bodies that are not what they say."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fast_agent.serve.http_framing import ChunkedBody, FramingError, HeadEnd, SizedBody

NEXT = b"GET / HTTP/1.1\r\n\r\n"


def pieces_of(data: bytes, cuts: list[int]) -> list[bytes]:
    places = sorted({0, len(data), *(cut % (len(data) + 1) for cut in cuts)})
    return [data[start:end] for start, end in pairwise(places)]


def consumed(part: HeadEnd | SizedBody | ChunkedBody, data: bytes, cuts: list[int]) -> int:
    """Feed pieces until the part is complete; return how many bytes it took."""
    taken = 0
    for piece in pieces_of(data, cuts):
        if part.complete:
            break
        taken += part.take(piece)
    return taken


def chunked(chunks: list[bytes], trailers: bytes = b"", extension: bytes = b"") -> bytes:
    framed = [b"%x%b\r\n%b\r\n" % (len(one), extension, one) for one in chunks if one]
    return b"".join([*framed, b"0\r\n", trailers, b"\r\n"])


@given(st.binary(max_size=60), st.lists(st.integers(0, 200), max_size=12))
def test_a_head_ends_at_its_first_empty_line(filling: bytes, cuts: list[int]) -> None:
    head = b"GET / HTTP/1.1\r\nX: " + filling.replace(b"\n", b"") + b"\r\n\r\n"
    assert consumed(HeadEnd(), head + NEXT, cuts) == len(head)


@given(st.binary(max_size=60), st.lists(st.integers(0, 200), max_size=12))
def test_a_sized_body_ends_where_it_says(content: bytes, cuts: list[int]) -> None:
    body = SizedBody(len(content))
    assert consumed(body, content + NEXT, cuts) == len(content)
    assert (body.complete, bytes(body.data)) == (True, content)


@given(
    st.lists(st.binary(max_size=30), max_size=8),
    st.sampled_from([b"", b"X: y\r\n", b"Host: evil\r\nX: y\r\n"]),
    st.sampled_from([b"", b";a=b", b';a="\x01"']),
    st.lists(st.integers(0, 400), max_size=16),
)
def test_a_chunked_body_ends_behind_its_trailers(
    chunks: list[bytes], trailers: bytes, extension: bytes, cuts: list[int]
) -> None:
    sent = chunked(chunks, trailers, extension)
    body = ChunkedBody(1 << 14)
    assert consumed(body, sent + NEXT, cuts) == len(sent)
    assert (body.complete, bytes(body.data)) == (True, b"".join(chunks))


@pytest.mark.parametrize(
    "sent",
    [
        b"\r\n",
        b"x\r\n",
        b" 1\r\na\r\n",
        b"1 \r\na\r\n",
        b"+1\r\na\r\n",
        b"0x1\r\na\r\n",
        b"1_0\r\n",
        b"\xc2\xb2\r\n",
        b"1\na\n0\n\n",
        b"1\r\nab\r\n0\r\n\r\n",
        b"1\r\na\n0\r\n\r\n",
        b"1\r\na\r0\r\n\r\n",
        b"100000000\r\n",
        b"-1\r\n",
        b"1" + b";x" * 200,
        b"0\r\n" + b"X: y\r\n" * 4000,
        b"0\r\nX: y\n\r\n",
        b"1;%b\r\na\r\n" % (b"x" * 200) * 1000,
    ],
)
def test_what_is_not_chunks_is_refused(sent: bytes) -> None:
    for cuts in ([], list(range(len(sent)))):
        with pytest.raises(FramingError):
            consumed(ChunkedBody(1 << 14), sent, cuts)


def test_chunks_of_a_byte_are_taken_as_long_as_they_are_few() -> None:
    body = ChunkedBody(1 << 14)
    sent = chunked([b"x"] * 10_000)
    assert body.take(sent) == len(sent)
    with pytest.raises(FramingError, match="more framing than content"):
        ChunkedBody(1 << 14).take(chunked([b"x"] * 100_000))


def test_a_dropped_body_is_read_to_its_end_and_not_kept() -> None:
    for body, sent in ((SizedBody(5), b"hello"), (ChunkedBody(9), chunked([b"hel", b"lo"]))):
        assert body.take(sent[:4]) == 4
        body.drop()
        assert body.take(sent[4:] + NEXT) == len(sent) - 4
        assert (body.complete, body.size) == (True, 0)
