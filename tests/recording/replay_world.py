"""A small world with everything a tape holds: models, tools, a server, a page, a clock, chance."""

from __future__ import annotations

import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import TYPE_CHECKING

from tests.own_home import own_home

from fast_agent.app import FastAgent
from fast_agent.runtime.known_secrets import known_secrets
from fast_agent.steps.parts import StepRedactor

if TYPE_CHECKING:
    from types import TracebackType
    from typing import Self

SERVER = Path(__file__).parents[1] / "mcp/servers/tiny.py"

BOSS = """\
---
type: agent
default: true
model: scripted?file=boss.script
agents: [kid, echo]
servers: [tiny]
function_tools: [chance.py:draw]
---
You lead. It is {{currentDate}} on {{hostPlatform}}, in {{workspaceRoot}}.
The page says: {{url:ADDRESS}}
"""

KID = """\
---
type: agent
model: scripted?file=kid.script
function_tools: [chance.py:draw]
---
You draw. {{env}}
"""

ECHO = """\
---
type: agent
model: passthrough
---
You repeat.
"""

TEAM = """\
---
type: parallel
fan_out: [kid, echo, kid]
fan_in: echo
---
"""

CHANCE = '''\
import random


def draw() -> int:
    """Draw a number."""
    return random.randrange(10**9)
'''

BOSS_SCRIPT = """\
steps:
  - calls:
      - {name: agent__kid, arguments: {message: one}}
      - {name: agent__kid, arguments: {message: two}}
      - {name: agent__kid, arguments: {message: two}}
      - {name: draw}
      - {name: tiny__add, arguments: {a: 2, b: 3}}
  - pieces: [all, " ", done]
    repeat: forever
"""

KID_SCRIPT = """\
seed: 5
steps:
  - choose:
      - {weight: 1, calls: [{name: draw}]}
      - {weight: 1, text: heads}
      - {weight: 1, text: tails}
    delay: 0.001
    repeat: forever
"""


class Page:
    """A web server of one page, which says another word at every visit."""

    def __init__(self) -> None:
        self.visits = 0
        page = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                page.visits += 1
                body = f"visit {page.visits}".encode()
                self.send_response(200)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, format: str, *args: object) -> None:  # noqa: A002
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.address = f"http://127.0.0.1:{self._server.server_port}/"

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


def write_world(directory: Path, address: str) -> None:
    """Write the cards and what they use."""
    files = {
        "boss.md": BOSS.replace("ADDRESS", address),
        "kid.md": KID,
        "echo.md": ECHO,
        "team.md": TEAM,
        "chance.py": CHANCE,
        "boss.script": BOSS_SCRIPT,
        "kid.script": KID_SCRIPT,
    }
    cards = directory / "cards"
    cards.mkdir(parents=True, exist_ok=True)
    for name, text in files.items():
        (cards / name).write_text(text, encoding="utf-8")
    (directory / "fastagent.config.yaml").write_text(
        "openai:\n  api_key: sk-very-secret-key\n"
        "mcp:\n  servers:\n    tiny:\n"
        f"      command: {sys.executable}\n      args: [{SERVER}, once]\n"
        "      env: {TINY_TOKEN: token-of-tiny-server}\n",
        encoding="utf-8",
    )


def program(directory: Path) -> FastAgent:
    """Load the world."""
    fast = FastAgent(cwd=directory, environ=own_home(directory))
    fast.load_agents("cards")
    return fast


def veil(fast: FastAgent) -> StepRedactor:
    """Return what its recordings hide."""
    return StepRedactor(known_secrets(fast.settings, {}), str(fast.workspace))
