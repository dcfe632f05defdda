"""The wire: versions, bad messages, and ends of a connection, with a process of its own."""

from __future__ import annotations

import json
import resource
import signal
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from acp import PROTOCOL_VERSION
from acp.schema import InitializeResponse
from tests.acp.raw_client import RawClient
from tests.engine.batch_world import CARD, TOOLS, ModelServer, Reply, note_and_answer
from tests.patience import wait_until

from fast_agent.messages.history import check_validity
from fast_agent.sessions.store import SessionStore

if TYPE_CHECKING:
    from collections.abc import Iterator

TINY = Path(__file__).parents[1] / "mcp/servers/tiny.py"


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RawClient]:
    """One process that outlives everything these tests send it."""
    with RawClient(tmp_path_factory.mktemp("wire"), "--model", "passthrough") as client:
        refused = client.ask(0, "session/new", cwd="/", mcpServers=[])
        assert refused["error"]["message"] == "`initialize` comes first"
        client.initialize()
        yield client
        assert client.prompt("last", client.open(), "hello")["result"]["stopReason"] == "end_turn"
        refused = client.initialize()
        assert refused["error"]["message"] == "the connection is initialized already"
        assert client.end()[0] == 0


@pytest.mark.spec("ACP-1")
@pytest.mark.parametrize("wanted", [0, 1, 2, 65535])
def test_the_version_is_negotiated(tmp_path: Path, wanted: int) -> None:
    with RawClient(tmp_path, "--model", "passthrough") as client:
        answered = client.ask(1, "initialize", protocolVersion=wanted)
        assert client.end()[0] == 0
    reported = InitializeResponse.model_validate(answered["result"])
    assert reported.protocol_version == PROTOCOL_VERSION == 1
    assert reported.agent_info is not None
    assert reported.agent_info.name == "fast-agent"
    assert reported.agent_capabilities is not None
    assert reported.agent_capabilities.load_session


@pytest.mark.spec("ACP-1")
@pytest.mark.parametrize("wanted", [None, "1", 1.5, True, -1, [1]])
def test_a_version_that_is_none_is_refused(client: RawClient, wanted: Any) -> None:
    assert client.ask(1, "initialize", protocolVersion=wanted)["error"]["code"] == -32602


@pytest.mark.spec("ACP-21")
@pytest.mark.parametrize(
    ("line", "code", "number"),
    [
        (b"{", -32700, None),
        (b"\xff\xfe", -32700, None),
        (b"NaN", -32700, None),
        (b"[" * 100_000, -32700, None),
        (b"[]", -32600, None),
        (b"1", -32600, None),
        (b'{"jsonrpc":"1.0","id":5,"method":"x"}', -32600, 5),
        (b'{"jsonrpc":"2.0","id":null,"method":"x"}', -32600, None),
        (b'{"jsonrpc":"2.0","id":true,"method":"x"}', -32600, None),
        (b'{"jsonrpc":"2.0","id":6,"method":7}', -32600, 6),
        (b'{"jsonrpc":"2.0","id":6,"method":"x","params":[]}', -32600, 6),
        (b'{"jsonrpc":"2.0","id":"a","method":"session/nothing"}', -32601, "a"),
        (b'{"jsonrpc":"2.0","id":7,"method":"session/prompt"}', -32602, 7),
        (b'{"jsonrpc":"2.0","id":8,"method":"session/new","params":{"cwd":3}}', -32602, 8),
        (b'{"jsonrpc":"2.0","id":9,"method":"authenticate","params":{"methodId":"x"}}', -32602, 9),
    ],
)
def test_a_bad_message_is_an_error(
    client: RawClient, line: bytes, code: int, number: object
) -> None:
    client.write(line + b"\n")
    answered = client.read()
    assert (answered["error"]["code"], answered["id"]) == (code, number)


@pytest.mark.spec("ACP-21")
@pytest.mark.parametrize(
    "block",
    [
        {"type": "text"},
        {"type": "image", "data": 1, "mimeType": "image/png"},
        {"type": "resource", "resource": {}},
        {"type": "hologram"},
        {},
        "text",
    ],
)
def test_a_block_that_is_wrong_is_an_error(client: RawClient, block: Any) -> None:
    session = client.open()
    answered = client.ask(3, "session/prompt", sessionId=session, prompt=[block])
    assert answered["error"]["code"] == -32602
    assert "prompt[0]" in answered["error"]["message"]


