"""A server without the SDK: the handshake of 2025-06-18 over standard input and output only.

It starts at once, and it is a peer that knows nothing of later protocols. Its argument says how its
tool list ends: `once`, `wordy` with a long description, or never, by `repeat`ing a cursor or by
ever new `pages`.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from itertools import count
from typing import Any

numbers = count()
notified: list[str] = []
SCHEMA = {"type": "object"}
SLEEPER = "import signal, time; signal.signal(signal.SIGHUP, signal.SIG_IGN); time.sleep(600)"


def tools() -> dict[str, Any]:
    how = sys.argv[1]
    if how == "once":
        names = ["add", "die", "spawn", "wrong", "notified", "add", ""]
        return {"tools": [{"name": name, "inputSchema": SCHEMA} for name in names]}
    if how == "wordy":
        return {"tools": [{"name": "add", "description": "x" * 8_000, "inputSchema": SCHEMA}]}
    number = next(numbers)
    cursor = "again" if how == "repeat" else f"page {number}"
    return {"tools": [{"name": f"tool{number}", "inputSchema": SCHEMA}], "nextCursor": cursor}


def call(name: str, arguments: dict[str, Any]) -> dict[str, Any]:
    text = ""
    if name == "add":
        text = str(arguments["a"] + arguments["b"])
    elif name == "die":
        print("last\x1b[31m words", file=sys.stderr, flush=True)
        time.sleep(0.02)
        os._exit(arguments["status"])
    elif name == "spawn":
        text = str(subprocess.Popen([sys.executable, "-c", SLEEPER], stdin=subprocess.DEVNULL).pid)
    elif name == "notified":
        text = " ".join(notified)
    elif name == "wrong":
        return {"content": [{"type": "text"}]}
    return {"content": [{"type": "text", "text": text}]}


def answer(method: str, params: dict[str, Any]) -> dict[str, Any] | None:
    if method == "initialize":
        return {
            "protocolVersion": "2025-06-18",
            "capabilities": {"tools": {"listChanged": True}},
            "serverInfo": {"name": "tiny", "version": "1"},
        }
    if method == "tools/list":
        return tools()
    if method == "tools/call":
        return call(params["name"], params.get("arguments", {}))
    return None


for line in sys.stdin:
    message = json.loads(line)
    if "id" not in message:
        notified.append(message["method"])
        continue
    result = answer(message["method"], message.get("params", {}))
    body = {"result": result} if result else {"error": {"code": -32601, "message": "not known"}}
    print(json.dumps({"jsonrpc": "2.0", "id": message["id"], **body}), flush=True)
