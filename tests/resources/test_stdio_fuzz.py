"""The stdio loop under any input: it answers what it must, says only JSON, and goes on.

`FUZZ_EXAMPLES=20000 pytest -k fuzz` looks for longer, and elsewhere each time.
"""

from __future__ import annotations

import json
import os
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fast_agent.resources.roots import ResourceRoots
from fast_agent.resources.stdio import StdioServer
from fast_agent.rpc.message import Lines

if TYPE_CHECKING:
    from fast_agent.resources.service import ResourceService

LONGER = os.environ.get("FUZZ_EXAMPLES")
fuzz = settings(max_examples=int(LONGER or 80), derandomize=LONGER is None)

META: dict[str, Any] = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientCapabilities": {},
}
HELLO: dict[str, Any] = {
    "protocolVersion": "2025-03-26",
    "capabilities": {},
    "clientInfo": {"name": "fuzz", "version": "1"},
}
WORDS = [
    "jsonrpc", "2.0", "id", "method", "params", "uri", "_meta", "initialize", "ping", *META,
    "resources/list", "resources/read", "resources/subscribe", "subscriptions/listen", "skills/get",
    "completion/complete", "tools/call", "load_skill", "notifications/cancelled", "requestId",
    "notifications", "resourceSubscriptions", "cursor", "name", "arguments", "ref", "argument",
    "value", "type", "ref/resource", "skill://one/SKILL.md", "skill://one/../x", "2026-07-28",
    "skill://{name}/{+path}", "\ud800", "\x00", "\u202e", "9" * 400,
]  # fmt: skip

words = st.sampled_from(WORDS) | st.text(st.characters(), max_size=12)
values: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | words | st.just(META),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(words, inner, max_size=5),
    max_leaves=12,
)
messages: st.SearchStrategy[Any] = st.fixed_dictionaries(
    {"jsonrpc": st.just("2.0"), "id": st.integers() | words | values, "method": words | values},
    optional={"params": st.dictionaries(words, values, max_size=5) | values, "result": values},
)


def line_of(value: Any) -> bytes:
    return json.dumps(value).encode()


def cut(line: bytes, where: int) -> bytes:
    return line[: where % (len(line) + 1)]


lines_of_json: st.SearchStrategy[bytes] = st.builds(
    line_of, messages | values | st.lists(messages, max_size=3)
)
lines: st.SearchStrategy[bytes] = (
    lines_of_json | st.binary(max_size=60) | st.builds(cut, lines_of_json, st.integers(min_value=0))
).map(lambda line: line.replace(b"\n", b" "))


@pytest.fixture(scope="module", name="service")
def _service(tmp_path_factory: pytest.TempPathFactory) -> ResourceService:
    root = tmp_path_factory.mktemp("fuzzed")
    (root / "one").mkdir()
    (root / "one/SKILL.md").write_text("---\nname: one\ndescription: One.\n---\nDo.\n", "utf-8")
    return ResourceRoots((str(root),), internal=True).open().service("fuzz", "1")


def answers_of(service: ResourceService, given_lines: list[bytes]) -> list[bytes]:
    with tempfile.TemporaryDirectory() as folder:
        source, target = Path(folder) / "in", Path(folder) / "out"
        source.write_bytes(b"\n".join(given_lines))
        input_fd, output_fd = os.open(source, os.O_RDONLY), os.open(target, os.O_RDWR | os.O_CREAT)
        try:
            StdioServer(service, input_fd, output_fd).serve()
        finally:
            os.close(input_fd)
            os.close(output_fd)
        return target.read_bytes().splitlines()


def _refuse(constant: str) -> float:
    raise ValueError(constant)


def is_request(line: bytes) -> bool:
    """Whether a line is a request with an id of its own kind, as JSON-RPC and MCP have it."""
    try:
        message: Any = json.loads(line, parse_constant=_refuse)
    except (ValueError, RecursionError):
        return False
    if not isinstance(message, dict):
        return False
    found = cast("dict[str, Any]", message)
    params = found.get("params")
    return (
        found.get("jsonrpc") == "2.0"
        and type(found.get("id")) in {int, str}
        and isinstance(found.get("method"), str)
        and (params is None or isinstance(params, dict))
    )


@given(sent=st.lists(lines, max_size=8), modern=st.booleans())
@fuzz
def test_fuzz_messages(service: ResourceService, sent: list[bytes], modern: bool) -> None:
    first: dict[str, Any] = {
        "jsonrpc": "2.0",
        "id": "first",
        "method": "initialize",
        "params": HELLO,
    }
    if modern:
        first.update(method="resources/templates/list", params={"_meta": META})
    final: dict[str, Any] = {"jsonrpc": "2.0", "id": "final", "method": "resources/list"}
    final["params"] = {"_meta": META} if modern else {}
    answers = answers_of(service, [line_of(first), *sent, line_of(final)])
    found: list[dict[str, Any]] = []
    for answer in answers:
        message = json.loads(answer.decode())
        found += message if isinstance(message, list) else [message]
    for message in found:
        assert message["jsonrpc"] == "2.0"
        assert ("method" in message) != ("id" in message)
        if "id" in message:
            assert ("result" in message) != ("error" in message)
        if "error" in message:
            assert isinstance(message["error"]["code"], int)
            assert "fuzzed" not in json.dumps(message["error"]), "a path is shown"
            assert message["error"]["message"] != "internal error", "a bug was met"
    assert found[0]["id"] == "first"
    assert sum(message.get("id") == "final" for message in found) >= 1
    if not any(b"subscriptions/listen" in line for line in sent):  # those may be cancelled
        requests = sum(map(is_request, sent))
        assert sum("id" in message for message in found) >= requests + 2


BLANKS = b" \t\r"  # the white space of JSON; a vertical tab, for one, is none


@given(
    pieces=st.lists(st.binary(max_size=30) | st.just(b"\n"), max_size=30),
    longest=st.integers(1, 40),
)
@fuzz
def test_fuzz_lines(pieces: list[bytes], longest: int) -> None:
    """However the bytes are cut into chunks, the lines are the same."""
    cutter = Lines(longest)
    seen = [line for piece in pieces for line in cutter.feed(piece)] + list(cutter.end())
    expected = [
        None if len(line) > longest else line.strip(BLANKS)
        for line in b"".join(pieces).split(b"\n")
        if len(line) > longest or line.strip(BLANKS)
    ]
    assert seen == expected