@pytest.mark.spec("ACP-21")
def test_a_session_that_is_not_open_is_an_error(client: RawClient) -> None:
    answered = client.prompt(4, "nowhere", "hello")
    assert answered["error"]["code"] == -32002
    assert "session/new" in answered["error"]["data"]["hint"]
    note = {"jsonrpc": "2.0", "method": "session/cancel", "params": {"sessionId": "nowhere"}}
    client.write(json.dumps(note).encode() + b"\n")
    client.write(b'{"jsonrpc":"2.0","method":"session/cancel","params":{}}\n')
    client.write(b'{"jsonrpc":"2.0","id":99,"result":{}}\n')


@pytest.mark.spec("ACP-21")
def test_a_hundred_megabytes_are_refused_and_not_kept(client: RawClient) -> None:
    client.write(b'{"jsonrpc":"2.0","id":1,"method":"x","params":{"a":"')
    for _ in range(100):
        client.write(b"x" * (1 << 20))
    client.write(b'"}}\n')
    answered = client.read()
    assert answered["error"]["code"] == -32600
    assert "longer than" in answered["error"]["message"]
    with open(f"/proc/{client.process.pid}/status") as status:  # noqa: PTH123
        peak = next(line for line in status if line.startswith("VmHWM"))
    assert int(peak.split()[1]) < 300 * 1024


def test_odd_text_is_answered(client: RawClient) -> None:
    answered = client.prompt(5, client.open(), "\ud800 \u2028 \0")
    assert answered["result"]["stopReason"] == "end_turn"


def test_a_request_is_cancelled_by_its_id(tmp_path: Path) -> None:
    with RawClient(tmp_path, "--model", "slow?seconds=600") as client:
        client.initialize()
        client.begin_prompt(7, client.open(), "hello")
        client.write(b'{"jsonrpc":"2.0","method":"$/cancel_request","params":{"requestId":7}}\n')
        assert client.answer(7)["result"] == {"stopReason": "cancelled"}
        assert client.end() == (0, "")


@pytest.mark.spec("ACP-22")
def test_a_client_that_hangs_up_in_the_middle_leaves_a_valid_history(tmp_path: Path) -> None:
    with RawClient(tmp_path, "--model", "slow?seconds=600", "--shell") as client:
        client.initialize()
        session = client.open()
        client.begin_prompt(7, session, "hello")
        client.ask(8, "session/list")
        assert client.end() == (0, "")
    _, state = SessionStore(client.home).read(session)
    history = state.history("agent") or []
    assert [message.role for message in history] == ["user", "assistant"]
    assert check_validity(history) == []


@pytest.mark.spec("ACP-22")
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_it_in_order(tmp_path: Path, number: signal.Signals) -> None:
    with RawClient(tmp_path, "--model", "slow?seconds=600") as client:
        client.initialize()
        session = client.open()
        client.begin_prompt(7, session, "hello")
        client.ask(8, "session/list")
        client.process.send_signal(number)
        assert client.process.wait(60) == 0
    assert check_validity(SessionStore(client.home).read(session)[1].history("agent") or []) == []


@pytest.mark.spec("ACP-22")
def test_a_killed_agent_loses_nothing_it_answered(tmp_path: Path) -> None:
    with RawClient(tmp_path, "--model", "passthrough") as client:
        client.initialize()
        session = client.open()
        for number in range(3):
            client.prompt(number + 1, session, f"message {number}")
        client.process.kill()
        client.process.wait()
    with RawClient(tmp_path, "--model", "passthrough") as client:
        client.initialize()
        client.begin(1, "session/load", sessionId=session, cwd=str(client.cwd), mcpServers=[])
        said = ""
        while "id" not in (message := client.read()):
            update = message["params"]["update"]
            if update["sessionUpdate"] == "user_message_chunk":
                said += update["content"]["text"]
        assert said == "message 0message 1message 2"
        assert client.prompt(2, session, "on")["result"]["stopReason"] == "end_turn"


@pytest.mark.spec("ACP-22")
def test_an_agent_killed_while_its_model_thinks_keeps_the_prompt(tmp_path: Path) -> None:
    with RawClient(tmp_path, "--model", "slow?seconds=600") as client:
        client.initialize()
        session = client.open()
        client.begin_prompt(7, session, "hello")
        client.ask(8, "session/list")
        client.process.kill()
        client.process.wait()
    store = SessionStore(client.home)
    with store.open(session) as kept:
        said = [message.text for message in kept.history("agent")]
        assert said == ["hello", "[interrupted before an answer]"]


