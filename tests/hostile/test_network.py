"""A server on the network with hostile clients, in a process of its own with few descriptors."""

from __future__ import annotations

import json
import os
import socket
import sys
from contextlib import ExitStack, closing, contextmanager, suppress
from http.client import RemoteDisconnected
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from tests.hostile.crowd import HALF_HEAD, KINDS, PIPELINE, SILENT, HostileCrowd, opening
from tests.patience import wait_until
from tests.serve.agent_process import HandshakeClient, ServedAgents
from tests.serve.served import ACCEPT, META, Served, write_skill

if TYPE_CHECKING:
    from collections.abc import Generator

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="it looks below /proc")

ONE = "skill://one/SKILL.md"
TOKEN = "a-token-of-some-length"
FEW_DESCRIPTORS = 22
STREAM = (
    b"GET /mcp HTTP/1.1\r\nHost: 127.0.0.1:%d\r\nAccept: text/event-stream\r\n"
    b"Mcp-Session-Id: nobody\r\n\r\n"
)
BEARER = {"Authorization": f"Bearer {TOKEN}"}


@pytest.fixture
def skills(tmp_path: Path) -> Path:
    write_skill(tmp_path / "skills", "one")
    (tmp_path / "token").write_text(TOKEN + "\n")
    return tmp_path / "skills"


class Attacked(Served):
    """A server that has so many descriptors, and all of whose parts are loaded."""

    def __init__(self, skills: Path, descriptors: int, *options: str) -> None:
        limited = ("sh", "-c", f'ulimit -n {descriptors}; exec "$@"', "sh")
        super().__init__(skills, *options, prefix=limited)
        self.headers = BEARER if options else {}
        assert self.modern("skills/list", self.headers)[0] == 200

    def read(self) -> int:
        """Read as an honest client does; return the status.

        A connection that says nothing ends first. On a busy machine that may be an honest one which
        had no time yet to send its request; it comes again, as HTTP clients do.
        """
        for _ in range(5):
            with suppress(BrokenPipeError, ConnectionResetError, RemoteDisconnected):
                return self.modern("resources/read", self.headers, uri=ONE)[0]
        raise ConnectionResetError("cut off five times")

    @property
    def memory(self) -> int:
        pages = Path(f"/proc/{self.process.pid}/statm").read_text().split()[1]
        return int(pages) * os.sysconf("SC_PAGE_SIZE")

    @property
    def descriptors(self) -> int:
        return len(os.listdir(f"/proc/{self.process.pid}/fd"))  # noqa: PTH208 - names only

    @contextmanager
    def listening(self) -> Generator[None]:
        """Hold a request that is being answered: a stream that notifies of changes."""
        params = {"notifications": {"resourceSubscriptions": [ONE]}, "_meta": META}
        message = {"jsonrpc": "2.0", "id": 7, "method": "subscriptions/listen", "params": params}
        headers = {"MCP-Protocol-Version": "2026-07-28", "Mcp-Method": "subscriptions/listen"}
        with closing(self.connect()) as connection:
            connection.request("POST", "/mcp", json.dumps(message), {**ACCEPT, **headers})
            with closing(connection.getresponse()) as answer:
                assert answer.readline() == b"event: message\r\n"
                yield

    def finish(self) -> str:
        """Stop it in good order; return what it logged."""
        code, log = self.stop()
        assert code == 0, log
        assert "Traceback" not in log
        return log


def options_of(skills: Path, *, token: bool) -> tuple[str, ...]:
    return ("--token-file", str(skills.parent / "token")) if token else ()


@pytest.mark.spec("TR-N1.2", "TR-N1.4")
def test_a_client_that_pipelines_and_does_not_read_holds_no_memory(skills: Path) -> None:
    with Attacked(skills, 256) as server:
        assert server.read() == 200
        before = server.memory
        message = b"POST /mcp HTTP/1.1\r\nHost: localhost:%d\r\nContent-Length: 2\r\n\r\n{}"
        data = message % server.port * 1000
        sent = 0
        with socket.create_connection(("127.0.0.1", server.port)) as one:
            one.settimeout(3)  # after which the server has stopped to read
            with suppress(TimeoutError):
                while sent < 64 << 20:
                    sent += one.send(data)
            assert sent < 16 << 20
            assert server.read() == 200
            assert server.memory - before < 16 << 20
        server.finish()


