"""OpenTelemetry: traces and metrics of turns, made from the events of agents.

Nothing of OpenTelemetry is imported unless it is wanted: by a program that set up a tracer
provider, or by a user who named a collector in the environment. No file switches it on, so that
a project that was found cannot have turns sent anywhere.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from contextlib import contextmanager, nullcontext
from contextvars import ContextVar
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Generator
    from contextlib import AbstractContextManager

    from fast_agent.text.json_value import JsonObject, JsonValue

_ENDPOINTS = "OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_{}_ENDPOINT"


def is_wanted(environ: Mapping[str, str]) -> bool:
    """Return whether turns are to be traced.

    Args:
        environ: The environment, whose `OTEL_…` variables count.
    """
    if environ.get("OTEL_SDK_DISABLED", "").lower() == "true":
        return False
    return any(is_sent(kind, environ) for kind in ("traces", "metrics")) or has_provider()


def is_sent(kind: str, environ: Mapping[str, str]) -> bool:
    """Return whether the environment names a collector.

    Args:
        kind: Of `traces` or of `metrics`.
        environ: The environment.
    """
    name = kind.upper()
    if environ.get(f"OTEL_{name}_EXPORTER", "").lower() == "none":
        return False
    return any(environ.get(endpoint.format(name)) for endpoint in _ENDPOINTS)


def has_provider() -> bool:
    """Return whether the program set up tracing itself."""
    if "opentelemetry.sdk.trace" not in sys.modules:
        return False
    from opentelemetry import trace

    return not isinstance(trace.get_tracer_provider(), trace.ProxyTracerProvider)


def caller_trace(meta: JsonValue) -> AbstractContextManager[None]:
    """Continue the trace of a caller inside, where turns are traced and the caller names a trace.

    Args:
        meta: The `_meta` of its request.
    """
    if "opentelemetry.sdk.trace" not in sys.modules or not isinstance(meta, Mapping):
        return nullcontext()
    return nullcontext() if "traceparent" not in meta else _inside(meta)


def current_trace() -> JsonObject | None:
    """Return the current trace, as `caller_trace` takes it; None where nothing is traced."""
    if "opentelemetry.sdk.trace" not in sys.modules:
        return None
    from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

    trace: dict[str, str] = {}
    TraceContextTextMapPropagator().inject(trace)
    return trace or None


_is_traced_elsewhere: ContextVar[bool] = ContextVar("whether others trace this", default=False)


@contextmanager
def traced_elsewhere() -> Generator[None]:
    """Make no spans of the events inside: they happen in another process, which makes them."""
    token = _is_traced_elsewhere.set(True)
    try:
        yield
    finally:
        _is_traced_elsewhere.reset(token)


def is_traced_elsewhere() -> bool:
    """Return whether another process traces what is happening now."""
    return _is_traced_elsewhere.get()


@contextmanager
def _inside(meta: JsonObject) -> Generator[None]:
    from opentelemetry import context
    from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

    named = {name: meta[name] for name in ("traceparent", "tracestate") if name in meta}
    texts = {name: value for name, value in named.items() if isinstance(value, str)}
    before = context.get_current()
    context.attach(TraceContextTextMapPropagator().extract(texts, before))
    try:
        yield
    finally:
        context.attach(before)
