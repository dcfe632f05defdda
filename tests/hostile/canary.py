"""A server and values that nobody may reach: whatever gets there has leaked."""

from __future__ import annotations

import threading
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Generator

CANARY = "canary-5f1c9e20"
"""In the contents of files and in values of variables that must not get out."""


@dataclass
class Canary:
    """A loopback server that records every request.

    Args:
        port: Where it listens.
        heard: Request lines with headers and body, as they came.
        answers: By path, where a redirect leads or the text that is answered.
    """

    port: int = 0
    heard: list[str] = field(default_factory=list[str])
    answers: dict[str, str] = field(default_factory=dict[str, str])

    @property
    def url(self) -> str:
        """Its address."""
        return f"http://127.0.0.1:{self.port}"


@contextmanager
def canary_server() -> Generator[Canary]:
    """Run a canary server."""
    canary = Canary()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            length = int(self.headers.get("content-length") or 0)
            body = self.rfile.read(length).decode("utf-8", "replace")
            canary.heard.append(f"{self.requestline}\n{self.headers}\n{body}")
            answer = canary.answers.get(self.path, "nothing")
            if answer.startswith("http://"):
                self.send_response(302)
                self.send_header("location", answer)
                self.send_header("set-cookie", "strange=1; Path=/")
                data = b""
            else:
                # A model's provider that refuses is not asked again; one that babbles is.
                refuses = self.command == "POST" and self.path not in canary.answers
                self.send_response(400 if refuses else 200)
                data = answer.encode()
            self.send_header("content-length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        do_POST = do_GET  # noqa: N815 - the library's name

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002
            """Print nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    canary.port = server.server_address[1]
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
    thread.start()
    try:
        yield canary
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