@pytest.mark.spec("TR-N1.1", "TR-N1.3", "TR-N1.4")
@pytest.mark.parametrize("token", [False, True])
@pytest.mark.parametrize("kinds", [(SILENT,), (HALF_HEAD,), KINDS], ids=lambda kinds: kinds[0])
def test_an_honest_client_is_answered_while_few_descriptors_are_besieged(
    skills: Path, kinds: tuple[str, ...], *, token: bool
) -> None:
    with Attacked(skills, 256, *options_of(skills, token=token)) as server:
        before = server.memory
        with HostileCrowd(server.port, 400, kinds) as crowd:
            crowd.wait_until_up()
            for _ in range(10):
                assert server.read() == 200
            assert server.descriptors < 150  # the rest is for sessions and programs
            assert server.memory - before < 16 << 20
        assert server.finish().count("\n") < 20


@pytest.mark.spec("TR-N1.1", "TR-N1.4")
@pytest.mark.parametrize("token", [False, True])
def test_two_thousand_hostile_connections_are_held_in_little_memory(
    skills: Path, *, token: bool
) -> None:
    with Attacked(skills, 8192, *options_of(skills, token=token)) as server:
        before = server.memory
        with HostileCrowd(server.port, 2_000) as crowd:
            crowd.wait_until_up()
            wait_until(lambda: server.descriptors > 1_900)
            for _ in range(10):
                assert server.read() == 200
            assert server.memory - before < 64 << 20
        server.finish()


@pytest.mark.spec("TR-N1.3")
def test_accepting_goes_on_where_no_descriptor_is_left(skills: Path) -> None:
    """So few descriptors that the system refuses before the bound of connections is reached."""
    with Attacked(skills, FEW_DESCRIPTORS) as server, ExitStack() as stack:
        # A silent connection goes for each new one.
        with ExitStack() as silent:
            for _ in range(40):
                silent.enter_context(closing(server.connect())).connect()
                assert server.modern("server/discover")[0] == 200
        # Where none is silent, clients are turned away at once.
        with suppress(ConnectionError):
            while True:
                stack.enter_context(server.listening())
        for _ in range(200):
            with pytest.raises(ConnectionError):
                server.modern("server/discover")
        stack.close()
        wait_until(lambda: server.descriptors < FEW_DESCRIPTORS - 5)
        assert server.modern("server/discover")[0] == 200
        log = server.finish()
        assert 0 < log.count("\n") < 60, log
        assert "cannot accept a connection: too many open files" in log


class FewAgents(ServedAgents):
    """Agents served by a process with few descriptors."""

    def command(self, cards: Path) -> list[str | Path]:
        options = ("--instance-scope", "connection")
        return ["sh", "-c", 'ulimit -n 128; exec "$@"', "sh", *super().command(cards), *options]


def descriptors_of(server: Served) -> int:
    return len(os.listdir(f"/proc/{server.process.pid}/fd"))  # noqa: PTH208 - names only


def test_many_conversations_fit_into_few_descriptors(tmp_path: Path) -> None:
    (tmp_path / "cards").mkdir()
    (tmp_path / "cards/ann.md").write_text("---\nname: ann\nmodel: passthrough\n---\nHi.\n")
    with FewAgents(tmp_path) as server:
        before = descriptors_of(server)
        clients: list[HandshakeClient] = []
        for _ in range(40):
            clients.append(server.open())
            clients[-1].close()
        for _ in range(2):
            for one in clients:
                answer = one.call("ann", "hello")
                assert answer["content"][0]["text"] == "hello"
                one.close()
        assert descriptors_of(server) < before + 32
        for one in clients:
            heard = one.send("prompts/get", {"name": "ann_history"})["result"]["messages"]
            assert len(heard) == 4
            one.close()
            assert one.end() == 200
        wait_until(lambda: descriptors_of(server) <= before + 3)
        assert server.stop() == (0, "")


def test_a_thousand_clients_that_leave_half_way_leave_nothing(skills: Path) -> None:
    with Attacked(skills, 8192) as server:
        before = server.descriptors
        for kind in (*KINDS, "stream"):
            for _ in range(250):
                one = socket.create_connection(("127.0.0.1", server.port))
                one.sendall(
                    STREAM % server.port if kind == "stream" else opening(kind, server.port)
                )
                one.close()
        wait_until(lambda: server.descriptors <= before)
        assert server.read() == 200
        server.finish()


@pytest.fixture
def besieged(skills: Path) -> Generator[Attacked]:
    with Attacked(skills, 256) as server, HostileCrowd(server.port, 100, (PIPELINE,)) as crowd:
        crowd.wait_until_up()
        yield server


def test_a_server_that_is_besieged_can_be_stopped(besieged: Attacked) -> None:
    besieged.finish()
