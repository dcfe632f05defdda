"""Whatever comes over stdio, each answer is a line of JSON-RPC, and the next request is served."""

from __future__ import annotations

import json
import os
from itertools import pairwise
from typing import TYPE_CHECKING, Any, cast

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from fast_agent.resources.roots import ResourceRoots
from fast_agent.resources.stdio import StdioServer
from fast_agent.rpc.message import Lines

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from fast_agent.resources.service import ResourceService

META: dict[str, Any] = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientCapabilities": {},
}
HELLO: dict[str, Any] = {
    "protocolVersion": "2025-11-25",
    "capabilities": {},
    "clientInfo": {"name": "fuzz", "version": "1"},
}
METHODS = [
    "initialize",
    "notifications/initialized",
    "notifications/cancelled",
    "ping",
    "server/discover",
    "resources/list",
    "resources/templates/list",
    "resources/read",
    "resources/subscribe",
    "resources/unsubscribe",
    "resources/directory/read",
    "subscriptions/listen",
    "skills/list",
    "skills/get",
    "tools/list",
    "tools/call",
    "completion/complete",
    "logging/setLevel",
]
WORDS = st.sampled_from(
    [
        "skill://sound/SKILL.md",
        "skill://sound/_manifest",
        "skill://sound/../x",
        "guide://category/notes",
        "guide://category/notes/%2A%2A",
        "guide://document/notes/a.md",
        "guide://help",
        "load_skill",
        "ref/resource",
        "skill://{name}/{+path}",
        "guide://category/{name}/{+docId}",
        "2025-11-25",
        "debug",
        "sound",
        "\ud800",
        "\x00",
        "",
    ]
)
KEYS = st.sampled_from(
    [
        "uri",
        "cursor",
        "ref",
        "argument",
        "context",
        "arguments",
        "name",
        "value",
        "type",
        "level",
        "notifications",
        "_meta",
        "resourceSubscriptions",
        "resourcesListChanged",
        "requestId",
        "protocolVersion",
    ]
)
VALUES: st.SearchStrategy[Any] = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(max_size=6)
    | WORDS
    | st.sampled_from([META, HELLO]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=4),
    max_leaves=8,
)
NAMED: st.SearchStrategy[dict[str, Any]] = st.dictionaries(KEYS, WORDS | VALUES, max_size=4)


def only_uri(uri: str) -> dict[str, str]:
    return {"uri": uri}


PARAMS: st.SearchStrategy[Any] = st.one_of(
    st.builds(only_uri, WORDS),
    NAMED,
    NAMED.map(lambda params: {**params, "_meta": META}),
    st.just(HELLO),
    VALUES,
)
MESSAGES: st.SearchStrategy[Any] = st.fixed_dictionaries(
    {"jsonrpc": st.just("2.0"), "method": st.sampled_from(METHODS)},
    optional={"id": st.integers() | st.text(max_size=5) | VALUES, "params": PARAMS},
)
LINES = st.one_of(
    MESSAGES.map(json.dumps).map(str.encode),
    st.lists(MESSAGES | VALUES, max_size=3).map(json.dumps).map(str.encode),
    VALUES.map(json.dumps).map(str.encode),
    st.binary(max_size=30).map(lambda data: data.replace(b"\n", b"")),
)
KNOWN = {-32700, -32600, -32601, -32602, -32002, -32022, -32603}


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> ResourceService:
    root = tmp_path_factory.mktemp("fuzz")
    (root / "skills" / "sound").mkdir(parents=True)
    head = "---\nname: sound\ndescription: Does it.\n---\nBody.\n"
    (root / "skills" / "sound" / "SKILL.md").write_text(head)
    (root / "guide" / "notes").mkdir(parents=True)
    for name in ("a.md", "b.md"):
        (root / "guide" / "notes" / name).write_text("# Note\n")
    roots = ResourceRoots((str(root / "skills"),), str(root / "guide"), internal=True)
    return roots.open().service("fuzz", "1")


@pytest.fixture
def root_text(service: ResourceService) -> str:
    (place, *_) = service.catalog.providers[0].places()
    return place.rpartition("/")[0]


@pytest.fixture
def serve(service: ResourceService, tmp_path: Path) -> Iterator[Callable[[bytes], bytes]]:
    """Gives the output of a client's whole session for its whole input."""
    path = tmp_path / "session"
    path.touch()
    source, target = (
        os.open(path.with_suffix(end), os.O_RDWR | os.O_CREAT) for end in ("", ".out")
    )

    def run(data: bytes) -> bytes:
        for one in (source, target):
            os.ftruncate(one, 0)
            os.lseek(one, 0, os.SEEK_SET)
        os.write(source, data)
        os.lseek(source, 0, os.SEEK_SET)
        StdioServer(service, source, target).serve()
        return os.pread(target, 1 << 26, 0)

    yield run
    os.close(source)
    os.close(target)


@given(lines=st.lists(LINES, max_size=8), hello=st.sampled_from([True, True, False]))
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
def test_every_answer_is_one_line_and_the_next_request_is_served(
    service: ResourceService,
    serve: Callable[[bytes], bytes],
    root_text: str,
    lines: list[bytes],
    hello: bool,
) -> None:
    first = {"jsonrpc": "2.0", "id": "hello", "method": "initialize", "params": HELLO}
    last: dict[str, Any] = {"jsonrpc": "2.0", "id": "the end", "method": "ping", "params": {}}
    opening = [json.dumps(first).encode()] if hello else []
    whole = b"".join(line + b"\n" for line in (*opening, *lines, json.dumps(last).encode()))
    output = serve(whole)
    assert root_text.encode() not in output
    assert output.endswith(b"\n")
    ended = False
    for line in output.splitlines():
        answers: Any = json.loads(line)
        for answer in cast("list[dict[str, Any]]", answers if line[:1] == b"[" else [answers]):
            assert answer["jsonrpc"] == "2.0"
            ended = ended or answer.get("id") == "the end"
            if "error" in answer:
                assert answer["error"]["code"] in KNOWN, answer
                assert answer["error"]["message"] != "internal error", answer
            else:
                assert "result" in answer or "method" in answer
    assert ended
    assert not service.following.sessions


@given(
    lines=st.lists(st.binary(max_size=20).map(lambda data: data.replace(b"\n", b"")), max_size=8),
    cuts=st.lists(st.integers(0, 200), max_size=12),
)
def test_pieces_of_any_size_give_the_same_lines(lines: list[bytes], cuts: list[int]) -> None:
    longest = 12
    data = b"\n".join(lines)
    places = sorted({min(cut, len(data)) for cut in (0, *cuts, len(data))})
    reader = Lines(longest)
    found: list[bytes | None] = []
    for start, end in pairwise(places):
        found.extend(reader.feed(data[start:end]))
    found.extend(reader.end())
    wanted = [None if len(line) > longest else line.strip(b" \t\r\n") for line in lines]
    assert found == [line for line in wanted if line is None or line]
