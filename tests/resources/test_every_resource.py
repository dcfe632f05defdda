"""What the real servers list is read, byte for byte, over both transports and in both eras."""

from __future__ import annotations

import base64
import contextlib
import email
import email.policy
import http.client
import json
import re
import shutil
from email.message import EmailMessage
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any
from unicodedata import normalize
from urllib.parse import quote, unquote

import pytest
from tests.resources.hostile_world import META, Asking, Server
from tests.serve.served import ACCEPT, HELLO, Served

if TYPE_CHECKING:
    from collections.abc import Generator

CORPUS = Path(__file__).parents[1] / "corpus/skills/good"
DOCUMENTS = {
    "plain/first step.md": b"---\ntitle: First\n---\n# First\n",
    "plain/größe-日本語-🙂.md": "# Größe\n".encode(),
    "plain/windows.md": b"# Windows\r\n\r\nends\r\n",
    "plain/mark.md": b"\xef\xbb\xbf# Marked\n",
    "plain/100%25 [sure] #1 & 'x'?.md": b"signs",
    "plain/empty.md": b"",
    "plain/no newline.txt": b"end",
    "plain/--boundary.md": b"--boundary\r\n\r\n--boundary--\r\nContent-Type: text/html\r\n\r\n",
    "plain/deep/er/picture.png": bytes(range(256)),
    "plain/half.md": "é".encode()[:1],
    "other/picture.bin": b"\x00\r\n\n\r--",
    "other/re%2fads.json": b'{"a": 1}',
}
GUIDE = """\
categories: { plain: {}, other: {}, pictures: { dir: ., patterns: ['**/picture.*'] } }
collections: { all: { members: [plain, other] }, some: { members: ['plain/*.md', all] } }
"""
ROOTS = ("--skills", "skills", "--guide", "guide", "--internal")


class HttpClient(Asking):
    """A client over HTTP, which asks as the one over stdio does."""

    def __init__(self, served: Served, *, modern: bool) -> None:
        self._modern = modern
        self._headers = dict(ACCEPT)
        self._connection = http.client.HTTPConnection("127.0.0.1", served.port, timeout=60)
        if not modern:
            self.ask("initialize", HELLO)
            self._headers["MCP-Protocol-Version"] = HELLO["protocolVersion"]

    def call(self, method: str, params: dict[str, Any] | None = None) -> dict[str, Any]:
        params = params or {}
        headers = self._headers
        if self._modern:
            named = {"Mcp-Name": header(params["uri"])} if method == "resources/read" else {}
            version = {"MCP-Protocol-Version": "2026-07-28", "Mcp-Method": method}
            headers = {**headers, **version, **named}
            params = {**params, "_meta": META}
        message = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
        self._connection.request("POST", "/mcp", json.dumps(message), headers)
        answer = self._connection.getresponse()
        if method == "initialize":
            self._headers["mcp-session-id"] = str(answer.getheader("mcp-session-id"))
        return json.loads(answer.read())

    def close(self) -> None:
        self._connection.close()


def header(text: str) -> str:
    """Write a text as the protocol has it in headers."""
    if text.isascii():
        return text
    return f"=?base64?{base64.b64encode(text.encode()).decode()}?="


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("world")
    shutil.copytree(CORPUS, place / "skills")
    (place / "skills/odd-names/what? <is> this | *.md").write_text("signs\n")
    for name, data in DOCUMENTS.items():
        file = place / "guide" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(data)
    (place / "guide/.guide.yaml").write_text(GUIDE)
    return place


@contextlib.contextmanager
def over_stdio(world: Path, *, modern: bool) -> Generator[Asking]:
    with Server(*ROOTS, cwd=world, modern=modern) as server:
        yield server


@contextlib.contextmanager
def over_http(world: Path, *, modern: bool) -> Generator[Asking]:
    more = ("--guide", str(world / "guide"), "--internal")
    with (
        Served(world / "skills", *more) as served,
        contextlib.closing(HttpClient(served, modern=modern)) as client,
    ):
        yield client


@pytest.fixture(
    scope="module",
    params=[
        (transport, modern) for transport in (over_stdio, over_http) for modern in (False, True)
    ],
    ids=lambda param: f"{param[0].__name__}-{'modern' if param[1] else 'handshake'}",
)
def server(request: pytest.FixtureRequest, world: Path) -> Generator[Asking]:
    transport, modern = request.param
    with transport(world, modern=modern) as client:
        yield client


def read(server: Asking, uri: str) -> tuple[bytes, str]:
    """Return the bytes of a resource and its media type."""
    (content,) = server.ask("resources/read", {"uri": uri})["contents"]
    assert content["uri"] == uri
    assert ("text" in content) != ("blob" in content)
    if "text" in content:
        return content["text"].encode(), content["mimeType"]
    return base64.b64decode(content["blob"]), content["mimeType"]


def on_disk(world: Path) -> dict[str, bytes]:
    """Return the bytes of every file by the URI it should have, without the code under test."""
    found: dict[str, bytes] = {}
    for file in (world / "skills").rglob("*"):
        if file.is_file():
            path = file.relative_to(world / "skills")
            found[f"skill://{quoted(path)}"] = file.read_bytes()
    for name, data in DOCUMENTS.items():
        found[f"guide://document/{quoted(name)}"] = data
        if "/picture." in name:
            found[f"guide://document/pictures/{quoted(name)}"] = data
    return found


