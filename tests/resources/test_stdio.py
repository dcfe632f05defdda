"""The stdio edge: what it answers, in which order, and how it ends."""

from __future__ import annotations

import json
import os
import select
import threading
import time
from typing import TYPE_CHECKING, Any

import pytest
from tests.whole_file import write_whole

from fast_agent.resources.catalog import Catalog
from fast_agent.resources.resource import Limits
from fast_agent.resources.service import ResourceService, ServerInfo
from fast_agent.resources.skill.provider import SkillProvider
from fast_agent.resources.stdio import MAX_BATCH, StdioServer
from fast_agent.rpc.message import MAX_LINE_BYTES, Lines

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

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


def write_skill(root: Path, name: str, body: str = "Do it.") -> Path:
    folder = root / name
    folder.mkdir(parents=True, exist_ok=True)
    head = folder / "SKILL.md"
    write_whole(head, f"---\nname: {name}\ndescription: About {name}.\n---\n{body}\n")
    return head


@pytest.fixture
def root(tmp_path: Path) -> Path:
    for name in ("one", "two"):
        write_skill(tmp_path, name)
    return tmp_path


def make_service(root: Path, limits: Limits | None = None) -> ResourceService:
    catalog = Catalog([SkillProvider([root])], limits or Limits())
    return ResourceService(catalog, ServerInfo("test", "1"))


class Pipe:
    """A client of the loop, which runs in a thread of its own."""

    def __init__(self, service: ResourceService) -> None:
        server_in, self.to_server = os.pipe()
        from_server, server_out = os.pipe()
        self.server = StdioServer(service, server_in, server_out)
        self.out = os.fdopen(from_server, "rb")

        def run() -> None:
            self.server.serve()
            os.close(server_out)
            os.close(server_in)

        self.thread = threading.Thread(target=run)
        self.thread.start()
        self.ids = 0

    def write(self, *messages: object) -> None:
        lines = [one if isinstance(one, bytes) else json.dumps(one).encode() for one in messages]
        data = memoryview(b"".join(line + b"\n" for line in lines))
        while data:
            data = data[os.write(self.to_server, data) :]

    def line(self, seconds: float = 60.0) -> Any:
        if not self.out.peek(0):
            assert select.select([self.out], [], [], seconds)[0], "nothing was answered"
        text = self.out.readline()
        assert text.endswith(b"\n"), text
        return json.loads(text)

    def quiet(self, seconds: float = 0.15) -> bool:
        return not select.select([self.out], [], [], seconds)[0]

    def ask(self, method: str, params: object = None, **more: object) -> Any:
        self.ids += 1
        message = {"jsonrpc": "2.0", "id": self.ids, "method": method, **more}
        self.write(message if params is None else {**message, "params": params})
        answer = self.line()
        assert answer["id"] == self.ids
        assert answer["jsonrpc"] == "2.0"
        return answer

    def modern(self, method: str, **params: object) -> Any:
        return self.ask(method, {**params, "_meta": META})

    def hello(self, version: str = "2025-11-25") -> Pipe:
        answer = self.ask("initialize", {**HELLO, "protocolVersion": version})
        assert answer["result"]["protocolVersion"] == version
        self.write({"jsonrpc": "2.0", "method": "notifications/initialized"})
        return self

    def close(self) -> list[Any]:
        os.close(self.to_server)
        rest = [json.loads(line) for line in self.out]
        self.thread.join(60)
        assert not self.thread.is_alive()
        self.out.close()
        return rest


@pytest.fixture
def pipe(root: Path) -> Iterator[Pipe]:
    one = Pipe(make_service(root))
    yield one
    if not one.out.closed:
        one.close()


