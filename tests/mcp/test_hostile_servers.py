"""Servers that ask for too much, send too much, or answer so that nobody can read it."""

from __future__ import annotations

import gzip
import http.server
import json
import subprocess
import sys
import threading
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import anyio
import pytest
from tests.patience import pass_seconds, until

from fast_agent.errors import ToolError
from fast_agent.mcp.client_side import ClientSide
from fast_agent.mcp.listing import ITEM_LIMIT
from fast_agent.mcp.pool import ServerPool
from fast_agent.mcp.server import HttpTarget, ServerSpec
from fast_agent.messages.message import Message, ToolCall
from fast_agent.models.model import ModelResponse
from fast_agent.tools.human import HumanAnswer, HumanRequest
from fast_agent.tools.toolbox import ServerFilter

if TYPE_CHECKING:
    from collections.abc import Generator

    from fast_agent.mcp.client_side import SamplingRequest
    from fast_agent.messages.message import ToolResult

pytestmark = pytest.mark.anyio


class Person:
    """A person who gives one answer after another."""

    def __init__(self, *answers: str) -> None:
        self.answers = list(answers)
        self.asked: list[HumanRequest] = []

    async def ask(self, request: HumanRequest) -> HumanAnswer:
        self.asked.append(request)
        return HumanAnswer(action="accept", content={"more": self.answers.pop(0)})


class Oracle:
    """A model that counts what it answered."""

    def __init__(self) -> None:
        self.answered = 0

    async def sample(self, request: SamplingRequest) -> tuple[str, ModelResponse]:
        self.answered += 1
        return "oracle", ModelResponse(Message.assistant("yes"))


async def ping(pool: ServerPool) -> None:
    """Check that the connection is as good as ever."""
    connection = pool.connection(pool.names[0])
    pid = connection.pid
    await connection.request("ping", lambda client, _: client.session.send_ping(), repeatable=False)
    assert connection.pid == pid


async def call(pool: ServerPool, context: Any, tool: str, **arguments: Any) -> ToolResult:
    toolset = pool.toolset(pool.names[0], ServerFilter())
    return await toolset.call_tool(tool, ToolCall("1", tool, arguments), context)


@pytest.mark.spec("TR-P6.2")
@pytest.mark.parametrize("at_once", [False, True])
async def test_a_call_gets_20_model_answers_and_then_none_where_nobody_can_be_asked(
    make_stdio: Any, make_context: Any, caplog: pytest.LogCaptureFixture, at_once: bool
) -> None:
    oracle = Oracle()
    spec = make_stdio("greedy", "hostile.py", "once")
    async with ServerPool([spec], offered=ClientSide(sampler=oracle)) as pool:
        for _ in range(2):  # each call has its own share
            said = await call(pool, make_context(), "greedy", wanted=60, at_once=at_once)
            assert said.text == (
                "20 answers; this call had 20 model answers, and the user did not allow more"
            )
    assert oracle.answered == 40
    refusals = [line for line in caplog.messages if "no user is connected" in line]
    assert len(refusals) == 2
    assert "server `greedy` wanted more than 20 model answers" in refusals[0]
    assert "max_answers" in refusals[0]


@pytest.mark.spec("TR-P6.2")
@pytest.mark.parametrize("at_once", [False, True])
async def test_a_person_is_asked_for_more_model_answers_and_a_no_is_not_asked_again(
    make_stdio: Any, make_context: Any, at_once: bool
) -> None:
    person, oracle = Person("yes", "no"), Oracle()
    spec = make_stdio("greedy", "hostile.py", "once", sampling_limit=3)
    async with ServerPool([spec], offered=ClientSide(sampler=oracle, human=person)) as pool:
        said = await call(pool, make_context(), "greedy", wanted=30, at_once=at_once)
    assert said.text.startswith("6 answers; ")
    assert oracle.answered == 6
    first, second = (question.message for question in person.asked)
    assert "server `greedy` had 3 model answers for one call of agent `tester`" in first
    assert "server `greedy` had 6 model answers" in second


@pytest.mark.spec("BOUND-1")
async def test_progress_without_end_does_not_hold_a_call_for_ever(
    make_stdio: Any, make_context: Any
) -> None:
    spec = make_stdio("s", "hostile.py", "once", read_timeout_seconds=60, call_timeout_seconds=600)
    steps: list[object] = []

    def hear(*step: object) -> None:
        steps.append(step)
        pass_seconds(40)

    async with ServerPool([spec]) as pool:
        said = await call(pool, make_context(progress=hear), "endless")
        assert said.is_error
        assert "did not end `tools/call` within 600 s, although it reported progress" in said.text
        assert "`call_timeout_seconds`" in said.text
        assert len(steps) >= 15
        # The server goes on to serve.
        assert (await call(pool, make_context(), "add")).text == "ok"


