"""A project whose keys, headers and variables are canaries, and servers that sing them."""

from __future__ import annotations

import base64
import json
import os
import subprocess
import sys
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Event, Thread
from typing import TYPE_CHECKING, cast
from urllib.error import HTTPError
from urllib.request import Request, urlopen

from tests.forked import run_forked
from tests.patience import PATIENCE

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from types import TracebackType
    from typing import Self

    from fast_agent.text.json_value import JsonObject, JsonValue

COMMAND = Path(sys.executable).with_name("fast-agent")
MARK = "cnry7f3a9"
"""What every canary begins with."""

ENVIRONMENT = {
    "OPENAI_API_KEY": f"{MARK}-of-the-provider",
    "MY_PAT": f"{MARK}-of-the-header",
    "REGION": f"{MARK}-of-the-path",
    "CARD_KEY": f"{MARK}-of-the-card",
    "DB_PASS": f"{MARK}-of-the-database",
    "DATABASE_URL": f"postgres://me:{MARK}-of-the-url@localhost/db",
    "GENERIC__API_KEY": f"{MARK}-of-the-override",
}
CONFIG = """\
default_model: passthrough
openai: {{base_url: "{address}/v1?key={mark}-of-the-base"}}
anthropic: {{base_url: "{address}/v1", api_key: "{mark}-written-down"}}
mcp:
  servers:
    local:
      command: {python}
      args: [{server}, --token, {mark}-of-the-arguments]
      env: {{APP_KEY: "{mark}-of-the-program", PLACE: "${{REGION}}"}}
    gone:
      command: {python}
      args: [{server}, leave]
      env: {{APP_KEY: "{mark}-of-the-program"}}
    web:
      url: "http://user:{mark}-of-the-user@{host}/mcp?token={mark}-of-the-query"
      headers: {{Authorization: "Bearer ${{MY_PAT}}", X-Thing: {mark}-of-a-thing}}
    dead:
      url: "http://127.0.0.1:1/${{REGION}}/mcp"
      headers: {{Authorization: "Bearer ${{MY_PAT}}"}}
"""
SECRETS = """\
google: {{api_key: {mark}-of-the-file}}
mcp: {{servers: {{local: {{env: {{MORE: {mark}-of-the-file-too}}}}}}}}
"""
SERVER = '''\
"""Sings its environment and arguments on its standard error, in its log and in its answers."""
import json, os, sys
song = json.dumps([dict(os.environ), sys.argv])
print(song, file=sys.stderr, flush=True)
print(song, flush=True)
if "leave" in sys.argv:
    sys.exit(f"cannot go on: {song}")
from mcp.server.mcpserver import MCPServer
from mcp.server.mcpserver.exceptions import ToolError
server = MCPServer("local", log_level="ERROR")
@server.tool(structured_output=False)
def sing() -> str:
    return song
@server.tool()
def fail() -> str:
    raise ToolError(song)
server.run()
'''
TOOLS = """\
import os
def crash() -> str:
    raise RuntimeError(f"cannot connect to {os.environ['DATABASE_URL']} as {os.environ['DB_PASS']}")
"""
CARDS = {
    "plain.md": "model: passthrough\nfunction_tools: [tools.py:crash]",
    "local.md": "model: passthrough\nservers: [local]",
    "gone.md": "model: passthrough\nservers: [gone]",
    "web.md": "model: passthrough\nservers: [web]",
    "dead.md": "model: passthrough\nservers: [dead]",
    "openai.md": "model: openai.gpt-5",
    "anthropic.md": "model: sonnet",
    "keyed.md": "model: openai.gpt-5\napi_key: ${CARD_KEY}",
    "linked.md": (
        "model: passthrough\ndescription: Of ${REGION}.\nmcp_connect:\n"
        "- target: http://127.0.0.1:1/${REGION}/mcp\n"
        "  headers: {Authorization: 'Bearer ${MY_PAT}'}"
    ),
    "wrong.md": "model: ${REGION}\nservers: ['${REGION}']\nmax_parallel: ${REGION}\n${CARD_KEY}: 1",
}


class _Echo(BaseHTTPRequestHandler):
    """Refuses every request, and says all of it again."""

    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        self._refuse()

    def do_GET(self) -> None:
        self._refuse()

    def do_DELETE(self) -> None:
        self._refuse()

    def _refuse(self) -> None:
        length = int(self.headers.get("content-length") or 0)
        sent = self.rfile.read(length).decode("utf-8", "replace")
        heard = f"{self.path} {dict(self.headers)}"
        text = json.dumps({"error": {"message": f"refused: {heard}", "type": "x", "sent": sent}})
        self.send_response(400)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(text.encode())))
        self.end_headers()
        self.wfile.write(text.encode())

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002
        """Log nothing."""


@dataclass(frozen=True)
class Heard:
    """What a command wrote."""

    code: int
    out: str
    err: str


