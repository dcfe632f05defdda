"""`fast-agent serve` over HTTP as it runs: plain clients, rude ones, and the end."""

from __future__ import annotations

import http.client
import shutil
import signal
import socket
import sys
import threading
import time
from contextlib import ExitStack, closing
from typing import TYPE_CHECKING, Any

import anyio
import mcp_types as types
import pytest
from mcp.client import Client
from tests.patience import wait_until
from tests.serve.agent_process import (
    HandshakeClient,
    ImpatientAgents,
    ServedAgents,
    answer_in,
    call,
    message,
)
from tests.serve.served import ACCEPT, HELLO, META

if TYPE_CHECKING:
    from collections.abc import Callable, Generator
    from pathlib import Path

QUICKLY = 60.0


def write_cards(directory: Path) -> Path:
    cards = directory / "cards"
    cards.mkdir()
    for name, lines in (
        ("ann", "model: passthrough"),
        ("slow", "model: slow?seconds=600"),
        ("busy", "model: passthrough\nshell: true"),
    ):
        (cards / f"{name}.md").write_text(f"---\n{lines}\nhuman_input: true\n---\nHi.\n")
    return directory


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Generator[ServedAgents]:
    directory = write_cards(tmp_path_factory.mktemp("shared"))
    with ServedAgents(directory, "--no-session", "--instance-scope", "shared") as server:
        yield server
        code, err = server.stop()
        assert code == 0
        assert "Traceback" not in err


@pytest.fixture(scope="module")
def apart(tmp_path_factory: pytest.TempPathFactory) -> Generator[ServedAgents]:
    directory = write_cards(tmp_path_factory.mktemp("apart"))
    with ServedAgents(directory, "--instance-scope", "connection") as server:
        yield server


@pytest.mark.spec("SERVE-12")
def test_plain_calls_and_streamed_ones_say_the_same(apart: ServedAgents) -> None:
    client = apart.open()
    plain = client.call("ann", "hello")
    streamed = client.call("ann", "hello", progressToken=7)
    askable = apart.open({"elicitation": {}}).call("ann", "hello")
    assert plain == streamed == askable
    assert plain["content"] == [{"type": "text", "text": "hello"}]
    modern = apart.modern_call("ann", "hello")
    assert modern["structuredContent"] == plain["structuredContent"]
    assert (modern["resultType"], modern["isError"]) == ("complete", False)
    again = apart.modern_call(
        "ann", "hello", **{"io.modelcontextprotocol/clientCapabilities": {"elicitation": {}}}
    )
    assert again["structuredContent"] == plain["structuredContent"]


@pytest.mark.spec("SCOPE-3", "SCOPE-4")
def test_nobody_sees_what_others_said(apart: ServedAgents) -> None:
    one, two = apart.open(), apart.open()
    one.call("ann", "secret")
    history = {"name": "ann_history"}
    assert two.send("prompts/get", history)["result"]["messages"] == []
    assert len(one.send("prompts/get", history)["result"]["messages"]) == 2
    stranger = dict(two.headers)
    two.headers["Mcp-Session-Id"] = "0" * 32
    assert two.post(message("tools/call", call("ann", "x"), 1))[0] == 404
    two.headers = stranger
    answer = apart.modern_call("ann", "x", **{"fast-agent/session": one.headers["Mcp-Session-Id"]})
    assert answer["error"]["code"] == -32602
    assert "unknown or expired" in answer["error"]["message"]


@pytest.mark.parametrize("mode", ["legacy", "2026-07-28"])
def test_the_sdk_client_is_asked_and_told(served: ServedAgents, mode: str) -> None:
    steps: list[float] = []

    async def answer(context: object, params: Any) -> types.ElicitResult:
        del context, params
        return types.ElicitResult(action="accept", content={"text": "blue"})

    async def hear(progress: float, total: float | None, message: str | None) -> None:
        del total, message
        steps.append(progress)

    async def main() -> None:
        async with Client(served.url, mode=mode, elicitation_callback=answer) as client:
            question = '***CALL_TOOL request_human_input {"message": "Which?"}'
            given = await client.call_tool("ann", {"message": question}, progress_callback=hear)
            assert given.structured_content is not None
            assert given.structured_content["text"] == "blue"

    anyio.run(main)
    assert steps
    assert steps == sorted(steps)


def test_answers_do_not_say_what_serves(served: ServedAgents) -> None:
    for method in ("GET", "POST", "PUT"):
        connection = ServedAgents.connect(served)
        connection.request(method, "/mcp")
        assert connection.getresponse().getheader("server") is None
        connection.close()


