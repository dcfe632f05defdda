"""Whatever comes over HTTP or stdio is answered: no 500, no traceback, no dump of a library."""

from __future__ import annotations

import json
import re
import socket
import subprocess
import threading
from contextlib import suppress
from random import Random, SystemRandom
from typing import TYPE_CHECKING, Any, Literal, Self, TypeAlias

import pytest
from tests.conftest import PROFILE
from tests.fuzz.strange import BOTH, JSON, HttpRequest, Strange
from tests.patience import PATIENCE
from tests.serve.agent_process import PROGRAM, ServedAgents, environ_in
from tests.serve.served import HELLO, Served, write_skill

if TYPE_CHECKING:
    from collections.abc import Generator
    from pathlib import Path

Kind: TypeAlias = Literal["resources", "agents"]

SEED = 1 if PROFILE == "repeatable" else SystemRandom().randrange(1 << 32)
MANY = 1 if PROFILE == "repeatable" else 10
REQUESTS = 5_000 * MANY
MESSAGES = 1_500 * MANY
VERSION = "2025-11-25"
CARD = "---\ntype: agent\nname: ann\nmodel: passthrough\n---\nSay it back.\n"
HELLO_BODY = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": HELLO})
READY = b'{"jsonrpc":"2.0","method":"notifications/initialized"}'
EXCEPTION = re.compile(rb"internal error|internal server error|traceback|\.py\b", re.IGNORECASE)
"""What an answer says that was an exception."""
DUMP = re.compile(rb"pydantic|validation error|input_value", re.IGNORECASE)
"""Words of a library."""
FAILED = re.compile(r"Traceback|could not answer|Exception in|Error:")
"""What a server logs of an exception that it answered as something else."""


class Answered:
    """An answer over HTTP."""

    def __init__(self, status: int, headers: dict[str, str], body: bytes) -> None:
        self.status = status
        self.headers = headers
        self.body = body

    @property
    def messages(self) -> list[Any]:
        """The JSON-RPC messages in it."""
        if not self.body:
            return []
        if self.headers.get("content-type", "").startswith("text/event-stream"):
            lines = self.body.splitlines()
            return [json.loads(line[6:]) for line in lines if line[:6] == b"data: " and line[6:]]
        return [json.loads(self.body)]


class RawHttp:
    """A client that sends bytes, over one connection as long as the server keeps it."""

    def __init__(self, port: int) -> None:
        self.port = port
        self._socket: socket.socket | None = None
        self._read = bytearray()
        self.session = ""

    def open_session(self) -> None:
        answer = self.post(HELLO_BODY.encode(), own=False)
        assert answer.status == 200, answer.body
        self.session = answer.headers["mcp-session-id"]

    def post(self, body: bytes, *, own: bool = True) -> Answered:
        """Send a message as a good client does.

        Args:
            body: The message.
            own: Whether it belongs to the session that is open.
        """
        lines = ["POST /mcp HTTP/1.1", f"Host: 127.0.0.1:{self.port}", f"Content-Type: {JSON}"]
        lines += [f"Accept: {BOTH}", f"Content-Length: {len(body)}"]
        if own:
            lines += [f"Mcp-Session-Id: {self.session}", f"MCP-Protocol-Version: {VERSION}"]
        return self.ask(HttpRequest("\r\n".join([*lines, "", ""]).encode() + body, "POST", body))

    def ask(self, request: HttpRequest) -> Answered:
        if self._socket is None:
            self._socket = socket.create_connection(("127.0.0.1", self.port), PATIENCE)
        with suppress(OSError):  # a refused request may be answered before all of it is sent
            self._socket.sendall(request.data)
        answer, goes_on = self._answer(request.method)
        # A connection whose request was refused is slowed down; another one is not.
        if not goes_on or answer.body.startswith(b'{"error"') or answer.status >= 400 > 0:
            self.close()
        return answer

    def close(self) -> None:
        if self._socket is not None:
            self._socket.close()
        self._socket = None
        self._read.clear()

    def _answer(self, method: str) -> tuple[Answered, bool]:
        """Read an answer; also whether the connection goes on after it."""
        first, *lines = self._head()
        while first.startswith("HTTP/1.1 100"):
            first, *lines = self._head()
        status = int(first.split()[1])
        headers = {name.lower(): value for name, _, value in (one.partition(": ") for one in lines)}
        goes_on = headers.get("connection") != "close"
        if method == "HEAD" or status in {204, 304}:
            return Answered(status, headers, b""), goes_on
        if "content-length" in headers:
            return Answered(status, headers, self._take(int(headers["content-length"]))), goes_on
        if method == "GET" or headers.get("transfer-encoding") != "chunked":
            return Answered(status, headers, b""), False  # a stream without an end
        body = b""
        while size := int(self._until(b"\r\n"), 16):
            body += self._take(size + 2)[:size]
            if b"subscriptions/acknowledged" in body:
                return Answered(status, headers, body), False
        self._take(2)
        return Answered(status, headers, body), goes_on

    def _head(self) -> list[str]:
        return self._until(b"\r\n\r\n").decode("latin-1").split("\r\n")

    def _until(self, end: bytes) -> bytes:
        while end not in self._read:
            self._more()
        found, _, self._read = self._read.partition(end)
        return bytes(found)

    def _take(self, size: int) -> bytes:
        while len(self._read) < size:
            self._more()
        found, self._read = bytes(self._read[:size]), self._read[size:]
        return found

    def _more(self) -> None:
        assert self._socket is not None
        data = self._socket.recv(1 << 16)
        assert data, "the server ended a connection without an answer"
        self._read += data


