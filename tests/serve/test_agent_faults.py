"""What goes wrong with cards and clients of `fast-agent serve`, over both transports and eras."""

from __future__ import annotations

import json
import socket
from functools import partial
from typing import TYPE_CHECKING, Any

import anyio
import pytest
from tests.serve.agent_process import ServedAgents, call, message
from tests.serve.served import ACCEPT, HELLO
from tests.serve.served_edge import (
    EDGES,
    EdgeWorld,
    StdioTalk,
    ask,
    card_text,
    listed,
    peak_kib,
    request_line,
)

if TYPE_CHECKING:
    from collections.abc import Generator, Mapping
    from pathlib import Path

    from mcp.client import Client

REFUSED = "AgentCards not reloaded"
BAD_JSON = (b"{", b"nonsense", b'"x"', b"[]", b"\xff\xfe", b"{}")
SESSION = "fast-agent/session"


@pytest.mark.anyio
@pytest.mark.timeout(1200)
@pytest.mark.spec("FAULT-1", "FAULT-2", "FAULT-3", "FAULT-4", "FAULT-5", "FAULT-6")
@pytest.mark.parametrize("edge", EDGES)
async def test_cards_that_are_edited_badly(tmp_path: Path, edge: str) -> None:
    world = EdgeWorld(tmp_path)
    world.card("one", "One.", name="ann")
    world.card("two", "Two.")
    async with world.served(edge, "--instance-scope", "request") as clients:
        await _half_written(world, clients)
        await _renamed_and_swapped(world, clients)
        await _without_their_root(world, clients)
        await _broken_while_100_requests_run(world, clients)
        await _in_a_burst(world, clients)


async def _half_written(world: EdgeWorld, clients: tuple[Client, ...]) -> None:
    whole = card_text("One, longer.", name="ann")
    for half in ("", whole[:20], whole[: whole.index("---", 3)]):
        (world.cards / "one.md").write_text(half)
        await world.wait_for_log(REFUSED)
        for client in clients:
            await listed(client, {"ann": "One.", "two": "Two."})
            assert await ask(client, "ann", "as before") == "as before"
    (world.cards / "one.md").write_text(whole)
    for client in clients:
        await listed(client, {"ann": "One, longer.", "two": "Two."})


async def _renamed_and_swapped(world: EdgeWorld, clients: tuple[Client, ...]) -> None:
    (world.cards / "two.md").rename(world.cards / "bob.md")
    for client in clients:
        await listed(client, {"ann": "One, longer.", "bob": "Two."})
        assert await ask(client, "bob", "renamed") == "renamed"
    (world.cards / "one.md").write_text(card_text("One.", name="bob"))
    await world.wait_for_log(REFUSED)  # there are two of that name now
    beside = world.cards / "bob.md.tmp"
    beside.write_text(card_text("Two.", name="ann"))
    beside.replace(world.cards / "bob.md")
    for client in clients:
        await listed(client, {"ann": "Two.", "bob": "One."})
        assert await ask(client, "ann", "swapped") == "swapped"


async def _without_their_root(world: EdgeWorld, clients: tuple[Client, ...]) -> None:
    away = world.cards.rename(world.directory / "away")
    await world.wait_for_log(REFUSED)
    for client in clients:
        assert await ask(client, "ann", "still here") == "still here"
    world.cards.mkdir()
    for file in away.iterdir():
        file.rename(world.cards / file.name)
    world.card("front", "In front.", agents="[behind]")
    world.card("behind", "Behind.")
    for client in clients:
        await listed(
            client, {"ann": "Two.", "bob": "One.", "front": "In front.", "behind": "Behind."}
        )