@pytest.mark.spec("SERVE-13")
@pytest.mark.parametrize(
    ("body", "code"), [(b"{", -32700), (b"[]", -32600), (b'"x"', -32600), (b"\xff", -32700)]
)
def test_what_is_no_request_is_refused(served: ServedAgents, body: bytes, code: int) -> None:
    status, answer = served.post(body, {"MCP-Protocol-Version": "2026-07-28"})
    assert (status, answer["error"]["code"]) == (400, code)


@pytest.mark.spec("SERVE-13")
def test_unknown_versions_are_refused_or_answered_with_a_known_one(served: ServedAgents) -> None:
    old = {**META, "io.modelcontextprotocol/protocolVersion": "1999-01-01"}
    body = message("tools/call", call("ann", "x", **old), 1)
    headers = {"Mcp-Method": "tools/call", "Mcp-Name": "ann"}
    status, answer = served.post(body, {"MCP-Protocol-Version": "1999-01-01", **headers})
    assert (status, answer["error"]["code"]) == (400, -32022)
    assert answer["error"]["data"]["supported"] == ["2026-07-28"]
    hello = message("initialize", {**HELLO, "protocolVersion": "1999-01-01"}, 1)
    status, text = served.post(hello)
    assert status == 200
    found: Any = answer_in(text) if isinstance(text, bytes) else text
    assert found["result"]["protocolVersion"] == "2025-11-25"


@pytest.mark.spec("SERVE-13")
def test_100_mb_are_not_taken(served: ServedAgents) -> None:
    size = 100 << 20
    head = f"POST /mcp HTTP/1.1\r\nHost: 127.0.0.1:{served.port}\r\nContent-Length: {size}\r\n"
    head += "".join(f"{name}: {value}\r\n" for name, value in ACCEPT.items()) + "\r\n"
    with socket.create_connection(("127.0.0.1", served.port), timeout=QUICKLY) as one:
        one.sendall(head.encode())
        chunk, answer = b" " * (1 << 20), b""
        try:
            for _ in range(100):
                one.sendall(chunk)
        except OSError:
            pass  # the server has closed the connection
        try:
            answer = one.recv(1 << 16)
        except OSError:
            answer = b"HTTP/1.1 413 "
    assert answer.startswith(b"HTTP/1.1 413 ")
    status = f"/proc/{served.process.pid}/status"
    with open(status) as lines:  # noqa: PTH123 - it is not a file of a disk
        peak = next(int(line.split()[1]) for line in lines if line.startswith("VmHWM"))
    assert peak < 250_000, "the body was held in memory"
    assert served.open().call("ann", "still here")["isError"] is False


@pytest.mark.spec("SERVE-6")
@pytest.mark.parametrize("way", ["plain", "streamed", "modern", "modern streamed"])
def test_a_call_ends_when_its_client_leaves(served: ServedAgents, way: str) -> None:
    token: dict[str, Any] = {"progressToken": 1} if "streamed" in way else {}
    headers = dict(ACCEPT)
    if way.startswith("modern"):
        token |= META
        headers |= {
            "MCP-Protocol-Version": "2026-07-28",
            "Mcp-Method": "tools/call",
            "Mcp-Name": "busy",
        }
    else:
        headers = served.open().headers
    begun = served.directory / way
    working = f"""***CALL_TOOL execute {{"command": "touch '{begun}'; exec sleep 600"}}"""
    body = message("tools/call", call("busy", working, **token), 5)
    head = f"POST /mcp HTTP/1.1\r\nHost: 127.0.0.1:{served.port}\r\nContent-Length: {len(body)}\r\n"
    head += "".join(f"{name}: {value}\r\n" for name, value in headers.items()) + "\r\n"
    with socket.create_connection(("127.0.0.1", served.port), timeout=QUICKLY) as one:
        one.sendall(head.encode() + body)
        wait_until(begun.exists)
    # The next call on the same history waits for the one before it.
    assert served.open().call("busy", "next")["isError"] is False


def cancel_until(
    done: Callable[[], bool], served: ServedAgents, client: Any, request_id: int
) -> None:
    """Call a request off again and again: nobody knows when the server has begun with it."""

    def is_done() -> bool:
        cancel(served, client, request_id)
        time.sleep(0.1)
        return done()

    wait_until(is_done)


def cancel(served: ServedAgents, client: Any, request_id: int) -> None:
    other = ServedAgents.connect(served)
    body = message("notifications/cancelled", {"requestId": request_id}, None)
    other.request("POST", "/mcp", body, client.headers)
    assert other.getresponse().status == 202
    other.close()