@pytest.mark.spec("BOUND-1")
async def test_the_time_that_a_person_or_a_model_takes_does_not_count(
    make_stdio: Any, make_context: Any
) -> None:
    class Slow(Oracle):
        async def sample(self, request: SamplingRequest) -> tuple[str, ModelResponse]:
            pass_seconds(1000)
            return await super().sample(request)

    spec = make_stdio("s", "hostile.py", "once", read_timeout_seconds=60, call_timeout_seconds=600)
    async with ServerPool([spec], offered=ClientSide(sampler=Slow())) as pool:
        assert (await call(pool, make_context(), "greedy", wanted=5)).text == "5 answers; "


@pytest.mark.spec("BOUND-3")
async def test_a_server_that_lists_nothing_is_waited_for_a_short_time_and_people_see_it(
    make_stdio: Any, caplog: pytest.LogCaptureFixture
) -> None:
    spec = make_stdio("mute", "hostile.py", "mute", list_timeout_seconds=30)
    async with ServerPool([spec]) as pool:
        await pool.open(["mute"])

        async def let_time_pass() -> None:
            await until(lambda: pool.connection("mute").calls.count)
            pass_seconds(3)
            await until(lambda: "still waiting" in caplog.text)
            pass_seconds(30)

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(let_time_pass)
            with pytest.raises(ToolError) as raised:
                await pool.toolset("mute", ServerFilter()).tools()
            problem = raised.value
            assert problem.message == "server `mute` did not answer `tools/list` within 30 s"
            assert problem.hint == "raise the server's `list_timeout_seconds` if it needs longer"
    assert "still waiting for server `mute`: `tools/list`, 30 s at most" in caplog.text


UNREADABLE = {
    "surrogate": "surrogates not allowed",
    "cut": "Expecting value: line 1 column",
    "anonymous": "Expecting value: line 1 column",
    "dense": "over 4,000,000 values",
}


@pytest.mark.parametrize("how", UNREADABLE)
@pytest.mark.spec("BOUND-4", "BOUND-5")
async def test_an_answer_that_cannot_be_decoded_fails_its_request_at_once(
    make_stdio: Any, how: str
) -> None:
    # No time passes here: without the answer the request would wait for good.
    spec = make_stdio("s", "hostile.py", how, list_timeout_seconds=100_000)
    async with ServerPool([spec]) as pool:
        with pytest.raises(ToolError) as raised:
            await pool.toolset("s", ServerFilter()).tools()
        assert "`tools/list` got an answer that cannot be decoded: " in raised.value.message
        assert UNREADABLE[how] in raised.value.message
        await ping(pool)


@pytest.mark.parametrize(
    "line",
    [
        '{"jsonrpc": "2.0", "id": ID, "result": {"content": ["\\ud800"]}}',
        '{"jsonrpc": "2.0", "id": ID, "result": {"content": [{"type": "text", "text": "a',
        '{"id": ID, "result": {"content": NaN}}',
        '{"jsonrpc": "2.0", "result": {"content": []}, "id": ID, }',
        '{"jsonrpc": "1.0", "id": ID, "result": {}}',
        '{"jsonrpc": "2.0", "id": ID, "result": 5}',
        '{"jsonrpc": "2.0", "id": ID}',
    ],
)
@pytest.mark.spec("BOUND-4")
async def test_a_call_with_an_answer_that_cannot_be_decoded_fails_alone(
    make_stdio: Any, make_context: Any, line: str
) -> None:
    spec = make_stdio("s", "hostile.py", "once", read_timeout_seconds=100_000)
    async with ServerPool([spec]) as pool:
        said = await call(pool, make_context(), "unreadable", line=line)
        assert said.is_error
        assert "`tools/call` got an answer that cannot be decoded" in said.text
        assert (await call(pool, make_context(), "add")).text == "ok"


BIG = """
import sys
import anyio
from fast_agent.mcp.pool import ServerPool
from fast_agent.mcp.server import ServerSpec, StdioTarget, HttpTarget
from fast_agent.tools.toolbox import ServerFilter

def peak():
    # Not getrusage: its peak counts what the process was forked from.
    with open("/proc/self/status") as status:
        return next(int(line.split()[1]) // 1024 for line in status if line.startswith("VmHWM"))

async def main(target):
    async with ServerPool([ServerSpec(name="big", target=target)]) as pool:
        tools = await pool.toolset("big", ServerFilter()).tools()
        print(len(tools), peak())

where = sys.argv[1]
if where.startswith("http"):
    target = HttpTarget(url=where)
else:
    target = StdioTarget(command=sys.executable, args=(where, "big"))
anyio.run(main, target)
"""
MAX_MEBIBYTES = 600
"""Taken as they came, 200,000 tools needed 1,500."""

