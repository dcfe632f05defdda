"""A world of skills and documents with a secret beside it, and the real server over it.

After each use, nothing the server said holds a path of this machine or the secret, and what is
sound still reads.
"""

from __future__ import annotations

import contextlib
import json
import subprocess
import sys
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tests.patience import wait_until

if TYPE_CHECKING:
    from collections.abc import Generator
    from typing import Self

PROGRAM = Path(sys.executable).with_name("fast-agent")
HELLO: dict[str, Any] = {
    "protocolVersion": "2025-11-25",
    "capabilities": {},
    "clientInfo": {"name": "test", "version": "1"},
}
META: dict[str, Any] = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientCapabilities": {},
}
NOTE = "guide://document/notes/a.md"
WRONG = {-32602, -32002}
"""Codes of a request that names what is not there or cannot be."""

SECRET = "the secret outside"


class Asking:
    """Any way to ask a server."""

    def call(self, method: str, params: dict[str, Any] | None = None) -> dict[str, Any]:
        """Send the whole answer to a request."""
        raise NotImplementedError

    def ask(self, method: str, params: dict[str, Any] | None = None) -> dict[str, Any]:
        answer = self.call(method, params)
        assert "result" in answer, answer
        return answer["result"]

    def read(self, uri: str) -> str:
        return self.ask("resources/read", {"uri": uri})["contents"][0]["text"]

    def listed(self) -> set[str]:
        return {one["uri"] for one in self.all("resources/list", "resources")}

    def all(self, method: str, field: str) -> list[dict[str, Any]]:
        """Return all pages of a list."""
        found: list[dict[str, Any]] = []
        cursor: dict[str, Any] = {}
        while True:
            page = self.ask(method, cursor)
            found += page[field]
            if "nextCursor" not in page:
                return found
            cursor = {"cursor": page["nextCursor"]}


class Server(Asking):
    """The server as a process, and one client of it, of the newest protocol or the one before."""

    def __init__(self, *arguments: str | Path, cwd: Path, modern: bool = False) -> None:
        command = (PROGRAM, "resources", "serve", *arguments)
        self.process = subprocess.Popen(
            command, cwd=cwd, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE
        )
        self.seen: list[bytes] = []
        self._errors: list[bytes] = []
        self._drain = threading.Thread(target=self._read_errors, daemon=True)
        self._drain.start()
        self._clock = threading.Timer(60, self.process.kill)
        self._clock.start()
        self._number = 0
        self._meta = {"_meta": META} if modern else {}

    def __enter__(self) -> Self:
        if not self._meta:
            self.ask("initialize", HELLO)
            self.send({"jsonrpc": "2.0", "method": "notifications/initialized"})
        return self

    def __exit__(self, *_: object) -> None:
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        assert self.process.stderr is not None
        try:
            self.process.stdin.close()
            self.seen.extend(self.process.stdout)
            self.process.wait(60)
        finally:
            self._clock.cancel()
            self.process.kill()
            status = self.process.wait()
            self._drain.join()
            self.process.stdout.close()
            self.process.stderr.close()
        assert status == 0, f"the server ended with {status}: {self.errors}"

    @property
    def errors(self) -> str:
        return b"".join(self._errors).decode()

    def _read_errors(self) -> None:
        assert self.process.stderr is not None
        self._errors.extend(self.process.stderr)

    def send(self, message: object) -> None:
        self.send_bytes(json.dumps(message).encode() + b"\n")

    def send_bytes(self, data: bytes) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(data)
        self.process.stdin.flush()

    def receive(self) -> dict[str, Any]:
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        assert line, f"the server ended: {self.errors}"
        self.seen.append(line)
        return json.loads(line)

    def request(self, method: str, params: dict[str, Any] | None = None) -> int:
        """Send a request; gives its id."""
        self._number += 1
        asked = {**(params or {}), **self._meta}
        self.send({"jsonrpc": "2.0", "id": self._number, "method": method, "params": asked})
        return self._number

    def call(self, method: str, params: dict[str, Any] | None = None) -> dict[str, Any]:
        """Ask, and pass over notifications until the answer comes."""
        number = self.request(method, params)
        while (answer := self.receive()).get("id") != number:
            assert "method" in answer
        return answer


def add(root: Path, name: str, head: str | None = None, body: str = "Body.\n") -> Path:
    folder = root / name
    folder.mkdir(parents=True)
    head = f"name: {name}\ndescription: Does {name}.\n" if head is None else head
    (folder / "SKILL.md").write_text(f"---\n{head}---\n{body}", encoding="utf-8")
    return folder


def make_world(tmp_path: Path) -> Path:
    """A directory with skills, a guide, and a secret beside them; one sound skill and document."""
    (tmp_path / "secret.md").write_text(SECRET)
    sound = add(tmp_path / "skills", "sound")
    (sound / "references").mkdir()
    (sound / "references" / "REF.md").write_text("# Reference\n")
    notes = tmp_path / "guide" / "notes"
    notes.mkdir(parents=True)
    (notes / "a.md").write_text("# A\n")
    return tmp_path


@contextlib.contextmanager
def serving(world: Path, *, modern: bool = False) -> Generator[Server]:
    """Serve a world; afterwards nothing that was said holds its path or its secret."""
    roots = ("--skills", "skills", "--guide", "guide", "--internal")
    with Server(*roots, cwd=world, modern=modern) as server:
        yield server
        assert "Does sound." in server.read("skill://sound/SKILL.md")
        # A folder that was swapped until now may still be missing in the listing of before.
        wait_until(lambda: "result" in server.call("resources/read", {"uri": NOTE}))
        assert server.read(NOTE) == "# A\n"
    said = b"".join(server.seen).decode() + server.errors
    assert str(world) not in said
    assert SECRET not in said
    assert "Traceback" not in server.errors
