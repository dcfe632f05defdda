"""A trace of a workflow in a viewer on this machine: Phoenix, from the package index.

A coordinator asks two desks, a clock and a news server; the answers are scripted, the agents, the
tools and the servers are real. The viewer keeps everything in a directory that is deleted in the
end, and listens on the loopback interface only.
"""

from __future__ import annotations

import contextlib
import json
import os
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request
from pathlib import Path
from typing import Any, TypeAlias

Span: TypeAlias = dict[str, Any]

REPORTS = Path(__file__).parents[1] / "project-reports"
COMMAND = (
    "fast-agent", "go", "--card", ".", "--config-path", "fastagent.config.yaml",
    "--model", "scripted?file=script.yaml", "--message", "The report, please.",
)  # fmt: skip
SPANS = 17
START_SECONDS = 180
SPAN_SECONDS = 30


def free_port() -> int:
    """Return a port that nothing listens on."""
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


def fetched(url: str) -> bytes | None:
    """Return what the viewer answers, or None while it does not."""
    try:
        with urllib.request.urlopen(url, timeout=10) as answer:  # noqa: S310
            return answer.read()
    except OSError:
        return None


def start_viewer(directory: str, port: int) -> subprocess.Popen[bytes]:
    """Start the viewer, and wait until it answers."""
    environ = {
        **os.environ,
        "PHOENIX_HOST": "127.0.0.1",
        "PHOENIX_PORT": str(port),
        "PHOENIX_GRPC_PORT": str(free_port()),
        "PHOENIX_WORKING_DIR": directory,
        "PHOENIX_TELEMETRY_ENABLED": "false",
    }
    log = Path(directory) / "log"
    with log.open("wb") as output:
        viewer = subprocess.Popen(["phoenix", "serve"], env=environ, stdout=output, stderr=output)
    deadline = time.monotonic() + START_SECONDS
    while fetched(f"http://127.0.0.1:{port}/healthz") is None:
        if viewer.poll() is not None or time.monotonic() > deadline:
            viewer.kill()
            sys.exit(f"the viewer did not start:\n{log.read_text(errors='replace')[-2000:]}")
        time.sleep(0.5)
    return viewer


def run_traced(port: int) -> None:
    """Run the workflow, with its spans sent to the viewer, messages and results included."""
    environ = {
        **os.environ,
        "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": f"http://127.0.0.1:{port}/v1/traces",
        "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT": "true",
    }
    done = subprocess.run(COMMAND, cwd=REPORTS, env=environ, check=False)
    if done.returncode != 0:
        sys.exit(f"the workflow ended with status {done.returncode}")


def spans_of(port: int) -> list[Span]:
    """Return the spans the viewer holds, once all are there."""
    deadline = time.monotonic() + SPAN_SECONDS
    while True:
        answer = fetched(f"http://127.0.0.1:{port}/v1/projects/default/spans?limit=100")
        spans: list[Span] = [] if answer is None else json.loads(answer)["data"]
        if len(spans) >= SPANS or time.monotonic() > deadline:
            return spans
        time.sleep(0.5)


def tree(spans: list[Span], parent: str | None = None, depth: int = 0) -> list[str]:
    """Draw spans as lines, each inside the one that started it, in the order they began."""
    lines: list[str] = []
    for span in sorted(spans, key=lambda one: one["start_time"]):
        if span["parent_id"] == parent:
            failed = "  failed" if span["status_code"] == "ERROR" else ""
            lines.append(f"{'  ' * depth}{span['name']}{failed}")
            lines.extend(tree(spans, span["context"]["span_id"], depth + 1))
    return lines


def main() -> None:
    """Run the demo."""
    port = free_port()
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as directory:
        print("The viewer starts; the first time this takes up to a minute.", flush=True)
        viewer = start_viewer(directory, port)
        try:
            run_traced(port)
            spans = spans_of(port)
            print("\nThe trace, as the viewer holds it:\n")
            print("\n".join(tree(spans)))
            if len(spans) < SPANS:
                sys.exit(f"the viewer holds {len(spans)} of {SPANS} spans")
            if sys.stdin.isatty():
                print(f"\nOpen http://127.0.0.1:{port} to look at it. Enter ends the viewer.")
                with contextlib.suppress(EOFError, KeyboardInterrupt):
                    input()
        finally:
            viewer.terminate()
            viewer.wait(timeout=30)


if __name__ == "__main__":
    main()
