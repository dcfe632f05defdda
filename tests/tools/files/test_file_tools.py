from __future__ import annotations

import os
import threading
from contextlib import suppress
from itertools import count
from typing import TYPE_CHECKING

import pytest

from fast_agent.messages.message import EmbeddedResource, ImageContent, TextContent, ToolCall
from fast_agent.tools.files import lookup
from fast_agent.tools.files.file_tools import FileGuard, FileTool, file_tools
from fast_agent.tools.files.workspace import Workspace
from fast_agent.tools.permission import HumanPermission

if TYPE_CHECKING:
    from pathlib import Path

    from fast_agent.messages.message import Content
    from fast_agent.text.json_value import JsonValue
    from fast_agent.tools.tool import ToolContext

pytestmark = pytest.mark.anyio

PNG = b"\x89PNG\r\n\x1a\n\0rest"


class Files:
    """File tools of a workspace with no user is connected."""

    def __init__(self, place: Path, context: ToolContext) -> None:
        self.place = place
        self._context = context
        guard = FileGuard(HumanPermission(None), True, lambda path: path.name == "Makefile")
        tools = file_tools(Workspace(place), "write", guard)
        self.tools: dict[str, FileTool] = {one.spec.name: one for one in tools}

    async def call(self, name: str, **arguments: JsonValue) -> tuple[bool, Content]:
        result = await self.tools[name].call(ToolCall("c1", name, arguments), self._context)
        return not result.is_error, result.content[0]

    async def said(self, name: str, **arguments: JsonValue) -> str:
        _, content = await self.call(name, **arguments)
        assert isinstance(content, TextContent)
        return content.text


@pytest.fixture
def files(tmp_path: Path, context: ToolContext) -> Files:
    place = tmp_path / "work"
    place.mkdir()
    return Files(place, context)


@pytest.mark.spec("FILES-6")
async def test_files_are_read_by_lines_or_as_attachments(files: Files) -> None:
    (files.place / "a.txt").write_text("one\ntwo\nthree\n")
    (files.place / "b.png").write_bytes(PNG)
    (files.place / "c.pdf").write_bytes(b"%PDF-1.7 \0")
    (files.place / "d.bin").write_bytes(b"\0\1")
    assert await files.said("read_file", path="a.txt") == "one\ntwo\nthree\n"
    part = await files.said("read_file", path=str(files.place / "a.txt"), offset=2, limit=1)
    assert part == "two\n[lines 2 to 2 of 3]"
    assert "has 3 lines" in await files.said("read_file", path="a.txt", offset=9)
    assert isinstance((await files.call("read_file", path="b.png"))[1], ImageContent)
    pdf = (await files.call("read_file", path="c.pdf"))[1]
    assert isinstance(pdf, EmbeddedResource)
    assert pdf.mime_type == "application/pdf"
    assert "binary file of 2 bytes" in await files.said("read_file", path="d.bin")
    assert "did you mean `a.txt`" in await files.said("read_file", path="a.tx")


@pytest.mark.spec("FILES-1")
@pytest.mark.parametrize(
    "path", ["../out/x.txt", "link/x.txt", "file", "{out}/x.txt", "a/../../out/x.txt"]
)
async def test_nothing_leads_out_of_the_workspace(files: Files, path: str) -> None:
    out = files.place.parent / "out"
    out.mkdir()
    (out / "x.txt").write_text("secret")
    (files.place / "link").symlink_to(out)
    (files.place / "file").symlink_to(out / "x.txt")
    path = path.format(out=out)
    for name, more in (
        ("read_file", {}),
        ("write_file", {"content": "hi"}),
        ("edit_file", {"old_string": "secret", "new_string": "gone"}),
        ("list_dir", {}),
        ("grep", {"pattern": "secret"}),
        ("glob", {"pattern": "*"}),
    ):
        said = await files.said(name, path=path, **more)
        assert "outside the workspace" in said, name
    assert (out / "x.txt").read_text() == "secret"
    assert await files.said("grep", pattern="secret") == "no match"


