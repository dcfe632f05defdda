"""How connections begin, break, come back and end."""

from __future__ import annotations

import http.server
import os
import signal
import sys
import threading
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

import anyio
import pytest
from tests.patience import PATIENCE, pass_seconds, until
from tests.processes import children_of, ended, lives

from fast_agent.errors import ToolError
from fast_agent.mcp.pool import ServerPool, need
from fast_agent.mcp.server import HttpTarget, Root, ServerSpec, StdioTarget
from fast_agent.messages.message import ToolCall
from fast_agent.tools.toolbox import ServerFilter

if TYPE_CHECKING:
    from collections.abc import Generator
    from pathlib import Path

pytestmark = pytest.mark.anyio


class Clock:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


async def reason(spec: ServerSpec) -> ToolError:
    async with ServerPool([spec]) as pool:
        with pytest.raises(ToolError) as raised:
            await need(pool.connections([spec.name]), "writer")
        assert pool.reports()[0].state == "failed"
    return raised.value


async def call(pool: ServerPool, context: Any, tool: str, **arguments: Any) -> Any:
    toolset = pool.toolset(pool.names[0], ServerFilter())
    return await toolset.call_tool(tool, ToolCall("1", tool, arguments), context)


async def test_a_command_that_is_not_there_is_named() -> None:
    spec = ServerSpec(name="lost", target=StdioTarget(command="no-such-program", args=("s3cret",)))
    problem = await reason(spec)
    assert problem.message == (
        "agent `writer` needs server `lost`, which cannot be used:\n"
        "server `lost`: the command `no-such-program` was not found"
    )
    assert problem.hint == "install it, or correct the server's `command`"


async def test_a_file_that_is_no_program_is_named(tmp_path: Path) -> None:
    (tmp_path / "data").write_text("data")
    problem = await reason(
        ServerSpec(name="data", target=StdioTarget(command=str(tmp_path / "data")))
    )
    assert "data` is not executable" in problem.message


async def test_a_working_directory_that_is_not_there_is_named(tmp_path: Path) -> None:
    target = StdioTarget(command=sys.executable, cwd=tmp_path / "none")
    problem = await reason(ServerSpec(name="s", target=target))
    assert f"the working directory `{tmp_path / 'none'}` does not exist" in problem.message


async def test_a_server_that_stops_at_once_is_reported_with_its_last_words() -> None:
    script = "import sys; print('bad\\x1b[2J key', file=sys.stderr); sys.exit(3)"
    target = StdioTarget(command=sys.executable, args=("-c", script))
    problem = await reason(ServerSpec(name="s", target=target))
    assert problem.message.endswith(
        f"server `s`: `{sys.executable} …` stopped before it was ready (exit status 3); "
        "its last output was:\n  bad[2J key"
    )


async def test_a_server_that_never_answers_is_reported(make_stdio: Any, tmp_path: Path) -> None:
    spec = make_stdio("mute", "mute.py", "stdio", connect_timeout_seconds=60)
    begun = tmp_path / "begun"
    spec = replace(spec, target=replace(spec.target, args=(*spec.target.args, str(begun))))

    async def let_time_pass() -> None:
        await until(begun.exists)
        await anyio.sleep(0.05)
        pass_seconds(60)

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(let_time_pass)
        problem = await reason(spec)
        assert "no answer from" in problem.message
        assert "within 60 s" in problem.message
        assert "starting up" in problem.message


async def test_a_web_server_that_is_down_is_reported() -> None:
    target = HttpTarget(url="http://user:pw@127.0.0.1:9/mcp?token=abc")
    problem = await reason(ServerSpec(name="web", target=target))
    assert "server `web`: no MCP server answers at `http://127.0.0.1:9/mcp`" in problem.message
    assert "refused" in problem.message
    assert problem.hint == "check the address, and that the server runs"


@contextmanager
def web(status: int, location: str = "") -> Generator[tuple[str, list[dict[str, str]]]]:
    """A loopback web server that answers everything with one status."""
    seen: list[dict[str, str]] = []

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            seen.append(dict(self.headers))
            self.rfile.read(int(self.headers["content-length"]))
            self.send_response(status)
            if location:
                self.send_header("location", location)
            self.send_header("content-length", "0")
            self.end_headers()

        def log_message(self, format: str, *args: Any) -> None:  # noqa: A002
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}/mcp", seen
        finally:
            server.shutdown()
            thread.join()


