"""A batch of 1,000 orders over two worker processes, one of which is killed midway.

The model is a server on this machine that answers at once, counts what it is asked, and kills the
first worker in the middle of an answer. The second worker takes over. Everything is kept in one
SQLite file, in a directory that is deleted in the end.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections import Counter
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Event, Lock, Thread
from typing import Any

HERE = Path(__file__).parent
CONCURRENCY = 10
ATTACHED = "another process is running this batch"


class Model:
    """A model that asks for the tool first, then confirms; each request counts as paid.

    Args:
        kill_at: The number of the request at which the first worker is killed, from 1.
    """

    def __init__(self, kill_at: int) -> None:
        self.paid = 0
        self.reached, self.attached = Event(), Event()
        self.first: subprocess.Popen[str] | None = None
        self._kill_at = kill_at
        self._lock = Lock()
        model = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers["content-length"])))
                answer = model.answer(body["messages"])
                self.send_response(200)
                self.send_header("content-type", "application/json")
                self.send_header("content-length", str(len(answer)))
                self.end_headers()
                self.wfile.write(answer)

            def handle(self) -> None:
                try:
                    super().handle()
                except OSError:
                    return  # the worker was killed
                except ValueError:
                    return  # it was killed while it sent a request

            def log_message(self, format: str, *args: object) -> None:  # noqa: A002
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self._server.server_port}/v1"
        Thread(target=self._server.serve_forever, daemon=True).start()

    def answer(self, messages: list[dict[str, Any]]) -> bytes:
        """Count a request, and answer it once both workers are there."""
        self.reached.set()
        self.attached.wait(300)
        with self._lock:
            self.paid += 1
            if self.paid == self._kill_at and self.first is not None:
                self.first.send_signal(signal.SIGKILL)
                self.first.wait()
        order = next(one["content"] for one in messages if one["role"] == "user")
        said: dict[str, Any] = {"role": "assistant", "content": f"{order} is booked"}
        reason = "stop"
        if messages[-1]["role"] != "tool":
            function = {"name": "book", "arguments": json.dumps({"order": order})}
            call = {"id": f"call {order}", "type": "function", "function": function}
            said, reason = {**said, "content": None, "tool_calls": [call]}, "tool_calls"
        choice = {"index": 0, "message": said, "finish_reason": reason}
        usage = {"prompt_tokens": 20, "completion_tokens": 5, "total_tokens": 25}
        answer = {"id": "a", "object": "chat.completion", "created": 1, "model": "clerk"}
        return json.dumps({**answer, "choices": [choice], "usage": usage}).encode()


def main(items: int, place: Path) -> None:
    """Run the batch, and print what was paid.

    Args:
        items: How many orders there are.
        place: An empty directory.
    """
    model = Model(kill_at=items)  # of two requests an order: midway
    for name in ("clerk.md", "tools.py"):
        shutil.copy(HERE / name, place / name)
    (place / "fastagent.config.yaml").write_text(
        f"generic: {{base_url: '{model.url}', api_key: none}}\n", encoding="utf-8"
    )
    orders = "".join(f'"order {number}"\n' for number in range(1, items + 1))
    (place / "orders.jsonl").write_text(orders, encoding="utf-8")
    words = ["fast-agent", "batch", "clerk.md", "--trust", "--concurrency", str(CONCURRENCY)]
    words += ["--input", "orders.jsonl", "--output", "results.jsonl"]
    print(f"$ {' '.join(words)}  # in two processes, the first of which is killed", flush=True)
    with worker(words, place) as first:
        model.first = first
        while not model.reached.wait(0.1) and first.poll() is None:
            pass
        with worker(words, place) as second:
            try:
                said = followed(second, model)
            finally:
                first.kill()
                second.kill()
    if second.returncode or first.returncode != -signal.SIGKILL:
        sys.exit(said)
    report(items, place, model.paid)


def followed(second: subprocess.Popen[str], model: Model) -> str:
    """Let the model answer once the second worker has attached; return what that one printed."""
    lines: list[str] = []
    for line in second.stderr or ():
        lines.append(line)
        if ATTACHED in line:
            model.attached.set()
    second.wait()
    return "".join(lines)


def worker(words: list[str], place: Path) -> subprocess.Popen[str]:
    """Start a worker process."""
    return subprocess.Popen(
        words,
        cwd=place,
        env={**os.environ, "FAST_AGENT_HOME": str(place / "home")},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )


def report(items: int, place: Path, paid: int) -> None:
    """Print what came of the batch.

    Args:
        items: How many orders there are.
        place: Where it ran.
        paid: How many requests the model was sent.
    """
    rows = [json.loads(line) for line in (place / "results.jsonl").read_text().splitlines()]
    answered = sum(row["ok"] for row in rows)
    booked = Counter(path.read_text() for path in (place / "booked").iterdir())
    needed, twice = 2 * items, sum(count > 1 for count in booked.values())
    print(f"{answered:>7,} answers")
    print(f"{len(booked):>7,} orders booked, {twice} of them twice")
    print(f"{paid:>7,} model requests, {needed:,} of them needed")
    print(f"{paid - needed:>7,} sent again: those under way at the kill, at most {CONCURRENCY}")
    if not answered == len(booked) == items or twice or not 0 < paid - needed <= CONCURRENCY:
        sys.exit("a promise was broken")


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as directory:
        main(int(sys.argv[1]) if len(sys.argv) > 1 else 1000, Path(directory))
