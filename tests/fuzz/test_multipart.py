"""Whatever documents hold, they come out of a multipart answer as they went in."""

from __future__ import annotations

from email import message_from_bytes, policy

from hypothesis import given
from hypothesis import strategies as st

from fast_agent.resources.multipart import Part, compose
from fast_agent.resources.problem import InvalidUri
from fast_agent.resources.uri import Uri

PIECES = st.sampled_from(
    [
        b"--",
        b"\r\n--",
        b"\n--part",
        b"--\r\n",
        b"\r",
        b"\n",
        b"\r\n\r\n",
        b"From here\n",
        b"Content-Type: multipart/mixed; boundary=x\r\n\r\n--x\r\n",
        b"Content-Transfer-Encoding: base64\n",
        b"=\n",
        b"=3D",
        b".\r\n",
        b"\x00",
        b"\xff",
        b"\xed\xa0\x80",
        b"\xef\xbb\xbf",
        "\u2028\u0085\U000e0041".encode(),
        b" ",
    ]
)
BODIES = st.lists(PIECES | st.binary(max_size=4), max_size=12).map(b"".join)
NAMES = st.text(min_size=1, max_size=8)
TYPES = st.sampled_from(["text/markdown", "text/plain", "image/png", "x/y"])
PARTS = st.lists(
    st.tuples(NAMES, TYPES, BODIES, st.none() | st.floats(0, 4e9)), min_size=1, max_size=6
)


@given(PARTS)
def test_documents_come_out_as_they_went_in(given: list[tuple[str, str, bytes, float]]) -> None:
    parts: list[Part] = []
    for name, mime_type, body, modified in given:
        try:
            uri = Uri.of("guide", ["document", "docs", name])
        except InvalidUri:
            uri = Uri.of("guide", ["document", "docs", "a"])
        parts.append(Part(uri, mime_type, body, modified))
    whole = compose("guide://category/docs", parts)
    message = message_from_bytes(whole.data, policy=policy.HTTP)
    assert not message.defects
    found = list(message.walk())[1:]
    assert len(found) == len(parts)
    for one, part in zip(found, parts, strict=True):
        assert one.get_payload(decode=True) == part.data
        assert one["Content-Location"] == part.uri.text
    assert compose("guide://category/docs", parts).data == whole.data
