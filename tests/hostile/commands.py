"""Every command that loads anything, as it is run in a project."""

from __future__ import annotations

import json

HELLO = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {
        "protocolVersion": "2025-06-18",
        "capabilities": {},
        "clientInfo": {"name": "test", "version": "1"},
    },
}
OPENING = (HELLO, {"jsonrpc": "2.0", "method": "notifications/initialized"})
LIST = {"jsonrpc": "2.0", "id": 2, "method": "tools/list"}
LOAD = {
    "jsonrpc": "2.0",
    "id": 3,
    "method": "tools/call",
    "params": {"name": "load_agents", "arguments": {"path": "."}},
}
EDITOR = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {"protocolVersion": 1}}


def lines(*messages: object) -> str:
    return "".join(f"{json.dumps(one)}\n" for one in messages)


EVERY_COMMAND: dict[str, tuple[list[str], str]] = {
    "go": (["go", "-m", "hi"], ""),
    "serve": (["serve", "--transport", "stdio", "--no-session"], lines(HELLO, LIST)),
    "load_agents": (
        ["serve", "--card", "../own.md", "--transport", "stdio", "--no-session",
         "--allow-load", ".fast-agent/agent-cards"],
        lines(HELLO, LIST, LOAD),
    ),
    "acp": (["acp", "--no-session"], lines(EDITOR)),
    "check": (["check"], ""),
    "graph": (["graph"], ""),
    "dump": (["go", "--dump", "../dumped"], ""),
    "test": (["test"], ""),
    "resources": (["resources", "list"], ""),
    "models": (["models"], ""),
    "trust list": (["trust", "--list"], ""),
    "batch": (
        ["batch", "../own.md", "--input", "../items.jsonl", "--output", "../dumped/answers.jsonl"],
        "",
    ),
    "runs": (["runs", "list"], ""),
    "import": (["import", ".", "--output", "../dumped"], ""),
    "export": (["export", "--to", "claude", "--output", "../dumped"], ""),
    "explain": (["explain", "FA801"], ""),
    "schema": (["schema"], ""),
    "fmt": (["fmt", "--check", "."], ""),
    "sessions": (["session", "list"], ""),
    "skills": (["skills", "list"], ""),
    "usage": (["usage"], ""),
    "auth": (["auth", "list"], ""),
    "new": (["new", "../dumped/new"], ""),
    "resources check": (["resources", "check"], ""),
    "resources search": (["resources", "search", "hi"], ""),
}  # fmt: skip

DESK = "@DESK"
"""Stands for the project in what is sent to a command."""

SERVERS: list[str] = []
NEW = {
    "jsonrpc": "2.0",
    "id": 2,
    "method": "session/new",
    "params": {"cwd": DESK, "mcpServers": SERVERS},
}
PROMPT = lines(EDITOR, NEW)
