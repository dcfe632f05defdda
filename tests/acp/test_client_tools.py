"""What a client offers: its files, its terminals, its forms, its MCP servers."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import anyio
import pytest
from acp import RequestError
from acp.schema import (
    ClientCapabilities,
    EnvVariable,
    FileSystemCapabilities,
    McpServerStdio,
    SseMcpServer,
)
from tests.acp.editor_world import (
    EVERYTHING,
    Connected,
    Editor,
    connected,
    started,
    work,
    write_card,
)
from tests.mcp.served_everything import served_everything

pytestmark = pytest.mark.anyio

TINY = Path(__file__).parents[1] / "mcp/servers/tiny.py"


def call(name: str, **arguments: Any) -> str:
    return f"***CALL_TOOL {name} {json.dumps(arguments)}"


def result(there: Connected) -> dict[str, Any]:
    return there.editor.of("tool_call_update")[-1]


def text(update: dict[str, Any]) -> str:
    return update["content"][0]["content"]["text"]


@pytest.mark.spec("ACP-17")
async def test_files_are_read_as_the_editor_has_them(tmp_path: Path) -> None:
    async with connected(tmp_path, capabilities=EVERYTHING) as there:
        path = there.cwd / "a.txt"
        path.write_text("saved")
        there.editor.unsaved[str(path)] = "one\ntwo\nthree\n"
        session = (await there.open()).session_id
        await there.prompt(session, call("read_text_file", path="a.txt"))
        assert text(result(there)) == "one\ntwo\nthree\n"
        await there.prompt(session, call("read_text_file", path="a.txt", line=2, limit=1))
        assert text(result(there)) == "two\n"
        await there.prompt(session, call("read_text_file", path="missing.txt"))
        assert result(there)["status"] == "failed"
        assert "the editor returned an error" in text(result(there))


@pytest.mark.spec("ACP-17")
@pytest.mark.parametrize(
    ("capabilities", "tools"),
    [
        (None, []),
        (ClientCapabilities(fs=FileSystemCapabilities(read_text_file=True)), ["read_text_file"]),
        (EVERYTHING, ["read_text_file", "write_text_file"]),
    ],
)
async def test_only_what_is_offered_becomes_a_tool(
    tmp_path: Path, capabilities: ClientCapabilities | None, tools: list[str]
) -> None:
    async with connected(tmp_path, capabilities=capabilities) as there:
        await there.prompt((await there.open()).session_id, "/tools")
        names = ("read_text_file", "write_text_file", "execute")
        assert [name for name in names if name in there.editor.said()] == tools


@pytest.mark.spec("ACP-18")
async def test_commands_run_in_a_terminal_of_the_editor(tmp_path: Path) -> None:
    async with connected(tmp_path, capabilities=EVERYTHING, shell=True) as there:
        session = (await there.open()).session_id
        await there.prompt(session, call("execute", command="pwd; exit 3"))
        assert there.editor.said().endswith(f"{there.cwd}\n[exit code 3]")
        shown = [one["content"] for one in there.editor.of("tool_call_update") if "content" in one]
        assert shown[0] == [{"type": "terminal", "terminalId": "terminal-1"}]
        assert there.editor.released == ["terminal-1"]
        assert result(there)["status"] == "failed"
        await there.prompt(session, call("execute", command="true"))
        assert result(there)["status"] == "completed"


@pytest.mark.spec("ACP-18")
async def test_a_command_that_takes_too_long_is_killed(tmp_path: Path) -> None:
    async with connected(tmp_path, capabilities=EVERYTHING, shell=True) as there:
        session = (await there.open()).session_id
        await there.prompt(session, call("execute", command="exec sleep 60", timeout_seconds=0.2))
        assert "it ran longer than 0.2 s" in there.editor.said()
        assert there.editor.terminals["terminal-1"].process.returncode == -9
        assert there.editor.released == ["terminal-1"]


@pytest.mark.spec("ACP-9", "ACP-18")
async def test_a_cancelled_command_frees_its_terminal(tmp_path: Path) -> None:
    async with connected(tmp_path, capabilities=EVERYTHING, shell=True) as there:
        session = (await there.open()).session_id

        async def ask() -> None:
            ended = await there.prompt(session, call("execute", command="exec sleep 60"))
            assert ended.stop_reason == "cancelled"

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(ask)
            await there.editor.until("tool_call_update", 2)
            await there.agent.cancel(session_id=session)
        assert there.editor.released == ["terminal-1"]
        assert there.editor.terminals["terminal-1"].process.returncode == -9


@pytest.mark.spec("ACP-19", "TR-T1.3")
async def test_questions_are_forms_where_the_editor_has_them(tmp_path: Path) -> None:
    card = write_card(tmp_path, "a.md", "name: a", "human_input: true")
    editor = Editor(answers={"text": "blue"})
    async with connected(tmp_path, card, capabilities=EVERYTHING, editor=editor) as there:
        session = (await there.open()).session_id
        await there.prompt(session, call("request_human_input", message="Which colour?"))
        assert there.editor.said() == "blue"
        assert there.editor.forms[0][0] == f"agent `a` ({card}) asks:\nWhich colour?"


@pytest.mark.spec("ACP-19")
async def test_a_choice_is_asked_without_forms_too(tmp_path: Path) -> None:
    card = write_card(tmp_path, "a.md", "name: a", "human_input: true")
    schema = {"type": "object", "properties": {"go": {"type": "string", "enum": ["yes", "no"]}}}
    async with connected(tmp_path, card) as there:
        session = (await there.open()).session_id
        for choose, said in (("allow_once", '{"go": "yes"}'), ("reject_once", '{"go": "no"}')):
            there.editor.choose = choose
            await there.prompt(
                session, call("request_human_input", message="Shall we?", schema=schema)
            )
            assert there.editor.said().endswith(said)
        await there.prompt(session, call("request_human_input", message="Why?"))
        assert there.editor.said().endswith("the user dismissed the question")


@pytest.mark.spec("ACP-20")
async def test_servers_the_client_gives_go_to_its_session_only(tmp_path: Path) -> None:
    server = McpServerStdio(
        name="tiny", command=sys.executable, args=[str(TINY), "once"],
        env=[EnvVariable(name="A", value="b")],
    )  # fmt: skip
    async with connected(tmp_path) as there:
        session = (await there.open(mcp_servers=[server])).session_id
        await there.prompt(session, call("tiny__add", a=1, b=2))
        assert there.editor.said() == "3"
        other = (await there.open()).session_id
        await there.prompt(other, call("tiny__add", a=1, b=2))
        assert "unknown tool `tiny__add`" in there.editor.said()


async def test_a_server_of_the_client_may_have_the_transport_of_events(tmp_path: Path) -> None:
    async with connected(tmp_path) as there:
        with served_everything("sse") as url:
            server = SseMcpServer(type="sse", name="tools", url=url, headers=[])
            session = (await there.open(mcp_servers=[server])).session_id
            await there.prompt(session, call("tools__add", a=1, b=2))
            assert there.editor.said() == "3"


@pytest.mark.spec("TR-P5.1")
async def test_a_launcher_the_client_gives_runs_nothing_of_the_directory(tmp_path: Path) -> None:
    server = McpServerStdio(
        name="tiny", command=sys.executable, args=["-m", "tiny", "once"], env=[]
    )
    home = tmp_path / "home"
    home.mkdir()
    (home / "tiny.py").write_text(TINY.read_text())
    (work(tmp_path) / "tiny.py").write_text(f"open({str(tmp_path / 'pwned')!r}, 'w')\n")
    async with started(tmp_path, "--model", "passthrough") as there:
        session = (await there.open(mcp_servers=[server])).session_id
        await there.prompt(session, call("tiny__add", a=1, b=2))
        await there.editor.until("agent_message_chunk")
        assert there.editor.said().endswith("3")
    assert not (tmp_path / "pwned").exists()


@pytest.mark.parametrize(
    ("server", "wrong"),
    [
        ({"name": "a", "command": "", "args": [], "env": []}, "is empty"),
        ({"name": "a", "type": "ws", "url": "ws://h", "headers": []}, "must be `http` or `sse`"),
        ({"name": "a", "type": "sse", "url": "file:///a", "headers": []}, "cannot be used"),
        ({"name": "a", "type": "http", "url": "file:///a", "headers": []}, "cannot be used"),
        ({"name": "a", "command": "x", "args": [1], "env": []}, "must be a list of strings"),
        ({"command": "x"}, "`name` must be a string"),
        ("x", "must be an object"),
    ],
)
async def test_a_server_that_cannot_be_is_refused(tmp_path: Path, server: Any, wrong: str) -> None:
    async with connected(tmp_path) as there:
        params = {"cwd": str(there.cwd), "mcpServers": [server]}
        with pytest.raises(RequestError, match=wrong):
            await there.agent._conn.send_request("session/new", params)