@pytest.mark.spec("SERVE-6")
@pytest.mark.parametrize("streamed", [False, True])
def test_a_call_that_is_called_off_is_answered_so(served: ServedAgents, streamed: bool) -> None:
    client = served.open()
    token: dict[str, Any] = {"progressToken": 1} if streamed else {}
    answers: list[Any] = []
    body = message("tools/call", call("slow", "hello", **token), 9)
    thread = threading.Thread(target=lambda: answers.append(client.post(body)))
    thread.start()
    cancel_until(lambda: bool(answers), served, client, 9)
    thread.join(QUICKLY)
    assert answer_in(answers[0][1])["error"]["code"] == -32800


def health_of(
    server: ServedAgents, method: str = "GET", *, path: str = "/health", old: bool = False
) -> tuple[int, bytes]:
    with closing(server.connect()) as connection:
        if old:  # as load balancers ask
            vars(connection).update(_http_vsn=10, _http_vsn_str="HTTP/1.0")
        connection.putrequest(method, path, skip_host=old)
        connection.endheaders()
        answer = connection.getresponse()
        return answer.status, answer.read()


@pytest.mark.spec("SERVE-14")
def test_a_token_is_asked_for(tmp_path: Path) -> None:
    token = tmp_path / "token"
    token.write_text("a-token-of-some-length\n")
    with ServedAgents(write_cards(tmp_path), "--token-file", str(token)) as server:
        body = message("initialize", HELLO, 1)
        assert server.post(body)[0] == 401
        assert server.post(body, {"Authorization": "Bearer wrong-wrong-wrong-wrong"})[0] == 401
        assert server.post(body, {"Authorization": "Bearer a-token-of-some-length"})[0] == 200
        assert server.post(body, {"Host": "evil.example"})[0] == 421
        assert health_of(server) == (200, b'{"status":"ok"}'), "load balancers send no token"
        assert health_of(server, old=True) == (200, b'{"status":"ok"}'), "nor a Host"
        assert health_of(server, path="/mcp", old=True)[0] == 400
        assert health_of(server, "HEAD") == (200, b"")
        assert health_of(server, "POST")[0] == 405


@pytest.mark.spec("SERVE-14")
def test_strange_hosts_and_origins_are_refused(served: ServedAgents) -> None:
    body = message("initialize", HELLO, 1)
    assert served.post(body, {"Host": "evil.example"})[0] == 421
    assert served.post(body, {"Origin": "http://evil.example"})[0] == 403


@pytest.mark.spec("SERVE-15")
def test_calls_under_way_are_answered_before_the_end(tmp_path: Path) -> None:
    with ServedAgents(write_cards(tmp_path), "--instance-scope", "connection") as server:
        answers: list[str] = []
        goes_on = tmp_path / "goes on"
        begun = [tmp_path / f"begun {number}" for number in range(2)]

        def ask(client: HandshakeClient, file: Path) -> None:
            wait = f"for one in {{1..5000}}; do [ -e '{goes_on}' ] && break; sleep 0.02; done"
            command = f"touch '{file}'; {wait}; echo done"
            text = f"""***CALL_TOOL execute {{"command": "{command}"}}"""
            answers.append(client.call("busy", text)["content"][0]["text"])

        clients = server.open(), server.open({"elicitation": {}})
        third = server.open()
        threads = [
            threading.Thread(target=ask, args=pair) for pair in zip(clients, begun, strict=True)
        ]
        for thread in threads:
            thread.start()
        wait_until(lambda: all(file.exists() for file in begun))
        server.process.send_signal(signal.SIGTERM)
        again = message("tools/call", call("ann", "again"), 7)
        wait_until(lambda: b"about to stop" in third.post(again)[1])
        assert health_of(server) == (503, b'{"status":"stopping"}')
        goes_on.touch()
        for thread in threads:
            thread.join(QUICKLY)
        assert ["done" in answer for answer in answers] == [True, True]
        assert server.process.wait(QUICKLY) == 0


@pytest.mark.spec("SERVE-15")
@pytest.mark.parametrize("able", [{}, {"elicitation": {}}])
def test_a_call_that_takes_too_long_is_answered_that_it_was_stopped(
    tmp_path: Path, able: dict[str, Any]
) -> None:
    with ImpatientAgents(write_cards(tmp_path)) as server:
        begun, answers = tmp_path / "begun", list[Any]()
        client = server.open(able)
        text = f"""***CALL_TOOL execute {{"command": "touch '{begun}'; sleep 600"}}"""
        asking = threading.Thread(target=lambda: answers.append(client.call("busy", text)))
        asking.start()
        wait_until(begun.exists)
        assert server.stop() == (0, "")
        asking.join(QUICKLY)
        (answer,) = answers
        assert answer["isError"]
        assert "agent `busy` was stopped" in answer["content"][0]["text"]