@pytest.mark.spec("RUN-14")
def test_an_editor_that_loads_a_session_sees_a_killed_turn_and_continues_it(
    tmp_path: Path,
) -> None:
    killing: list[RawClient] = []

    def reply(body: dict[str, Any]) -> Reply:
        if body["messages"][-1]["role"] == "tool" and killing:
            killing.pop().process.kill()
        return note_and_answer(body)

    def said(client: RawClient, number: int, text: str) -> str:
        client.begin_prompt(number, session, text)
        texts: list[str] = []
        while "id" not in (message := client.read()):
            update = message["params"]["update"]
            if update["sessionUpdate"].endswith("_chunk"):
                texts.append(update["content"]["text"])
        return "".join(texts)

    with ModelServer(reply) as models:
        (tmp_path / "noter.md").write_text(CARD)
        (tmp_path / "tools.py").write_text(TOOLS)
        config = tmp_path / "config.yaml"
        config.write_text(f"generic: {{base_url: '{models.url}', api_key: sk-of-the-editor}}\n")
        options = ("--card", str(tmp_path / "noter.md"), "-c", str(config))
        with RawClient(tmp_path, *options) as client:
            client.initialize()
            session = client.open()
            killing.append(client)
            client.begin_prompt(1, session, "work")
            assert client.process.wait(60) == -signal.SIGKILL
        asked = sum(models.asked.values())
        with RawClient(tmp_path, *options) as client:
            client.initialize()
            cwd = str(client.cwd)
            client.ask(1, "session/load", sessionId=session, cwd=cwd, mcpServers=[])
            reported = said(client, 2, "/session continue")
            assert "the turn `work` was interrupted, and 2 answers are kept" in reported
            assert "done: noted work" in reported
            assert sum(models.asked.values()) == asked + 1
            assert (client.cwd / "effects").read_text() == "work\n"


def test_a_client_that_leaves_at_once_waits_for_no_import(tmp_path: Path) -> None:
    with RawClient(tmp_path, "--model", "generic.m") as client:
        client.initialize()
        client.open()
        assert client.end() == (0, "")


@pytest.mark.spec("ACP-23")
def test_servers_start_while_the_user_writes(tmp_path: Path) -> None:
    began = tmp_path / "began"
    command = f"touch {began}; exec {sys.executable} {TINY} once"
    server = {"name": "tiny", "command": "/bin/sh", "args": ["-c", command], "env": []}
    with RawClient(tmp_path, "--model", "passthrough") as client:
        client.initialize()
        assert "result" in client.ask(1, "session/new", cwd=str(tmp_path), mcpServers=[server])
        wait_until(began.exists)
        assert client.end()[0] == 0


def test_standard_output_carries_messages_only(tmp_path: Path) -> None:
    (tmp_path / "tools.py").write_text(
        "import os\nprint('loaded')\n"
        "def shout() -> str:\n    print('loud')\n    os.write(1, b'louder')\n    return 'done'\n"
    )
    card = tmp_path / "a.md"
    card.write_text("---\nname: a\nfunction_tools: tools.py:shout\n---\nBe loud.\n")
    with RawClient(tmp_path, "--card", str(card), "--model", "passthrough") as client:
        client.initialize()
        client.begin(1, "session/prompt", sessionId=client.open(),
                     prompt=[{"type": "text", "text": "***CALL_TOOL shout"}])  # fmt: skip
        while "id" not in (message := client.read()):
            assert message["jsonrpc"] == "2.0"
        code, said = client.end()
    assert code == 0
    assert "loud" in said
    assert "louder" in said


def test_wrong_cards_end_it_before_it_answers(tmp_path: Path) -> None:
    card = tmp_path / "a.md"
    card.write_text("---\nname: a\nmodle: x\n---\nBe.\n")
    with RawClient(tmp_path, "--card", str(card)) as client:
        out, said = client.process.communicate(timeout=60)
        assert (client.process.returncode, out) == (1, b"")
        assert b"modle" in said


def test_an_editor_may_leave_more_sessions_open_than_most_systems_allow_files(
    tmp_path: Path,
) -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (64, hard))
    try:
        client = RawClient(tmp_path, "--model", "passthrough")
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    with client:
        client.initialize()
        for number in range(40):
            assert client.prompt(number, client.open(), "hi")["result"]["stopReason"] == "end_turn"
        assert client.end() == (0, "")
