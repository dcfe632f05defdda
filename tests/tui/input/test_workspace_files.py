"""The files that `@` offers."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from tests.tui.terminal_world import Terminal
from tests.tui.test_terminal import PASS, READY

from fast_agent.tui.input.workspace_files import FileIndex, WorkspaceFiles

if TYPE_CHECKING:
    from pathlib import Path


def tree(top: Path, *paths: str) -> None:
    for path in paths:
        (top / path).parent.mkdir(parents=True, exist_ok=True)
        (top / path).write_text("")


@pytest.mark.spec("T-C2.5")
def test_files_are_offered_by_their_letters_in_order() -> None:
    index = FileIndex(["src/pager.py", "docs/page.md", "app/Main.py", "a\nb", "İx/one.py"])
    assert index.completions("pag") == ["docs/page.md", "src/pager.py"]
    assert index.completions("apm") == ["app/Main.py"]
    assert index.completions("one") == ["İx/one.py"]
    assert index.completions("MAIN") == ["app/Main.py"]
    assert index.completions("^.*") == []
    assert index.completions("") == []
    assert len(index) == 4


@pytest.mark.spec("T-C2.5")
def test_what_git_ignores_is_not_offered(tmp_path: Path) -> None:
    tree(tmp_path, "src/app.py", "src/app.log", "build/app.py", ".env", "src/inner/app.txt")
    (tmp_path / ".gitignore").write_text("build/\n*.log\n")
    files = WorkspaceFiles(tmp_path, lambda: 0.0)
    assert files.completions("") == ["src/"]
    assert files.is_stale
    files.read()
    assert not files.is_stale
    assert files.completions("app") == ["src/app.py", "src/inner/app.txt"]
    assert files.completions("src/a") == ["src/app.py", "src/inner/app.txt"]
    assert files.completions(".en") == [".env"]
    assert files.completions("nothing") == []


@pytest.mark.spec("T-C2.5")
def test_a_file_deep_in_the_tree_is_offered_and_attached(project: Path) -> None:
    tree(project, "some/deep/folder/chapter.txt", "ignored/chapter.txt")
    (project / "some/deep/folder/chapter.txt").write_text("it was a dark night\n")
    (project / ".gitignore").write_text("ignored\n")
    with Terminal(*PASS) as terminal:
        terminal.wait_for(READY)
        terminal.send("read @sdchap")
        terminal.wait_for_screen("some/deep/folder/chapter.txt")
        assert not any("ignored/" in row for row in terminal.display)
        terminal.send("\t\r\r")
        terminal.wait_for("it was a dark night")
