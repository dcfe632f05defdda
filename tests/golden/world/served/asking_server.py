"""An MCP server over stdio without a library, which asks its client for an answer or a sample.

It speaks the handshake of 2025-11-25. `greet` asks the user with a form, `visit` with a URL,
`consult` asks the client's model, `steps` reports progress, `add` only answers.
"""

from __future__ import annotations

import json
import sys
from typing import Any

FORM = {
    "type": "object",
    "properties": {
        "name": {"type": "string", "title": "Name"},
        "size": {"type": "string", "enum": ["s", "m"]},
    },
    "required": ["name"],
}
ASKS: dict[str, tuple[str, dict[str, Any]]] = {
    "greet": ("elicitation/create", {"message": "Who are you?", "requestedSchema": FORM}),
    "visit": (
        "elicitation/create",
        {
            "mode": "url",
            "message": "Sign in.",
            "url": "https://example.com/in",
            "elicitationId": "e-1",
        },
    ),
    "consult": (
        "sampling/createMessage",
        {
            "messages": [{"role": "user", "content": {"type": "text", "text": "Why?"}}],
            "maxTokens": 50,
            "systemPrompt": "Be brief.",
            "temperature": 0.5,
        },
    ),
}


def send(message: dict[str, Any]) -> None:
    print(json.dumps({"jsonrpc": "2.0", **message}), flush=True)


def receive() -> dict[str, Any]:
    line = sys.stdin.readline()
    if not line:
        sys.exit()
    return json.loads(line)


def tool(name: str, **properties: Any) -> dict[str, Any]:
    schema = {"type": "object", "properties": properties}
    return {"name": name, "description": f"The tool {name}.", "inputSchema": schema}


TOOLS = [
    tool("add", a={"type": "integer"}, b={"type": "integer"}),
    tool("steps"),
    *(tool(name) for name in ASKS),
]


def call(params: dict[str, Any]) -> dict[str, Any]:
    name: str = params["name"]
    arguments: dict[str, Any] = params.get("arguments") or {}
    if name == "add":
        return said(str(arguments["a"] + arguments["b"]))
    if name == "steps":
        token = params.get("_meta", {}).get("progressToken")
        if token is not None:
            more = {"progressToken": token, "progress": 2, "total": 2, "message": "second"}
            send({"method": "notifications/progress", "params": more})
        return said("stepped")
    method, asked = ASKS[name]
    send({"id": f"ask {name}", "method": method, "params": asked})
    while (answer := receive()).get("id") != f"ask {name}":
        take(answer)
    return said(json.dumps(answer.get("result") or answer.get("error"), sort_keys=True))


def said(text: str) -> dict[str, Any]:
    return {"content": [{"type": "text", "text": text}]}


def result_of(method: str, params: dict[str, Any]) -> dict[str, Any] | None:
    match method:
        case "initialize":
            return {
                "protocolVersion": "2025-11-25",
                "capabilities": {"tools": {}},
                "serverInfo": {"name": "desk", "version": "1"},
            }
        case "tools/list":
            return {"tools": TOOLS}
        case "tools/call":
            return call(params)
        case "ping":
            return {}
        case _:
            return None


def take(message: dict[str, Any]) -> None:
    if "id" not in message or "method" not in message:
        return
    result = result_of(message["method"], message.get("params") or {})
    if result is None:
        send({"id": message["id"], "error": {"code": -32601, "message": "unknown method"}})
    else:
        send({"id": message["id"], "result": result})


while True:
    take(receive())