@pytest.mark.spec("SERVE-15")
def test_a_call_that_waits_for_its_client_is_answered_before_the_end(tmp_path: Path) -> None:
    with ServedAgents(write_cards(tmp_path)) as server:
        asked = '***CALL_TOOL request_human_input {"message": "Which?"}'
        headers = {
            "MCP-Protocol-Version": "2026-07-28",
            "Mcp-Method": "tools/call",
            "Mcp-Name": "ann",
        }
        able: dict[str, Any] = {
            "io.modelcontextprotocol/clientCapabilities": {"elicitation": {"form": {}}}
        }

        def said(text: str, **more: Any) -> Any:
            params = {**call("ann", text, **{**META, **able}), **more}
            found: Any = server.post(message("tools/call", params, 1), headers)[1]
            return answer_in(found) if isinstance(found, bytes) else found

        first = said(asked)["result"]
        (name,) = first["inputRequests"]
        server.process.send_signal(signal.SIGTERM)
        wait_until(lambda: "error" in said("another"))
        time.sleep(0.5)  # one that did not wait would be gone by now
        answer = {name: {"action": "accept", "content": {"text": "blue"}}}
        done = said(asked, requestState=first["requestState"], inputResponses=answer)
        assert done["result"]["content"][0]["text"] == "blue"
        assert server.process.wait(QUICKLY) == 0


def test_skills_that_vanish_do_not_end_the_server(tmp_path: Path) -> None:
    skill = tmp_path / "skills" / "one"
    skill.mkdir(parents=True)
    (skill / "SKILL.md").write_text("---\nname: one\ndescription: One.\n---\nHi.\n", "utf-8")
    with ServedAgents(write_cards(tmp_path), "--skills", "skills", "--no-session") as server:
        client = server.open()
        assert "one" in str(client.send("resources/list", {}))
        shutil.rmtree(tmp_path / "skills")
        assert client.call("ann", "hi")["content"][0]["text"] == "hi"
        assert "resources" in client.send("resources/list", {})["result"]
        assert server.stop()[0] == 0


def test_an_open_stream_ends_with_the_server(tmp_path: Path) -> None:
    with ServedAgents(write_cards(tmp_path), "--no-session") as server:
        client, connection = server.open(), server.connect()
        connection.request("GET", "/mcp", headers=client.headers)
        answer = connection.getresponse()
        assert answer.status == 200
        assert server.stop() == (0, "")
        answer.read()  # an end that is none would be an error
        connection.close()


@pytest.mark.spec("SERVE-13", "TR-N2.1a")
@pytest.mark.skipif(sys.platform != "linux", reason="only there this machine has many addresses")
def test_a_thousand_abandoned_sessions_keep_nobody_out(tmp_path: Path) -> None:
    directory = write_cards(tmp_path)
    hello = message("initialize", HELLO, 1)
    with ServedAgents(directory, "--no-session") as server, ExitStack() as stack:

        def connect(address: str) -> http.client.HTTPConnection:
            source = (address, 0)
            opened = http.client.HTTPConnection(
                "127.0.0.1", server.port, timeout=QUICKLY, source_address=source
            )
            stack.callback(opened.close)
            return opened

        def post(
            opened: http.client.HTTPConnection, body: bytes, session: str | None = None
        ) -> tuple[int, str | None, bytes]:
            own = {} if session is None else {"Mcp-Session-Id": session}
            opened.request("POST", "/mcp", body, {**ACCEPT, **own})
            answer = opened.getresponse()
            return answer.status, answer.headers["mcp-session-id"], answer.read()

        honest, flood, late = (connect(f"127.0.0.{number}") for number in (2, 3, 4))
        status, own, _ = post(honest, hello)
        assert (status, own is not None) == (200, True)
        assert post(honest, message("tools/call", call("ann", "remember me"), 2), own)[0] == 200
        sessions: list[str | None] = []
        for _ in range(1005):
            status, session, _ = post(flood, hello)
            assert status == 200
            sessions.append(session)
        assert len(set(sessions)) == 1005
        assert post(late, hello)[0] == 200
        history = message("prompts/get", {"name": "ann_history"}, 3)
        status, _, text = post(honest, history, own)
        assert (status, b"remember me" in text) == (200, True)
        ping = message("ping", {}, 4)
        assert [post(flood, ping, one)[0] for one in (sessions[0], sessions[-1])] == [404, 200]