class Aviary:
    """The project; `with Aviary(directory) as world:`."""

    def __init__(self, directory: Path) -> None:
        self.work = directory / "work"
        self.home = directory / "home"
        self._planted: set[Path] = set()
        self._web = ThreadingHTTPServer(("127.0.0.1", 0), _Echo)
        host = f"127.0.0.1:{self._web.server_address[1]}"
        facts = {
            "mark": MARK, "host": host, "address": f"http://{host}",
            "python": sys.executable, "server": str(self.work / "server.py"),
        }  # fmt: skip
        self.home.mkdir(exist_ok=True)  # made already for commands in the process of the tests
        # In the home they are the person's own, so that all of it acts.
        self._plant("../home/fastagent.config.yaml", CONFIG.format(**facts))
        self._plant("../home/fastagent.secrets.yaml", SECRETS.format(**facts)).chmod(0o600)
        self._plant("server.py", SERVER)
        self._plant("cards/tools.py", TOOLS)
        for name, head in CARDS.items():
            self._plant(f"cards/{name}", f"---\n{head}\n---\nHello.\n")

    def __enter__(self) -> Self:
        Thread(target=self._web.serve_forever, daemon=True).start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._web.shutdown()
        self._web.server_close()

    @property
    def environ(self) -> dict[str, str]:
        """The environment of a command."""
        return {
            "PATH": os.environ["PATH"], "HOME": str(self.home),
            "FAST_AGENT_HOME": str(self.home), **ENVIRONMENT,
        }  # fmt: skip

    def run(self, *arguments: str, stdin: str = "", log: str = "") -> Heard:
        """Run a command to its end."""
        done = run_forked(arguments, self.work, {**self.environ, "FAST_AGENT_LOG": log}, stdin)
        return Heard(done.returncode, done.stdout, done.stderr)

    def talk(self, *arguments: str, asks: Iterable[JsonObject], log: str = "") -> Heard:
        """Start a command that speaks JSON-RPC over its pipes, and ask one thing after another."""
        with subprocess.Popen(
            [COMMAND, *arguments], cwd=self.work, env={**self.environ, "FAST_AGENT_LOG": log},
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        ) as process:  # fmt: skip
            errors: list[str] = []
            assert process.stderr is not None
            reader = Thread(target=lambda: errors.extend(process.stderr or ()))
            reader.start()
            try:
                reported = "".join(self._asked(process, asks))
                process.wait(PATIENCE)
            finally:
                process.kill()
                reader.join()
        return Heard(process.returncode, reported, "".join(errors))

    def _asked(self, process: subprocess.Popen[str], asks: Iterable[JsonObject]) -> Iterator[str]:
        assert process.stdin is not None
        assert process.stdout is not None
        session: JsonValue = None
        for number, ask in enumerate(asks, 1):
            params = dict(cast("JsonObject", ask["params"]))
            if "sessionId" in params:
                params["sessionId"] = session
            process.stdin.write(json.dumps({"jsonrpc": "2.0", "id": number, **ask,
                                            "params": params}) + "\n")  # fmt: skip
            process.stdin.flush()
            for line in process.stdout:
                yield line
                message = json.loads(line)
                if message.get("id") == number and "method" not in message:
                    session = message.get("result", {}).get("sessionId", session)
                    break
        process.stdin.close()
        yield process.stdout.read()

    def served(self, *arguments: str, asks: Iterable[JsonObject]) -> Heard:
        """Serve over HTTP, ask one thing after another, and end the server."""
        with subprocess.Popen(
            [COMMAND, "serve", "--port", "0", *arguments], cwd=self.work,
            env={**self.environ, "FAST_AGENT_LOG": "debug"}, stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        ) as process:  # fmt: skip
            errors: list[str] = []
            there = Event()

            def read() -> None:
                for line in process.stderr or ():
                    errors.append(line)
                    if "serving at" in line:
                        there.set()

            reader = Thread(target=read)
            reader.start()
            reported: list[str] = []
            try:
                assert there.wait(PATIENCE), errors
                (line,) = [one for one in errors if "serving at" in one]
                reported = [_posted(line.split("serving at ")[1].strip(), ask) for ask in asks]
                process.terminate()
                process.wait(PATIENCE)
            finally:
                process.kill()
                reader.join()
            reported.append("" if process.stdout is None else process.stdout.read())
        return Heard(process.returncode, "".join(reported), "".join(errors))

    def written(self) -> list[str]:
        """Return the files that were written and hold a canary."""
        found = [path for path in (*self.work.rglob("*"), *self.home.rglob("*")) if path.is_file()]
        return [str(path) for path in found if path not in self._planted and sings(_text(path))]

    def _plant(self, name: str, text: str) -> Path:
        path = Path(os.path.normpath(self.work / name))
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        self._planted.add(path)
        return path


def _posted(address: str, ask: JsonObject) -> str:
    """Post a request of the newest protocol, and give the answer with its head."""
    params = cast("JsonObject", ask["params"])
    request = Request(
        address,
        json.dumps({"jsonrpc": "2.0", "id": 1, **ask}).encode(),
        {"content-type": "application/json", "accept": "application/json, text/event-stream",
         "mcp-protocol-version": "2026-07-28", "mcp-method": str(ask["method"]),
         "mcp-name": str(params.get("name", ""))},
    )  # fmt: skip
    try:
        with urlopen(request, timeout=PATIENCE) as answer:
            return f"{answer.headers}{answer.read().decode()}"
    except HTTPError as error:
        return f"{error.headers}{error.read().decode()}"


def sings(text: str) -> bool:
    """Whether a canary is in a text, as it is, in other letters or in base64."""
    low = text.lower()
    coded = [base64.b64encode(f"{fill}{MARK}".encode())[4:-4].decode() for fill in ("", "x", "xx")]
    slug = MARK.lower()
    return slug in low or any(one in text for one in coded)


def _text(path: Path) -> str:
    return path.read_bytes().decode("utf-8", "replace")
