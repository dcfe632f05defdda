"""A server that is killed while it answers: what its clients have is in the sessions."""

from __future__ import annotations

import http.client
import signal
import threading
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import pytest
from tests.engine.batch_world import CARD, TOOLS, ModelServer, Reply, call_reply, text_reply
from tests.patience import wait_until
from tests.serve.agent_process import HandshakeClient, ServedAgents

from fast_agent.messages.history import check_validity
from fast_agent.sessions.store import SessionStore

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

CLIENTS, ANSWERS = 3, 60


@pytest.mark.spec("SESSION-3")
@pytest.mark.parametrize("scope", ["shared", "connection"])
def test_what_was_answered_is_in_the_sessions_of_a_server_that_was_killed(
    tmp_path: Path, scope: str
) -> None:
    cards = tmp_path / "cards"
    cards.mkdir()
    (cards / "ann.md").write_text("---\nmodel: passthrough\n---\nHi.\n")
    answered: list[str] = []

    def ask(client: HandshakeClient, number: int) -> None:
        try:
            while True:
                text = f"message {len(answered)} of client {number}"
                if client.call("ann", text)["content"][0]["text"] == text:
                    answered.append(text)
        except (OSError, http.client.HTTPException, ValueError, TypeError, AssertionError):
            return  # the server is dead, and may have died within an answer

    with ServedAgents(tmp_path, "--instance-scope", scope) as server:
        clients = [server.open() for _ in range(CLIENTS)]
        threads = [
            threading.Thread(target=ask, args=(client, number))
            for number, client in enumerate(clients)
        ]
        for thread in threads:
            thread.start()
        wait_until(lambda: len(answered) >= ANSWERS)
        server.process.send_signal(signal.SIGKILL)
        for thread in threads:
            thread.join(60)
    store = SessionStore(tmp_path / "home")
    there: list[str] = []
    for summary in store.list():
        with store.open(summary.id) as session:
            history = session.history("ann")
            assert check_validity(history) == []
            there += [message.text for message in history if message.role == "assistant"]
    assert set(answered) <= set(there)
    assert len(store.list()) == (1 if scope == "shared" else CLIENTS)


class KilledServers:
    """Servers of one directory, one after the other, with a model that kills the first.

    Args:
        directory: Where the cards and the home are.
    """

    SESSION = "fast-agent/session"

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        (directory / "cards").mkdir()
        (directory / "cards" / "noter.md").write_text(CARD)
        (directory / "cards" / "tools.py").write_text(TOOLS)
        self.killing: list[ServedAgents] = []
        self.models = ModelServer(self._reply)

    def _reply(self, body: dict[str, Any]) -> Reply:
        last = body["messages"][-1]
        if last["role"] != "tool":
            return call_reply("note", {"item": last["content"]}, f"call-{last['content']}")
        if self.killing:
            self.killing.pop().process.send_signal(signal.SIGKILL)
        return text_reply(f"done: {last['content']}")

    def kill_in_second_turn(self) -> str:
        """Let a server be killed after the first step of its second turn.

        Returns:
            The id of the conversation.
        """
        with ServedAgents(self.directory) as server:
            first = server.modern_call("noter", "one")
            assert first["content"][0]["text"] == "done: noted one"
            name: str = first["_meta"][self.SESSION]
            self.killing.append(server)
            with suppress(OSError, TypeError):  # the server dies in its answer
                server.modern_call("noter", "two", **{self.SESSION: name})
            server.process.wait(60)
        assert not self.killing
        return name

    def requests(self) -> int:
        """Return how many model requests were asked."""
        return sum(self.models.asked.values())


@pytest.fixture(name="killed")
def _killed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[KilledServers]:
    servers = KilledServers(tmp_path)
    with servers.models:
        monkeypatch.setenv("GENERIC__BASE_URL", servers.models.url)
        monkeypatch.setenv("GENERIC__API_KEY", "sk-key-of-the-server")
        yield servers


@pytest.mark.spec("RUN-14")
def test_the_same_message_continues_the_turn_of_a_server_that_was_killed(
    killed: KilledServers,
) -> None:
    name = killed.kill_in_second_turn()
    asked = killed.requests()
    with ServedAgents(killed.directory) as server:
        second = server.modern_call("noter", "two", **{killed.SESSION: name})
        assert second["content"][0]["text"] == "done: noted two"
        # What was on its way at the kill is asked again, and nothing before it.
        assert killed.requests() == asked + 1
        third = server.modern_call("noter", "three", **{killed.SESSION: name})
        assert third["content"][0]["text"] == "done: noted three"
    assert (killed.directory / "effects").read_text().split() == ["one", "two", "three"]
    store = SessionStore(killed.directory / "home")
    (session,) = store.list()
    history = store.read(session.id)[1].history("noter") or []
    assert [one.text for one in history if one.role == "user" and one.text] == [
        "one", "two", "three"]  # fmt: skip
    assert check_validity(history) == []


@pytest.mark.spec("RUN-14")
def test_another_message_leaves_the_turn_of_a_killed_server_cancelled(
    killed: KilledServers,
) -> None:
    name = killed.kill_in_second_turn()
    with ServedAgents(killed.directory) as server:
        other = server.modern_call("noter", "other", **{killed.SESSION: name})
        assert other["content"][0]["text"] == "done: noted other"
    store = SessionStore(killed.directory / "home")
    (session,) = store.list()
    stops = [turn.stop_reason for turn in store.read(session.id)[1].turns]
    assert stops == ["endTurn", "cancelled", "endTurn"]


@pytest.mark.spec("RUN-19")
def test_a_conversation_continues_only_where_it_was_and_while_it_is_there(
    killed: KilledServers, tmp_path: Path
) -> None:
    name = killed.kill_in_second_turn()
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "cards").symlink_to(tmp_path / "cards")
    (tmp_path / "elsewhere" / "home").symlink_to(tmp_path / "home")
    with ServedAgents(tmp_path / "elsewhere") as server:
        answer = server.modern_call("noter", "two", **{killed.SESSION: name})
        assert "unknown or expired session" in str(answer)
    store = SessionStore(killed.directory / "home")
    assert name not in "".join(path.name for path in (tmp_path / "home/sessions").iterdir())
    store.delete(store.list()[0].id)
    kept = [one.name for one in (tmp_path / "home/sessions").iterdir()]
    assert kept in ([], ["summaries.json"])  # what a list remembers of the others
    with ServedAgents(killed.directory) as server:
        answer = server.modern_call("noter", "two", **{killed.SESSION: name})
        assert "unknown or expired session" in str(answer)
