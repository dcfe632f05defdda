"""File tools in an editor: its files come before those of the disk, and writes are shown."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest
from tests.acp.editor_world import EVERYTHING, Connected, Editor, connected, write_card

pytestmark = pytest.mark.anyio


def call(name: str, **arguments: Any) -> str:
    return f"***CALL_TOOL {name} {json.dumps(arguments)}"


def text(there: Connected) -> str:
    return there.editor.of("tool_call_update")[-1]["content"][0]["content"]["text"]


@pytest.mark.spec("FILES-8")
async def test_files_are_read_and_edited_as_the_editor_has_them(tmp_path: Path) -> None:
    async with connected(tmp_path, capabilities=EVERYTHING, files="write") as there:
        path = there.cwd / "a.txt"
        path.write_text("saved")
        there.editor.unsaved[str(path)] = "one\ntwo\n"
        session = (await there.open()).session_id
        await there.prompt(session, "/tools")
        assert "read_text_file" not in there.editor.said()
        await there.prompt(session, call("read_file", path="a.txt"))
        assert text(there) == "one\ntwo\n"
        assert there.editor.asked == []
        await there.prompt(
            session, call("edit_file", path="a.txt", old_string="two", new_string="2")
        )
        assert there.editor.written[str(path)] == "one\n2\n"
        (_, diff) = there.editor.asked[0]["toolCall"]["content"]
        assert (diff["type"], diff["path"]) == ("diff", str(path))
        assert (diff["oldText"], diff["newText"]) == ("one\ntwo\n", "one\n2\n")
        assert there.editor.asked[0]["toolCall"]["kind"] == "edit"


@pytest.mark.spec("FILES-7")
async def test_without_a_yes_nothing_is_written(tmp_path: Path) -> None:
    async with connected(tmp_path, files="write", editor=Editor("reject_once")) as there:
        session = (await there.open()).session_id
        await there.prompt(session, call("write_file", path="a.txt", content="hi"))
        assert "was not run" in text(there)
        assert not (there.cwd / "a.txt").exists()
        await there.prompt(session, call("edit_file", path="b.txt", old_string="a", new_string="b"))
        assert "does not exist" in text(there)
        assert len(there.editor.asked) == 1  # nobody is asked about what cannot be done


@pytest.mark.spec("FILES-7")
async def test_one_always_covers_all_writes_but_not_protected_files(tmp_path: Path) -> None:
    async with connected(tmp_path, files="write", editor=Editor("allow_always")) as there:
        session = (await there.open()).session_id
        await there.prompt(session, call("write_file", path="a.txt", content="hi"))
        await there.prompt(
            session, call("edit_file", path="a.txt", old_string="hi", new_string="ho")
        )
        assert (there.cwd / "a.txt").read_text() == "ho"
        assert len(there.editor.asked) == 1
        await there.prompt(session, call("write_file", path="Makefile", content="all:\n"))
        assert len(there.editor.asked) == 2
        assert there.editor.asked[1]["options"] == ["Allow", "Reject"]


@pytest.mark.spec("FILES-7")
async def test_the_difference_is_shown_where_skills_of_servers_are_guarded(tmp_path: Path) -> None:
    tiny = Path(__file__).parents[1] / "mcp/servers/tiny.py"
    server = {"target": f"{sys.executable} {tiny} once", "name": "tiny"}
    card = write_card(tmp_path, "a.md", "name: a", "files: write", f"mcp_connect: [{server}]")
    async with connected(tmp_path, card) as there:
        (there.cwd / "a.txt").write_text("one")
        session = (await there.open()).session_id
        await there.prompt(
            session, call("edit_file", path="a.txt", old_string="one", new_string="1")
        )
        (_, diff) = there.editor.asked[0]["toolCall"]["content"]
        assert (diff["oldText"], diff["newText"]) == ("one", "1")
