"""Lines over stdio, as hosts and rude clients write them; the SDK is never needed."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from tests.patience import wait_until
from tests.serve.served import HELLO, META
from tests.serve.stdio_client import StdioClient
from tests.whole_file import write_whole

if TYPE_CHECKING:
    from pathlib import Path

MODULES = "***CALL_TOOL has_sdk"
"""Has an agent report whether the SDK is imported."""


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    cards = tmp_path / "cards"
    cards.mkdir()
    (tmp_path / "tools.py").write_text(
        "import sys\ndef has_sdk() -> str:\n    return str('mcp_types' in sys.modules)\n"
    )
    (cards / "ann.md").write_text(
        "---\nmodel: passthrough\nfunction_tools: ../tools.py:has_sdk\n---\nHi.\n"
    )
    (cards / "busy.md").write_text("---\nmodel: passthrough\nshell: true\n---\nHi.\n")
    return tmp_path


def waiting(directory: Path) -> str:
    """Has `busy` say that it has begun, and wait for ever."""
    return f"""***CALL_TOOL execute {{"command": "touch '{directory / "begun"}'; sleep 600"}}"""


@pytest.mark.spec("SERVE-16")
@pytest.mark.parametrize("capabilities", [{}, {"elicitation": {}, "sampling": {}}])
def test_a_client_with_a_handshake_needs_no_sdk(
    directory: Path, capabilities: dict[str, Any]
) -> None:
    with StdioClient(directory) as client:
        assert client.open(**capabilities)["protocolVersion"] == "2025-11-25"
        assert client.ask("ping")["result"] == {}
        names = [tool["name"] for tool in client.ask("tools/list")["result"]["tools"]]
        assert {"ann", "busy"} <= set(names)
        assert client.call("ann", "hello") == "hello"
        assert client.call("ann", "told", progressToken="mine") == "told"
        assert {one["method"] for one in client.heard} == {"notifications/progress"}
        assert "told" in json.dumps(client.ask("prompts/get", name="ann_history"))
        assert client.call("ann", MODULES) == "False"
        assert client.end() == ""


@pytest.mark.spec("SERVE-16")
def test_a_modern_client_needs_no_sdk(directory: Path) -> None:
    with StdioClient(directory, "--instance-scope", "request") as client:
        assert "2026-07-28" in client.modern("server/discover")["result"]["supportedVersions"]
        assert client.modern("tools/list")["result"]["tools"]
        assert client.modern("prompts/get", name="nothing")["error"]["code"] == -32602
        arguments = {"message": MODULES}
        answer = client.modern("tools/call", name="ann", arguments=arguments)["result"]
        assert answer["content"][0]["text"] == "False"
        assert "error" in client.ask("initialize", protocolVersion="2025-11-25")
        assert "Traceback" not in client.end()


@pytest.mark.spec("SERVE-16")
def test_a_call_is_cancelled(directory: Path) -> None:
    with StdioClient(directory) as client:
        client.open()
        text = waiting(directory)
        number = client.begin("tools/call", name="busy", arguments={"message": text})
        wait_until((directory / "begun").exists)
        client.notify("notifications/cancelled", requestId=number)
        assert client.call("busy", "and now") == "and now"
        assert client.heard == []
        assert "Traceback" not in client.end()


def test_a_modern_call_is_cancelled(directory: Path) -> None:
    with StdioClient(directory) as client:
        client.modern("tools/list")
        arguments = {"message": waiting(directory)}
        number = client.begin("tools/call", name="busy", arguments=arguments, _meta=META)
        wait_until((directory / "begun").exists)
        client.notify("notifications/cancelled", requestId=number)
        answer = client.modern("tools/call", name="busy", arguments={"message": "and now"})
        assert answer["result"]["content"][0]["text"] == "and now"
        assert client.heard == []
        assert client.end() == ""


def test_changed_cards_are_reported_of(directory: Path) -> None:
    with StdioClient(directory, "--watch", "--instance-scope", "shared") as client:
        client.open()
        client.ask("tools/list")
        write_whole(directory / "cards" / "new.md", "---\nmodel: passthrough\n---\nHi.\n")
        while (heard := client.read())["method"] != "notifications/tools/list_changed":
            assert "id" not in heard
        assert client.call("new", "hello") == "hello"


BAD = (
    b"nonsense",
    b"[]",
    b'{"jsonrpc":"2.0","id":9,"method":7}',
    b'{"jsonrpc":"2.0","id":9,"method":"tools/list"}',
    b'{"jsonrpc":"2.0","id":9,"method":"initialize","params":{"protocolVersion":1}}',
    b'{"jsonrpc":"2.0","id":9,"method":"ping","params":' + b"[" * 10_000 + b"}",
)


@pytest.mark.spec("SERVE-6")
def test_a_cancellation_right_behind_its_call_is_not_lost(directory: Path) -> None:
    with StdioClient(directory) as client:
        client.open()
        asked = {"name": "busy", "arguments": {"message": waiting(directory)}}
        both: list[dict[str, Any]] = [
            {"id": 50, "method": "tools/call", "params": asked},
            {"method": "notifications/cancelled", "params": {"requestId": 50}},
        ]
        client.write(b"\n".join(json.dumps({"jsonrpc": "2.0", **one}).encode() for one in both))
        assert client.call("busy", "and now") == "and now"
        assert not [one for one in client.heard if one.get("id") == 50]
        assert client.end() == ""


@pytest.mark.spec("SERVE-13")
def test_a_second_handshake_is_refused(directory: Path) -> None:
    with StdioClient(directory) as client:
        client.open()
        again = client.ask("initialize", **{**HELLO, "protocolVersion": "2025-06-18"})
        assert again["error"]["message"] == "the session is initialized already"
        assert client.call("ann", "hello") == "hello"


@pytest.mark.spec("SERVE-13")
@pytest.mark.parametrize("lines", [BAD, BAD[::-1]])
def test_who_opens_badly_may_open_well_after_that(
    directory: Path, lines: tuple[bytes, ...]
) -> None:
    with StdioClient(directory) as client:
        for line in lines:
            client.write(line)
            assert "error" in client.read()
        client.open()
        assert client.call("ann", "hello") == "hello"
        assert "Traceback" not in client.end()


@pytest.mark.spec("SERVE-13")
def test_bad_lines_in_between_are_refused(directory: Path) -> None:
    with StdioClient(directory) as client:
        client.open()
        for line in BAD[:3]:
            client.write(line)
            assert "error" in client.read()
        assert client.call("ann", "hello") == "hello"
        assert "Traceback" not in client.end()
