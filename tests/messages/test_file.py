from __future__ import annotations

import os
import stat
from typing import TYPE_CHECKING

import pytest

from fast_agent.errors import HistoryError
from fast_agent.messages.content import AudioContent, EmbeddedResource, ImageContent, TextContent
from fast_agent.messages.file import Transcript, check_history_file, read_history, write_history
from fast_agent.messages.message import Message, ToolCall

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


@pytest.mark.spec("HIST-1")
def test_the_name_chooses_the_format(tmp_path: Path) -> None:
    transcript = Transcript("s", (Message.user("hello"), Message.assistant("hi")))
    for name, start in (("h.json", "{"), ("h.JSON", "{"), ("h.md", "---S"), ("h", "---S")):
        write_history(tmp_path / name, transcript)
        assert (tmp_path / name).read_text().startswith(start)
        assert read_history(tmp_path / name) == transcript


def do_nothing(path: Path) -> None:
    assert not path.exists()


def make_latin(path: Path) -> None:
    path.write_bytes("é".encode("latin-1"))


def make_utf16(path: Path) -> None:
    path.write_bytes("hi".encode("utf-16"))


def make_large(path: Path) -> None:
    path.write_bytes(b"x" * 5000)


@pytest.mark.parametrize(
    ("prepare", "message"),
    [
        (do_nothing, "no such file"),
        (os.mkdir, "it is a directory, not a file"),
        (os.mkfifo, "it is a pipe, socket or device, not a file"),
        (make_latin, "the file is not UTF-8 text"),
        (make_utf16, "the file is UTF-16, not UTF-8"),
        (make_large, "it is larger than"),
    ],
)
def test_unreadable_files(tmp_path: Path, prepare: Callable[[Path], None], message: str) -> None:
    path = tmp_path / "h.md"
    prepare(path)
    with pytest.raises(HistoryError) as caught:
        read_history(path, limit=4096)
    (found,) = caught.value.diagnostics
    assert found.code == "FA401"
    assert found.message.startswith(f"history `{path}` cannot be read: {message}")
    assert found.path == str(path)


def test_an_empty_file_is_an_empty_history(tmp_path: Path) -> None:
    (tmp_path / "h.md").touch()
    assert read_history(tmp_path / "h.md") == Transcript()


@pytest.mark.spec("HIST-6")
def test_files_of_resource_sections(tmp_path: Path) -> None:
    (tmp_path / "notes").mkdir()
    (tmp_path / "notes/a b.md").write_text("# hi\r\n", newline="")
    (tmp_path / "p.PNG").write_bytes(b"\x89PNG")
    (tmp_path / "s.wav").write_bytes(b"RIFF")
    (tmp_path / "x.bin").write_bytes(b"\xff\xfe")
    names = ["notes/a b.md", "./p.PNG", "s.wav", "x.bin"]
    (tmp_path / "h.md").write_text("---USER\nsee\n" + "".join(f"---RESOURCE\n{n}\n" for n in names))
    assert read_history(tmp_path / "h.md").messages[0].content == (
        TextContent("see"),
        EmbeddedResource("resource://history/notes/a%20b.md", "text/markdown", "# hi\r\n"),
        ImageContent("iVBORw==", "image/png"),
        AudioContent("UklGRg==", "audio/wav"),
        EmbeddedResource("resource://history/x.bin", "application/octet-stream", blob="//4="),
    )


@pytest.mark.spec("HIST-6")
@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("../secret.txt", "`../secret.txt` leads out of its directory with `..`"),
        ("in/../../secret.txt", "`in/../../secret.txt` leads out of its directory with `..`"),
        ("/etc/passwd", "`/etc/passwd` is an absolute path"),
        ("link.txt", "`link.txt` goes through the link `link.txt`"),
        ("folder/secret.txt", "`folder/secret.txt` goes through the link `folder`"),
        ("absent.txt", "`absent.txt` does not exist"),
        ("in", "`in` is a directory"),
        ("pipe", "`pipe` is not a regular file"),
    ],
)
def test_resource_sections_stay_in_their_directory(tmp_path: Path, name: str, message: str) -> None:
    (tmp_path / "secret.txt").write_text("secret")
    home = tmp_path / "home"
    (home / "in").mkdir(parents=True)
    (home / "link.txt").symlink_to(tmp_path / "secret.txt")
    (home / "folder").symlink_to(tmp_path)
    os.mkfifo(home / "pipe")
    (home / "h.md").write_text(f"---USER\n---RESOURCE\n{name}\n")
    with pytest.raises(HistoryError) as caught:
        read_history(home / "h.md")
    (found,) = caught.value.diagnostics
    assert (found.code, found.message) == ("FA405", message)


def test_writing_replaces_the_file_as_a_whole(tmp_path: Path) -> None:
    path = tmp_path / "h.json"
    write_history(path, Transcript(messages=(Message.user("old"),)))
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    path.chmod(0o640)
    with path.open() as open_before:
        write_history(path, Transcript(messages=(Message.user("new"),)))
        assert "old" in open_before.read()
    assert stat.S_IMODE(path.stat().st_mode) == 0o640
    assert read_history(path).messages == (Message.user("new"),)
    assert [item.name for item in tmp_path.iterdir()] == ["h.json"]


def test_a_message_that_cannot_be_written_leaves_the_file_alone(tmp_path: Path) -> None:
    path = tmp_path / "h.json"
    write_history(path, Transcript(messages=(Message.user("old"),)))
    before = path.read_bytes()
    with pytest.raises(HistoryError, match="message 0 cannot be written"):
        write_history(path, Transcript(messages=(Message("user", extra={"role": "x"}),)))
    assert path.read_bytes() == before


def test_a_missing_directory_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(HistoryError, match=r"cannot be written: no such file or directory"):
        write_history(tmp_path / "no" / "h.md", Transcript())


def test_check_of_a_good_file(tmp_path: Path) -> None:
    write_history(tmp_path / "h.md", Transcript(messages=(Message.user("hello"),)))
    assert check_history_file(tmp_path / "h.md") == ()


def test_check_tells_errors(tmp_path: Path) -> None:
    (tmp_path / "h.json").write_text('{"messages": [{"role": "x"}, {"role": "y"}]}')
    found = check_history_file(tmp_path / "h.json")
    assert [(item.code, item.severity) for item in found] == [("FA404", "error")] * 2
    assert [item.code for item in check_history_file(tmp_path / "none.md")] == ["FA401"]


def test_check_warns_of_an_order_models_refuse(tmp_path: Path) -> None:
    open_call = Message("assistant", tool_calls=(ToolCall("1", "now"),))
    transcript = Transcript(messages=(Message.user("x"), open_call, Message.user("y")))
    for name, line in (("h.json", 12), ("h.md", 3)):
        write_history(tmp_path / name, transcript)
        (found,) = check_history_file(tmp_path / name)
        assert (found.code, found.severity) == ("FA407", "warning")
        assert found.message == "message 2 has no result for the tool call `1` before it"
        assert found.span is not None
        text = (tmp_path / name).read_text().split("\n")
        assert text[found.span.start.line - 1] == found.source_line
        assert found.source_line in {"    {", "---USER"}
        assert found.span.start.line > line


def test_check_warns_of_lines_that_almost_are_delimiters(tmp_path: Path) -> None:
    (tmp_path / "h.md").write_text("---USER\nhi\n--- Assistant\nhello\n")
    (found,) = check_history_file(tmp_path / "h.md")
    assert (found.code, found.severity) == ("FA408", "warning")
    assert found.span is not None
    assert found.span.start.line == 3
