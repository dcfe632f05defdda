"""Files that a message names, as blocks of the message and as a row below the editor."""

from __future__ import annotations

import base64
from typing import TYPE_CHECKING

import pytest

from fast_agent.errors import RunError
from fast_agent.messages.message import (
    AudioContent,
    EmbeddedResource,
    ImageContent,
    Message,
    TextContent,
)
from fast_agent.tui.input.attachments import (
    attached_files,
    attachment_notes,
    mention,
    path_being_named,
    typed_text,
    with_attachments,
    with_shell_output,
)

if TYPE_CHECKING:
    from pathlib import Path

BEING_NAMED = [
    ("", None),
    ("no", None),
    ("a@b", None),
    ("@", (0, "")),
    ("@a", (0, "a")),
    ("@a/b.c", (0, "a/b.c")),
    ("@a b", None),
    ("see @a", (4, "a")),
    ("see\n@a", (4, "a")),
    ("@a\n", None),
    ("@one @two", (5, "two")),
    ('@"', (0, "")),
    ('@"a b', (0, "a b")),
    ('@"a b/', (0, "a b/")),
    ('@"a b"', None),
    ('@"a b" @c', (7, "c")),
    ('say "@a', None),
]

DATA = b"%PDF-1.7 \x00\xff"
ENCODED = base64.b64encode(DATA).decode()


@pytest.mark.spec("T-C2.2", "T-C2.6")
def test_each_kind_of_file_becomes_its_block(tmp_path: Path) -> None:
    for name in ("a.pdf", "b.png", "c.mp3"):
        (tmp_path / name).write_bytes(DATA)
    (tmp_path / "d.svg").write_text("<svg/>")
    text = "look at @a.pdf, @b.png @c.mp3 and @d.svg; @e.txt is not there"
    message = with_attachments(text, tmp_path)
    assert message.content == (
        TextContent(text),
        EmbeddedResource((tmp_path / "a.pdf").as_uri(), "application/pdf", blob=ENCODED),
        ImageContent(ENCODED, "image/png"),
        AudioContent(ENCODED, "audio/mpeg"),
        TextContent(f'<file path="{tmp_path / "d.svg"}">\n<svg/>\n</file>'),
    )
    assert [note.split()[0] for note in attachment_notes(text, tmp_path)] == [
        "a.pdf", "b.png", "c.mp3", "d.svg",
    ]  # fmt: skip
    assert typed_text(with_shell_output(message, "$ ls\na.pdf\n")) == text
    assert typed_text(Message.user('<file path="x">')) == '<file path="x">'


@pytest.mark.spec("T-C2.2", "T-C2.6")
def test_what_is_too_large_or_no_text_is_not_sent(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_bytes(b"x" * (256 * 1024 + 1))
    (tmp_path / "b.txt").write_bytes(DATA)
    assert attachment_notes("@a.txt", tmp_path) == ["a.txt 256.0 KiB, too large"]
    with pytest.raises(RunError, match="cannot be attached") as raised:
        with_attachments("@a.txt", tmp_path)
    assert raised.value.hint == "a file may have 256 KiB"
    with pytest.raises(RunError, match="not UTF-8 text"):
        with_attachments("@b.txt", tmp_path)


@pytest.mark.spec("T-C2.1")
@pytest.mark.parametrize(("text", "expected"), BEING_NAMED)
def test_the_path_a_text_ends_in(text: str, expected: tuple[int, str] | None) -> None:
    assert path_being_named(text) == expected


@pytest.mark.spec("T-C2.1", "T-C2.2")
@pytest.mark.parametrize(
    "name", ["a.txt", "my notes.txt", "tab\there", "no\u00a0break", "é/ü ß.md"]
)
def test_a_file_that_is_mentioned_is_attached(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    path.parent.mkdir(exist_ok=True)
    path.touch()
    assert attached_files(f"see {mention(name)} please", tmp_path) == [path]


def test_the_name_of_a_directory_may_be_continued() -> None:
    assert path_being_named(mention("my dir/")) == (0, "my dir/")
    assert path_being_named(mention("dir/")) == (0, "dir/")
