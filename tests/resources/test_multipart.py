from __future__ import annotations

from email import message_from_bytes, policy
from hashlib import sha256

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from fast_agent.resources.multipart import Part, compose, http_date
from fast_agent.resources.problem import TooLarge
from fast_agent.resources.resource import Limits
from fast_agent.resources.uri import Uri

BODY = (
    st.binary(max_size=80)
    | st.text(max_size=80).map(str.encode)
    | st.text("-\r\n a:é\x0b\x0c\u2028\x00", max_size=30).map(str.encode)
)


def parts_of(bodies: list[bytes]) -> list[Part]:
    return [
        Part(Uri.of("guide", ["document", "docs", f"{n}.md"]), "text/markdown", body, n * 1e8)
        for n, body in enumerate(bodies)
    ]


@given(st.lists(BODY, min_size=1, max_size=6))
@example([b""])
@example([b"", b""])
@example([b"x\r", b"\r\n", b"\r", b"\n"])
@example([b"\n\nA: b\n\n", b"--part\r\n--"])
@example([b"\xef\xbb\xbf# bom\r\n", b"\xff\xfe\x00"])
@pytest.mark.parametrize("rules", [policy.compat32, policy.default, policy.SMTP], ids=str)
def test_pythons_email_parses_it_back_exactly(
    rules: policy.Compat32 | policy.EmailPolicy, bodies: list[bytes]
) -> None:
    parts = parts_of(bodies)
    whole = compose("guide://category/docs", parts)
    whole.data.decode()
    message = message_from_bytes(whole.data, policy=rules)
    assert not message.defects
    assert message["MIME-Version"] == "1.0"
    assert message.get_content_type() == "multipart/mixed"
    assert message["Content-Type"] == whole.mime_type
    found = list(message.walk())[1:]
    assert len(found) == len(parts)
    for one, part in zip(found, parts, strict=True):
        assert not one.defects
        assert one.get_payload(decode=True) == part.data
        assert one.get_content_type() == "text/markdown"
        assert one["Content-Location"] == str(part.uri)
        assert one["Content-Length"] == str(len(part.data))
        assert one["ETag"] == f'"sha256-{sha256(part.data).hexdigest()}"'
        assert one["Last-Modified"] == http_date(part.modified or 0)
        text = one["Content-Transfer-Encoding"] == "8bit"
        assert one.get_content_charset() == ("utf-8" if text else None)


def test_the_same_documents_give_the_same_bytes() -> None:
    assert compose("u", parts_of([b"a", b"b"])) == compose("u", parts_of([b"a", b"b"]))
    assert compose("u", parts_of([b"a"])).mime_type != compose("u", parts_of([b"b"])).mime_type


def test_the_boundary_is_checked_against_the_bodies(monkeypatch: pytest.MonkeyPatch) -> None:
    """A body cannot know its own digest, so let every digest but the last be the one it holds."""
    import hashlib

    first = compose("u", parts_of([b"a"])).mime_type.split('"')[1]
    taken = first.removeprefix("part-")
    body = f"--{first}\r\n".encode()
    real = hashlib.sha256

    class Digest:
        def __init__(self, data: bytes) -> None:
            self._data = data

        def hexdigest(self) -> str:
            if self._data.startswith(b"0\n"):
                return taken * 2
            return real(self._data).hexdigest()

    monkeypatch.setattr(hashlib, "sha256", Digest)
    whole = compose("u", parts_of([body]))
    assert first not in whole.mime_type
    [part] = list(message_from_bytes(whole.data).walk())[1:]
    assert part.get_payload(decode=True) == body


def test_what_cannot_be_read_is_said_in_its_place() -> None:
    uri = Uri.parse("guide://document/docs/a.md")
    parts = [*parts_of([b"one"]), Part.failed(uri, "may not be read\r\nX: é"), *parts_of([b"two"])]
    found = list(message_from_bytes(compose("u", parts).data).walk())[1:]
    assert [one["X-Resource-Problem"] for one in found] == [None, "may not be read??X: ?", None]
    assert found[1].get_payload(decode=True) == f"`{uri}` may not be read\r\nX: é\n".encode()
    assert found[1]["X"] is None


@pytest.mark.parametrize("kind", ["multipart/mixed", "message/rfc822", "text/plain\r\nX: y", "no"])
def test_a_type_that_would_be_parsed_is_not_passed_on(kind: str) -> None:
    part = Part(Uri.parse("guide://a"), kind, b"--x\r\n\r\nA: b\r\n\r\nc")
    [found] = list(message_from_bytes(compose("u", [part]).data).walk())[1:]
    assert found.get_content_type() == "application/octet-stream"
    assert found.get_payload(decode=True) == part.data
    assert found["X"] is None


def test_limits() -> None:
    with pytest.raises(TooLarge) as caught:
        compose("guide://category/docs", parts_of([b"a"] * 5), Limits(parts=4))
    assert (caught.value.count, caught.value.limit, caught.value.unit) == (5, 4, "parts")
    assert caught.value.samples == tuple(f"guide://document/docs/{n}.md" for n in range(3))
    with pytest.raises(TooLarge) as caught:
        compose("guide://category/docs", parts_of([b"abc", b"de"]), Limits(answer_bytes=4))
    assert (caught.value.count, caught.value.unit) == (5, "bytes")


def test_http_date() -> None:
    assert http_date(784111777) == "Sun, 06 Nov 1994 08:49:37 GMT"
