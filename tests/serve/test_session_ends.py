"""Sessions that end under their requests, or badly: nobody is answered with 500 for it."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any

import anyio
import pytest
from anyio import to_thread
from tests.patience import PATIENCE
from tests.serve.agent_world import AgentWorld
from tests.serve.asgi_world import PROGRESS, open_app

from fast_agent.errors import SessionError
from fast_agent.resources.catalog import Catalog
from fast_agent.resources.provider import Addition, ServedTool, ToolAnswer
from fast_agent.resources.service import ResourceService, ServerInfo
from fast_agent.serve.http_sessions import HttpSessions
from fast_agent.serve.resource_server import ResourceServer

if TYPE_CHECKING:
    from pathlib import Path

    from tests.serve.asgi_world import Reply, Stream

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
