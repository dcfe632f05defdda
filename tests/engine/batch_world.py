"""A world for batches: a model server that counts, cards, items, and the command as a process."""

from __future__ import annotations

import json
import os
import sqlite3
import subprocess
import sys
import time
from collections import Counter
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Lock, Thread
from typing import TYPE_CHECKING, Any

from tests.forked import run_forked

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from types import TracebackType
    from typing import Self

Reply = tuple[int, dict[str, str], dict[str, Any]]

CARD = """\
---
type: agent
model: generic.m
function_tools: [tools.py:note]
---
You note.
"""
TOOLS = '''\
import os


def note(item: str) -> str:
    """Note an item."""
    with open("effects", "a", encoding="utf-8") as file:
        file.write(f"{item}\\n")
    return f"noted {item}"
'''


def text_reply(text: str) -> Reply:
    """Return an answer of the model."""
    return 200, {}, _completion({"role": "assistant", "content": text}, "stop")


def call_reply(name: str, arguments: Mapping[str, object], call_id: str) -> Reply:
    """Return a call of a tool."""
    call = {
        "id": call_id,
        "type": "function",
        "function": {"name": name, "arguments": json.dumps(arguments)},
    }
    message = {"role": "assistant", "content": None, "tool_calls": [call]}
    return 200, {}, _completion(message, "tool_calls")


def _completion(message: dict[str, Any], reason: str) -> dict[str, Any]:
    return {
        "id": "c",
        "object": "chat.completion",
        "created": 1,
        "model": "m",
        "choices": [{"index": 0, "message": message, "finish_reason": reason}],
        "usage": {"prompt_tokens": 7, "completion_tokens": 3, "total_tokens": 10},
    }


