from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fast_agent.text.source import Source, SourceError, decode, read_source
from fast_agent.text.span import Position, Span

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.spec("CARD-34", "FILE-3")
def test_reads_utf8_with_a_mark_and_crlf(tmp_path: Path) -> None:
    file = tmp_path / "a.md"
    file.write_bytes(b"\xef\xbb\xbf---\r\nname: \xc3\xa9\r\n")
    source = read_source(file, shown="cards/a.md")
    assert source == Source("cards/a.md", "---\nname: é\n")
    assert source.line(2) == "name: é"


def test_a_carriage_return_alone_is_kept() -> None:
    assert decode(b"a\rb\r\nc") == "a\rb\nc"


@pytest.mark.spec("FILE-2")
@pytest.mark.parametrize(
    ("data", "looks", "place"),
    [
        ("name: x".encode("utf-16"), "UTF-16", (1, 1)),
        ("name: x".encode("utf-32"), "UTF-32", (1, 1)),
        ("name: x\nmodel: y\n".encode("utf-16-le"), "UTF-16 without", (1, 2)),
        ("name: x\nmodel: y\n".encode("utf-16-be"), "UTF-16 without", (1, 1)),
        (b"a: b\nname: caf\xe9\n", "Latin-1", (2, 10)),
        (b"a: \x93b\x94\n", "Windows-1252", (1, 4)),
        (b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0", "a binary file", (1, 1)),
        ("a: é".encode()[:-1], "UTF-8 cut off", (1, 4)),
    ],
)
def test_another_encoding_is_named_with_its_place(
    data: bytes, looks: str, place: tuple[int, int]
) -> None:
    with pytest.raises(SourceError) as caught:
        decode(data)
    assert caught.value.reason == "encoding"
    assert looks in caught.value.message
    assert caught.value.span == Span.at(*place)
    assert caught.value.hint is not None
    assert "UTF-8" in caught.value.hint


def test_the_offset_of_the_first_wrong_byte_is_reported() -> None:
    with pytest.raises(SourceError, match="byte 0xE9 at offset 14, line 2") as caught:
        decode(b"a: b\nname: caf\xe9\n")
    assert caught.value.line == "name: café"


def test_a_missing_file(tmp_path: Path) -> None:
    with pytest.raises(SourceError) as caught:
        read_source(tmp_path / "no.md")
    assert caught.value.reason == "missing"


def test_a_directory_is_no_file(tmp_path: Path) -> None:
    with pytest.raises(SourceError, match="a directory") as caught:
        read_source(tmp_path)
    assert caught.value.reason == "not-a-file"


def test_a_pipe_does_not_block(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.md")
    with pytest.raises(SourceError, match="a pipe") as caught:
        read_source(tmp_path / "pipe.md")
    assert caught.value.reason == "not-a-file"


def test_a_device_is_not_read() -> None:
    with pytest.raises(SourceError) as caught:
        read_source("/dev/zero")
    assert caught.value.reason == "not-a-file"


def test_a_name_no_system_takes() -> None:
    with pytest.raises(SourceError) as caught:
        read_source("a\0b.md")
    assert caught.value.reason == "unreadable"


@pytest.mark.parametrize(("size", "fits"), [(1024, True), (1025, False)])
def test_the_limit_is_the_largest_size(tmp_path: Path, size: int, fits: bool) -> None:
    file = tmp_path / "a.md"
    file.write_bytes(b"x" * size)
    if fits:
        assert len(read_source(file, limit=1024).text) == size
        return
    with pytest.raises(SourceError, match="larger than 1 KiB") as caught:
        read_source(file, limit=1024)
    assert caught.value.reason == "too-large"


@given(st.text("ab\n", max_size=20), st.integers(0, 20))
def test_positions_and_offsets_are_opposites(text: str, offset: int) -> None:
    source = Source("a", text)
    offset = min(offset, len(text))
    position = source.position(offset)
    before = text[:offset].split("\n")
    assert position == Position(len(before), len(before[-1]) + 1)
    assert source.offset(position) == offset
    assert source.line(position.line) == text.split("\n")[position.line - 1]


def test_lines_beyond_the_text_are_empty() -> None:
    source = Source.of("a", "\ufeffx\r\ny")
    assert [source.line(number) for number in (0, 1, 2, 3)] == ["", "x", "y", ""]
