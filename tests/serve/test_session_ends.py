"""Sessions that end under their requests, or badly: nobody is answered with 500 for it."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any

import anyio
import pytest
from anyio import to_thread
from tests.patience import PATIENCE
from tests.serve.agent_world import AgentWorld, ask, connected, heard, until
from tests.serve.asgi_world import PROGRESS, open_app

from fast_agent.agents.conversation import Conversation
from fast_agent.errors import SessionError
from fast_agent.resources.catalog import Catalog
from fast_agent.resources.provider import Addition, ServedTool, ToolAnswer
from fast_agent.resources.service import ResourceService, ServerInfo
from fast_agent.serve import agent_scopes, http_sessions
from fast_agent.serve.http_sessions import HttpSessions
from fast_agent.serve.resource_server import ResourceServer
from fast_agent.sessions.sqlite.log import SqliteLog
from fast_agent.sessions.store import SessionStore

if TYPE_CHECKING:
    from pathlib import Path

    from mcp.client import Client
    from tests.serve.asgi_world import Reply, Stream

    from fast_agent.errors import FastAgentError
    from fast_agent.sessions.event import Row
    from fast_agent.text.json_value import JsonObject

pytestmark = pytest.mark.anyio
CALL: dict[str, Any] = {"name": "wait", "arguments": {}}


class HeldTool:
    """A tool that answers when it may."""

    def __init__(self) -> None:
        self.called = threading.Event()
        self.may_answer = threading.Event()

    def answer(self, arguments: JsonObject) -> ToolAnswer:
        self.called.set()
        assert self.may_answer.wait(PATIENCE)
        return ToolAnswer.of_text("done")

    def server(self) -> ResourceServer:
        schema: JsonObject = {"type": "object"}
        tool = ServedTool("wait", "Waits.", schema, self.answer, "Wait")
        info = ServerInfo("test", "1")
        return ResourceServer(
            ResourceService(Catalog(()), info, (Addition(tools=lambda: (tool,)),))
        )


@pytest.mark.spec("TR-N3.2b")
async def test_a_session_that_ends_under_a_call_answers_it() -> None:
    tool = HeldTool()
    async with open_app(tool.server()) as world:
        await world.begin()
        replies: list[Reply] = []

        async def call() -> None:
            replies.append(await world.send("tools/call", CALL, 2))

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(call)
            assert await to_thread.run_sync(tool.called.wait, PATIENCE)
            assert (await world.ask("DELETE")).status == 200
            tool.may_answer.set()
        assert replies[0].status == 200
        assert (await world.ask("DELETE")).status == 404


@pytest.mark.spec("TR-N3.2b")
async def test_a_session_that_cannot_be_closed_is_gone_and_others_go_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    made: list[HttpSessions] = []
    new = HttpSessions.__init__

    def remember(self: HttpSessions, *given: Any) -> None:
        made.append(self)
        new(self, *given)

    monkeypatch.setattr(HttpSessions, "__init__", remember)
    agents = AgentWorld(tmp_path)
    agents.card("ann")
    async with agents.serving(scope="connection") as server, open_app(server) as world:
        headers: list[dict[str, str]] = []
        for _ in range(3):
            world.headers.clear()
            await world.begin()
            await world.send("tools/call", {"name": "ann", "arguments": {"message": "hello"}})
            headers.append(dict(world.headers))
        close, broken = server.close, iter((SessionError("the disk is full"), OSError(5)))

        async def fail(session: Any) -> None:
            await close(session)
            if (problem := next(broken, None)) is not None:
                raise problem

        monkeypatch.setattr(server, "close", fail)
        world.headers = headers[0]
        assert (await world.ask("DELETE")).status == 200
        assert (await world.ask("DELETE")).status == 404
        # Another one ends because it was unused for long; the third was used just now.
        sessions = made[0]
        monkeypatch.setattr(sessions, "_clock", lambda: 1e12)
        world.headers = headers[2]
        assert (await world.send("ping")).status == 200
        await sessions.expire()
        world.headers = headers[1]
        assert (await world.ask("DELETE")).status == 404
        world.headers = headers[2]
        heard = await world.send("prompts/get", {"name": "ann_history"})
        assert [one["content"]["text"] for one in heard.json["result"]["messages"]] == ["hello"] * 2
        assert (await world.ask("DELETE")).status == 200
    assert "the disk is full" in caplog.text
    assert "OSError: 5" in caplog.text


async def test_a_call_that_streams_ends_with_its_session(tmp_path: Path) -> None:
    agents = AgentWorld(tmp_path)
    agents.card("slow", model="slow")
    async with agents.serving() as server, open_app(server) as world:
        await world.begin()
        call = {"name": "slow", "arguments": {"message": "hello"}, "_meta": PROGRESS}
        stream: Stream
        body = world.message("tools/call", call, 5)
        async with world.stream("POST", body) as stream:
            await stream.until(b"notifications/progress")
            assert (await world.ask("DELETE")).status == 200
            with anyio.fail_after(PATIENCE):
                await stream.ended.wait()
            assert stream.reply.status == 200


async def test_a_call_that_ends_with_its_session_is_still_recorded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    writing, may_write = threading.Event(), threading.Event()
    append = SqliteLog.append_durably

    def write(self: SqliteLog, *rows: Row) -> None:
        writing.set()
        assert may_write.wait(PATIENCE)
        append(self, *rows)

    monkeypatch.setattr(SqliteLog, "append_durably", write)
    agents = AgentWorld(tmp_path)
    agents.card("slow", model="slow?seconds=600")
    store = SessionStore(agents.home)
    async with agents.serving(sessions=store) as server, open_app(server) as world:
        await world.begin()
        async with anyio.create_task_group() as tasks:
            call = {"name": "slow", "arguments": {"message": "hello"}}
            tasks.start_soon(world.send, "tools/call", call)
            await until(lambda: server.scopes.in_use == 1)
            tasks.start_soon(world.ask, "DELETE")
            assert await to_thread.run_sync(writing.wait, PATIENCE)
            await anyio.sleep(0.05)  # long enough to close the file under it
            may_write.set()
    (session,) = store.list()
    assert session.turns == 1
    with store.open(session.id) as again:
        assert [turn.ended is not None for turn in again.state.turns] == [True]
    assert caplog.messages == []


async def test_a_conversation_that_is_being_parked_answers_its_next_call(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(agent_scopes, "MAX_OPEN", 1)
    closing, may_close = anyio.Event(), anyio.Event()
    close = Conversation.aclose

    async def aclose(self: Conversation) -> FastAgentError | None:
        closing.set()
        await may_close.wait()
        return await close(self)

    monkeypatch.setattr(Conversation, "aclose", aclose)
    agents = AgentWorld(tmp_path)
    agents.card("ann")
    answers: list[str] = []
    async with (
        agents.serving(sessions=SessionStore(agents.home)) as server,
        connected(server) as one,
        connected(server) as two,
    ):

        async def ask_again(client: Client, message: str) -> None:
            answers.append(await ask(client, "ann", message))

        await ask(one, "ann", "first")
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(ask_again, two, "other")
            await closing.wait()  # of the first
            tasks.start_soon(ask_again, one, "second")
            await until(lambda: server.scopes.taken == 3)
            may_close.set()
        assert sorted(answers) == ["other", "second"]
        assert await heard(one, "ann") == ["first", "first", "second", "second"]


async def test_as_many_sessions_as_may_be_are_open_while_others_end(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(http_sessions, "MAX_SESSIONS", 2)
    server = ResourceServer(ResourceService(Catalog(()), ServerInfo("test", "1")))
    may_close = anyio.Event()

    async def close(session: object) -> None:
        await may_close.wait()

    monkeypatch.setattr(server, "close", close)
    sessions = HttpSessions(server)
    for _ in range(2):
        await sessions.new("a")
    async with anyio.create_task_group() as tasks:
        for _ in range(3):
            tasks.start_soon(sessions.new, "a")
        await anyio.wait_all_tasks_blocked()
        assert len(sessions) <= 2
        may_close.set()
    assert len(sessions) == 2
