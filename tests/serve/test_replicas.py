"""Several servers of one PostgreSQL database: a client goes to either of them in turn."""

from __future__ import annotations

import signal
import threading
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import pytest
from tests.cut_network import Proxy
from tests.engine.batch_world import CARD, TOOLS, ModelServer, Reply, call_reply, text_reply
from tests.patience import PATIENCE
from tests.postgres_server import PASSWORD, PostgresServer, why_not
from tests.serve.agent_process import ServedAgents

from fast_agent.messages.history import check_validity
from fast_agent.sessions.store import SessionStore

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.skipif(why_not() is not None, reason=f"not run: {why_not()}")

SESSION = "fast-agent/session"


def served(directory: Path) -> ServedAgents:
    (directory / "cards").mkdir(parents=True)
    (directory / "cards" / "ann.md").write_text("---\nmodel: passthrough\n---\nHi.\n")
    (directory / "cards" / "sue.md").write_text("---\nmodel: slow?seconds=600\n---\nHi.\n")
    return ServedAgents(directory)


def text_of(answer: Any) -> str:
    assert "content" in answer, answer
    found: str = answer["content"][0]["text"]
    return found


@pytest.mark.spec("SESSION-27")
def test_either_server_goes_on_with_a_conversation_also_after_one_was_killed_in_a_turn(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with PostgresServer() as database:
        monkeypatch.setenv("SESSIONS__URL", database.url)
        monkeypatch.setenv("SESSIONS__LEASE_SECONDS", "5")
        store = SessionStore(database.url)
        with served(tmp_path / "a") as a, served(tmp_path / "b") as b:
            first = a.modern_call("ann", "one")
            assert text_of(first) == "one"
            named = {SESSION: first["_meta"][SESSION]}
            for server, text in ((b, "two"), (a, "three"), (a, "four"), (b, "five")):
                assert text_of(server.modern_call("ann", text, **named)) == text
            (session,) = store.list()
            assert session.turns == 5
            assert (store.read(session.id)[1].history("ann") or [])[8].text == "five"

            def ask() -> None:
                with suppress(OSError):  # the server dies meanwhile
                    a.modern_call("sue", "never answered", **named)

            asking = threading.Thread(target=ask)
            asking.start()
            until(lambda: store.list()[0].turns == 6)
            a.process.send_signal(signal.SIGKILL)
            asking.join(PATIENCE)
            assert text_of(b.modern_call("ann", "six", **named)) == "six"
            state = store.read(session.id)[1]
            history = state.history("ann") or []
            said = [one.text for one in history if one.role == "user"]
            assert said == ["one", "two", "three", "four", "five", "six"]
            assert check_validity(history) == []
            assert state.turns[5].stop_reason == "cancelled"
            unknown = b.modern_call("ann", "x", **{SESSION: "guessed"})
            assert "error" in unknown
            assert PASSWORD not in str(unknown)


@pytest.mark.spec("RUN-14")
def test_the_same_message_continues_a_turn_whose_server_was_killed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    killing: list[ServedAgents] = []

    def reply(body: dict[str, Any]) -> Reply:
        last = body["messages"][-1]
        if last["role"] != "tool":
            return call_reply("note", {"item": last["content"]}, f"call-{last['content']}")
        if killing:
            killing.pop().process.send_signal(signal.SIGKILL)
        return text_reply(f"done: {last['content']}")

    with PostgresServer() as database, ModelServer(reply) as models:
        monkeypatch.setenv("SESSIONS__URL", database.url)
        monkeypatch.setenv("SESSIONS__LEASE_SECONDS", "5")
        monkeypatch.setenv("GENERIC__BASE_URL", models.url)
        monkeypatch.setenv("GENERIC__API_KEY", "sk-key-of-the-server")
        for name in ("a", "b"):
            cards = tmp_path / name / "cards"
            cards.mkdir(parents=True)
            (cards / "noter.md").write_text(CARD)
            (cards / "tools.py").write_text(TOOLS)
        with ServedAgents(tmp_path / "a") as a, ServedAgents(tmp_path / "b") as b:
            first = a.modern_call("noter", "one")
            assert text_of(first) == "done: noted one"
            named = {SESSION: first["_meta"][SESSION]}
            killing.append(a)
            with suppress(OSError, TypeError):  # the server dies in its answer
                a.modern_call("noter", "two", **named)
            asked = sum(models.asked.values())
            assert text_of(b.modern_call("noter", "two", **named)) == "done: noted two"
            # What was on its way at the kill is asked again, and nothing before it.
            assert sum(models.asked.values()) == asked + 1
        noted = [path.read_text().split() for path in sorted(tmp_path.glob("*/effects"))]
        assert noted == [["one", "two"]]
        (session,) = SessionStore(database.url).list()
        assert session.turns == 2


@pytest.mark.spec("SESSION-28")
@pytest.mark.parametrize("ways", [("to",), ("from",), ("to", "from")])
def test_a_server_that_is_cut_off_from_the_database_in_a_turn_writes_nothing_afterwards(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ways: tuple[str, ...]
) -> None:
    asked, may_answer = threading.Event(), threading.Event()

    def reply(body: dict[str, Any]) -> Reply:
        text: str = body["messages"][-1]["content"]
        if text == "cut":
            asked.set()
            may_answer.wait(PATIENCE)
        return text_reply(f"re: {text}")

    with (
        PostgresServer() as database,
        Proxy(database.port) as proxy,
        ModelServer(reply) as models,
    ):
        monkeypatch.setenv("SESSIONS__LEASE_SECONDS", "5")
        monkeypatch.setenv("GENERIC__BASE_URL", models.url)
        monkeypatch.setenv("GENERIC__API_KEY", "sk-key-of-the-server")
        for name in ("a", "b"):
            (tmp_path / name / "cards").mkdir(parents=True)
            card = "---\ntype: agent\nmodel: generic.m\n---\nHi.\n"
            (tmp_path / name / "cards" / "ann.md").write_text(card)
        monkeypatch.setenv("SESSIONS__URL", database.url_at(proxy.port))
        with ServedAgents(tmp_path / "a") as a:
            monkeypatch.setenv("SESSIONS__URL", database.url)
            with ServedAgents(tmp_path / "b") as b:
                first = a.modern_call("ann", "one")
                named = {SESSION: first["_meta"][SESSION]}
                answers: list[Any] = []
                asking = threading.Thread(
                    target=lambda: answers.append(a.modern_call("ann", "cut", **named))
                )
                asking.start()
                assert asked.wait(PATIENCE)
                proxy.cut(*ways)
                # The lease of the server that is cut off runs out, and another one continues; a
                # renewal that was sent before the cut may arrive while that one waits.
                until(lambda: "re: two" in str(b.modern_call("ann", "two", **named)))
                may_answer.set()
                proxy.heal()
                asking.join(PATIENCE)
                (answer,) = answers
                assert answer.get("isError") or "error" in answer, answer
                assert text_of(b.modern_call("ann", "three", **named)) == "re: three"
                assert text_of(a.modern_call("ann", "four", **named)) == "re: four"
        store = SessionStore(database.url)
        (session,) = store.list()
        history = store.read(session.id)[1].history("ann") or []
        assert check_validity(history) == []
        said = [one.text for one in history if one.role == "assistant" and one.text[:3] == "re:"]
        assert said == ["re: one", "re: two", "re: three", "re: four"]


@pytest.mark.spec("SESSION-36")
@pytest.mark.parametrize("capabilities", [{}, {"elicitation": {"form": {}}}])
def test_a_conversation_another_server_is_using_is_refused_and_the_client_told_when_to_retry(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capabilities: dict[str, Any]
) -> None:
    with PostgresServer() as database:
        monkeypatch.setenv("SESSIONS__URL", database.url)
        monkeypatch.setenv("SESSIONS__LEASE_SECONDS", "3")
        with served(tmp_path / "a") as a, served(tmp_path / "b") as b:
            first = a.modern_call("ann", "one")
            named = {SESSION: first["_meta"][SESSION]}
            (session,) = SessionStore(database.url).list()
            with SessionStore(database.url, lease_seconds=600.0).open(session.id):
                can = {"io.modelcontextprotocol/clientCapabilities": capabilities}
                status, refused = b.modern_post("ann", "two", **named, **can)
                assert status == 409
                assert refused["error"]["code"] == -32009
                assert 1 <= refused["error"]["data"]["retryAfter"] <= 600
                assert "another server is using the conversation" in refused["error"]["message"]
                assert session.id not in str(refused)
            assert text_of(b.modern_call("ann", "two", **named, **can)) == "two"
        (session,) = SessionStore(database.url).list()
        assert session.turns == 2, "what was refused left nothing"


def test_a_conversation_whose_database_is_away_is_an_error_that_names_the_database(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with PostgresServer() as database:
        monkeypatch.setenv("SESSIONS__URL", database.url)
        monkeypatch.setenv("SESSIONS__LEASE_SECONDS", "3")
        with served(tmp_path / "a") as a, served(tmp_path / "b") as b:
            named = {SESSION: a.modern_call("ann", "one")["_meta"][SESSION]}
            database.kill()
            refused = b.modern_call("ann", "two", **named)
    message = refused["error"]["message"]
    assert "127.0.0.1" in message
    assert "internal error" not in message
    assert PASSWORD not in message


def until(holds: Any) -> None:
    import time

    end = time.monotonic() + PATIENCE
    while not holds():
        assert time.monotonic() < end
        time.sleep(0.05)
