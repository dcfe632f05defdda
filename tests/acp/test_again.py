"""`/reload --force`: the program begins again, and the editor notices nothing but fresh modules."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

import pytest
from tests.acp.raw_client import RawClient

from fast_agent.acp.remembered import STATE_VARIABLE, RestartState

WHO = Path(__file__).parents[1] / "app/who_server.py"
CARD = '---\nmodel: passthrough\nfunction_tools: ["count.py:count"]\n---\nHi.\n'
# What a module that is imported keeps is what a reload cannot reset.
COUNT = """
import json as module


def count() -> int:
    module.total = getattr(module, "total", 0) + 1
    return module.total
"""
CALL = "***CALL_TOOL count {}"


def begun(place: Path, *options: str) -> RawClient:
    cards = place / "cards"
    cards.mkdir()
    (cards / "ann.md").write_text(CARD)
    (cards / "bob.md").write_text("---\nmodel: passthrough\n---\nHi.\n")
    (cards / "slow.md").write_text("---\nmodel: slow?seconds=60\n---\nHi.\n")
    (cards / "count.py").write_text(COUNT)
    client = RawClient(place, "--card", str(cards), *options)
    client.initialize()
    return client


def with_server(client: RawClient) -> str:
    """A session with an MCP server of the editor's."""
    server = {"name": "who", "command": sys.executable, "args": [str(WHO), "here"], "env": []}
    opened = client.ask("new", "session/new", cwd=str(client.cwd), mcpServers=[server])
    return opened["result"]["sessionId"]


def said(client: RawClient, session: str, text: str) -> str:
    """What is answered to a prompt."""
    client.begin_prompt(text, session, text)
    return answered(client, session, text)


def answered(client: RawClient, session: str, number: str) -> str:
    found = ""
    while "method" in (message := client.read()) or message.get("id") != number:
        if message.get("params", {}).get("sessionId") == session:
            update: dict[str, Any] = message["params"]["update"]
            if update["sessionUpdate"] == "agent_message_chunk":
                found += update["content"]["text"]
    assert message["result"]["stopReason"] == "end_turn"
    return found


@pytest.mark.spec("ACP-25")
def test_the_connection_and_its_sessions_outlive_the_program(tmp_path: Path) -> None:
    with begun(tmp_path) as client:
        one, two, unused = client.open(), with_server(client), client.open()
        silent = client.open()
        for session in (two, silent):
            client.ask("mode", "session/set_mode", sessionId=session, modeId="bob")
        assert [said(client, one, CALL), said(client, one, CALL)] == ["1", "2"]
        assert said(client, two, "hello") == "hello"
        (tmp_path / "cards/cid.md").write_text("---\nmodel: passthrough\n---\nHi.\n")

        assert said(client, one, "/reload --force") == "starting again"
        assert said(client, one, CALL) == "1"
        assert said(client, two, "/agents").count("(current)") == 1
        assert "- `bob` (current)" in said(client, two, "/agents")
        assert "- `bob` (current)" in said(client, silent, "/agents")
        assert "hello" in said(client, two, "/history")
        assert said(client, two, "***CALL_TOOL who__who {}").startswith("here ")
        assert said(client, unused, "@cid") == "talking to `cid`"
        assert "again" not in said(client, one, "/history")
        assert client.end() == (0, "")


@pytest.mark.spec("ACP-25")
def test_programs_that_agents_run_hear_nothing_of_it(tmp_path: Path) -> None:
    with begun(tmp_path, "--shell") as client:
        session = client.open()
        assert said(client, session, "/reload --force") == "starting again"
        command = json.dumps({"command": f"echo [${STATE_VARIABLE}]"})
        client.begin_prompt("run", session, f"***CALL_TOOL execute {command}")
        while (message := client.read()).get("method") != "session/request_permission":
            pass
        outcome = {"outcome": "selected", "optionId": "allow_once"}
        answer = {"jsonrpc": "2.0", "id": message["id"], "result": {"outcome": outcome}}
        client.write(json.dumps(answer).encode() + b"\n")
        assert answered(client, session, "run") == "[]\n[exit code 0]"
        assert client.end() == (0, "")


@pytest.mark.spec("ACP-25")
def test_half_a_message_is_not_lost(tmp_path: Path) -> None:
    with begun(tmp_path) as client:
        session = client.open()
        block = {"type": "text", "text": "/reload --force"}
        params = {"sessionId": session, "prompt": [block]}
        whole = {"jsonrpc": "2.0", "id": 1, "method": "session/prompt", "params": params}
        after = b'{"jsonrpc":"2.0","id":2,"method":"session/list","params":{}}\n'
        client.write(json.dumps(whole).encode() + b"\n" + after[:20])
        assert client.answer(1)["result"]["stopReason"] == "end_turn"
        client.write(after[20:])
        assert client.answer(2)["result"] == {"sessions": []}
        assert client.end() == (0, "")


@pytest.mark.spec("ACP-25")
def test_it_does_not_begin_again_where_something_would_be_lost(tmp_path: Path) -> None:
    with begun(tmp_path) as client:
        one, two = client.open(), client.open()
        assert said(client, one, CALL) == "1"
        client.ask("mode", "session/set_mode", sessionId=two, modeId="slow")
        client.begin_prompt("slow", two, "hello")
        assert "is answering a prompt" in said(client, one, "/reload --force")
        client.write(
            json.dumps(
                {"jsonrpc": "2.0", "method": "session/cancel", "params": {"sessionId": two}}
            ).encode()
            + b"\n"
        )
        assert client.answer("slow")["result"]["stopReason"] == "cancelled"
        card = tmp_path / "cards/bob.md"
        card.write_text("---\nmodle: passthrough\n---\nHi.\n")
        assert "not reloaded" in said(client, one, "/reload --force")
        assert said(client, one, CALL) == "2"
        assert client.end() == (0, "")


@pytest.mark.spec("ACP-25")
def test_conversations_that_are_not_kept_are_not_lost(tmp_path: Path) -> None:
    with begun(tmp_path, "--no-session") as client:
        session = client.open()
        assert "would be lost" in said(client, session, "/reload --force")
        assert said(client, session, CALL) == "1"
        assert client.end() == (0, "")


def test_what_is_left_is_taken_once() -> None:
    left = RestartState(hello={"a": 1}, sessions=({"sessionId": "s"},), unread=b"\xff{", asked=3)
    environ: dict[str, str] = {}
    left.leave(environ)
    descriptor = int(environ[STATE_VARIABLE])
    assert RestartState.taken(environ) == left
    assert environ == {}
    assert RestartState.taken(environ) is None
    with pytest.raises(OSError, match="Bad file descriptor"):
        os.fstat(descriptor)


@pytest.mark.parametrize("named", ["", "x", "-1", "99999"])
def test_what_cannot_be_taken_is_none(named: str) -> None:
    assert RestartState.taken({STATE_VARIABLE: named}) is None
