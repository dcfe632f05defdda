"""Tracing: the events of turns as spans and metrics of OpenTelemetry.

Names follow the conventions for generative AI; they are in `conventions.json`, with the version of
the package they were taken from. A span of a turn or a tool call is the current one as long as it
is open, so that child agents, MCP requests and functions of users nest in it.
"""

from __future__ import annotations

import json
import logging
import re
from contextlib import asynccontextmanager
from dataclasses import dataclass
from importlib.resources import files
from time import perf_counter
from typing import TYPE_CHECKING, Any, Final
from uuid import uuid4

from fast_agent.agents.events import (
    ModelAnswered,
    ModelRequested,
    ToolFinished,
    ToolStarted,
    TurnFinished,
    TurnStarted,
)
from fast_agent.steps.steps import here, was_kept
from fast_agent.telemetry import has_provider, is_sent, is_traced_elsewhere

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable, Mapping

    from opentelemetry.context import Context
    from opentelemetry.metrics import Histogram, MeterProvider
    from opentelemetry.trace import Span, SpanKind, TracerProvider
    from opentelemetry.util.types import AttributeValue

    from fast_agent.agents.events import Event, Listener, Origin
    from fast_agent.messages.message import Message
    from fast_agent.text.json_value import JsonObject

    Attributes = dict[str, AttributeValue]

_CONTENT: Final = "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT"
_NO_CONTENT: Final = frozenset({"", "0", "false", "no_content"})
_TIMEOUT: Final = "OTEL_EXPORTER_OTLP_TIMEOUT"
_FLUSH_SECONDS: Final = 5.0
_REASON: Final = re.compile(r"(?:\[Errno \d+\] |reason: )([^'\")]+)")
_MISSING: Final = "nothing is traced: install the packages with `pip install 'fast-agent[otel]'`"


def conventions() -> Mapping[str, Any]:
    """Return the names of spans, attributes and metrics."""
    return json.loads(files("fast_agent.telemetry").joinpath("conventions.json").read_text("utf-8"))


@dataclass(slots=True)
class _OpenSpan:
    """A span that has not ended.

    Args:
        span: The span.
        before: The context to return to after it.
        since: When it started, by `perf_counter`.
        has_kept: Whether, of a turn, an answer was one of a former life of its run.
        has_fresh: Whether one was not.
    """

    span: Span
    before: Context
    since: float
    has_kept: bool = False
    has_fresh: bool = False


