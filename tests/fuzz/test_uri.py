"""Any text at all is a URI with one canonical spelling, or is refused."""

from __future__ import annotations

from unicodedata import is_normalized
from urllib.parse import unquote_to_bytes

from hypothesis import given
from hypothesis import strategies as st

from fast_agent.resources.problem import InvalidUri
from fast_agent.resources.uri import MAX_CHARACTERS, Uri
from fast_agent.text.visible import visible

PIECES = st.sampled_from(
    [
        *"/.%?#@:;=&+~-_\\ []<>\"'`|^{}*!$(),",
        *("%2f", "%2F", "%5c", "%00", "%0a", "%2e", "%25", "%c3%a9", "%ff", "%c0%ae", "%ed%a0%80"),
        *("..", "//", "://", "a", "Z", "9", "SKILL.md", "_manifest", "\u00e9", "e\u0301", "\u212b"),
        *("\x00", "\n", "\r\n", "\t", "\x7f", "\x85", "\ud800", "\u202e", "\U000e0041", "\u200b"),
    ]
)
TEXTS = st.builds(
    str.__add__,
    st.sampled_from(
        ["skill://", "guide://", "SKILL://", "internal://", "s+k.i-1://", "skill:", ""]
    ),
    st.lists(PIECES | st.text(max_size=3), max_size=20).map("".join),
)
LONG = st.builds(str.__mul__, PIECES, st.integers(1, MAX_CHARACTERS))


def assert_readable(message: str) -> None:
    assert visible(message) == message
    assert len(message) < 3000


@given(TEXTS | LONG.map("skill://a/".__add__))
def test_a_uri_has_one_spelling_and_leads_nowhere_else(text: str) -> None:
    try:
        uri = Uri.parse(text)
    except InvalidUri as problem:
        assert_readable(problem.message)
        return
    assert Uri.parse(uri.text) == uri
    assert Uri.of(uri.scheme, uri.segments) == uri
    assert len(uri.text) <= MAX_CHARACTERS
    assert uri.text.isascii()
    assert uri.text.isprintable()
    assert uri.segments
    for segment in uri.segments:
        assert segment not in {"", ".", ".."}
        assert not set(segment) & set("/\\\x00\n\r")
        assert is_normalized("NFC", segment)
    spelled = uri.text.partition("://")[2].split("/")
    assert [unquote_to_bytes(one).decode() for one in spelled] == list(uri.segments)


@given(st.lists(st.text(max_size=12), max_size=6))
def test_names_of_files_become_uris_or_are_refused(names: list[str]) -> None:
    try:
        uri = Uri.of("skill", names)
    except InvalidUri:
        return
    assert len(uri.segments) == len(names)
    assert Uri.parse(uri.text).segments == uri.segments
