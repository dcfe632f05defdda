"""The least a server of skills over stdio can do: one loop, and answers that are bytes already.

It looks at nothing but the id and the URI of a request, and checks none of them.
"""

from __future__ import annotations

import json
import os
import sys

LARGE = 1 << 16


def main(root: str) -> None:
    listed, reads = prepare(root)
    hello: dict[str, object] = {
        "protocolVersion": "2025-11-25",
        "capabilities": {"resources": {}},
        "serverInfo": {"name": "bare", "version": "1"},
    }
    greeting = json.dumps(hello).encode()
    rest = b""
    while chunk := os.read(0, 1 << 16):
        *lines, rest = (rest + chunk).split(b"\n")
        answers: list[bytes] = []
        for line in lines:
            message = json.loads(line)
            number = message.get("id")
            if number is None:
                continue
            method = message["method"]
            if method == "resources/read":
                result = reads[message["params"]["uri"]]
            else:
                result = listed if method == "resources/list" else greeting
            answers.append(b'{"jsonrpc":"2.0","id":%d,"result":%b}\n' % (number, result))
            if len(result) > LARGE:
                write(b"".join(answers))
                answers.clear()
        write(b"".join(answers))


def write(data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(1, view) :]


def prepare(root: str) -> tuple[bytes, dict[str, bytes]]:
    """Return the list of all skills, and what each `SKILL.md` reads, as bytes."""
    entries: list[dict[str, str]] = []
    reads: dict[str, bytes] = {}
    for entry in os.scandir(root):
        uri = f"skill://{entry.name}/SKILL.md"
        with open(f"{entry.path}/SKILL.md", encoding="utf-8", newline="") as file:  # noqa: PTH123
            text = file.read()
        about = text.split("\n", 3)[2].partition(": ")[2]
        about_it = {"uri": uri, "name": entry.name, "description": about}
        entries.append(about_it | {"mimeType": "text/markdown"})
        manifest = f"skill://{entry.name}/_manifest"
        entries.append({"uri": manifest, "name": "_manifest", "mimeType": "application/json"})
        content = {"uri": uri, "mimeType": "text/markdown", "text": text}
        reads[uri] = json.dumps({"contents": [content]}).encode()
    return json.dumps({"resources": entries}).encode(), reads


main(sys.argv[1])
