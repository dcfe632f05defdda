"""OpenTelemetry: traces and metrics of turns, made from the events of agents.

Nothing of OpenTelemetry is imported unless it is wanted: by a program that set up a tracer
provider, or by a person who named a collector in the environment. No file switches it on, so that
a project that was found cannot have turns sent anywhere.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

_COLLECTORS = ("OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT")


def is_wanted(environ: Mapping[str, str]) -> bool:
    """Return whether turns are to be traced.

    Args:
        environ: The environment, whose `OTEL_…` variables count.
    """
    if environ.get("OTEL_SDK_DISABLED", "").lower() == "true":
        return False
    return any(environ.get(name) for name in _COLLECTORS) or has_provider()


def has_provider() -> bool:
    """Return whether the program set up tracing itself."""
    if "opentelemetry.sdk.trace" not in sys.modules:
        return False
    from opentelemetry import trace

    return not isinstance(trace.get_tracer_provider(), trace.ProxyTracerProvider)
