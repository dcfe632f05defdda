"""The two edges over stdio give the same answers to the same requests: that of resources alone,
which starts without an event loop, and that of agents."""

from __future__ import annotations

import json
import os
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import anyio
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mcp import StdioServerParameters
from mcp.client import Client
from mcp.client.stdio import stdio_client
from mcp.shared.exceptions import MCPError
from tests.serve.in_process import client_of

from fast_agent.resources.roots import ResourceRoots
from fast_agent.resources.stdio import StdioServer
from fast_agent.rpc.message import Lines
from fast_agent.serve.agent_serving import StdioEdge
from fast_agent.serve.resource_server import ResourceServer

if TYPE_CHECKING:
    from collections.abc import Sequence

    from fast_agent.resources.service import ResourceService

    Asked: TypeAlias = list[tuple[str, dict[str, Any] | None]]

HELLO: dict[str, Any] = {
    "protocolVersion": "2025-11-25",
    "capabilities": {},
    "clientInfo": {"name": "test", "version": "1"},
}
META: dict[str, Any] = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientCapabilities": {},
}


def make_service(root: Path) -> ResourceService:
    """Serve skills, a guide and the packaged documents."""
    skill = root / "skills/acme/re-funds"
    (skill / "notes").mkdir(parents=True)
    (skill / "SKILL.md").write_text("---\nname: re-funds\ndescription: On <money>.\n---\nDo.\n")
    (skill / "notes/größe eins.txt").write_bytes(b"\xef\xbb\xbfeins\r\nzwei")
    (skill / "logo.png").write_bytes(bytes(range(256)))
    guide = root / "guide/intro"
    guide.mkdir(parents=True)
    (guide / "start.md").write_text("---\ntitle: Start\n---\n# Start\n\nGo.\n")
    (guide / "next.md").write_text("# Next\n")
    roots = ResourceRoots((str(root / "skills"),), str(root / "guide"), internal=True)
    return roots.open().service("test", "1.0")


def over_stdio(service: ResourceService, lines: Sequence[bytes]) -> list[dict[str, Any]]:
    """Pass lines to the stdio edge, and everything it writes back."""
    with tempfile.TemporaryDirectory() as folder:
        given, reported = Path(folder) / "in", Path(folder) / "out"
        given.write_bytes(b"".join(line + b"\n" for line in lines))
        input_fd = os.open(given, os.O_RDONLY)
        output_fd = os.open(reported, os.O_WRONLY | os.O_CREAT)
        try:
            StdioServer(service, input_fd, output_fd).serve()
        finally:
            os.close(input_fd)
            os.close(output_fd)
        return [json.loads(line) for line in reported.read_bytes().splitlines()]


