"""`fast-agent serve --transport stdio` as a host starts it."""

from __future__ import annotations

import json
import signal
import subprocess
import time
from typing import TYPE_CHECKING, Any

import anyio
import mcp_types as types
import pytest
from mcp.client import Client
from mcp.client.stdio import StdioServerParameters
from tests.patience import wait_until
from tests.serve.agent_process import PROGRAM, call, environ_in, impatient
from tests.serve.served import HELLO
from tests.serve.stdio_client import StdioClient

from fast_agent.sessions.store import SessionStore

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    cards = tmp_path / "cards"
    cards.mkdir()
    (cards / "ann.md").write_text("---\nmodel: passthrough\nhuman_input: true\n---\nHi.\n")
    (cards / "brief.md").write_text("---\nmodel: slow?seconds=0.5\n---\nHi.\n")
    (cards / "busy.md").write_text("---\nmodel: passthrough\nshell: true\n---\nHi.\n")
    return tmp_path


def command(*options: str) -> list[str]:
    return [str(PROGRAM), "serve", "--card", "cards", "--transport", "stdio", *options]


def started(directory: Path, *options: str) -> subprocess.Popen[bytes]:
    pipe = subprocess.PIPE
    return subprocess.Popen(
        command(*options),
        stdin=pipe,
        stdout=pipe,
        stderr=pipe,
        cwd=directory,
        env=environ_in(directory),
    )


def line(method: str, params: dict[str, Any], request_id: int | None) -> bytes:
    one: dict[str, Any] = {"jsonrpc": "2.0", "method": method, "params": params}
    return json.dumps(one if request_id is None else {**one, "id": request_id}).encode() + b"\n"


OPENING = line("initialize", HELLO, 1) + line("notifications/initialized", {}, None)


@pytest.mark.spec("SERVE-16")
@pytest.mark.parametrize("mode", ["legacy", "auto"])
def test_the_sdk_client_starts_it_and_is_asked(directory: Path, mode: str) -> None:
    async def answer(context: object, params: Any) -> types.ElicitResult:
        del context, params
        return types.ElicitResult(action="accept", content={"text": "blue"})

    async def main() -> None:
        first, *rest = command("--instance-scope", "connection")
        server = StdioServerParameters(
            command=first, args=rest, cwd=directory, env=environ_in(directory)
        )
        async with Client(server, mode=mode, elicitation_callback=answer) as client:
            assert client.protocol_version == ("2025-11-25" if mode == "legacy" else "2026-07-28")
            question = '***CALL_TOOL request_human_input {"message": "Which?"}'
            given = await client.call_tool("ann", {"message": question})
            assert given.structured_content is not None
            assert given.structured_content["text"] == "blue"

    anyio.run(main)
    assert len(SessionStore(directory / "home").list()) == 1


@pytest.mark.spec("SERVE-16", "SERVE-13")
def test_what_came_before_the_end_of_input_is_answered(directory: Path) -> None:
    given = b"".join(
        [
            OPENING,
            b"{nonsense\n",
            b'{"jsonrpc":"1.0"}\n',
            b"x" * (5 << 20) + b"\n",
            line("tools/call", call("brief", "hello"), 2),
        ]
    )
    with started(directory, "--no-session") as process:
        out, err = process.communicate(given, timeout=60)
    assert process.returncode == 0, err
    answers = [json.loads(one) for one in out.splitlines()]
    by_id = {one["id"]: one for one in answers if one.get("id") is not None}
    assert by_id[1]["result"]["protocolVersion"] == "2025-11-25"
    assert by_id[2]["result"]["content"][0]["text"] == "hello"
    codes = sorted(one["error"]["code"] for one in answers if one.get("id") is None)
    assert codes == [-32700, -32600, -32600]
    assert b"Traceback" not in err


