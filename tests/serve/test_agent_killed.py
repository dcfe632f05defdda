"""A server that is killed while it answers: what its clients have is in the sessions."""

from __future__ import annotations

import http.client
import signal
import threading
from typing import TYPE_CHECKING

import pytest
from tests.patience import wait_until
from tests.serve.agent_process import HandshakeClient, ServedAgents

from fast_agent.messages.validity import check_validity
from fast_agent.sessions.store import SessionStore

if TYPE_CHECKING:
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