@pytest.mark.parametrize("version", ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"])
def test_handshake_era(pipe: Pipe, version: str) -> None:
    pipe.hello(version)
    read = pipe.ask("resources/read", {"uri": ONE})["result"]
    assert read["contents"][0]["uri"] == ONE
    assert "resultType" not in read
    assert pipe.ask("ping")["result"] == {}
    assert pipe.ask("server/discover", {})["error"]["code"] == -32601


def test_modern_era(pipe: Pipe) -> None:
    found = pipe.modern("server/discover")["result"]
    assert found["supportedVersions"] == ["2026-07-28"]
    assert found["resultType"] == "complete"
    read = pipe.modern("resources/read", uri=ONE)["result"]
    assert (read["resultType"], read["ttlMs"]) == ("complete", 0)
    missing = pipe.modern("resources/read", uri="skill://one/none.md")["error"]
    assert (missing["code"], missing["data"]["uri"]) == (-32602, "skill://one/none.md")
    assert pipe.ask("resources/list", {})["error"]["code"] == -32602, "no envelope"
    wrong = {**META, "io.modelcontextprotocol/protocolVersion": "2031-01-01"}
    refused = pipe.ask("resources/list", {"_meta": wrong})["error"]
    assert refused["code"] == -32022
    assert refused["data"] == {"supported": ["2026-07-28"], "requested": "2031-01-01"}


@pytest.mark.parametrize(
    ("line", "code", "request_id"),
    [
        (b"{", -32700, None),
        (b'{"jsonrpc":"2.0","id":1,"method":"ping"', -32700, None),
        (b'{"jsonrpc":"2.0","id":1,"method":"\xff"}', -32700, None),
        (b'{"jsonrpc":"2.0","id":NaN,"method":"ping"}', -32700, None),
        (b"[" * 100_000, -32700, None),
        (b'{"id":' + b"9" * 5000 + b"}", -32700, None),
        (b"\xef\xbb\xbf{}", -32700, None),
        (b"[]", -32600, None),
        (b'[{"jsonrpc":"2.0","id":1,"method":"ping"}]', -32600, None),
        (b'"text"', -32600, None),
        (b"null", -32600, None),
        (b"{}", -32600, None),
        (b'{"jsonrpc":"1.0","id":7,"method":"ping"}', -32600, 7),
        (b'{"jsonrpc":"2.0","id":"a","method":5}', -32600, "a"),
        (b'{"jsonrpc":"2.0","id":null,"method":"ping"}', -32600, None),
        (b'{"jsonrpc":"2.0","id":true,"method":"ping"}', -32600, None),
        (b'{"jsonrpc":"2.0","id":1.5,"method":"ping"}', -32600, None),
        (b'{"jsonrpc":"2.0","id":{},"method":"ping"}', -32600, None),
        (b'{"jsonrpc":"2.0","id":3,"method":"ping","params":[]}', -32600, 3),
        (b'{"jsonrpc":"2.0","id":3,"method":"ping","params":"x"}', -32600, 3),
        (b'{"jsonrpc":"2.0","id":4,"method":"no/such"}', -32601, 4),
        (b'{"jsonrpc":"2.0","id":5,"method":"resources/read"}', -32602, 5),
        (b'{"jsonrpc":"2.0","id":5,"method":"resources/read","params":{"uri":5}}', -32602, 5),
    ],
)
def test_malformed(pipe: Pipe, line: bytes, code: int, request_id: object) -> None:
    pipe.hello()
    pipe.write(line)
    answer = pipe.line()
    assert (answer["error"]["code"], answer["id"]) == (code, request_id)
    assert pipe.ask("ping")["result"] == {}, "the server goes on"


def test_messages_without_an_answer(pipe: Pipe) -> None:
    pipe.hello()
    pipe.write(
        {"jsonrpc": "2.0", "method": "notifications/no-such", "params": {"x": 1}},
        {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 99}},
        {"jsonrpc": "2.0", "method": "resources/read", "params": {"uri": ONE}},
        {"jsonrpc": "2.0", "id": 5, "result": {}},
        {"jsonrpc": "2.0", "id": 5, "error": {"code": 1, "message": "x"}},
        b"",
        b"  \r",
    )
    assert pipe.ask("ping")["result"] == {}
    assert pipe.close() == []


