from __future__ import annotations

from unicodedata import normalize

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from fast_agent.resources.problem import InvalidUri
from fast_agent.resources.uri import MAX_CHARACTERS, Uri
from fast_agent.text.visible import visible

SEGMENT = st.text(
    st.characters(exclude_categories=("Cs", "Cc"), exclude_characters="/\\"),
    min_size=1,
    max_size=20,
).filter(lambda text: normalize("NFC", text) not in {".", ".."})


@given(st.lists(SEGMENT, min_size=1, max_size=5))
def test_what_is_made_of_segments_reads_back(segments: list[str]) -> None:
    uri = Uri.of("skill", segments)
    again = Uri.parse(str(uri))
    assert again == uri
    assert again.segments == tuple(normalize("NFC", one) for one in segments)
    assert str(uri).isascii()


@given(st.text(max_size=60) | st.text("a/.%25?#\\:é[ \0", max_size=12).map("guide://".__add__))
@example("a://%2e%2e")
@example("A://b")
@example("a://\u212a")
def test_any_text_is_a_uri_or_refused(text: str) -> None:
    try:
        uri = Uri.parse(text)
    except InvalidUri as problem:
        said = problem.message
        said.encode()
        assert visible(said) == said
    else:
        assert Uri.parse(str(uri)) == uri
        assert len(str(uri)) <= MAX_CHARACTERS
        assert uri.scheme == uri.scheme.lower()
        for segment in uri.segments:
            assert segment not in {"", ".", ".."}
            assert not set(segment) & {"/", "\\", "\0", "\n"}


@given(SEGMENT, st.data())
def test_every_spelling_of_a_name_is_the_same_uri(segment: str, data: st.DataObject) -> None:
    uri = Uri.of("guide", ["document", segment])
    spelled = "".join(
        f"%{byte:02x}"
        if byte > 127 or chr(byte) in "%?#" or data.draw(st.booleans())
        else chr(byte)
        for byte in segment.encode()
    )
    assert Uri.parse(f"GUIDE://document/{spelled}") == uri


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "does not start with a scheme"),
        ("skill", "does not start with a scheme"),
        ("skill:/a", "does not start with a scheme"),
        ("/etc/passwd", "does not start with a scheme"),
        (" skill://a", "does not start with a scheme"),
        ("ski\tll://a", "does not start with a scheme"),
        ("1skill://a", "does not start with a scheme"),
        ("skill://", "names nothing"),
        ("skill:///etc/passwd", "empty segment"),
        ("skill://a//b", "empty segment"),
        ("skill://a/", "empty segment"),
        ("skill://a/./b", "segment `.`"),
        ("skill://a/../b", "segment `..`"),
        ("skill://a/%2e%2e/b", "segment `..`"),
        ("skill://a/%2E./b", "segment `..`"),
        ("skill://a/b%2fc", "holds a `/`"),
        ("skill://a/b%5Cc", "holds a `/` or `\\`"),
        ("skill://a\\b", "holds a `/` or `\\`"),
        ("skill://a/%00", "control character"),
        ("skill://a/b\nc", "control character"),
        ("skill://a/b\tc", "control character"),
        ("skill://a/%7F", "control character"),
        ("skill://a/\ud800", "control character"),
        ("skill://a/%C2%80", "control character"),
        ("skill://a/%", "two hexadecimal digits"),
        ("skill://a/%4", "two hexadecimal digits"),
        ("skill://a/%zz", "two hexadecimal digits"),
        ("skill://a/%FF", "not UTF-8"),
        ("skill://a/%C0%AE%C0%AE", "not UTF-8"),
        ("skill://a/%ED%A0%80", "not UTF-8"),
        ("skill://a#b", "fragment"),
        ("skill://a?b", "query"),
        ("skill://" + "a" * 2041, "longer than 2048 characters"),
        ("skill://" + "é" * 400, "longer than 2048 characters when encoded"),
    ],
)
def test_refused(text: str, reason: str) -> None:
    with pytest.raises(InvalidUri) as caught:
        Uri.parse(text)
    assert reason in caught.value.message
    assert caught.value.uri == text


def test_decodes_once() -> None:
    uri = Uri.parse("skill://a/%252e%252e")
    assert uri.segments == ("a", "%2e%2e")
    assert str(uri) == "skill://a/%252e%252e"


def test_canonical_spelling() -> None:
    assert str(Uri.of("skill", ["my skill", "ré[1]?.md"])) == (
        "skill://my%20skill/r%C3%A9%5B1%5D%3F.md"
    )
    assert str(Uri.parse("SKILL://A/e\u0301")) == "skill://A/%C3%A9"
    assert str(Uri.of("a", ["!$&'()*+,;=:@~-._"])) == "a://!$&'()*+,;=:@~-._"


def test_the_longest_uri() -> None:
    text = "skill://" + "a" * 2040
    assert str(Uri.parse(text)) == text


def test_child_and_order() -> None:
    uri = Uri.parse("skill://a")
    assert uri.child("b c").text == "skill://a/b%20c"
    assert uri.child("b", "c").path == "a/b/c"
    assert sorted([Uri.parse("b://a"), uri]) == [Uri.parse("b://a"), uri]
    with pytest.raises(InvalidUri):
        uri.child("..")
    with pytest.raises(InvalidUri):
        Uri.of("skill", [])
    assert len({uri, Uri.parse("skill://%61")}) == 1