async def _broken_while_100_requests_run(world: EdgeWorld, clients: tuple[Client, ...]) -> None:
    broken = anyio.Event()
    running: set[int] = set()
    answered: list[int] = []

    async def caller(client: Client, number: int) -> None:
        line = f'***CALL_TOOL agent__behind {{"message": "number {number}"}}'
        while not broken.is_set():
            running.add(number)
            assert await ask(client, "front", line) == f"number {number}"
        assert await ask(client, "front", line) == f"number {number}"
        answered.append(number)

    async with anyio.create_task_group() as tasks:
        for number in range(100):
            tasks.start_soon(caller, clients[number % len(clients)], number)
        while len(running) < 100:  # noqa: ASYNC110 - tasks above fill it
            await anyio.sleep(0.01)
        (world.cards / "behind.md").unlink()  # `front` refers to it
        await world.wait_for_log(REFUSED)
        broken.set()
    assert sorted(answered) == list(range(100))
    (world.cards / "front.md").unlink()
    for client in clients:
        await listed(client, {"ann": "Two.", "bob": "One."})


async def _in_a_burst(world: EdgeWorld, clients: tuple[Client, ...]) -> None:
    path = world.cards / "one.md"

    def burst() -> None:
        for number in range(1, 2_501):  # making, writing, closing and moving a file are events
            beside = path.with_name("one.md.tmp")
            beside.write_text(card_text(f"Number {number}.", name="bob"))
            beside.replace(path)

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(partial(anyio.to_thread.run_sync, burst))
        for client in clients:
            for _ in range(10):
                assert await ask(client, "bob", "meanwhile") == "meanwhile"
    for client in clients:
        await listed(client, {"ann": "Two.", "bob": "Number 2500."})


@pytest.fixture(scope="module")
def directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    found = tmp_path_factory.mktemp("served")
    cards = found / "cards"
    cards.mkdir()
    (cards / "ann.md").write_text(card_text("Ann."))
    (cards / "brief.md").write_text(card_text("Brief.", model="slow?seconds=0.5"))
    return found


@pytest.mark.timeout(1200)
@pytest.mark.spec("FAULT-7", "FAULT-8", "FAULT-9", "FAULT-10", "FAULT-11")
def test_a_rude_client_over_stdio(directory: Path) -> None:
    with StdioTalk(directory, "--instance-scope", "connection", "--no-session") as talk:
        old = {"io.modelcontextprotocol/protocolVersion": "1999-01-01"}
        talk.write(_modern_call("x", 1, **old))
        refusal = talk.read()["error"]
        assert (refusal["code"], refusal["data"]["supported"]) == (-32022, ["2026-07-28"])
        for number, bad in enumerate((*BAD_JSON, b"x" * (100 << 20))):
            talk.write(bad, b"\n")
            assert talk.read()["error"]["code"] in {-32700, -32600}, bad[:10]
            talk.write(_modern_call("on", number + 2))
            assert talk.read()["result"]["content"][0]["text"] == "on"
        assert peak_kib(talk.process.pid) < 250_000, "the line was held in memory"
        _begin_more_than_1_000_sessions(talk)
        talk.write(_modern_call("hello", 5_000, agent="brief"))
        assert talk.process.stdout is not None
        talk.process.stdout.close()
        talk.end()


def _begin_more_than_1_000_sessions(talk: StdioTalk) -> None:
    sessions: list[str] = []
    for start in range(0, 1_001, 91):
        talk.write(*(_modern_call(f"{number}", number) for number in range(start, start + 91)))
        answers = sorted((talk.read() for _ in range(91)), key=lambda one: one["id"])
        sessions += [one["result"]["_meta"][SESSION] for one in answers]
    assert len(set(sessions)) == 1_001
    kept = {"_meta": {SESSION: sessions[-1]}}
    talk.write(request_line("prompts/get", {"name": "ann_history", **kept}, 2_000))
    texts = [one["content"]["text"] for one in talk.read()["result"]["messages"]]
    assert texts == ["1000", "1000"]
    talk.write(_modern_call("x", 2_001, **{SESSION: sessions[0]}))
    assert "unknown or expired" in talk.read()["error"]["message"]