async def test_missing_credentials_are_reported() -> None:
    with web(401) as (url, _):
        problem = await reason(ServerSpec(name="web", target=HttpTarget(url=url)))
    assert "HTTP status 401" in problem.message
    assert "`headers`" in str(problem.hint)


async def test_headers_go_to_the_server_and_do_not_follow_a_redirect() -> None:
    with web(200) as (other, seen), web(307, other) as (url, first):
        target = HttpTarget(url=url, headers={"Authorization": "Bearer t0ken"})
        problem = await reason(ServerSpec(name="web", target=target))
    assert "t0ken" not in problem.message
    assert {headers["Authorization"] for headers in first} == {"Bearer t0ken"}
    assert seen == []


@pytest.mark.spec("TOOL-12")
async def test_one_server_that_is_down_stops_no_other(http_server: Any, http_spec: Any) -> None:
    specs = [
        http_spec(http_server.url),
        ServerSpec(name="down", target=HttpTarget(url="http://127.0.0.1:9/mcp")),
        ServerSpec(name="lost", target=StdioTarget(command="no-such-program")),
        ServerSpec(name="unused", target=StdioTarget(command="no-such-program")),
    ]
    async with ServerPool(specs) as pool:
        opened = await pool.open(["web", "down", "lost"])
        assert [report.state for report in opened] == ["connected", "failed", "failed"]
        assert [report.state for report in pool.reports()] == [
            "connected",
            "failed",
            "failed",
            "unused",
        ]
        await need(pool.connections(["web"]), "writer")
        with pytest.raises(ToolError) as raised:
            await need(pool.connections(["web", "down", "lost"]), "writer")
        assert raised.value.message.startswith("agent `writer` needs servers `down`, `lost`")
        assert raised.value.message.count("\n") == 2


async def test_a_failure_is_believed_for_a_while_and_then_tried_again(tmp_path: Path) -> None:
    clock = Clock()
    program = tmp_path / "program"
    spec = ServerSpec(name="late", target=StdioTarget(command=str(program)))
    async with ServerPool([spec], clock=clock) as pool:
        assert (await pool.open(["late"]))[0].state == "failed"
        program.write_text(f"#!/bin/sh\nexec {sys.executable} -m mcp_server_time\n")
        program.chmod(0o755)
        clock.now += 1
        assert (await pool.open(["late"]))[0].state == "failed"
        clock.now += 5
        report = (await pool.open(["late"]))[0]
        assert (report.state, report.reason) == ("connected", None)
        tools = await pool.toolset("late", ServerFilter()).tools()
        assert "late__get_current_time" in {tool.spec.name for tool in tools}


async def test_a_crash_is_an_error_result_and_the_next_call_connects_again(
    make_stdio: Any, make_context: Any, caplog: pytest.LogCaptureFixture
) -> None:
    clock = Clock()
    async with ServerPool([make_stdio("s", "tiny.py", "once")], clock=clock) as pool:
        died = await call(pool, make_context(), "die", status=7)
        assert died.is_error
        assert died.text.startswith("server `s` was lost during `tools/call`: exit status 7")
        assert "last[31m words" in died.text
        assert "\x1b" not in died.text
        assert pool.reports()[0].state == "lost"
        assert (await call(pool, make_context(), "add", a=1, b=2)).text == "3"

        # A server that went away unseen is connected to again without a word.
        pid = pool.connection("s").pid
        assert pid is not None
        os.kill(pid, signal.SIGKILL)
        await ended(pid)
        await until(lambda: pool.reports()[0].state != "connected")
        assert (await call(pool, make_context(), "add", a=2, b=2)).text == "4"

        # One that keeps stopping is left alone, and tried again later.
        assert (await call(pool, make_context(), "die", status=1)).is_error
        tired = await call(pool, make_context(), "add", a=1, b=1)
        assert tired.is_error
        assert "was lost 3 times within 60 s" in tired.text
        clock.now += 61
        assert (await call(pool, make_context(), "add", a=1, b=1)).text == "2"
    assert "server `s` was lost: exit status 7" in caplog.text