class Door:
    """A server over HTTP, its raw client, and what it logs."""

    def __init__(self, kind: Kind, place: Path) -> None:
        skills = place / "skills"
        self.server = (
            Served(skills)
            if kind == "resources"
            else ServedAgents(place, *_OFFERED, "--instance-scope", "connection")
        )
        self._logged: list[str] = []
        self._reader = threading.Thread(target=self._read_log)
        self._reader.start()
        self.http = RawHttp(self.server.port)

    def _read_log(self) -> None:
        assert self.server.process.stderr is not None
        self._logged += self.server.process.stderr

    def stop(self) -> str:
        """Stop the server in good order; return what it logged."""
        self.http.close()
        self.server.process.terminate()
        assert self.server.process.wait(PATIENCE) == 0
        self._reader.join()
        return "".join(self._logged)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.http.close()
        if self.server.process.poll() is None:
            self.server.process.kill()
            self.server.process.wait()
        self._reader.join()
        assert self.server.process.stderr is not None
        self.server.process.stderr.close()


class Lines:
    """A server over stdio, and its client."""

    def __init__(self, kind: Kind, place: Path) -> None:
        command = [PROGRAM, "resources", "serve", "--skills", "skills"]
        if kind == "agents":
            command = [PROGRAM, "serve", "--card", "cards", "--transport", "stdio", *_OFFERED]
        self.log = place / f"{kind}.log"
        pipe = subprocess.PIPE
        with self.log.open("wb") as log:
            self.process = subprocess.Popen(
                command, stdin=pipe, stdout=pipe, stderr=log, cwd=place, env=environ_in(place)
            )
        self._number = 0

    def open_session(self) -> None:
        assert len(self.ask(HELLO_BODY.encode(), 1)) == 1
        self.ask(READY, 0)

    def ask(self, line: bytes, answers: int) -> list[Any]:
        """Send a line, and another one whose answer shows that it was dealt with.

        Args:
            line: What is asked.
            answers: How many there are at least.

        Returns:
            What was answered, without notifications.
        """
        self._number += 1
        mark = f"after {self._number}"
        ping = json.dumps({"jsonrpc": "2.0", "id": mark, "method": "ping"}).encode()
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(line + b"\n" + ping + b"\n")
        self.process.stdin.flush()
        found: list[Any] = []
        marked = False
        while not marked or len(found) < answers:
            text = self.process.stdout.readline()
            assert text, f"the server ended: {line!r}"
            message = json.loads(text)
            if message.get("id") == mark:
                assert message.get("result") == {}, message
                marked = True
            elif "method" not in message:
                found.append(message)
        return found

    def stop(self) -> str:
        """Hang up; return what it logged."""
        assert self.process.stdin is not None
        self.process.stdin.close()
        assert self.process.wait(PATIENCE) == 0
        return self.log.read_text("utf-8")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.process.kill()
        self.process.wait()
        for stream in (self.process.stdin, self.process.stdout):
            if stream is not None:
                with suppress(OSError):  # what was not read yet
                    stream.close()


_OFFERED = ("--skills", "skills", "--reload", "--allow-load", "cards")


@pytest.fixture(params=["resources", "agents"])
def kind(request: pytest.FixtureRequest) -> Kind:
    return request.param


@pytest.fixture
def place(tmp_path: Path) -> Path:
    write_skill(tmp_path / "skills", "one")
    (tmp_path / "cards").mkdir()
    (tmp_path / "cards/ann.md").write_text(CARD)
    return tmp_path


@pytest.fixture
def door(kind: Kind, place: Path, monkeypatch: pytest.MonkeyPatch) -> Generator[Door]:
    for name, value in environ_in(place).items():
        monkeypatch.setenv(name, value)
    with Door(kind, place) as door:
        door.http.open_session()
        yield door


@pytest.fixture
def lines(kind: Kind, place: Path) -> Generator[Lines]:
    with Lines(kind, place) as lines:
        lines.open_session()
        yield lines


@pytest.mark.timeout(3600)
@pytest.mark.spec("TR-N3.2b")
def test_no_request_over_http_is_answered_with_an_exception(door: Door) -> None:
    strange = Strange(Random(SEED))
    for number in range(REQUESTS):
        request = strange.request(door.http.port, door.http.session)
        answer = door.http.ask(request)
        said = f"seed {SEED}, {number}: {request} was answered {answer.body!r}"
        assert answer.status < 500, said
        assert not EXCEPTION.search(answer.body), said
        if answer.status == 200 and request.method == "DELETE":
            door.http.open_session()
    log = door.stop()
    assert not FAILED.search(log), f"seed {SEED}: {log[-5_000:]}"


@pytest.mark.spec("TR-N3.2a")
@pytest.mark.timeout(3600)
def test_a_message_is_answered_alike_over_http_and_over_stdio(door: Door, lines: Lines) -> None:
    strange = Strange(Random(SEED))
    for number in range(MESSAGES):
        message = strange.message(modern=False).replace(b"\n", b" ")
        if not message.strip(b" \t\r"):
            continue  # a blank line is not a message, and an empty body is a wrong one
        answer = door.http.post(message)
        over_http = [one for one in answer.messages if "method" not in one]
        over_stdio = lines.ask(message, len(over_http))
        said = f"seed {SEED}, {number}: {message!r}"
        assert sorted(map(text_of, over_stdio)) == sorted(map(text_of, over_http)), said
        assert not DUMP.search(answer.body), said
        assert not EXCEPTION.search(json.dumps(over_stdio).encode()), said
    for log in (door.stop(), lines.stop()):
        assert not FAILED.search(log), f"seed {SEED}: {log[-5_000:]}"


def text_of(message: Any) -> str:
    return json.dumps(message, sort_keys=True)