def over_edge(service: ResourceService, messages: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Pass messages to the edge of agents, and everything it writes back; each request is
    answered before the next is sent."""
    reported: list[dict[str, Any]] = []

    async def run() -> None:
        there, here = os.pipe(), os.pipe()
        lines = Lines(1 << 30)
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(StdioEdge(there[0], here[1]).serve, ResourceServer(service))
            for message in messages:
                os.write(there[1], json.dumps(message).encode() + b"\n")
                answered = "id" not in message
                while not answered:
                    with anyio.fail_after(60):
                        await anyio.wait_readable(here[0])
                    for line in lines.feed(os.read(here[0], 1 << 16)):
                        data = json.loads(line or b"")
                        reported.append(data)
                        acknowledged = data.get("method", "").endswith("acknowledged")
                        answered = answered or acknowledged or data.get("id") == message["id"]
            os.close(there[1])
        for descriptor in (there[0], *here):
            os.close(descriptor)

    anyio.run(run)
    return reported


def encoded(messages: Sequence[dict[str, Any]]) -> list[bytes]:
    """Messages as lines."""
    return [json.dumps(message).encode() for message in messages]


def requests(*asked: tuple[str, dict[str, Any] | None], hello: bool = True) -> list[dict[str, Any]]:
    """Make messages of methods and params, after a handshake where one is wanted."""
    messages: list[dict[str, Any]] = []
    if hello:
        messages.append({"jsonrpc": "2.0", "id": "hello", "method": "initialize", "params": HELLO})
        messages.append({"jsonrpc": "2.0", "method": "notifications/initialized"})
    for number, (method, params) in enumerate(asked):
        message: dict[str, Any] = {"jsonrpc": "2.0", "id": number, "method": method}
        messages.append(message if params is None else {**message, "params": params})
    return messages


HEAD = "skill://acme/re-funds/SKILL.md"
URIS = [
    HEAD,
    "skill://acme/re-funds/notes/gr%C3%B6%C3%9Fe%20eins.txt",
    "SKILL://acme/re-funds/notes/größe eins.txt",
    "skill://acme/re-funds/logo.png",
    "skill://acme/re-funds/_manifest",
    "skill://acme/re-funds",
    "skill://prompt-xml",
    "skill://index.json",
    "guide://help",
    "guide://category/intro",
    "guide://category/intro/*.md",
    "guide://document/intro/start",
    "internal://fast-agent/models",
    "skill://acme/re-funds/../../etc/passwd",
    "skill://acme/re-funds/%2e%2e/x",
    "skill://acme%2fre-funds/SKILL.md",
    "skill://acme/re-funds/SKILL.md#x",
    "skill://none/SKILL.md",
    "guide://collection/none",
    "file:///etc/passwd",
    "other://x",
    "\x00",
    "",
    "x" * 3000,
]
NO_STRINGS: list[Any] = [None, 5, [], {}, True, 1.5]
METHODS = [
    "ping",
    "resources/list",
    "resources/templates/list",
    "resources/read",
    "resources/subscribe",
    "resources/unsubscribe",
    "resources/directory/read",
    "completion/complete",
    "skills/list",
    "skills/get",
    "tools/list",
    "tools/call",
    "logging/setLevel",
    "server/discover",
    "prompts/list",
    "sampling/createMessage",
    "",
    "x",
]
_REFUSED_BY_SDK = {-32600, -32602, -32022}
"""Codes of what the SDK may refuse by itself: envelopes, and the other era's requests."""


@pytest.fixture(scope="module", name="service")
def _service(tmp_path_factory: pytest.TempPathFactory) -> ResourceService:
    return make_service(tmp_path_factory.mktemp("served"))


def same(one: list[dict[str, Any]], other: list[dict[str, Any]]) -> None:
    assert [message.get("id") for message in one] == [message.get("id") for message in other]
    for mine, theirs in zip(one, other, strict=True):
        if "error" in mine and mine["error"]["code"] in _REFUSED_BY_SDK and mine != theirs:
            error = theirs["error"]
            assert mine["error"]["code"] == error["code"]
            assert mine["error"].get("data", "") == (error.get("data") or "")
        else:
            assert mine == theirs


def compare(service: ResourceService, messages: list[dict[str, Any]]) -> list[dict[str, Any]]:
    mine = over_stdio(service, encoded(messages))
    same(mine, over_edge(service, messages))
    return mine


COMPLETION = {
    "ref": {"type": "ref/resource", "uri": "guide://category/{name}"},
    "argument": {"name": "name", "value": "in"},
}
CORPUS: Asked = [
    *((method, None) for method in METHODS),
    *((method, {}) for method in METHODS),
    *(("resources/read", {"uri": uri}) for uri in URIS),
    *(("skills/get", {"uri": uri}) for uri in URIS),
    *(("resources/directory/read", {"uri": uri}) for uri in URIS),
    *(("resources/subscribe", {"uri": uri}) for uri in URIS),
    *(("resources/unsubscribe", {"uri": uri}) for uri in URIS),
    *(("resources/read", {"uri": wrong}) for wrong in NO_STRINGS),
    *(("resources/list", {"cursor": wrong}) for wrong in ("x", "", "AAAA", *NO_STRINGS)),
    ("completion/complete", COMPLETION),
    ("completion/complete", {**COMPLETION, "context": {"arguments": {"x": "y"}}}),
    ("completion/complete", {**COMPLETION, "context": 5}),
    ("completion/complete", {**COMPLETION, "argument": {"name": "no", "value": ""}}),
    ("completion/complete", {**COMPLETION, "ref": {"type": "ref/prompt", "name": "x"}}),
    ("tools/call", {"name": "load_skill", "arguments": {"name": "re-funds"}}),
    ("tools/call", {"name": "load_skill", "arguments": {"name": "none"}}),
    ("tools/call", {"name": "load_skill", "arguments": {}}),
    ("tools/call", {"name": "load_skill", "arguments": []}),
    ("tools/call", {"name": "none"}),
    ("logging/setLevel", {"level": "debug"}),
    ("logging/setLevel", {"level": "loud"}),
]


def test_corpus_of_the_handshake_era(service: ResourceService) -> None:
    answers = compare(service, requests(*CORPUS))
    assert len(answers) == len(CORPUS) + 1
    assert sum("result" in one for one in answers) > 30
    assert sum("error" in one for one in answers) > 60


def test_corpus_of_the_modern_era(service: ResourceService) -> None:
    asked = [
        (method, {**(params or {}), "_meta": META})
        for method, params in CORPUS
        if method != "initialize"
    ]
    answers = compare(service, requests(*asked, hello=False))
    assert len(answers) == len(CORPUS)
    assert all(one["result"]["resultType"] == "complete" for one in answers if "result" in one)


def test_without_a_handshake(service: ResourceService) -> None:
    compare(service, requests(*CORPUS[:20], hello=False))


@pytest.mark.parametrize(
    "params",
    [
        {**HELLO, "protocolVersion": "2024-11-05"},
        {**HELLO, "protocolVersion": "1999-01-01"},
        {**HELLO, "protocolVersion": "2026-07-28"},
        {**HELLO, "protocolVersion": 5},
        {**HELLO, "clientInfo": None},
        {**HELLO, "clientInfo": {"name": "x"}},
        {**HELLO, "clientInfo": {"name": 5, "version": "1"}},
        {"capabilities": {}},
        {**HELLO, "_meta": META},
        {},
        None,
    ],
)
def test_openings(service: ResourceService, params: dict[str, Any] | None) -> None:
    compare(service, requests(("initialize", params), ("resources/list", None), hello=False))


def test_envelopes(service: ResourceService) -> None:
    version, capabilities = META
    wrong: list[Any] = [
        {version: "2026-07-28"},
        {capabilities: {}},
        {**META, version: "2099-01-01"},
        {**META, version: "2025-11-25"},
        {**META, version: 5},
        {},
        5,
        None,
    ]
    first = ("resources/templates/list", {"_meta": META})
    asked = [("resources/list", {"_meta": one}) for one in wrong]
    initialize = ("initialize", HELLO)
    compare(service, requests(first, *asked, initialize, hello=False))
    compare(service, requests(*asked[:5], ("resources/list", {"_meta": META})))


def test_streams(service: ResourceService) -> None:
    wanted = {"resourceSubscriptions": [HEAD, "other://x", "\x00"], "resourcesListChanged": True}
    asked: list[tuple[str, dict[str, Any]]] = [
        ("subscriptions/listen", {"notifications": wanted, "_meta": META}),
        ("subscriptions/listen", {"notifications": {"toolsListChanged": True}, "_meta": META}),
        ("subscriptions/listen", {"notifications": 5, "_meta": META}),
        ("subscriptions/listen", {"_meta": META}),
    ]
    messages = requests(*asked, hello=False)
    mine = over_stdio(service, encoded(messages))
    theirs = over_edge(service, messages)
    assert [one.get("method") for one in mine[:2]] == [
        "notifications/subscriptions/acknowledged"
    ] * 2
    same(mine[:4], theirs[:4])
    assert mine[0]["params"]["notifications"]["resourceSubscriptions"] == [HEAD]


values: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8) | st.sampled_from(URIS),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["uri", "name", "value", "type", "a"]), inner, max_size=3)
    ),
    max_leaves=6,
)
params_of_any_kind: st.SearchStrategy[dict[str, Any]] = st.dictionaries(
    st.sampled_from(["uri", "cursor", "ref", "argument", "context", "name", "arguments", "level"]),
    values,
    max_size=4,
)