SERVER = Path(__file__).parent / "servers" / "hostile.py"


async def big(where: str) -> None:
    run = await anyio.run_process([sys.executable, "-c", BIG, where], stderr=subprocess.PIPE)
    count, mebibytes = map(int, run.stdout.split())
    assert count == ITEM_LIMIT
    assert mebibytes < MAX_MEBIBYTES
    said = run.stderr.decode()
    assert "server `big` lists 200,000 tools on one page; the first 10,000 are used" in said


@pytest.mark.spec("BOUND-2")
async def test_a_page_of_200_000_tools_is_cut_and_needs_bounded_memory() -> None:
    await big(str(SERVER))


@contextmanager
def web(tools: bytes, kind: str, encoding: str) -> Generator[str]:
    """A loopback web server whose answer to `tools/list` is given."""

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            request = json.loads(self.rfile.read(int(self.headers["content-length"])))
            sent_kind, sent_encoding, body = answered(request, tools, kind, encoding)
            self.send_response(200 if "id" in request else 202)
            self.send_header("content-type", sent_kind)
            if sent_encoding:
                self.send_header("content-encoding", sent_encoding)
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: Any) -> None:  # noqa: A002
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}/mcp"
        finally:
            server.shutdown()
            thread.join()


def answered(request: Any, tools: bytes, kind: str, encoding: str) -> tuple[str, str, bytes]:
    """Answer a request; the body of `tools/list` is given."""
    match request["method"]:
        case "initialize":
            result: Any = {
                "protocolVersion": "2025-06-18",
                "capabilities": {"tools": {}},
                "serverInfo": {"name": "web", "version": "1"},
            }
        case "ping":
            result = {}
        case "tools/list":
            body = tools.replace(b"ID", json.dumps(request["id"]).encode())
            if kind == "text/event-stream":
                body = b": a comment\r\nevent: message\r\nid: 5\r\ndata: " + body + b"\r\n\r\n"
            if encoding == "gzip":
                body = gzip.compress(body)
            return kind, encoding, body
        case _:
            if "id" not in request:
                return "application/json", "", b""
            error = {"code": -32601, "message": "not known"}
            reply = {"jsonrpc": "2.0", "id": request["id"], "error": error}
            return "application/json", "", json.dumps(reply).encode()
    reply = {"jsonrpc": "2.0", "id": request["id"], "result": result}
    return "application/json", "", json.dumps(reply).encode()


KINDS = pytest.mark.parametrize("kind", ["application/json", "text/event-stream"])
HEAD = b'{"jsonrpc": "2.0", "id": ID, "result": {"tools": ['


@KINDS
@pytest.mark.parametrize("encoding", ["", "gzip"])
@pytest.mark.spec("BOUND-2")
async def test_a_page_of_200_000_tools_over_http_is_cut_too(kind: str, encoding: str) -> None:
    tools = b", ".join(
        b'{"name": "tool%d", "inputSchema": {"type": "object", "properties": {}}}' % number
        for number in range(200_000)
    )
    with web(HEAD + tools + b"]}}", kind, encoding) as url:
        await big(url)


@KINDS
@pytest.mark.parametrize(
    ("body", "encoding", "what"),
    [
        (HEAD + b'{"name": "\\ud800", "inputSchema": {}}]}}', "", "hex escape"),
        (HEAD, "", "EOF"),
        (HEAD + b"[]," * 5_000_000 + b"[]]}}", "", "over 4,000,000 values"),
        (HEAD + b" " * 70_000_000 + b"]}}", "gzip", "over 67,108,864 bytes"),
        (HEAD + b"]}}", "deflate", "while decompressing data"),
        (HEAD + b"]}}", "br", "it is compressed by `br`"),
    ],
)
@pytest.mark.spec("BOUND-4", "BOUND-5")
async def test_an_answer_over_http_that_cannot_be_decoded_fails_its_request_at_once(
    kind: str, body: bytes, encoding: str, what: str
) -> None:
    with web(body, kind, encoding) as url:
        spec = ServerSpec(
            name="web", target=HttpTarget(url=url), protocol="legacy", list_timeout_seconds=100_000
        )
        async with ServerPool([spec]) as pool:
            with pytest.raises(ToolError) as raised:
                await pool.toolset("web", ServerFilter()).tools()
            assert what in raised.value.message
            await ping(pool)
