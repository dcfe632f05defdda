"""The command as an editor starts it, driven by the reference client over stdio."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from tests.acp.editor_world import Editor, started, write_card

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.anyio


async def test_a_whole_conversation(tmp_path: Path) -> None:
    card = write_card(tmp_path, "a.md", "name: a", "model: passthrough", "shell: true")
    editor = Editor("allow_once")
    async with started(tmp_path, "--card", card, editor=editor) as there:
        session = await there.open()
        assert [one.id for one in session.modes.available_modes] == ["a"]
        ended = await there.prompt(session.session_id, "hello")
        assert (ended.stop_reason, editor.said()) == ("end_turn", "hello")
        await there.prompt(session.session_id, '***CALL_TOOL execute {"command": "pwd"}')
        assert len(editor.asked) == 1
        assert editor.said() == f"hello{there.cwd}\n[exit code 0]"
        assert editor.released == ["terminal-1"]
        found = (await there.agent.list_sessions(cwd=str(there.cwd))).sessions
        assert [one.title for one in found] == ["hello"]
    async with started(tmp_path, "--card", card) as there:
        await there.agent.load_session(cwd=str(there.cwd), session_id=session.session_id)
        assert there.editor.said("user_message_chunk").startswith("hello")


async def test_cards_that_load_by_themselves_are_modes(tmp_path: Path) -> None:
    directory = tmp_path / "work/.fast-agent/agent-cards"
    directory.mkdir(parents=True)
    (directory / "helper.md").write_text("---\nname: helper\n---\nBe brief.\n")
    async with started(tmp_path, "--model", "passthrough") as there:
        session = await there.open()
        assert [one.id for one in session.modes.available_modes] == ["helper"]
