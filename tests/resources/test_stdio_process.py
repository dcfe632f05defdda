"""The stdio server as a process: how it ends, and what its standard output carries."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

HELLO: dict[str, Any] = {
    "protocolVersion": "2025-11-25",
    "capabilities": {},
    "clientInfo": {"name": "test", "version": "1"},
}
META: dict[str, Any] = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientCapabilities": {},
}
ONE = "skill://one/SKILL.md"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "one").mkdir()
    text = "---\nname: one\ndescription: About one.\n---\nDo it.\n"
    (tmp_path / "one/SKILL.md").write_text(text, "utf-8")
    return tmp_path


def spawn(root: Path) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [Path(sys.executable).with_name("fast-agent"), "resources", "serve", "--skills", root],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )


def ask(process: subprocess.Popen[bytes], method: str, params: object = None) -> Any:
    assert process.stdin is not None
    assert process.stdout is not None
    message = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
    process.stdin.write(json.dumps(message).encode() + b"\n")
    process.stdin.flush()
    return json.loads(process.stdout.readline())


def ended(process: subprocess.Popen[bytes]) -> tuple[int, bytes, bytes]:
    out, err = process.communicate(timeout=60)
    return process.returncode, out, err


def test_a_process_ends_with_its_input(root: Path) -> None:
    process = spawn(root)
    assert ask(process, "initialize", HELLO)["result"]["serverInfo"]["name"]
    assert ended(process) == (0, b"", b"")


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_process_ends_with_a_signal(root: Path, number: signal.Signals) -> None:
    process = spawn(root)
    assert "result" in ask(process, "initialize", HELLO)
    process.send_signal(number)
    assert ended(process) == (0, b"", b"")


def test_a_stream_is_ended_when_the_process_is(root: Path) -> None:
    process = spawn(root)
    params = {"notifications": {"resourceSubscriptions": [ONE]}, "_meta": META}
    assert ask(process, "subscriptions/listen", params)["method"].endswith("acknowledged")
    process.send_signal(signal.SIGTERM)
    code, out, _ = ended(process)
    assert (code, json.loads(out)["id"]) == (0, 1)


def test_a_client_that_does_not_read_cannot_keep_the_process(root: Path) -> None:
    (root / "one/big.txt").write_text("x" * 900_000, "utf-8")
    process = spawn(root)
    assert "result" in ask(process, "initialize", HELLO)
    assert process.stdin is not None
    message = {"jsonrpc": "2.0", "id": 1, "method": "resources/read"}
    line = json.dumps({**message, "params": {"uri": "skill://one/big.txt"}}).encode() + b"\n"
    process.stdin.write(line * 20)
    process.stdin.flush()
    time.sleep(0.3)
    process.send_signal(signal.SIGTERM)
    assert process.wait(60) == 0
    process.communicate()


def test_a_client_that_leaves_ends_the_process(root: Path) -> None:
    process = spawn(root)
    assert "result" in ask(process, "initialize", HELLO)
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdout.close()
    process.stdin.write(b'{"jsonrpc":"2.0","id":2,"method":"ping"}\n' * 3)
    process.stdin.flush()
    assert process.wait(60) == 0
    assert process.stderr is not None
    assert process.stderr.read() == b""
    process.stderr.close()
    process.stdin.close()


@pytest.mark.spec("T-16")
def test_standard_output_carries_messages_only(root: Path) -> None:
    """What a library prints, even below Python, goes to standard error."""
    code = (
        "import os, sys\n"
        "from fast_agent.resources.stdio import serve_stdio\n"
        "from fast_agent.resources.roots import ResourceRoots\n"
        "service = ResourceRoots(skills=(sys.argv[1],)).open().service('t', '1')\n"
        "read = service.catalog.read\n"
        "def noisy(uri):\n"
        "    print('printed', flush=True); os.write(1, b'written\\n'); os.system('echo shouted')\n"
        "    assert sys.stdin.read() == ''\n"
        "    return read(uri)\n"
        "service.catalog.read = noisy\n"
        "serve_stdio(service)\n"
    )
    message = {"jsonrpc": "2.0", "id": 1, "method": "resources/read"}
    asked = [
        {"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": HELLO},
        {**message, "params": {"uri": ONE}},
    ]
    done = subprocess.run(
        [sys.executable, "-c", code, root],
        input="".join(json.dumps(one) + "\n" for one in asked).encode(),
        capture_output=True,
        timeout=60,
        check=True,
    )
    assert [json.loads(line)["id"] for line in done.stdout.splitlines()] == [0, 1]
    assert done.stderr.split() == [b"printed", b"written", b"shouted"]


def test_the_loop_imports_no_sdk_and_no_event_loop(root: Path) -> None:
    code = (
        "import sys\nfrom fast_agent.cli.main import main\n"
        f"main(['resources', 'serve', '--skills', {str(root)!r}])\n"
        "heavy = ('asyncio', 'anyio', 'mcp', 'mcp_types', 'pydantic', 'click', 'yaml', 'socket')\n"
        "print([name for name in heavy if name in sys.modules], file=sys.stderr)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], input=b"", capture_output=True, timeout=60, check=True
    )
    assert done.stderr.split(b"\n")[-2] == b"[]", done.stderr