@pytest.mark.timeout(1200)
@pytest.mark.spec("FAULT-7", "FAULT-9", "FAULT-10", "FAULT-11")
def test_a_rude_client_with_a_handshake_over_stdio(directory: Path) -> None:
    with StdioTalk(directory, "--no-session") as talk:
        hello = {**HELLO, "protocolVersion": "1999-01-01"}
        talk.write(message("initialize", hello, 1), b"\n")
        assert talk.read()["result"]["protocolVersion"] == "2025-11-25"
        for number, bad in enumerate((*BAD_JSON, b"x" * (100 << 20))):
            talk.write(bad, b"\n")
            assert talk.read()["error"]["code"] in {-32700, -32600}, bad[:10]
            talk.write(message("tools/call", call("ann", "on"), number + 2), b"\n")
            assert talk.read()["result"]["content"][0]["text"] == "on"
        talk.write(message("tools/call", call("brief", "hello"), 100), b"\n")
        assert talk.process.stdout is not None
        talk.process.stdout.close()
        talk.end()


@pytest.fixture(scope="module")
def served(directory: Path) -> Generator[ServedAgents]:
    with ServedAgents(directory, "--instance-scope", "connection", "--no-session") as server:
        yield server
        code, err = server.stop()
        assert (code, "Traceback" in err) == (0, False)


@pytest.mark.spec("FAULT-8")
def test_more_than_1_000_conversations_over_http(served: ServedAgents) -> None:
    connection = served.connect()
    headers = {"MCP-Protocol-Version": "2026-07-28", "Mcp-Method": "tools/call", "Mcp-Name": "ann"}

    def said(text: str, meta: Mapping[str, str]) -> Any:
        body = _modern_call(text, 1, **meta)
        connection.request("POST", "/mcp", body, {**ACCEPT, **headers})
        return json.loads(connection.getresponse().read())

    sessions = [said(f"{number}", {})["result"]["_meta"][SESSION] for number in range(1_001)]
    assert said("x", {SESSION: sessions[-1]})["result"]["isError"] is False
    assert "unknown or expired" in said("x", {SESSION: sessions[0]})["error"]["message"]
    connection.close()


@pytest.mark.spec("FAULT-9")
@pytest.mark.parametrize("version", ["2025-11-25", "2026-07-28"])
def test_100_mb_of_a_length_that_is_not_told(served: ServedAgents, version: str) -> None:
    head = f"POST /mcp HTTP/1.1\r\nHost: 127.0.0.1:{served.port}\r\n"
    head += f"Transfer-Encoding: chunked\r\nMCP-Protocol-Version: {version}\r\n"
    head += "".join(f"{name}: {value}\r\n" for name, value in ACCEPT.items()) + "\r\n"
    with socket.create_connection(("127.0.0.1", served.port), timeout=60) as one:
        try:
            one.sendall(head.encode())
            for _ in range(100):
                one.sendall(b"%x\r\n%b\r\n" % (1 << 20, b" " * (1 << 20)))
        except OSError:
            pass  # the server has hung up
        try:
            answer = one.recv(1 << 16)
        except OSError:
            answer = b"HTTP/1.1 413 "
    assert answer.startswith(b"HTTP/1.1 413 ")
    assert peak_kib(served.process.pid) < 250_000, "the body was held in memory"
    assert served.modern_call("ann", "still here")["isError"] is False


@pytest.mark.spec("FAULT-11")
@pytest.mark.parametrize("era", ["legacy", "modern"])
def test_broken_json_over_http(served: ServedAgents, era: str) -> None:
    modern = {"MCP-Protocol-Version": "2026-07-28"}
    headers = modern if era == "modern" else served.open().headers
    for bad in (*BAD_JSON, b""):
        status, answer = served.post(bad, headers)
        assert status == 400, bad
        assert -32700 <= answer["error"]["code"] <= -32600, bad
    assert served.modern_call("ann", "on")["isError"] is False


def _modern_call(text: str, request_id: int, agent: str = "ann", **meta: str) -> bytes:
    return request_line("tools/call", call(agent, text, **meta), request_id)
