from __future__ import annotations

import os
import signal
import stat
import subprocess
import sys
import threading
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from fast_agent.errors import HistoryError
from fast_agent.messages.file import (
    HistoryDocument,
    check_history_file,
    merge_into,
    read_history,
    write_history,
)
from fast_agent.messages.history import check_validity
from fast_agent.messages.message import (
    AudioContent,
    EmbeddedResource,
    ImageContent,
    Message,
    TextContent,
    ToolCall,
    ToolResult,
)
from fast_agent.text.safe_file import FileLock

if TYPE_CHECKING:
    from collections.abc import Callable


@pytest.mark.spec("HIST-1")
def test_the_name_chooses_the_format(tmp_path: Path) -> None:
    transcript = HistoryDocument("s", (Message.user("hello"), Message.assistant("hi")))
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
    assert read_history(tmp_path / "h.md") == HistoryDocument()


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
    write_history(path, HistoryDocument(messages=(Message.user("old"),)))
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    path.chmod(0o640)
    with path.open() as open_before:
        write_history(path, HistoryDocument(messages=(Message.user("new"),)))
        assert "old" in open_before.read()
    assert stat.S_IMODE(path.stat().st_mode) == 0o640
    assert read_history(path).messages == (Message.user("new"),)
    assert [item.name for item in tmp_path.iterdir()] == ["h.json"]


def test_a_message_that_cannot_be_written_leaves_the_file_alone(tmp_path: Path) -> None:
    path = tmp_path / "h.json"
    write_history(path, HistoryDocument(messages=(Message.user("old"),)))
    before = path.read_bytes()
    with pytest.raises(HistoryError, match="message 0 cannot be written"):
        write_history(path, HistoryDocument(messages=(Message("user", extra={"role": "x"}),)))
    assert path.read_bytes() == before


def test_a_missing_directory_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(HistoryError, match=r"cannot be written: no such file or directory"):
        write_history(tmp_path / "no" / "h.md", HistoryDocument())


def test_check_of_a_good_file(tmp_path: Path) -> None:
    write_history(tmp_path / "h.md", HistoryDocument(messages=(Message.user("hello"),)))
    assert check_history_file(tmp_path / "h.md") == ()


def test_check_tells_errors(tmp_path: Path) -> None:
    (tmp_path / "h.json").write_text('{"messages": [{"role": "x"}, {"role": "y"}]}')
    found = check_history_file(tmp_path / "h.json")
    assert [(item.code, item.severity) for item in found] == [("FA404", "error")] * 2
    assert [item.code for item in check_history_file(tmp_path / "none.md")] == ["FA401"]


def test_check_warns_of_an_order_models_refuse(tmp_path: Path) -> None:
    open_call = Message("assistant", tool_calls=(ToolCall("1", "now"),))
    transcript = HistoryDocument(messages=(Message.user("x"), open_call, Message.user("y")))
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


ROOT = Path(__file__).parents[2]
CODE = """
import sys, pathlib
from fast_agent.messages.file import merge_into
from fast_agent.messages.message import Message
path, name, count = pathlib.Path(sys.argv[1]), sys.argv[2], int(sys.argv[3])
for number in range(count):
    merge_into(path, [Message.user(f"{name} {number}"), Message.assistant(f"re {name} {number}")])
"""


def tool_turn(text: str) -> list[Message]:
    return [
        Message.user(text),
        Message("assistant", tool_calls=(ToolCall("1", "look"),)),
        Message("user", tool_results=(ToolResult("1", (TextContent(text),)),)),
        Message.assistant("seen"),
    ]


@pytest.mark.parametrize("name", ["kept.json", "kept.txt"])
def test_blocks_are_added_to_what_is_there_with_ids_of_their_own(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    merge_into(path, tool_turn("a"))
    merge_into(path, tool_turn("b"))
    messages = read_history(path).messages
    assert check_validity(messages) == []
    assert [result.text for one in messages for result in one.tool_results] == ["a", "b"]
    assert len({call.id for one in messages for call in one.tool_calls}) == 2


def test_what_else_the_file_holds_is_kept(tmp_path: Path) -> None:
    path = tmp_path / "kept.json"
    path.write_text('{"system": "be brief", "note": 1, "messages": []}')
    merge_into(path, [Message.user("x"), Message.assistant("y")])
    kept = read_history(path)
    assert (kept.system, dict(kept.extra), len(kept.messages)) == ("be brief", {"note": 1}, 2)


def test_a_damaged_file_is_left_as_it_was(tmp_path: Path) -> None:
    path = tmp_path / "kept.json"
    path.write_text('{"messages": [7]}')
    with pytest.raises(HistoryError):
        merge_into(path, [Message.user("x")])
    assert path.read_text() == '{"messages": [7]}'
    with pytest.raises(HistoryError, match="cannot be merged into"):
        merge_into(tmp_path / "nowhere" / "x.json", [Message.user("x")])


def test_through_a_link_the_file_itself_is_locked_and_written(tmp_path: Path) -> None:
    path, link = tmp_path / "kept.json", tmp_path / "link.json"
    link.symlink_to(path)
    merge_into(link, [Message.user("x"), Message.assistant("y")])
    assert link.is_symlink()
    assert len(read_history(path).messages) == 2


def test_who_waits_too_long_learns_by_whom(tmp_path: Path) -> None:
    path = tmp_path / "kept.json"
    lock = FileLock(tmp_path / ".kept.json.lock")
    assert lock.take()
    with pytest.raises(HistoryError, match=f"in use by process {os.getpid()} for 0.02 s"):
        merge_into(path, [Message.user("x")], wait=0.02)
    lock.release()
    merge_into(path, [Message.user("x")])


@pytest.mark.spec("SESSION-14")
def test_several_processes_at_once_lose_nothing(tmp_path: Path) -> None:
    path = tmp_path / "kept.json"
    names, count = ("ann", "bob", "cid"), 8
    running = [
        subprocess.Popen([sys.executable, "-c", CODE, path, name, str(count)], cwd=ROOT)
        for name in names
    ]
    assert [process.wait() for process in running] == [0, 0, 0]
    messages = [message.text for message in read_history(path).messages]
    assert len(messages) == 2 * count * len(names)
    for name in names:
        own = [text for text in messages if name in text]
        assert own[::2] == [f"{name} {number}" for number in range(count)]
    # Every block is whole.
    pairs = zip(messages[::2], messages[1::2], strict=True)
    assert all(answer == f"re {asked}" for asked, answer in pairs)


def test_threads_of_one_process_lose_nothing(tmp_path: Path) -> None:
    path = tmp_path / "kept.txt"

    def work(name: str) -> None:
        for number in range(5):
            merge_into(path, [Message.user(f"{name}{number}"), Message.assistant("ok")])

    threads = [threading.Thread(target=work, args=(name,)) for name in "abcd"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(read_history(path).messages) == 40


def test_a_killed_process_leaves_the_file_whole_and_the_lock_free(tmp_path: Path) -> None:
    path = tmp_path / "kept.json"
    process = subprocess.Popen([sys.executable, "-c", CODE, path, "x", "100000"], cwd=ROOT)
    while not path.exists() or len(read_history(path).messages) < 6:
        assert process.poll() is None
    process.send_signal(signal.SIGKILL)
    process.wait()
    before = read_history(path).messages
    assert check_validity(before) == []
    merge_into(path, [Message.user("after"), Message.assistant("ok")], wait=0.0)
    assert read_history(path).messages[: len(before)] == before