def only_uri(uri: str) -> dict[str, Any]:
    return {"uri": uri}


asked_at_random: st.SearchStrategy[Asked] = st.lists(
    st.tuples(
        st.sampled_from(METHODS) | st.text(max_size=10).filter(lambda text: text != "initialize"),
        st.none() | params_of_any_kind | st.builds(only_uri, st.sampled_from(URIS)),
    ),
    max_size=6,
)


@given(asked=asked_at_random, modern=st.booleans())
@settings(max_examples=60)
def test_random_requests(service: ResourceService, asked: Asked, modern: bool) -> None:
    if modern:
        asked = [(method, {**(params or {}), "_meta": META}) for method, params in asked]
        asked = [one for one in asked if one[0] != "subscriptions/listen"]
    compare(service, requests(*asked, hello=not modern))


@pytest.mark.anyio
@pytest.mark.parametrize("mode", ["legacy", "auto"])
async def test_an_sdk_client_reads_the_same(tmp_path: Path, mode: Any) -> None:
    """The SDK's own client understands both edges, in both eras."""
    service = make_service(tmp_path)
    command = ["-m", "fast_agent.cli.main", "resources", "serve", "--internal"]
    code = "from fast_agent.cli.main import main; main()"
    roots = ["--skills", str(tmp_path / "skills"), "--guide", str(tmp_path / "guide")]
    parameters = StdioServerParameters(
        command=sys.executable, args=["-c", code, *command[2:], *roots]
    )
    async with (
        client_of(ResourceServer(service), mode=mode) as sdk,
        Client(stdio_client(parameters), mode=mode) as stdio,
    ):
        assert sdk.protocol_version == stdio.protocol_version
        assert sdk.server_capabilities == stdio.server_capabilities
        assert sdk.instructions == stdio.instructions
        lists = await sdk.list_resources(), await stdio.list_resources()
        assert lists[0].resources == lists[1].resources
        templates = await sdk.list_resource_templates(), await stdio.list_resource_templates()
        assert templates[0].resource_templates == templates[1].resource_templates
        for resource in lists[0].resources:
            both = [await one.read_resource(str(resource.uri)) for one in (sdk, stdio)]
            assert both[0].contents == both[1].contents
        for uri in URIS[13:]:
            errors: list[Any] = []
            for one in (sdk, stdio):
                with pytest.raises(MCPError) as caught:
                    await one.read_resource(uri)
                errors.append(caught.value.error)
            assert errors[0] == errors[1]
        with anyio.fail_after(60):
            called = [
                await one.call_tool("load_skill", {"name": "re-funds"}) for one in (sdk, stdio)
            ]
        assert called[0].content == called[1].content
