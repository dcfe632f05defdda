"""Whole processes: `--help`, `check`, and one message from start to answer, also with a server."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from bench.card_directory import write_cards
from bench.comparison import compare
from bench.figure import Goal

if TYPE_CHECKING:
    from collections.abc import Iterator

    from bench.comparison import Values
    from bench.figure import Figure
    from bench.setup import Peer, Setup

ROUNDS = 11
CARDS = 10
_GO = ("go", "--model", "passthrough", "--message", "hi")
_SERVER = """
from mcp.server.mcpserver import MCPServer
MCPServer("tools", log_level="ERROR").run()
"""


def figures(setup: Setup) -> Iterator[Figure]:
    """Measure whole processes; the limit is an interpreter that does nothing."""
    cards = write_cards(setup.work / "check", CARDS)
    empty = setup.work / "empty"
    empty.mkdir()
    script = setup.work / "server.py"
    script.write_text(_SERVER)
    config = setup.work / "servers.yaml"
    server = {"command": str(setup.python), "args": [str(script)]}
    config.write_text(json.dumps({"mcp": {"servers": {"tools": server}}}))
    served = (*_GO, "--config-path", config, "--servers", "tools")

    def ours() -> Values:
        asked = setup.run(setup.program, "--help", expect="explain", cwd=empty)
        checked = setup.run(setup.program, "check", cards, expect="agent-0009", cwd=cards.parent)
        went = setup.run(setup.program, *_GO, expect="hi", cwd=empty)
        with_server = setup.run(setup.program, *served, expect="hi", cwd=empty)
        return {
            "help": asked.seconds * 1e3,
            "check": checked.seconds * 1e3,
            "go": went.seconds * 1e3,
            "served": with_server.seconds * 1e3,
            "memory": went.peak_mib,
        }

    def limit() -> Values:
        run = setup.run(setup.python, "-c", "pass")
        bare = dict.fromkeys(("help", "check", "go"), run.seconds * 1e3)
        server = setup.run(setup.python, script)  # ends with its input
        return {**bare, "served": server.seconds * 1e3, "memory": run.peak_mib}

    def theirs(peer: Peer) -> Values:
        asked = setup.run(peer.program, "--no-update-check", "--help", expect="go", cwd=empty)
        went = setup.run(peer.program, "--no-update-check", *_GO, expect="hi", cwd=empty)
        with_server = setup.run(peer.program, "--no-update-check", *served, expect="hi", cwd=empty)
        return {
            "help": asked.seconds * 1e3,
            "go": went.seconds * 1e3,
            "served": with_server.seconds * 1e3,
            "memory": went.peak_mib,
        }

    done = compare(setup, ours, limit=limit, peer=theirs, rounds=ROUNDS)
    yield done.figure("help", "`fast-agent --help`, whole process", "ms", Goal(150))
    yield done.figure("check", f"`check` of {CARDS} cards, whole process", "ms", Goal(250))
    yield done.figure("go", "`go`, one passthrough message, whole process", "ms", Goal(400))
    yield done.figure("served", "`go` with an MCP server, which alone takes the limit", "ms")
    yield done.figure("memory", "`go`, peak memory", "MiB", Goal(60))
