"""A server without the SDK that asks for too much, sends too much, or cannot be read.

It speaks the handshake of 2025-06-18 over standard input and output. Its argument says how it
answers `tools/list`: `once` as it should, `mute` never, `big` with 200,000 tools on one page, and
`surrogate`, `cut`, `anonymous` and `dense` by an answer that nobody can read.
"""

from __future__ import annotations

import json
import sys
from typing import Any

SCHEMA = {"type": "object", "properties": {"a": {"type": "string"}}}
TOOLS = ["greedy", "endless", "add", "unreadable"]


def send(message: dict[str, Any]) -> None:
    print(json.dumps({"jsonrpc": "2.0", **message}), flush=True)


def receive() -> dict[str, Any]:
    line = sys.stdin.readline()
    if not line:
        sys.exit()
    return json.loads(line)


def greedy(arguments: dict[str, Any], at_once: bool) -> str:
    """Ask for model answers, and return how many came and what the first refusal said."""
    ask = {
        "method": "sampling/createMessage",
        "params": {
            "messages": [{"role": "user", "content": {"type": "text", "text": "more"}}],
            "maxTokens": 5,
        },
    }
    answers, refusal, wanted = 0, "", arguments["wanted"]
    if at_once:
        for number in range(wanted):
            send({"id": f"ask{number}", **ask})
    for number in range(wanted):
        if not at_once:
            send({"id": f"ask{number}", **ask})
        reply = receive()
        if "result" in reply:
            answers += 1
        else:
            refusal = refusal or reply["error"]["message"]
    return f"{answers} answers; {refusal}"


def endless(token: Any) -> None:
    """Report progress until the call is cancelled."""
    step = 0
    while True:
        step += 1
        send(
            {
                "method": "notifications/progress",
                "params": {"progressToken": token, "progress": step, "message": "at work"},
            }
        )
        # The answer to a ping shows that the client has taken the step.
        send({"id": f"ping{step}", "method": "ping"})
        if receive().get("method") == "notifications/cancelled":
            return


def call(params: dict[str, Any], request_id: Any) -> None:
    name, arguments = params["name"], params.get("arguments", {})
    if name == "endless":
        endless(params["_meta"]["progressToken"])
        return
    if name == "unreadable":
        print(arguments["line"].replace("ID", json.dumps(request_id)), flush=True)
        return
    text = "ok" if name == "add" else greedy(arguments, bool(arguments.get("at_once")))
    send({"id": request_id, "result": {"content": [{"type": "text", "text": text}]}})


def list_tools(request_id: Any) -> None:
    how = sys.argv[1]
    head = f'{{"jsonrpc": "2.0", "id": {json.dumps(request_id)}, "result": '
    match how:
        case "mute":
            return
        case "big":
            tools = ({"name": f"tool{n}", "inputSchema": SCHEMA} for n in range(200_000))
            send({"id": request_id, "result": {"tools": list(tools)}})
        case "surrogate":
            tool = '{"name": "a\\ud800", "inputSchema": {"type": "object"}}'
            print(f'{head}{{"tools": [{tool}]}}}}', flush=True)
        case "cut":
            print(f'{head}{{"tools": [', flush=True)
        case "anonymous":
            print('{"result": {"tools": [}, "jsonrpc": "2.0"', flush=True)
        case "dense":
            print(f'{head}{{"tools": [{"[]," * 5_000_000}[]]}}}}', flush=True)
        case _:
            tools = [{"name": name, "inputSchema": {"type": "object"}} for name in TOOLS]
            send({"id": request_id, "result": {"tools": tools}})


while True:
    request = receive()
    if "id" not in request:
        continue
    match request.get("method"):
        case "initialize":
            # Programs that print to their standard output are no reason to fail a request.
            print('starting up {"level": "info"}', flush=True)
            print('{"level": "info", "text": "structured"}', flush=True)
            result: dict[str, Any] = {
                "protocolVersion": "2025-06-18",
                "capabilities": {"tools": {}},
                "serverInfo": {"name": "hostile", "version": "1"},
            }
            send({"id": request["id"], "result": result})
        case "ping":
            send({"id": request["id"], "result": {}})
        case "tools/list":
            list_tools(request["id"])
        case "tools/call":
            call(request["params"], request["id"])
        case _:
            send({"id": request["id"], "error": {"code": -32601, "message": "not known"}})