async def test_a_web_server_that_comes_back_is_used_again(
    start_http: Any, held_port: int, http_spec: Any, make_context: Any
) -> None:
    clock = Clock()
    server = start_http(held_port)
    specs = [
        http_spec(server.url, protocol="2026-07-28"),
        replace(http_spec(server.url, protocol="legacy"), name="old"),
    ]
    try:
        async with ServerPool(specs, clock=clock) as pool:
            old = pool.toolset("old", ServerFilter())
            for number, toolset in enumerate((pool.toolset("web", ServerFilter()), old)):
                add = ToolCall("1", "add", {"a": number, "b": 1})
                assert (await toolset.call_tool("add", add, make_context())).text == f"{number + 1}"
            server.stop()
            down = await call(pool, make_context(), "echo", text="hello")
            assert down.is_error
            assert "server `web`" in down.text
            server = start_http(held_port)
            clock.now += 6  # past the time a failure to connect is believed
            assert (await call(pool, make_context(), "echo", text="again")).text == "again"
            # The new process knows nothing of the other session; a call it never took is repeated.
            unseen = ToolCall("1", "echo", {"text": "unseen"})
            assert (await old.call_tool("echo", unseen, make_context())).text == "unseen"
    finally:
        server.stop()


async def test_a_call_without_an_answer_ends_in_time(
    http_server: Any, http_spec: Any, make_context: Any, eventually: Any
) -> None:
    spec = http_spec(http_server.url, read_timeout_seconds=60)
    async with ServerPool([spec]) as pool:
        await need(pool.connections(["web"]), "tester")

        async def was_seen(what: str) -> bool:
            return (await call(pool, make_context(), "seen", key="late")).structured[what]

        async def let_time_pass() -> None:
            await eventually(partial(was_seen, "started"))
            pass_seconds(60)

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(let_time_pass)
            late = await call(pool, make_context(), "slow", key="late", seconds=600)
            assert late.is_error
            assert "did not answer `tools/call` within 60 s" in late.text
        # Progress shows that the server works, and starts the time anew.
        steps: list[object] = []

        def hear(*step: object) -> None:
            steps.append(step)
            pass_seconds(25)

        context = make_context(progress=hear)
        steady = await call(pool, context, "slow", key="steady", seconds=0.4, steps=4)
        assert steady.text == "done"
        assert len(steps) >= 3  # 75 s and more
        await eventually(partial(was_seen, "cancelled"))


@pytest.mark.parametrize(
    ("how", "what"), [("repeat", "a cursor was repeated"), ("pages", "over 250 pages")]
)
async def test_a_list_that_never_ends_is_an_error(make_stdio: Any, how: str, what: str) -> None:
    async with ServerPool([make_stdio("endless", "tiny.py", how)]) as pool:
        with pytest.raises(ToolError, match="`tools/list`: ") as raised:
            await pool.toolset("endless", ServerFilter()).tools()
        assert what in raised.value.message


async def test_a_peer_that_only_knows_an_older_protocol(
    make_stdio: Any, make_context: Any, caplog: pytest.LogCaptureFixture
) -> None:
    async with ServerPool([make_stdio("tiny", "tiny.py", "once")]) as pool:
        tools = await pool.toolset("tiny", ServerFilter()).tools()
        assert [tool.listed.name for tool in tools] == ["add", "die", "spawn", "wrong", "notified"]
        assert "the tool `add` is left out: the server lists its name twice" in caplog.text
        assert "it has no name" in caplog.text
        assert (await call(pool, make_context(), "add", a=1, b=2)).text == "3"
        wrong = await call(pool, make_context(), "wrong")
        assert wrong.is_error
        assert wrong.text == "server `tiny`: `tools/call` got an answer that violates the protocol"


async def test_a_server_is_notified_that_its_roots_changed(
    make_stdio: Any, make_context: Any
) -> None:
    reported = "notifications/roots/list_changed"
    for roots, expected in (((Root(uri="file:///a"),), True), ((), False)):
        spec = make_stdio("tiny", "tiny.py", "once", roots=roots)
        async with ServerPool([spec]) as pool:
            await pool.notify_roots_changed()  # nobody to tell yet
            await need(pool.connections(["tiny"]), "tester")
            await pool.notify_roots_changed()
            assert (reported in (await call(pool, make_context(), "notified")).text) is expected


