"""Turns are traced by the SDK of OpenTelemetry, and sent to a collector over HTTP."""

from __future__ import annotations

import json
import os
import shlex
import signal
import sqlite3
import subprocess
import sys
from contextlib import closing
from dataclasses import replace
from importlib.metadata import distribution
from threading import Event
from typing import TYPE_CHECKING, Any

import pytest
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import (
    ExportMetricsServiceRequest,
)
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import SpanKind, StatusCode, get_current_span
from tests.engine.batch_world import (
    BatchWorld,
    ModelServer,
    Reply,
    note_and_answer,
    run_command,
)
from tests.own_home import own_home
from tests.telemetry.collector import receiver, spans_of

from fast_agent import FastAgent
from fast_agent.errors import FastAgentError
from fast_agent.sessions.store import SessionStore
from fast_agent.telemetry.tracing import Tracing, conventions

if TYPE_CHECKING:
    from collections.abc import Generator, Mapping
    from pathlib import Path

    from opentelemetry.sdk.trace import ReadableSpan

    from fast_agent.agents.runtime_options import RuntimeOptions

CANARY = "sk-canary-0123456789abcdef"


class TracedProgram:
    """A program whose turns are traced in memory."""

    def __init__(self, place: Path, *, content: bool = False) -> None:
        environ = {**own_home(place), "ACME_API_KEY": CANARY}
        self.fast = FastAgent("test", cwd=place, environ=environ)
        self._spans = InMemorySpanExporter()
        self._reader = InMemoryMetricReader()
        tracers = TracerProvider()
        tracers.add_span_processor(SimpleSpanProcessor(self._spans))
        self._tracing = Tracing(
            tracers,
            MeterProvider([self._reader]),
            redact=self.fast.redact,
            is_workflow=lambda name: name == "line",
            content=content,
        )

    def traced(self, options: RuntimeOptions) -> RuntimeOptions:
        return replace(options, tracing=self._tracing.listener_of)

    def all_spans(self) -> tuple[ReadableSpan, ...]:
        """The spans, as they ended."""
        return self._spans.get_finished_spans()

    def spans(self) -> dict[str, ReadableSpan]:
        """The last span of each name that ended."""
        return {span.name: span for span in self.all_spans()}

    def parent(self, name: str) -> str | None:
        """The name of the span around the span of a name."""
        inner, names = self.spans()[name].parent, dict[int, str]()
        for span in self._spans.get_finished_spans():
            context = span.get_span_context()
            assert context is not None
            names[context.span_id] = span.name
        return None if inner is None else names[inner.span_id]

    def metrics_data(self) -> str:
        data = self._reader.get_metrics_data()
        assert data is not None
        return data.to_json()

    def metrics(self) -> set[str]:
        data = self._reader.get_metrics_data()
        assert data is not None
        return {
            metric.name
            for resource in data.resource_metrics
            for scope in resource.scope_metrics
            for metric in scope.metrics
        }


def _facts(span: ReadableSpan) -> Mapping[str, Any]:
    assert span.attributes is not None
    return span.attributes


@pytest.mark.spec("OTEL-1")
@pytest.mark.anyio
async def test_a_turn_nests_its_requests_its_tools_and_its_children(tmp_path: Path) -> None:
    program = TracedProgram(tmp_path)
    seen: list[Any] = []

    def count(text: str) -> int:
        """Count the words of a text."""
        seen.append(get_current_span())
        return len(text.split())

    program.fast.agent("child", "Shorten.", model="passthrough", tool_only=True)
    program.fast.agent(
        "desk", "Help.", model="passthrough", function_tools=[count], agents=["child"], default=True
    )
    async with program.fast.run(adjust=program.traced) as app:
        await app.send('***CALL_TOOL count {"text": "one two"}')
        await app.send('***CALL_TOOL agent__child {"message": "hello"}')
        assert not get_current_span().is_recording(), "a turn leaves the context as it was"
    spans = program.spans()
    assert {name: program.parent(name) for name in spans if "chat" not in name} == {
        "invoke_agent desk": None,
        "execute_tool count": "invoke_agent desk",
        "execute_tool agent__child": "invoke_agent desk",
        "invoke_agent child": "execute_tool agent__child",
    }
    assert [span.name for span in seen] == ["execute_tool count"]
    chat = spans["chat passthrough"]
    assert chat.kind is SpanKind.CLIENT
    assert _facts(chat)["gen_ai.request.model"] == "passthrough"
    assert _facts(chat)["gen_ai.usage.output_tokens"] > 0
    assert _facts(spans["execute_tool count"])["gen_ai.tool.name"] == "count"
    assert program.metrics() == {
        "gen_ai.client.operation.duration",
        "gen_ai.client.token.usage",
        "gen_ai.execute_tool.duration",
    }