def _stream(completion: dict[str, Any]) -> tuple[bytes, bytes]:
    """Return an answer as the events of a stream, up to the middle of its text and from there."""
    choice = completion["choices"][0]
    delta = dict(choice["message"])
    if "tool_calls" in delta:
        delta["tool_calls"] = [
            {"index": index, **call} for index, call in enumerate(delta["tool_calls"])
        ]
    head = {**completion, "object": "chat.completion.chunk", "usage": None}
    text = str(delta.get("content") or "")
    start = {"role": "assistant", "content": text[: len(text) // 2]}
    delta["content"] = text[len(text) // 2 :]
    begun = {"index": 0, "delta": start, "finish_reason": None}
    rest = {"index": 0, "delta": delta, "finish_reason": None}
    last: dict[str, Any] = {"index": 0, "delta": {}, "finish_reason": choice["finish_reason"]}
    chunks: list[dict[str, Any]] = [
        {**head, "choices": [begun]},
        {**head, "choices": [rest]},
        {**head, "choices": [last]},
        {**head, "choices": [], "usage": completion["usage"]},
    ]
    lines = [f"data: {json.dumps(chunk)}\n\n" for chunk in chunks]
    return lines[0].encode(), "".join([*lines[1:], "data: [DONE]\n\n"]).encode()


def note_and_answer(body: dict[str, Any]) -> Reply:
    """Answer as a model that notes the item first, and then says what the tool returned."""
    messages = body["messages"]
    item = next(one["content"] for one in messages if one["role"] == "user")
    if messages[-1]["role"] == "tool":
        return text_reply(f"done: {messages[-1]['content']}")
    return call_reply("note", {"item": item}, f"call-{item}")


class ModelServer:
    """A model on loopback that counts what it is asked.

    Args:
        reply: Makes the reply to a request.
        seconds: How long each answer takes.
        midway: Called in the middle of each answer that is streamed.
    """

    def __init__(
        self,
        reply: Callable[[dict[str, Any]], Reply] = note_and_answer,
        seconds: float = 0.0,
        midway: Callable[[], object] = int,
    ) -> None:
        self.asked: Counter[str] = Counter()
        self.answered: Counter[str] = Counter()
        self.most_at_once = self._at_once = 0
        self._lock = Lock()
        world = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            disable_nagle_algorithm = True
            wbufsize = -1

            def do_POST(self) -> None:
                try:
                    body = json.loads(self.rfile.read(int(self.headers["content-length"])))
                except (OSError, ValueError):  # the client was killed while it sent this
                    self.close_connection = True
                    return
                key = json.dumps(body["messages"], sort_keys=True)
                with world._lock:
                    world.asked[key] += 1
                    world._at_once += 1
                    world.most_at_once = max(world.most_at_once, world._at_once)
                time.sleep(seconds)
                status, headers, value = reply(body)
                with world._lock:
                    world._at_once -= 1
                kind, parts = "application/json", (json.dumps(value).encode(), b"")
                if body.get("stream") and status == 200:
                    kind, parts = "text/event-stream", _stream(value)
                try:
                    self.send_response(status)
                    for name, text in headers.items():
                        self.send_header(name, text)
                    self.send_header("content-type", kind)
                    self.send_header("content-length", str(sum(map(len, parts))))
                    self.end_headers()
                    self.wfile.write(parts[0])
                    if parts[1]:
                        self.wfile.flush()
                        midway()
                        self.wfile.write(parts[1])
                    if status == 200:
                        with world._lock:
                            world.answered[key] += 1
                except OSError:
                    pass  # the client was killed

            def handle_one_request(self) -> None:
                with suppress(ConnectionError):  # the client was killed
                    super().handle_one_request()

            def log_message(self, format: str, *args: object) -> None:  # noqa: A002
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self._server.server_port}/v1"

    def __enter__(self) -> Self:
        Thread(target=self._server.serve_forever, daemon=True).start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._server.shutdown()
        self._server.server_close()


class BatchWorld:
    """A directory with a card, its items, and the command over them.

    Args:
        directory: The directory.
        url: The address of the model.
        items: How many items there are.
    """

    def __init__(self, directory: Path, url: str, items: int) -> None:
        self.directory = directory
        self.output = directory / "out.jsonl"
        self.home = directory / "home"
        self.home.mkdir(exist_ok=True)
        (directory / "noter.md").write_text(CARD, encoding="utf-8")
        (directory / "tools.py").write_text(TOOLS, encoding="utf-8")
        (directory / "fastagent.config.yaml").write_text(
            f"generic: {{base_url: '{url}', api_key: sk-key-of-the-batch}}\n"
            "model_facts: {generic.m: {input_cost: 10, output_cost: 10}}\n",
            encoding="utf-8",
        )
        self.write_items([f"item-{number}" for number in range(items)])

    def write_items(self, items: list[object]) -> None:
        """Write the input."""
        lines = "".join(f"{json.dumps(item)}\n" for item in items)
        (self.directory / "in.jsonl").write_text(lines, encoding="utf-8")

    def command(self, *options: str) -> list[str]:
        """Return the command line."""
        return [str(Path(sys.executable).with_name("fast-agent")), *self.words(*options)]

    def words(self, *options: str) -> list[str]:
        """Return what follows the program in the command line."""
        files = ["--input", "in.jsonl", "--output", "out.jsonl"]
        return ["batch", "noter.md", "-c", "fastagent.config.yaml", *files, *options]

    @property
    def environ(self) -> dict[str, str]:
        """The environment of the command."""
        return {
            **{name: value for name, value in os.environ.items() if "API_KEY" not in name},
            "HOME": str(self.home),
            "FAST_AGENT_HOME": str(self.home / "fa"),
        }

    def start(self, *options: str) -> subprocess.Popen[str]:
        """Start the command."""
        return subprocess.Popen(
            self.command(*options),
            cwd=self.directory,
            env=self.environ,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def run(self, *options: str, status: int = 0) -> subprocess.CompletedProcess[str]:
        """Run the command to its end, and check its exit status."""
        done = run_forked(self.words(*options), self.directory, self.environ)
        assert done.returncode == status, f"{done.returncode}: {done.stdout}{done.stderr}"
        return done

    def rows(self) -> list[dict[str, Any]]:
        """Return the rows of the results."""
        return [json.loads(line) for line in self.output.read_text().splitlines()]

    def effects(self) -> Counter[str]:
        """Count how often the tool ran for each item."""
        path = self.directory / "effects"
        return Counter(path.read_text().splitlines() if path.exists() else ())

    def store(self) -> Path:
        """Return the file of the runs."""
        (found,) = self.home.glob("**/runs/*.sqlite")
        return found

    def answered(self) -> int:
        """Count the model requests whose answers are kept."""
        try:
            connection = sqlite3.connect(f"file:{self.store()}?mode=ro", uri=True)
            try:
                query = "SELECT count(*) FROM step WHERE kind='model' AND state=1"
                return int(connection.execute(query).fetchone()[0])
            finally:
                connection.close()
        except (sqlite3.Error, ValueError):
            return 0


def run_command(
    world: BatchWorld, *words: str, status: int = 0
) -> subprocess.CompletedProcess[str]:
    """Run another command of fast-agent in a world, and check its exit status."""
    done = run_forked(words, world.directory, world.environ)
    assert done.returncode == status, f"{done.returncode}: {done.stdout}{done.stderr}"
    return done
