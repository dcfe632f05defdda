"""Hostile clients of the real server over stdio: each request is refused, and the next answered."""

from __future__ import annotations

from base64 import urlsafe_b64decode, urlsafe_b64encode
from typing import TYPE_CHECKING

import pytest
from tests.resources.hostile_world import WRONG, make_world, serving

if TYPE_CHECKING:
    from pathlib import Path

STRANGE: tuple[object, ...] = (1, -1, True, [], {}, ["skill://sound/SKILL.md"])
CURSORS = ("", "x", "AAAA", "../..", "\x00", "é", "A" * 100_000)
HOSTILE_URIS = [
    *(
        f"{scheme}{path}"
        for scheme in ("skill://sound/", "guide://document/notes/", "internal://fast-agent/")
        for path in (
            "../secret.md",
            "..%2f..%2fsecret.md",
            "%2e%2e/secret.md",
            "%252e%252e%252fsecret.md",
            "references/../../../secret.md",
            "/etc/passwd",
            "//etc/passwd",
            "%2fetc%2fpasswd",
            "..\\secret.md",
            "%5c..%5csecret.md",
            "SKILL.md%00.txt",
            "SKILL.md\x00",
            "a\nb",
            "%0d%0aSet-Cookie:x",
            "%",
            "%zz",
            "%c0%ae%c0%ae/secret.md",
            "%ff%fe",
            "SKILL.md?x=1",
            "SKILL.md#x",
            "SKILL.md/",
            ".",
            "..",
            "\u202egnp.md",
            "\U000e0041",
            "[x]",
            "~/.ssh/id_rsa",
            "x" * 5000,
            "a/" * 900,
            "link.md",
            "linked/secret.md",
            "pipe",
            "socket",
            ".env",
        )
    ),
    "",
    "skill",
    "skill:",
    "skill://",
    "skill:///SKILL.md",
    "skill://user@host:80/SKILL.md",
    "file:///etc/passwd",
    "file:/etc/passwd",
    "http://127.0.0.1/",
    "javascript:alert(1)",
    "SKILL://[::1]/SKILL.md",
]


@pytest.fixture
def world(tmp_path: Path) -> Path:
    return make_world(tmp_path)


@pytest.mark.spec("T-1", "T-12")
def test_hostile_uris(world: Path) -> None:
    with serving(world) as server:
        for method in (
            "resources/read",
            "resources/subscribe",
            "skills/get",
            "resources/directory/read",
        ):
            for uri in HOSTILE_URIS:
                answer = server.call(method, {"uri": uri})
                if method == "resources/subscribe" and "result" in answer:
                    continue  # what may come later may be followed
                assert answer["error"]["code"] in WRONG, (method, uri, answer)
                assert len(answer["error"]["message"]) < 1000
        for wrong in STRANGE:
            assert server.call("resources/read", {"uri": wrong})["error"]["code"] == -32602


@pytest.mark.spec("T-9")
def test_a_flood_of_subscriptions_is_refused_and_the_server_goes_on(world: Path) -> None:
    with serving(world) as server:
        codes: list[int] = []
        for number in range(3000):
            uri = f"skill://sound/none-{number}.md"
            answer = server.call("resources/subscribe", {"uri": uri})
            if "error" in answer:
                codes.append(answer["error"]["code"])
        assert len(codes) == 2000
        assert set(codes) == {-32602}
        (world / "skills/sound/none-5.md").write_text("here")
        reported = server.receive()
        while reported.get("method") != "notifications/resources/updated":
            reported = server.receive()
        assert reported["params"]["uri"] == "skill://sound/none-5.md"


@pytest.mark.spec("T-9")
def test_a_flood_of_streams_is_refused_and_the_server_goes_on(world: Path) -> None:
    uri = "guide://document/notes/later.md"
    with serving(world, modern=True) as server:
        codes: list[int] = []
        for number in range(200):
            wanted = uri if number == 0 else f"skill://sound/none-{number}.md"
            asked = {"notifications": {"resourceSubscriptions": [wanted] * 50}}
            opened = server.request("subscriptions/listen", asked)
            reported = server.receive()
            if "error" in reported:
                assert reported["id"] == opened
                codes.append(reported["error"]["code"])
            else:
                assert reported["method"] == "notifications/subscriptions/acknowledged"
        assert len(codes) == 200 - 64
        assert set(codes) == {-32603}
        many = [f"skill://sound/more-{number}.md" for number in range(2000)]
        asked = {"notifications": {"resourceSubscriptions": many}}
        assert server.call("subscriptions/listen", asked)["error"]
        (world / "guide/notes/later.md").write_text("here")
        reported = server.receive()
        assert reported["method"] == "notifications/resources/updated"
        assert reported["params"]["uri"] == uri


@pytest.mark.spec("T-10")
def test_forged_and_borrowed_cursors_are_refused(world: Path) -> None:
    for number in range(2100):
        (world / f"guide/notes/{number:04}.md").touch()
    with serving(world) as server:
        page = server.ask("resources/list")
        cursor = page["nextCursor"]
        listed = {one["uri"] for one in page["resources"]}
        rest = server.ask("resources/list", {"cursor": cursor})["resources"]
        assert not listed & {one["uri"] for one in rest}
        for method in ("resources/templates/list", "skills/list", "tools/list"):
            assert server.call(method, {"cursor": cursor})["error"]["code"] == -32602, method
        sealed = urlsafe_b64decode(cursor + "=" * (-len(cursor) % 4))
        forged = [
            sealed[:4] + b"skill://a",
            bytes(4) + sealed[4:],
            sealed[:-1] + bytes([sealed[-1] ^ 1]),
            sealed + b"x",
        ]
        wrong = [urlsafe_b64encode(one).decode().rstrip("=") for one in forged]
        for text in (*wrong, cursor + "=", cursor + "A", cursor[:-1], f" {cursor}", cursor * 2):
            answer = server.call("resources/list", {"cursor": text})
            assert answer["error"]["code"] == -32602, text


@pytest.mark.spec("T-10")
@pytest.mark.parametrize(
    "method", ["resources/list", "resources/templates/list", "skills/list", "tools/list"]
)
def test_bad_cursors_are_refused(world: Path, method: str) -> None:
    with serving(world) as server:
        for cursor in (*CURSORS, *STRANGE):
            answer = server.call(method, {"cursor": cursor})
            assert answer["error"]["code"] == -32602, cursor
            assert len(answer["error"]["message"]) < 500


@pytest.mark.spec("T-11")
def test_lines_that_are_no_requests_are_refused_and_the_next_is_answered(world: Path) -> None:
    lines = [
        b"\xff\xfe\x00",
        b"{",
        b"[" * 100_000,
        b'{"a":' * 50_000,
        b"null",
        b"NaN",
        b"1" * 10_000,
        b'{"jsonrpc":"2.0","id":{},"method":"ping"}',
        b'{"jsonrpc":"2.0","id":1.5,"method":"ping"}',
        b'{"jsonrpc":"1.0","id":1,"method":"ping"}',
        b'{"jsonrpc":"2.0","id":1,"method":"ping","params":[1]}',
        b'{"jsonrpc":"2.0","id":1,"method":"\\ud800"}',
        b'{"jsonrpc":"2.0","id":"\\ud800","method":"ping"}',
        b'{"jsonrpc":"2.0","id":' + b"9" * 4400 + b',"method":"ping"}',
        b"x" * (5 << 20),
    ]
    with serving(world) as server:
        for line in lines:
            server.send_bytes(line + b"\n")
            answer = server.receive()
            assert "error" in answer or answer.get("result") == {}, line[:60]
            assert server.call("ping")["result"] == {}