@pytest.mark.spec("OTEL-1")
@pytest.mark.anyio
async def test_every_span_names_its_conversation_by_its_session(tmp_path: Path) -> None:
    program = TracedProgram(tmp_path)
    program.fast.agent("ann", "Help.", model="passthrough", default=True)
    store = SessionStore(tmp_path / "sessions")
    with store.create() as session:
        async with program.fast.run(adjust=program.traced, journal=session.journal) as app:
            await app.send("one")
            other = app.new_conversation()
            await other.agent("ann").send("two")
            await other.agent("ann").send("three")
    named = [_facts(span)["gen_ai.conversation.id"] for span in program.all_spans()]
    assert named[:2] == [session.id] * 2
    assert len(set(named[2:])) == 1
    assert named[2] != session.id
    assert "conversation" not in program.metrics_data()


@pytest.mark.spec("OTEL-1")
@pytest.mark.anyio
async def test_a_workflow_is_invoked_as_one(tmp_path: Path) -> None:
    program = TracedProgram(tmp_path)
    program.fast.agent("first", "One.", model="passthrough")
    program.fast.chain("line", sequence=["first"], default=True)
    async with program.fast.run(adjust=program.traced) as app:
        await app.send("hello")
    assert program.parent("invoke_agent first") == "invoke_workflow line"
    assert "gen_ai.invoke_workflow.duration" in program.metrics()


@pytest.mark.spec("OTEL-3")
@pytest.mark.parametrize("content", [False, True])
@pytest.mark.anyio
async def test_content_is_sent_only_if_wanted_and_without_secrets(
    tmp_path: Path, *, content: bool
) -> None:
    program = TracedProgram(tmp_path, content=content)

    def echo(text: str) -> str:
        """Return a text."""
        return f"echo of {text}"

    program.fast.agent("desk", "Help.", model="passthrough", function_tools=[echo], default=True)
    async with program.fast.run(adjust=program.traced) as app:
        await app.send(f'***CALL_TOOL echo {{"text": "marked {CANARY}"}}')
    sent = json.dumps([dict(_facts(span)) for span in program.spans().values()], default=str)
    assert CANARY not in sent
    assert ("marked" in sent) is content
    assert ("echo of" in sent) is content
    assert ("gen_ai.input.messages" in sent) is content


@pytest.mark.anyio
async def test_a_turn_that_fails_says_so_without_what_was_said(tmp_path: Path) -> None:
    program = TracedProgram(tmp_path)
    script = tmp_path / "fails.yaml"
    script.write_text("steps:\n  - fail: secret words\n", "utf-8")
    program.fast.agent("desk", "Help.", model=f"scripted?file={script}", default=True)
    async with program.fast.run(adjust=program.traced) as app:
        with pytest.raises(FastAgentError):
            await app.send("hello")
    spans = program.spans()
    assert len(spans) == 2
    for span in spans.values():
        assert span.status.status_code is StatusCode.ERROR
        assert span.status.description is None
        assert _facts(span)["error.type"] == "error"


@pytest.mark.spec("OTEL-2")
def test_every_name_is_one_of_the_pinned_conventions() -> None:
    names = conventions()
    package = distribution(names["package"])
    assert package.version == names["version"]
    found = [file for file in package.files or () if file.suffix == ".py"]
    text = "".join(file.read_text() for file in found)
    for group in ("operations", "attributes", "metrics", "providers"):
        for name in names[group].values():
            assert f'"{name}"' in text, name
    for name in names["newer_metrics"].values():
        assert f'"{name}"' not in text, f"`{name}` is part of the conventions now"


@pytest.fixture(name="collector")
def _collector() -> Generator[tuple[str, dict[str, list[bytes]]]]:
    """A receiver of OTLP on this machine: its address, and what it took by path."""
    with receiver() as started:
        yield started


def _go(place: Path, code: str = "", **environ: str) -> subprocess.CompletedProcess[str]:
    program = f"import sys\n{code}\nfrom fast_agent.cli.main import main\nmain()\n"
    arguments = ["go", "--model", "passthrough", "--message", "hello"]
    return subprocess.run(
        [sys.executable, "-P", "-c", program, *arguments],
        cwd=place,
        env={**os.environ, **own_home(place), **environ},
        capture_output=True,
        text=True,
        check=False,
    )