class Tracing:
    """A listener that makes spans and metrics.

    Args:
        tracers: Makes the tracer.
        meters: Makes the meter.
        redact: Hides secrets in what is sent.
        is_workflow: Whether the agent of a name is a workflow.
        content: Whether messages, arguments and results are sent.
    """

    def __init__(
        self,
        tracers: TracerProvider,
        meters: MeterProvider,
        *,
        redact: Callable[[str], str],
        is_workflow: Callable[[str], bool],
        content: bool = False,
    ) -> None:
        from fast_agent.version import __version__

        names = conventions()
        self._operations: Mapping[str, str] = names["operations"]
        self._attributes: Mapping[str, str] = names["attributes"]
        self._providers: Mapping[str, str] = names["providers"]
        self._tracer = tracers.get_tracer("fast_agent", __version__)
        meter = meters.get_meter("fast_agent", __version__)
        metrics: Mapping[str, str] = {**names["metrics"], **names["newer_metrics"]}
        self._durations: Mapping[str, Histogram] = {
            kind: meter.create_histogram(metrics[f"{kind}_duration"], "s")
            for kind in ("chat", "workflow", "tool")
        }
        self._tokens = meter.create_histogram(metrics["tokens"], "{token}")
        self._redact = redact
        self._is_workflow = is_workflow
        self._content = content
        self._conversation: str | None = None
        self._turns: dict[str, _OpenSpan] = {}
        self._chats: dict[str, tuple[_OpenSpan, Attributes]] = {}
        self._calls: dict[tuple[str, str], _OpenSpan] = {}

    def listener_of(self, session_id: str) -> Listener:
        """Return a listener to a conversation, which all spans name.

        Args:
            session_id: The session it is kept as; empty for one that is not kept.
        """
        conversation = session_id or uuid4().hex

        def on_event(event: Event) -> None:
            self._conversation = conversation
            self(event)
            self._conversation = None

        return on_event

    def __call__(self, event: Event) -> None:
        """Start or end a span."""
        if is_traced_elsewhere():
            return
        if isinstance(event, TurnStarted):
            self._start_turn(event)
        elif isinstance(event, ModelRequested):
            self._start_chat(event)
        elif isinstance(event, ModelAnswered):
            self._end_chat(event)
        elif isinstance(event, ToolStarted):
            self._start_tool(event)
        elif isinstance(event, ToolFinished):
            self._end_tool(event)
        elif isinstance(event, TurnFinished):
            self._end_turn(event)

    def _start_turn(self, event: TurnStarted) -> None:
        origin = event.origin
        attributes = self._named("workflow" if self._is_workflow(origin.agent) else "agent")
        attributes[self._attributes["agent"]] = origin.agent
        if self._content:
            attributes[self._attributes["input"]] = self._messages(event.message)
        name = f"{attributes[self._attributes['operation']]} {origin.agent}"
        self._turns[origin.turn_id] = turn = self._open(name, attributes)
        if origin.parent_call_id is None:
            _link_first_trace(turn.span)

    def _end_turn(self, event: TurnFinished) -> None:
        origin = event.origin
        failed = event.stop_reason if event.stop_reason in {"error", "cancelled"} else None
        chat = self._chats.pop(origin.turn_id, None)
        if chat is not None:
            self._fail(chat[0].span, failed or "unanswered", event.error)
            self._measure("chat", chat[0], {**chat[1], self._attributes["error"]: str(failed)})
            chat[0].span.end()
        for key in [one for one in self._calls if one[0] == origin.turn_id]:
            call = self._calls.pop(key)
            self._fail(call.span, failed or "unanswered", None)
            call.span.end()
        turn = self._turns.pop(origin.turn_id, None)
        if turn is None:
            return
        if turn.span.is_recording():
            turn.span.set_attributes(
                {
                    self._attributes["input_tokens"]: event.tree_usage.input_tokens,
                    self._attributes["output_tokens"]: event.tree_usage.output_tokens,
                    self._attributes["finish_reasons"]: [event.stop_reason],
                }
            )
            if self._content and event.message is not None:
                turn.span.set_attribute(self._attributes["output"], self._messages(event.message))
        if failed is not None:
            self._fail(turn.span, failed, event.error)
        is_shown = origin.parent_call_id is None or turn.has_fresh or not turn.has_kept
        if is_shown and self._is_workflow(origin.agent):
            self._measure("workflow", turn, self._named("workflow"))
        self._close(turn, is_shown=is_shown)

    def _start_chat(self, event: ModelRequested) -> None:
        earlier = self._chats.pop(event.origin.turn_id, None)
        if earlier is not None:  # it was refused, and is asked again with less
            self._fail(earlier[0].span, "context_overflow", None)
            earlier[0].span.end()
        provider = event.model.partition("?")[0].partition(".")[0]
        attributes = self._named("chat")
        attributes[self._attributes["provider"]] = self._providers.get(provider, provider)
        attributes[self._attributes["model"]] = self._redact(event.model)
        from opentelemetry.trace import SpanKind

        name = f"{self._operations['chat']} {attributes[self._attributes['model']]}"
        chat = self._open(name, attributes, SpanKind.CLIENT, is_current=False)
        self._chats[event.origin.turn_id] = chat, attributes

    def _end_chat(self, event: ModelAnswered) -> None:
        found = self._chats.pop(event.origin.turn_id, None)
        if found is None or self._was_kept(event.origin):
            return
        chat, attributes = found
        usage, names = event.usage, self._attributes
        if chat.span.is_recording():
            chat.span.set_attributes(
                {
                    names["input_tokens"]: usage.input_tokens,
                    names["output_tokens"]: usage.output_tokens,
                    names["cached_tokens"]: usage.cache_read_tokens,
                    names["finish_reasons"]: [event.message.stop_reason or "endTurn"],
                }
            )
            if self._content:
                chat.span.set_attribute(names["output"], self._messages(event.message))
        self._measure("chat", chat, attributes)
        for kind, count in (("input", usage.input_tokens), ("output", usage.output_tokens)):
            self._tokens.record(count, {**attributes, names["token_type"]: kind})
        chat.span.end()

    def _start_tool(self, event: ToolStarted) -> None:
        names, call = self._attributes, event.call
        attributes = self._named("tool")
        attributes[names["tool"]] = call.name
        attributes[names["tool_call"]] = call.id
        attributes[names["tool_type"]] = "function" if event.server_name is None else "extension"
        if self._content:
            attributes[names["arguments"]] = self._json(call.arguments)
        name = f"{attributes[names['operation']]} {call.name}"
        self._calls[event.origin.turn_id, call.id] = self._open(name, attributes)

    def _end_tool(self, event: ToolFinished) -> None:
        call = self._calls.pop((event.origin.turn_id, event.call.id), None)
        if call is None:
            return
        if self._was_kept(event.origin):
            self._close(call, is_shown=False)
            return
        attributes = self._named("tool")
        attributes[self._attributes["tool"]] = event.call.name
        if event.result.is_error:
            self._fail(call.span, "tool_error", event.result.text)
            attributes[self._attributes["error"]] = "tool_error"
        if self._content:
            call.span.set_attribute(self._attributes["result"], self._redact(event.result.text))
        self._measure("tool", call, attributes)
        self._close(call)

    def _open(
        self,
        name: str,
        attributes: Attributes,
        kind: SpanKind | None = None,
        *,
        is_current: bool = True,
    ) -> _OpenSpan:
        from opentelemetry import context
        from opentelemetry.trace import SpanKind, set_span_in_context

        if self._conversation is not None:
            attributes = {**attributes, self._attributes["conversation"]: self._conversation}
        before = context.get_current()
        kind = SpanKind.INTERNAL if kind is None else kind
        span = self._tracer.start_span(name, before, kind, attributes)
        if is_current:
            context.attach(set_span_in_context(span, before))
        return _OpenSpan(span, before, perf_counter())

    def _was_kept(self, origin: Origin) -> bool:
        """Return whether an answer is one of a former life of the run, which had its span then."""
        is_kept, turn = was_kept(), self._turns.get(origin.turn_id)
        if turn is not None:
            turn.has_kept |= is_kept
            turn.has_fresh |= not is_kept
        return is_kept

    def _close(self, opened: _OpenSpan, *, is_shown: bool = True) -> None:
        from opentelemetry import context

        if is_shown:  # a span that does not end is sent nowhere
            opened.span.end()
        context.attach(opened.before)  # not `detach`, which fails in another task than `attach`

    def _fail(self, span: Span, kind: str, reason: str | None) -> None:
        from opentelemetry.trace import Status, StatusCode

        span.set_attribute(self._attributes["error"], kind)
        # What a model or a tool said is content; the kind of error is not.
        shown = self._redact(reason) if reason is not None and self._content else None
        span.set_status(Status(StatusCode.ERROR, shown))

    def _measure(self, kind: str, opened: _OpenSpan, attributes: Attributes) -> None:
        self._durations[kind].record(perf_counter() - opened.since, attributes)

    def _named(self, kind: str) -> Attributes:
        return {self._attributes["operation"]: self._operations[kind]}

    def _messages(self, message: Message) -> str:
        parts: list[JsonObject] = []
        if message.text:
            parts.append({"type": "text", "content": message.text})
        for call in message.tool_calls:
            asked: JsonObject = {"id": call.id, "name": call.name, "arguments": call.arguments}
            parts.append({"type": "tool_call", **asked})
        return self._json([{"role": message.role, "parts": parts}])

    def _json(self, value: object) -> str:
        return self._redact(json.dumps(value, ensure_ascii=False, default=str))


