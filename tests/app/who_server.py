"""An MCP server over standard input and output that says who it is, at once or when it may.

One that is `slow` does not even shake hands before it may.
"""

from __future__ import annotations

import json
import os
import sys
import time
from pathlib import Path
from typing import Any

TOOLS = [{"name": name, "inputSchema": {"type": "object"}} for name in ("who", "later")]


def wait() -> None:
    Path(sys.argv[2], "begun").touch()
    while not Path(sys.argv[2], "goes on").exists():
        time.sleep(0.02)


def answer(method: str, params: dict[str, Any]) -> dict[str, Any] | None:
    if method == "initialize":
        if sys.argv[1] == "slow":
            wait()
        return {
            "protocolVersion": "2025-06-18",
            "capabilities": {"tools": {}},
            "serverInfo": {"name": "who", "version": "1"},
        }
    if method == "tools/list":
        return {"tools": TOOLS}
    if method == "tools/call":
        if params["name"] == "later":
            wait()
        return {"content": [{"type": "text", "text": f"{sys.argv[1]} {os.getpid()}"}]}
    return None


for line in sys.stdin:
    message = json.loads(line)
    if "id" not in message:
        continue
    result = answer(message["method"], message.get("params", {}))
    refusal = {"code": -32601, "message": "not found"}
    body: dict[str, Any] = {"error": refusal} if result is None else {"result": result}
    print(json.dumps({"jsonrpc": "2.0", "id": message["id"], **body}), flush=True)