def test_a_collector_named_in_the_environment_gets_spans_and_metrics(
    tmp_path: Path, collector: tuple[str, dict[str, list[bytes]]]
) -> None:
    address, taken = collector
    run = _go(tmp_path, OTEL_EXPORTER_OTLP_ENDPOINT=address)
    assert (run.returncode, run.stdout) == (0, "hello\n"), run.stderr
    spans = spans_of(taken)
    assert sorted(span.name for span in spans) == ["chat passthrough", "invoke_agent agent"]
    assert len({span.trace_id for span in spans}) == 1
    metrics = [ExportMetricsServiceRequest.FromString(one) for one in taken["/v1/metrics"]]
    assert "gen_ai.client.token.usage" in str(metrics)


@pytest.mark.parametrize(
    ("environ", "sent"),
    [
        ({"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": "{}/mine"}, {"/mine"}),
        ({"OTEL_EXPORTER_OTLP_METRICS_ENDPOINT": "{}/mine"}, {"/mine"}),
        ({"OTEL_EXPORTER_OTLP_ENDPOINT": "{}", "OTEL_METRICS_EXPORTER": "none"}, {"/v1/traces"}),
        ({"OTEL_EXPORTER_OTLP_ENDPOINT": "{}", "OTEL_TRACES_EXPORTER": "None"}, {"/v1/metrics"}),
    ],
)
def test_only_what_has_a_collector_is_sent(
    tmp_path: Path,
    collector: tuple[str, dict[str, list[bytes]]],
    environ: Mapping[str, str],
    sent: set[str],
) -> None:
    address, taken = collector
    run = _go(tmp_path, **{name: value.format(address) for name, value in environ.items()})
    assert (run.returncode, run.stdout, run.stderr) == (0, "hello\n", "")
    assert set(taken) == sent


@pytest.mark.parametrize(
    ("endpoint", "reason"),
    [("http://127.0.0.1:9", "Connection refused"), ("{}/refused", "Method Not Allowed")],
)
def test_a_collector_that_takes_nothing_is_reported_in_one_line(
    tmp_path: Path,
    collector: tuple[str, dict[str, list[bytes]]],
    endpoint: str,
    reason: str,
) -> None:
    run = _go(tmp_path, OTEL_EXPORTER_OTLP_ENDPOINT=endpoint.format(collector[0]))
    assert (run.returncode, run.stdout) == (0, "hello\n")
    assert run.stderr == f"telemetry could not be sent: {reason}\n"


def test_without_its_packages_a_line_says_how_to_install_them(tmp_path: Path) -> None:
    blocked = "sys.modules['opentelemetry.exporter.otlp.proto.http.trace_exporter'] = None"
    run = _go(tmp_path, blocked, OTEL_EXPORTER_OTLP_ENDPOINT="http://127.0.0.1:9")
    assert (run.returncode, run.stdout) == (0, "hello\n"), run.stderr
    assert "pip install 'fast-agent[otel]'" in run.stderr


@pytest.mark.spec("OTEL-4")
@pytest.mark.parametrize("environ", [{}, {"OTEL_SDK_DISABLED": "true"}])
def test_nothing_is_imported_where_nothing_is_traced(
    tmp_path: Path, environ: Mapping[str, str]
) -> None:
    said = (
        "import atexit\n"
        "atexit.register(lambda: print([one for one in sys.modules if 'opentelemetry' in one"
        " or 'telemetry.tracing' in one], file=sys.stderr))"
    )
    more = {"OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:9"} if environ else {}
    run = _go(tmp_path, said, **environ, **more)
    assert (run.returncode, run.stdout) == (0, "hello\n"), run.stderr
    assert run.stderr.strip().endswith("[]")


_SERVER = """
import json, sys
for line in sys.stdin:
    asked = json.loads(line)
    if "id" not in asked:
        continue
    method = asked["method"]
    if method == "initialize":
        version = asked["params"]["protocolVersion"]
        info = {"name": "noting", "version": "1"}
        result = {"protocolVersion": version, "capabilities": {"tools": {}}, "serverInfo": info}
    elif method == "tools/list":
        result = {"tools": [{"name": "note", "inputSchema": {"type": "object"}}]}
    elif method == "tools/call":
        text = json.dumps(asked["params"].get("_meta"))
        result = {"content": [{"type": "text", "text": text}]}
    else:
        error = {"code": -32601, "message": "unknown method"}
        print(json.dumps({"jsonrpc": "2.0", "id": asked["id"], "error": error}), flush=True)
        continue
    print(json.dumps({"jsonrpc": "2.0", "id": asked["id"], "result": result}), flush=True)
"""
"""A server that answers a call with the `_meta` it was sent."""