def _link_first_trace(span: Span) -> None:
    """Link the turn of a run that continues to the trace in which the run began."""
    from opentelemetry.context import Context
    from opentelemetry.trace import get_current_span
    from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

    if not span.is_recording():
        return
    context = span.get_span_context()
    current = f"00-{context.trace_id:032x}-{context.span_id:016x}-{context.trace_flags:02x}"
    former = here().steps.former_trace(current)
    if former is not None:
        found = TraceContextTextMapPropagator().extract({"traceparent": former}, Context())
        span.add_link(get_current_span(found).get_span_context())


@asynccontextmanager
async def traced(
    environ: Mapping[str, str],
    *,
    redact: Callable[[str], str],
    is_workflow: Callable[[str], bool],
    notify: Callable[[str], None],
) -> AsyncGenerator[Tracing | None]:
    """Trace turns as long as the block lasts.

    Args:
        environ: The environment, whose `OTEL_…` variables count.
        redact: Hides secrets in what is sent.
        is_workflow: Whether the agent of a name is a workflow.
        notify: Called with a line if tracing was requested but cannot start.
    """
    own = None if has_provider() else _Exporters.make(environ, notify)
    if own is None and not has_provider():
        notify(_MISSING)
        yield None
        return
    from opentelemetry import metrics, trace

    tracing = Tracing(
        trace.get_tracer_provider() if own is None else own.tracers,
        metrics.get_meter_provider() if own is None else own.meters,
        redact=redact,
        is_workflow=is_workflow,
        content=environ.get(_CONTENT, "").lower() not in _NO_CONTENT,
    )
    try:
        yield tracing
    finally:
        if own is not None:
            await own.finish()


