"""Merging into a history file: blocks stay whole, and two processes lose nothing."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from fast_agent.errors import HistoryError
from fast_agent.messages.content import TextContent
from fast_agent.messages.file import read_history
from fast_agent.messages.merge import merge_into
from fast_agent.messages.message import Message, ToolCall, ToolResult
from fast_agent.messages.validity import check_validity
from fast_agent.text.file_lock import FileLock

ROOT = Path(__file__).parents[2]
CODE = """
import sys, pathlib
from fast_agent.messages.merge import merge_into
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


def test_who_waits_too_long_is_told_by_whom(tmp_path: Path) -> None:
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