@pytest.mark.spec("FILES-2")
async def test_a_link_that_comes_meanwhile_leads_nowhere(files: Files) -> None:
    out, inside = files.place.parent / "out", files.place / "d"
    for folder in (out, inside):
        folder.mkdir()
    (out / "x.txt").write_text("secret")
    (inside / "x.txt").write_text("fine")
    stopped = threading.Event()

    def swap() -> None:
        for number in count():
            if stopped.is_set():
                return
            with suppress(OSError):  # the tool may have made it in between
                inside.rename(files.place / f"e{number}")
                inside.symlink_to(out)
                inside.unlink()
                inside.mkdir()
            with suppress(OSError):
                (inside / "x.txt").write_text("fine")

    thread = threading.Thread(target=swap)
    thread.start()
    try:
        for _ in range(150):
            assert "secret" not in await files.said("read_file", path="d/x.txt")
            await files.said("write_file", path="d/x.txt", content="fine")
    finally:
        stopped.set()
        thread.join()
    assert (out / "x.txt").read_text() == "secret"


@pytest.mark.spec("FILES-5")
async def test_writes_and_edits_keep_the_rest_of_a_file(files: Files) -> None:
    script = files.place / "run.sh"
    script.write_text("one\ntwo\n")
    script.chmod(0o750)
    os.link(script, files.place.parent / "other")
    said = await files.said("edit_file", path="run.sh", old_string="two", new_string="2")
    assert said.splitlines()[2:] == ["@@ -1,2 +1,2 @@", " one", "-two", "+2"]
    assert (script.read_text(), script.stat().st_mode & 0o777) == ("one\n2\n", 0o750)
    assert (files.place.parent / "other").read_text() == "one\ntwo\n"
    assert "wrote `x/y/z.txt`" in await files.said("write_file", path="x/y/z.txt", content="hi")
    assert sorted(one.name for one in files.place.rglob("*")) == ["run.sh", "x", "y", "z.txt"]


@pytest.mark.spec("FILES-7")
async def test_with_nobody_to_ask_protected_and_secret_files_are_left_alone(files: Files) -> None:
    (files.place / ".env").write_text("KEY=1")
    (files.place / "server.pem").write_text("KEY=2")
    for name in (".env", "server.pem"):
        assert "no user is connected" in await files.said("read_file", path=name)
        assert "no user is connected" in await files.said("grep", path=name, pattern="KEY")
    assert await files.said("grep", pattern="KEY", all=True) == "no match"
    for name in ("Makefile", ".env"):
        assert "no user is connected" in await files.said("write_file", path=name, content="x")
    assert not (files.place / "Makefile").exists()


async def test_search_gives_lines_counts_files_and_their_neighbours(files: Files) -> None:
    (files.place / "b.py").write_text("x = 1\ny = 2\nz = 3\n")
    (files.place / "a.txt").write_text("Y = 2\n")
    (files.place / "c.bin").write_bytes(b"y = 2\0")
    assert await files.said("grep", pattern=r"y = \d") == "b.py:2:y = 2"
    both = await files.said("grep", pattern="y =", ignore_case=True)
    assert both == "a.txt:1:Y = 2\nb.py:2:y = 2"
    around = await files.said("grep", pattern="y =", path="b.py", context=1)
    assert around == "b.py-1-x = 1\nb.py:2:y = 2\nb.py-3-z = 3"
    assert await files.said("grep", pattern="=", only="count", glob="*.py") == "b.py:3"
    assert await files.said("grep", pattern="=", only="files") == "a.txt\nb.py"
    assert "2 more lines" in await files.said("grep", pattern="=", glob="*.py", limit=1)
    assert "regex parse error" in await files.said("grep", pattern="(")
    assert await files.said("glob", pattern="*.{py,txt}") == "a.txt\nb.py"
    assert (await files.said("list_dir")).splitlines() == [
        "a.txt (6 bytes)", "b.py (18 bytes)", "c.bin (6 bytes)"]  # fmt: skip


@pytest.mark.spec("FILES-4")
async def test_a_search_without_end_is_ended(files: Files, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lookup, "SEARCH_SECONDS", 0.5)
    (files.place / "a.txt").write_text("a" * 40 + "b\n")
    assert await files.said("grep", pattern="(a+)+$") == "no match within 0.5 s"