@pytest.mark.spec("SERVE-15")
@pytest.mark.parametrize("sent", [signal.SIGTERM, signal.SIGINT])
def test_calls_under_way_are_answered_before_the_end(directory: Path, sent: int) -> None:
    with started(directory) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        begun, goes_on = directory / "begun", directory / "goes on"
        command = f"touch '{begun}'; until [ -e '{goes_on}' ]; do sleep 0.02; done"
        text = f"""***CALL_TOOL execute {{"command": "{command}"}}"""
        process.stdin.write(OPENING + line("tools/call", call("busy", text), 2))
        process.stdin.flush()
        assert json.loads(process.stdout.readline())["id"] == 1
        wait_until(begun.exists)
        process.send_signal(sent)
        time.sleep(0.1)  # for the signal to be heard first; nothing fails if it is not
        goes_on.touch()
        assert json.loads(process.stdout.readline())["result"]["isError"] is False
        assert process.wait(60) == 0


@pytest.mark.spec("SERVE-15")
def test_a_call_that_takes_too_long_is_answered_that_it_was_stopped(directory: Path) -> None:
    begun = directory / "begun"
    text = f"""***CALL_TOOL execute {{"command": "touch '{begun}'; sleep 600"}}"""
    pipe = subprocess.PIPE
    program = [str(one) for one in impatient(directory / "cards", "stdio")]
    environ = environ_in(directory)
    with subprocess.Popen(program, stdin=pipe, stdout=pipe, cwd=directory, env=environ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(OPENING + line("tools/call", call("busy", text), 2))
        process.stdin.flush()
        assert json.loads(process.stdout.readline())["id"] == 1
        wait_until(begun.exists)
        process.send_signal(signal.SIGTERM)
        answer = json.loads(process.stdout.readline())["result"]
        assert answer["isError"]
        assert "agent `busy` was stopped" in answer["content"][0]["text"]
        assert process.wait(60) == 0


@pytest.mark.spec("SERVE-6")
def test_a_client_that_stops_reading_ends_it(directory: Path) -> None:
    with started(directory) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdout.close()
        process.stdin.write(OPENING + line("tools/list", {}, 2))
        process.stdin.flush()
        assert process.wait(60) == 0


def test_wrong_use_is_said_before_anything_runs(directory: Path) -> None:
    for options, words, status in (
        (("--token-file", "x"), b"--token-file applies only to --transport http", 2),
        (("--host", "127.0.0.1"), b"--host applies only to --transport http", 2),
        (("--port", "0"), b"--port applies only to --transport http", 2),
        (("--allow-load", "nowhere"), b"`nowhere`, which is not a directory", 1),
        (("--skills", "nowhere"), b"`nowhere`, which is not a directory", 1),
        (("--model", "nonsense.model"), b"nonsense", 1),
        (("--dump-agent", "ann"), b"must be used together", 2),
    ):
        done = subprocess.run(
            command(*options),
            input=b"",
            capture_output=True,
            cwd=directory,
            env=environ_in(directory),
            check=False,
        )
        assert (done.returncode, done.stdout) == (status, b"")
        assert words in done.stderr


@pytest.mark.spec("SERVE-6")
def test_an_id_of_a_call_that_runs_is_refused(tmp_path: Path) -> None:
    cards = tmp_path / "cards"
    cards.mkdir()
    for name, seconds in (("short", 0.3), ("long", 600)):
        (cards / f"{name}.md").write_text(f"---\nmodel: slow?seconds={seconds}\n---\nWait.\n")
    with StdioClient(tmp_path, "--no-session", "--instance-scope", "connection") as client:
        client.open()
        for agent in ("long", "short"):
            client.write(line("tools/call", call(agent, agent, progressToken=agent), 77).strip())
        came = [client.read() for _ in range(2)]
        (refused,) = [one["error"]["message"] for one in came if "error" in one]
        (begun,) = [one["params"]["progressToken"] for one in came if "params" in one]
        assert (refused, begun) == ("a request with this id is running", "long")
        client.notify("notifications/cancelled", requestId=77)
        wait_until(lambda: len(heard(client, "long_history")) == 2)
        assert heard(client, "long_history") == ["long", "[cancelled before an answer]"]
        client.end()


def heard(client: StdioClient, prompt: str) -> list[str]:
    found = client.ask("prompts/get", name=prompt)["result"]["messages"]
    return [one["content"]["text"] for one in found]