def quoted(path: Path | str) -> str:
    return quote(normalize("NFC", str(path)), safe="/!$&'()*+,;=:@~-._")


@pytest.mark.spec("GUIDE-1", "SEED-SKILL-2", "SEED-SKILL-3")
def test_every_listed_uri_reads(server: Asking, world: Path) -> None:
    listed = server.all("resources/list", "resources")
    uris = [one["uri"] for one in listed]
    assert {uri.partition(":")[0] for uri in uris} == {"guide", "internal", "skill"}
    assert uris == sorted(set(uris))
    files = on_disk(world)
    for one in listed:
        data, mime_type = read(server, one["uri"])
        assert one.get("mimeType", mime_type) == mime_type
        assert one.get("size", len(data)) == len(data)
        assert data == files.get(one["uri"], data)
        assert read(server, one["uri"])[0] == data
    assert {uri for uri in files if uri.startswith("guide:")} <= set(uris)
    assert {uri for uri in files if uri.endswith("/SKILL.md")} <= set(uris)


@pytest.mark.spec("S7", "S8", "SEED-SKILL-18")
def test_what_is_read_has_the_digest_that_is_listed(server: Asking, world: Path) -> None:
    files = on_disk(world)
    index = {one["uri"]: one for one in json.loads(read(server, "skill://index.json")[0])["skills"]}
    checked: set[str] = set()
    for entry in server.all("skills/list", "skills"):
        skill = entry["uri"].removesuffix("/SKILL.md")
        manifest = json.loads(read(server, f"{skill}/_manifest")[0])
        hashes = {one["path"]: (one["hash"], one["size"]) for one in manifest["files"]}
        assert len(hashes) == len(entry["resources"])
        for one in entry["resources"]:
            data = read(server, one["uri"])[0]
            assert data == files[one["uri"]]
            assert one["digest"] == f"sha256:{sha256(data).hexdigest()}"
            assert one["size"] == len(data)
            path = unquote(one["uri"].removeprefix(f"{skill}/"))
            assert hashes[path] == (one["digest"], one["size"])
            checked.add(one["uri"])
        assert index.pop(entry["uri"])["resources"] == entry["resources"]
        assert server.ask("skills/get", {"uri": entry["uri"]})["skill"] == entry
    assert index == {}
    assert checked == {uri for uri in files if uri.startswith("skill:")}


@pytest.mark.spec("GUIDE-21", "GUIDE-23", "GUIDE-28")
@pytest.mark.parametrize(
    ("uri", "count"),
    [
        ("guide://category/plain", 10),
        ("guide://category/plain/**", 10),
        ("guide://category/plain/*.md", 8),
        ("guide://category/pictures", 2),
        ("guide://collection/all", 12),
        ("guide://collection/some", 12),
    ],
)
def test_every_content_location_reads_the_same_bytes(
    server: Asking, world: Path, uri: str, count: int
) -> None:
    data, mime_type = read(server, uri)
    message = email.message_from_bytes(data, policy=email.policy.HTTP)
    assert message["Content-Type"] == mime_type
    parts = [part for part in message.iter_parts() if isinstance(part, EmailMessage)]
    assert len({str(part["Content-Location"]) for part in parts}) == len(parts) == count
    files = on_disk(world)
    for part in parts:
        body = part.get_payload(decode=True)
        location = str(part["Content-Location"])
        alone, alone_type = read(server, location)
        assert body == alone == files[location]
        assert part["Content-Length"] == str(len(alone))
        assert part["ETag"] == f'"sha256-{sha256(alone).hexdigest()}"'
        assert part.get_content_type() == alone_type
    assert read(server, uri)[0] == data


@pytest.mark.spec("S12")
def test_every_file_of_a_directory_reads(server: Asking, world: Path) -> None:
    files = on_disk(world)
    pending = [one["uri"].removesuffix("/SKILL.md") for one in server.all("skills/list", "skills")]
    seen: set[str] = set()
    while pending:
        listed = server.ask("resources/directory/read", {"uri": pending.pop()})["resources"]
        for one in listed:
            if one["mimeType"] == "inode/directory":
                pending.append(one["uri"])
            else:
                assert read(server, one["uri"])[0] == files[one["uri"]]
                seen.add(one["uri"])
    assert len(seen) > 20


@pytest.mark.spec("GUIDE-38")
def test_every_uri_that_completion_makes_reads(server: Asking) -> None:
    made = 0
    for template in server.all("resources/templates/list", "resourceTemplates"):
        text = template["uriTemplate"]
        names = re.findall(r"\{\+?(\w+)\}", text)
        for given in completed(server, text, names, {}):
            uri = text
            for name, value in given.items():
                uri = re.sub(rf"\{{\+?{name}\}}", lambda _, value=value: value, uri)
            assert server.ask("resources/read", {"uri": uri})["contents"], uri
            made += 1
    assert made > 60


def completed(
    server: Asking, template: str, names: list[str], given: dict[str, str]
) -> Generator[dict[str, str]]:
    """Yield all ways to fill a template that its completions offer."""
    if not names:
        yield given
        return
    asked = {
        "ref": {"type": "ref/resource", "uri": template},
        "argument": {"name": names[0], "value": ""},
        "context": {"arguments": given},
    }
    for value in server.ask("completion/complete", asked)["completion"]["values"]:
        yield from completed(server, template, names[1:], {**given, names[0]: value})