def test_pipelined_requests_are_answered_in_order(pipe: Pipe) -> None:
    pipe.hello()
    count = 3000
    asked = [
        {"jsonrpc": "2.0", "id": f"r{n}", "method": "resources/read", "params": {"uri": ONE}}
        for n in range(count)
    ]
    feeder = threading.Thread(target=pipe.write, args=asked)
    feeder.start()
    assert [pipe.line()["id"] for _ in range(count)] == [f"r{n}" for n in range(count)]
    feeder.join()


def test_pieces_crlf_and_a_last_line_without_end(pipe: Pipe) -> None:
    pipe.hello()
    message = json.dumps({"jsonrpc": "2.0", "id": "é", "method": "ping"}, ensure_ascii=False)
    for piece in (message.encode() + b"\r\n")[:-1], b"\n":
        for byte in piece:
            os.write(pipe.to_server, bytes([byte]))
    assert pipe.line() == {"jsonrpc": "2.0", "id": "é", "result": {}}
    os.write(pipe.to_server, message.encode())
    assert [one["id"] for one in pipe.close()] == ["é"]


def test_the_same_id_twice(pipe: Pipe) -> None:
    pipe.hello()
    pipe.write(*[{"jsonrpc": "2.0", "id": 1, "method": "ping"}] * 2)
    assert [pipe.line()["id"], pipe.line()["id"]] == [1, 1]


def test_a_line_too_long_is_dropped_without_holding_it(pipe: Pipe) -> None:
    pipe.hello()
    feeder = threading.Thread(target=pipe.write, args=(b"x" * (MAX_LINE_BYTES + 70_000),))
    feeder.start()
    answer = pipe.line()
    feeder.join()
    assert answer["error"]["code"] == -32600
    assert f"{MAX_LINE_BYTES:,}" in answer["error"]["message"]
    assert pipe.ask("ping")["result"] == {}


def test_lines() -> None:
    lines = Lines(max_bytes=4)
    assert list(lines.feed(b"ab")) == []
    assert list(lines.feed(b"cd\n\n \nabcde\nx")) == [b"abcd", None]
    assert list(lines.feed(b"yzuvw")) == []
    assert not lines._parts, "what is too long is not kept"
    assert list(lines.feed(b"\nok\n")) == [None, b"ok"]
    assert list(lines.end()) == []


def test_arrays_where_the_protocol_has_them(pipe: Pipe) -> None:
    pipe.hello("2025-03-26")
    ping = {"jsonrpc": "2.0", "id": 1, "method": "ping"}
    notice = {"jsonrpc": "2.0", "method": "notifications/x"}
    pipe.write([ping, notice, {**ping, "id": 2, "method": "no"}, 7])
    answer = pipe.line()
    assert [one["id"] for one in answer] == [1, 2, None]
    assert [one.get("error", {}).get("code") for one in answer] == [None, -32601, -32600]
    pipe.write([notice])
    for wrong in ([], [ping] * (MAX_BATCH + 1)):
        pipe.write(wrong)
        assert pipe.line()["error"]["code"] == -32600


def test_updates_and_list_changes_of_the_handshake_era(pipe: Pipe, root: Path) -> None:
    pipe.hello()
    assert pipe.ask("resources/subscribe", {"uri": ONE})["result"] == {}
    pipe.ask("resources/list")
    time.sleep(0.1)
    write_skill(root, "one", "Do so.")
    assert pipe.line() == {
        "jsonrpc": "2.0",
        "method": "notifications/resources/updated",
        "params": {"uri": ONE},
    }
    write_skill(root, "three")
    assert pipe.line()["method"] == "notifications/resources/list_changed"


def test_what_is_not_followed_any_more_is_not_told(pipe: Pipe, root: Path) -> None:
    pipe.hello()
    assert pipe.ask("resources/subscribe", {"uri": ONE})["result"] == {}
    assert pipe.ask("resources/unsubscribe", {"uri": ONE})["result"] == {}
    time.sleep(0.1)
    write_skill(root, "one", "Do so.")
    assert pipe.quiet()