@pytest.mark.spec("OTEL-5")
@pytest.mark.anyio
async def test_a_server_is_sent_the_trace_of_the_call(tmp_path: Path) -> None:
    program = TracedProgram(tmp_path)
    (tmp_path / "noting.py").write_text(_SERVER, "utf-8")
    command = f"{sys.executable} {tmp_path / 'noting.py'}"
    program.fast.server("noting", command=command)
    program.fast.agent("desk", "Help.", model="passthrough", servers=["noting"], default=True)
    async with program.fast.run(adjust=program.traced) as app:
        said = await app.send("***CALL_TOOL noting__note {}")
    context = program.spans()["execute_tool noting__note"].get_span_context()
    assert context is not None
    assert f"00-{context.trace_id:032x}-{context.span_id:016x}-" in said


@pytest.mark.spec("OTEL-5")
@pytest.mark.parametrize("given", [f"00-{'ab' * 16}-{'cd' * 8}-01", "nonsense", 7])
def test_a_served_call_continues_the_trace_of_its_client(
    tmp_path: Path, collector: tuple[str, dict[str, list[bytes]]], given: object
) -> None:
    address, taken = collector
    (tmp_path / "ann.md").write_text("---\nname: ann\nmodel: passthrough\n---\nEcho.\n", "utf-8")
    hello: dict[str, Any] = {"protocolVersion": "2025-11-25", "capabilities": {}}
    hello["clientInfo"] = {"name": "test", "version": "1"}
    call = {"name": "ann", "arguments": {"message": "hi"}, "_meta": {"traceparent": given}}
    lines: list[dict[str, Any]] = [
        {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": hello},
        {"jsonrpc": "2.0", "method": "notifications/initialized"},
        {"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": call},
    ]
    program = "from fast_agent.cli.main import main\nmain()\n"
    arguments = ["serve", "--transport", "stdio", "--card", "ann.md", "--no-session"]
    with subprocess.Popen(
        [sys.executable, "-P", "-c", program, *arguments],
        cwd=tmp_path,
        env={**os.environ, **own_home(tmp_path), "OTEL_EXPORTER_OTLP_ENDPOINT": address},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as server:
        assert server.stdin is not None
        assert server.stdout is not None
        for line in lines:
            server.stdin.write(json.dumps(line) + "\n")
            server.stdin.flush()
            if "id" in line:
                assert "result" in json.loads(server.stdout.readline())
        server.stdin.close()
    turn = next(span for span in spans_of(taken) if span.name == "invoke_agent ann")
    continued = isinstance(given, str) and given.startswith("00-")
    assert (turn.trace_id == b"\xab" * 16) is continued
    assert turn.parent_span_id == (b"\xcd" * 8 if continued else b"")


@pytest.mark.spec("OTEL-6")
def test_a_run_that_continues_is_linked_to_the_trace_it_began_in(
    tmp_path: Path, collector: tuple[str, dict[str, list[bytes]]], monkeypatch: pytest.MonkeyPatch
) -> None:
    address, taken = collector
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", address)
    killing: list[subprocess.Popen[str]] = []
    ready = Event()

    def reply(body: dict[str, Any]) -> Reply:
        ready.wait(60)
        if body["messages"][-1]["role"] == "tool" and killing:
            killing.pop().kill()
        return note_and_answer(body)

    with ModelServer(reply) as server:
        world = BatchWorld(tmp_path, server.url, 1)
        killed = world.start("--quiet")
        killing.append(killed)
        ready.set()
        killed.communicate(timeout=60)
        assert killed.returncode == -signal.SIGKILL
        with closing(sqlite3.connect(world.store())) as store:
            ((kept,),) = store.execute("SELECT gave FROM step WHERE name='trace'").fetchall()
        _, trace_id, span_id, _ = json.loads(kept).split("-")
        taken.clear()
        world.run("--quiet")
        again = spans_of(taken)
        (run,) = json.loads(run_command(world, "runs", "list", "--json").stdout)
        exported = run_command(world, "runs", "export", run["id"], "-o", "run.jsonl").stdout
        run_command(world, *shlex.split(exported)[1:])
    turn = next(one for one in again if one.name == "invoke_agent noter")
    # What was answered in the first life has its spans there, and was counted there.
    of_turn = sorted(one.name for one in again if one.trace_id == turn.trace_id)
    assert of_turn == ["chat generic.m", "invoke_agent noter"]
    (link,) = turn.links
    assert (link.trace_id.hex(), link.span_id.hex()) == (trace_id, span_id)
    assert turn.trace_id != link.trace_id