async def test_a_pool_is_filled_before_it_is_started_but_not_used(make_stdio: Any) -> None:
    pool = ServerPool([make_stdio("tiny", "tiny.py", "once")])
    toolset = pool.toolset("tiny", ServerFilter())
    with pytest.raises(ToolError, match="used before they are started"):
        await toolset.tools()


async def test_agents_share_one_process(make_stdio: Any) -> None:
    async with ServerPool([make_stdio("s", "tiny.py", "once")]) as pool:
        async with anyio.create_task_group() as tasks:
            for number in range(10):
                tasks.start_soon(need, pool.connections(["s"]), f"agent {number}")
        first = pool.connection("s").pid
        await need(pool.connections(["s"]), "another")
        assert pool.connection("s").pid == first
        names = {tool.spec.name for tool in await pool.toolset("s", ServerFilter()).tools()}
        assert "s__add" in names


async def test_nothing_of_a_server_is_left_after_the_end(
    make_stdio: Any, make_context: Any
) -> None:
    async with ServerPool(
        [make_stdio("s", "tiny.py", "once"), make_stdio("t", "tiny.py", "once")]
    ) as pool:
        child = int((await call(pool, make_context(), "spawn")).text)
        server = pool.connection("s").pid
        assert server is not None
        assert lives(child)
        await pool.aclose()
        await ended(server)
        await ended(child)
        assert pool.reports()[0].state == "closed"
        with pytest.raises(ToolError, match="is closed"):
            await pool.connection("s").open()
        await pool.aclose()


async def test_a_server_that_will_not_leave_is_killed(
    make_stdio: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    # It never answered, and has nothing to finish.
    monkeypatch.setattr("fast_agent.mcp.process._LEAVE_SECONDS", 1e6)
    monkeypatch.setattr("fast_agent.mcp.process._TERM_SECONDS", 0.1)
    spec = make_stdio("mute", "mute.py", "stubborn", connect_timeout_seconds=0.4)
    before = children_of(os.getpid())
    with anyio.fail_after(PATIENCE):
        assert "no answer" in (await reason(spec)).message
    assert children_of(os.getpid()) <= before


async def test_cancelling_while_connecting_leaves_no_process(make_stdio: Any) -> None:
    before = children_of(os.getpid())
    async with ServerPool([make_stdio("mute", "mute.py")]) as pool:
        with anyio.move_on_after(0.3) as scope:
            await need(pool.connections(["mute"]), "tester")
        assert scope.cancelled_caught
    assert children_of(os.getpid()) <= before


async def test_an_error_in_the_body_ends_the_servers_too(make_stdio: Any) -> None:
    before = children_of(os.getpid())
    with pytest.raises(ValueError, match="mine"):  # noqa: PT012 - the body is the point
        async with ServerPool([make_stdio("s", "tiny.py", "once")]) as pool:
            await need(pool.connections(["s"]), "tester")
            assert children_of(os.getpid()) - before
            raise ValueError("mine")
    assert children_of(os.getpid()) <= before


async def test_servers_are_added_shared_and_told_apart(make_stdio: Any) -> None:
    async with ServerPool([make_stdio("one")]) as pool:
        assert pool.add(make_stdio("one")) == "one"
        other = make_stdio("one", "mute.py")
        with pytest.raises(ToolError, match="two different servers named `one`") as raised:
            pool.add(other)
        assert raised.value.hint == "rename one of them"
        assert pool.add(other, derived=True) == "one-2"
        assert pool.add(replace(other, declared="elsewhere"), derived=True) == "one-2"
        assert pool.names == ("one", "one-2")
        with pytest.raises(ToolError, match="no MCP server `oen`") as unknown:
            pool.connection("oen")
        assert unknown.value.hint == "did you mean `one`?"


async def test_a_pool_that_is_not_needed_costs_nothing() -> None:
    script = (
        "import sys\n"
        "import fast_agent.mcp.pool, fast_agent.mcp.server\n"
        "heavy = ('mcp', 'pydantic', 'httpx2', 'jsonschema')\n"
        "print([name for name in heavy if name in sys.modules])"
    )
    result = await anyio.run_process([sys.executable, "-c", script])
    assert result.stdout.decode().strip() == "[]"