def test_a_stream_of_the_modern_era(pipe: Pipe, root: Path) -> None:
    wanted = {"resourceSubscriptions": [ONE], "resourcesListChanged": True}
    message = {"jsonrpc": "2.0", "id": "s", "method": "subscriptions/listen"}
    pipe.write({**message, "params": {"notifications": wanted, "_meta": META}})
    mark = {"_meta": {"io.modelcontextprotocol/subscriptionId": "s"}}
    begun = pipe.line()
    assert begun["method"] == "notifications/subscriptions/acknowledged"
    assert begun["params"] == {"notifications": wanted, **mark}
    assert pipe.modern("resources/read", uri=ONE)["result"], "others are answered meanwhile"
    time.sleep(0.1)
    write_skill(root, "one", "Do so.")
    reported = pipe.line()
    assert reported["method"] == "notifications/resources/updated"
    assert reported["params"] == {"uri": ONE, **mark}
    (last,) = pipe.close()
    assert last["id"] == "s"
    assert last["result"]["_meta"].items() >= mark["_meta"].items()
    assert last["result"]["resultType"] == "complete"


def test_a_cancelled_stream_is_not_answered(pipe: Pipe) -> None:
    message = {"jsonrpc": "2.0", "id": 1, "method": "subscriptions/listen"}
    pipe.write({**message, "params": {"notifications": {}, "_meta": META}})
    assert pipe.line()["method"] == "notifications/subscriptions/acknowledged"
    cancelled = {"requestId": 1, "reason": "enough"}
    pipe.write({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": cancelled})
    assert pipe.close() == []


@pytest.mark.spec("T-9")
def test_floods_of_subscriptions_are_refused(root: Path) -> None:
    limits = Limits(session_subscriptions=50, listens=3)
    pipe = Pipe(make_service(root, limits)).hello()
    codes = [
        pipe.ask("resources/subscribe", {"uri": f"skill://one/f{n}.md"})
        .get("error", {})
        .get("code")
        for n in range(60)
    ]
    assert codes == [None] * 50 + [-32602] * 10
    assert pipe.ask("resources/read", {"uri": ONE})["result"]
    pipe.close()
    pipe = Pipe(make_service(root, limits))
    for n in range(5):
        message = {"jsonrpc": "2.0", "id": n, "method": "subscriptions/listen"}
        pipe.write({**message, "params": {"notifications": {}, "_meta": META}})
        reported = pipe.line()
        assert ("error" in reported) == (n >= 3)
    pipe.close()


def test_a_bug_is_answered_and_logged(
    root: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    service = make_service(root)

    def broken(uri: object) -> float:
        return 1 / 0

    monkeypatch.setattr(service.catalog, "read", broken)
    pipe = Pipe(service).hello()
    error = pipe.ask("resources/read", {"uri": ONE})["error"]
    assert error == {"code": -32603, "message": "internal error"}
    pipe.close()
    assert "ZeroDivisionError" in caplog.text


def test_frames_of_two_threads_do_not_mix(root: Path) -> None:
    """A long answer is written in pieces; a notification waits until it is whole."""
    (root / "one/big.txt").write_text("x" * 900_000, "utf-8")
    service = make_service(root)
    pipe = Pipe(service).hello()
    session = pipe.server._session
    stop = threading.Event()

    def shout() -> None:
        while not stop.is_set():
            session.send("notifications/message", {"data": "y" * 5000})

    shouter = threading.Thread(target=shout)
    shouter.start()
    try:
        asked = {"jsonrpc": "2.0", "method": "resources/read"}
        for n in range(20):
            pipe.write({**asked, "id": n, "params": {"uri": "skill://one/big.txt"}})
            while (answer := pipe.line()).get("id") != n:
                assert len(answer["params"]["data"]) == 5000
            assert len(answer["result"]["contents"][0]["text"]) == 900_000
    finally:
        stop.set()
        reader = threading.Thread(target=pipe.out.read)
        reader.start()
        shouter.join()
        os.close(pipe.to_server)
        reader.join()
        pipe.thread.join()
        pipe.out.close()


def test_the_bounds_are_those_of_the_other_edge() -> None:
    from fast_agent.serve.connections import ConnectionLimits

    assert ConnectionLimits().body_bytes == MAX_LINE_BYTES
