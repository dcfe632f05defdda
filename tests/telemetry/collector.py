"""A receiver of OTLP over HTTP, as a collector of traces and metrics is one."""

from __future__ import annotations

from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import TYPE_CHECKING

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

if TYPE_CHECKING:
    from collections.abc import Generator, Mapping

    from opentelemetry.proto.trace.v1.trace_pb2 import Span


class _Handler(BaseHTTPRequestHandler):
    taken: dict[str, list[bytes]]

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["content-length"]))
        self.taken.setdefault(self.path, []).append(body)
        self.send_response(405 if self.path.startswith("/refused") else 200)
        self.send_header("content-length", "0")
        self.end_headers()

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 (the overridden name)
        """Log nothing."""


@contextmanager
def receiver() -> Generator[tuple[str, dict[str, list[bytes]]]]:
    """Run a receiver on this machine; yields its address, and what it takes by path."""
    taken: dict[str, list[bytes]] = {}
    handler = type("Handler", (_Handler,), {"taken": taken})
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}", taken
        finally:
            server.shutdown()
            thread.join()


def spans_of(taken: Mapping[str, list[bytes]]) -> list[Span]:
    """Return the spans that were sent."""
    requests = [ExportTraceServiceRequest.FromString(one) for one in taken["/v1/traces"]]
    return [
        span
        for request in requests
        for resource in request.resource_spans
        for scope in resource.scope_spans
        for span in scope.spans
    ]