@dataclass(slots=True)
class _Exporters:
    """Providers of our own, which send to the collector of the environment."""

    tracers: Any
    meters: Any

    @classmethod
    def make(cls, environ: Mapping[str, str], notify: Callable[[str], None]) -> _Exporters | None:
        """Return them; None where their packages are not installed."""
        try:
            from opentelemetry.exporter.otlp.proto.http import metric_exporter, trace_exporter
            from opentelemetry.sdk.metrics import MeterProvider
            from opentelemetry.sdk.metrics.export import PeriodicExportingMetricReader
            from opentelemetry.sdk.resources import Resource
            from opentelemetry.sdk.trace import TracerProvider
            from opentelemetry.sdk.trace.export import BatchSpanProcessor
        except ImportError:
            return None
        report = _Report(notify)
        for module in (metric_exporter, trace_exporter):
            logging.getLogger(module.__name__).addFilter(report)
        resource = Resource.create({"service.name": "fast-agent"})
        # A collector that is away must not hold up the end of a program.
        timeout = None if environ.get(_TIMEOUT) else _FLUSH_SECONDS
        tracers = TracerProvider(resource=resource, shutdown_on_exit=False)
        if is_sent("traces", environ):
            tracers.add_span_processor(
                BatchSpanProcessor(trace_exporter.OTLPSpanExporter(timeout=timeout))
            )
        readers: list[PeriodicExportingMetricReader] = []
        if is_sent("metrics", environ):
            readers.append(
                PeriodicExportingMetricReader(metric_exporter.OTLPMetricExporter(timeout=timeout))
            )
        return cls(tracers, MeterProvider(readers, resource, shutdown_on_exit=False))

    async def finish(self) -> None:
        """Send what is left, for a few seconds at most."""
        from anyio import create_task_group, move_on_after, to_thread

        async def end(provider: Any) -> None:
            await to_thread.run_sync(provider.shutdown, abandon_on_cancel=True)

        with move_on_after(_FLUSH_SECONDS, shield=True):
            async with create_task_group() as both:
                both.start_soon(end, self.tracers)
                both.start_soon(end, self.meters)


class _Report(logging.Filter):
    """Says the first failure to send in a line, instead of each in the words of the library.

    Args:
        notify: Called with the line.
    """

    def __init__(self, notify: Callable[[str], None]) -> None:
        super().__init__()
        self._notify = notify
        self._reason = ""
        self._is_said = False

    def filter(self, record: logging.LogRecord) -> bool:
        """Take a record of an exporter; none is shown."""
        text = record.getMessage()
        found = _REASON.search(text)
        self._reason = found[1] if found else self._reason
        if record.levelno >= logging.ERROR and not self._is_said:
            self._is_said = True
            self._notify(f"telemetry could not be sent: {self._reason or text}")
        return False
