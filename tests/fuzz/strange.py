"""Strange requests: HTTP requests and JSON-RPC messages as no well-behaved client sends them.

All choices come from one random generator, so a seed names every byte.
"""

from __future__ import annotations

import copy
import json
from typing import TYPE_CHECKING, Any, NamedTuple, cast

from tests.serve.served import HELLO, META

if TYPE_CHECKING:
    from random import Random

MODERN = "2026-07-28"
SKILL = "skill://one/SKILL.md"
JSON = "application/json"
BOTH = "application/json, text/event-stream"

_REQUESTS: tuple[tuple[str, dict[str, Any]], ...] = (
    ("initialize", HELLO),
    ("ping", {}),
    ("tools/list", {}),
    ("tools/call", {"name": "ann", "arguments": {"message": "hello"}}),
    ("tools/call", {"name": "load_skill", "arguments": {"name": "one"}}),
    ("tools/call", {"name": "read_skill_file", "arguments": {"name": "one", "path": "SKILL.md"}}),
    ("tools/call", {"name": "load_agents", "arguments": {"path": "ann.md"}}),
    ("tools/call", {"name": "reload", "arguments": {}}),
    ("prompts/list", {}),
    ("prompts/get", {"name": "ann_history"}),
    ("prompts/get", {"name": "ann_history", "arguments": {"a": "b"}}),
    ("resources/list", {}),
    ("resources/templates/list", {"cursor": "x"}),
    ("resources/read", {"uri": SKILL}),
    ("resources/read", {"uri": "skill://one/_manifest"}),
    ("resources/directory/read", {"uri": "skill://one"}),
    ("resources/subscribe", {"uri": SKILL}),
    ("resources/unsubscribe", {"uri": SKILL}),
    (
        "completion/complete",
        {
            "ref": {"type": "ref/resource", "uri": "skill://{name}/{+path}"},
            "argument": {"name": "name", "value": "o"},
        },
    ),
    ("logging/setLevel", {"level": "debug"}),
    ("server/discover", {}),
    ("subscriptions/listen", {"notifications": {"resourceSubscriptions": [SKILL]}}),
    ("skills/list", {}),
    ("skills/get", {"name": "one"}),
    ("roots/list", {}),
    ("notifications/initialized", {}),
    ("notifications/cancelled", {"requestId": 1, "reason": "no"}),
    ("notifications/progress", {"progressToken": 1, "progress": 2}),
    ("no/such/method", {"a": [1]}),
)
"""Messages as they should be."""

_PLAIN_META: tuple[Any, ...] = (
    {"progressToken": 7},
    {"progressToken": {}},
    {"fast-agent/session": "nobody's"},
    [],
    "meta",
    None,
)
_META: tuple[Any, ...] = (
    *_PLAIN_META,
    META,
    {**META, "io.modelcontextprotocol/protocolVersion": 20260728},
    {**META, "io.modelcontextprotocol/clientCapabilities": []},
    {"io.modelcontextprotocol/protocolVersion": MODERN},
    {**META, "fast-agent/session": {"a": 1}},
)
_ODD: tuple[Any, ...] = (
    None,
    True,
    False,
    0,
    -1,
    1.0,
    1.5,
    10**30,
    -(10**400),
    float("nan"),
    float("inf"),
    1e308,
    "",
    " ",
    "\x00",
    "\ud800",
    "x\udc00y",
    "\u202eevil\x1b[2J",
    "ö" * 3,
    "x" * 5_000,
    "../../etc/passwd",
    "skill://one/" + "x" * 5_000,
    "skill://" + "x/" * 2_000,
    "skill://one/\x00",
    "skill://one/%00%ff",
    "skill://one/../../x",
    "guide://%",
    "internal://\ud800",
    "file:///etc/passwd",
    "http://[::1",
    "2.0",
    [],
    [None],
    {},
    {"": {}},
    {"__proto__": 1, "\ud800": 2},
    [[[[{}]]]],
)
_IDS: tuple[Any, ...] = (
    *(7, 0, -3, "a", "", 2**53 + 1, 10**40, 1.0, 1.5, float("nan"), None, True, [], {}, "\ud800"),
    *("x" * 5_000, "7", {"a": 1}, [1]),
)
_BODIES = (
    *(b"", b" ", b"\n", b"{", b"}", b"[", b"[]", b"{}", b"null", b"true", b"7", b'"text"', b"[[]]"),
    *(b"\xff\xfe{\x00}\x00", b"\xef\xbb\xbf{}", b"\x00", b"\xc3\x28", b"NaN", b"-", b"1e", b"{}{}"),
    *(b"[" * 5_000, b'{"a":' * 5_000, b"[" * 5_000 + b"]" * 5_000, b"9" * 10_000, b'"\\ud800"'),
    *(b'{"jsonrpc":"2.0"', b'{"jsonrpc":"2.0","id":1,"method":"ping"}x', b"<xml/>", b"a=b&c=d"),
    b'{"jsonrpc":"2.0","id":1,"id":2,"method":"ping","method":"tools/list"}',
    b'{"jsonrpc":"2.0","id":1,"result":{}}',
    b'{"jsonrpc":"2.0","id":1,"result":{},"error":{"code":1,"message":"x"}}',
    b'{"jsonrpc":"2.0","id":null,"error":{"code":"1","message":7}}',
    b'{"jsonrpc":"2.0","id":"s","error":{"code":-1,"message":"no","data":[1]}}',
    b"{'jsonrpc':'2.0','id':1,'method':'ping'}",
    b'{"jsonrpc":"2.0","id":1,"method":"ping",}',
    b'{"jsonrpc":"2.0","id":01,"method":"ping"}',
    b'{"jsonrpc":"2.0","id":1,"method":"pi\tng"}',
    b'\x0b{"jsonrpc":"2.0","id":1,"method":"ping"}',
    b'{"jsonrpc":"2.0","id":"\xff","method":"ping"}',
)
_PATHS = (
    *("/", "/mcp/", "/mcp?x=1", "/MCP", "//mcp", "/mcp/../mcp", "/%6dcp", "/mcp%00", "/mcp#x", "*"),
    *("/" + "x" * 5_000, "/mcp?" + "x" * 5_000, "/mcp/" + "%ff" * 100, "/favicon.ico", "/\xff"),
    *("http://127.0.0.1/mcp", "mcp", "/mcp;a=b", "/.well-known/oauth-protected-resource"),
)
_METHODS = (
    *("GET", "GET", "DELETE", "PUT", "PATCH", "HEAD", "OPTIONS", "TRACE", "CONNECT", "PROPFIND"),
    *("post", "G\xc4T", "MKCOL", "P" * 300),
)
_HEADERS: dict[str, tuple[str, ...]] = {
    "Content-Type": (
        *("application/json; charset=utf-8", "application/json;charset=utf-16", "text/plain", ""),
        *("application/x-www-form-urlencoded", "multipart/form-data", "\xff", "application/json,x"),
    ),
    "Accept": (JSON, "*/*", "text/event-stream", "text/html", "", "application/json;q=0", ",,,"),
    "Mcp-Session-Id": ("nobody's", "", "\xff", "x" * 5_000, "a, b"),
    "MCP-Protocol-Version": (
        *("2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05", MODERN, "1900-01-01", ""),
        *("2026-07-29", "7", "2025-11-25, 2025-11-25", "x" * 500, "\xff"),
    ),
    "Mcp-Method": ("tools/call", "", "x", "\xff"),
    "Mcp-Name": ("ann", "", SKILL, "=?utf-8?b?YQ==?=", "\xff", "x" * 3_000),
    "Last-Event-ID": ("1", "", "\xff", "x" * 3_000, "0/0", "-1", "\xf6"),
    "Origin": ("null", "http://evil.example", "\xff", "http://", "x"),
    "Authorization": ("Bearer x", "", "Basic eDp5", "Bearer", "\xff"),
    "Expect": ("100-continue", "200-maybe"),
    "Connection": ("keep-alive", "close", "Upgrade", "x"),
    "Upgrade": ("h2c", "websocket", ""),
    "Content-Encoding": ("gzip", "identity", "br"),
}
_SELDOM = 0.08


class HttpRequest(NamedTuple):
    """A request as it is sent.

    Args:
        data: All its bytes.
        method: Its HTTP method.
        body: Its body.
    """

    data: bytes
    method: str
    body: bytes


class Strange:
    """Makes strange requests.

    Args:
        draw: What all choices come from.
    """

    def __init__(self, draw: Random) -> None:
        self._draw = draw
        self._asked: dict[str, Any] = {}
        """What the last message was made of, which the headers of a good client repeat."""

    def message(self, *, modern: bool = True) -> bytes:
        """Return a body or a line: JSON-RPC that is somehow wrong, sometimes right, or no JSON.

        Args:
            modern: Whether it may have the envelope of the newest protocol.
        """
        draw = self._draw
        if draw.random() < 0.12:
            return draw.choice(_BODIES)
        if draw.random() < 0.06:
            return self._written([self._one(modern=modern) for _ in range(draw.randrange(4))])
        data = self._written(self._one(modern=modern))
        return self._damaged(data) if draw.random() < 0.1 else data

    def request(self, port: int, session: str) -> HttpRequest:
        """Return an HTTP request with a body of `message`.

        Args:
            port: The server's.
            session: The id of a session that is open.
        """
        draw = self._draw
        method, path, body = "POST", "/mcp", self.message()
        if draw.random() < _SELDOM:
            method = draw.choice(_METHODS)
        if draw.random() < _SELDOM:
            path = draw.choice(_PATHS)
        lines = [f"{method} {path} HTTP/1.1", f"Host: 127.0.0.1:{port}", *self._headers(session)]
        if draw.random() < _SELDOM / 5:
            lines[0] = draw.choice((f"{method} {path}", f"{method}  {path} HTTP/1.1", "", "\x00"))
        if draw.random() < _SELDOM / 5:
            lines.append(draw.choice((f"Host: 127.0.0.1:{port}", "Host: elsewhere", "Host:")))
        data = body
        if draw.random() < _SELDOM:
            lines.append("Transfer-Encoding: chunked")
            trailer = draw.choice(("", "X: y\r\n", "Host: elsewhere\r\n", "Mcp-Session-Id: x\r\n"))
            piece = b"%x\r\n%b\r\n" % (len(body), body) if body else b""
            data = piece + f"0\r\n{trailer}\r\n".encode()
        else:
            lines.append(f"Content-Length: {len(body)}")
        return HttpRequest("\r\n".join([*lines, "", ""]).encode("latin-1") + data, method, body)

    def _headers(self, session: str) -> list[str]:
        """Return headers: mostly those of a client of one of the protocols, now and then odd."""
        draw = self._draw
        usual = {"Content-Type": JSON, "Accept": BOTH}
        if draw.random() < 0.7:
            usual |= {"Mcp-Session-Id": session, "MCP-Protocol-Version": "2025-11-25"}
        elif draw.random() < 0.8:
            method = self._asked.get("method")
            name = "uri" if method == "resources/read" else "name"
            params = self._asked.get("params")
            named: Any = (
                cast("dict[str, Any]", params).get(name) if isinstance(params, dict) else None
            )
            usual |= {"MCP-Protocol-Version": MODERN, "Mcp-Method": _in_header(method)}
            usual |= {"Mcp-Name": _in_header(named)} if named is not None else {}
        odd = {
            **_HEADERS,
            "Mcp-Session-Id": (session, f"{session}x", *_HEADERS["Mcp-Session-Id"]),
            "X-" + "y" * draw.randrange(1, 300): ("z", ""),
        }
        found = list(usual.items())
        while draw.random() < 3 * _SELDOM:
            name = draw.choice(list(odd))
            if draw.random() < 0.7:  # instead of the usual one, else in addition to it
                found = [one for one in found if one[0] != name]
            if draw.random() < 0.8:
                found.append((name, draw.choice(odd[name])))
        draw.shuffle(found)
        return [f"{name}: {value}" for name, value in found]

    def _one(self, *, modern: bool) -> Any:
        draw = self._draw
        method, params = copy.deepcopy(draw.choice(_REQUESTS))
        message: dict[str, Any] = {"jsonrpc": "2.0", "method": method, "params": params}
        if not method.startswith("notifications/") or draw.random() < 0.2:
            message["id"] = draw.choice(_IDS) if draw.random() < 0.3 else draw.randrange(100)
        if draw.random() < 0.3:
            message["params"]["_meta"] = copy.deepcopy(
                draw.choice(_META if modern else _PLAIN_META)
            )
        for _ in range(draw.choice((0, 1, 1, 1, 2, 3))):
            self._change(message)
        self._asked = message
        return message

    def _change(self, message: dict[str, Any]) -> None:
        """Change something somewhere in a message."""
        draw = self._draw
        place: dict[str, Any] | list[Any] = message
        while True:
            keys: list[Any] = list(place) if isinstance(place, dict) else [*range(len(place))]
            if not keys or draw.random() < 0.1:
                if isinstance(place, dict):
                    name = draw.choice(("x", "", "id", "method", "params", "result", "\ud800"))
                    place[name] = copy.deepcopy(draw.choice(_ODD))
                return
            key: Any = draw.choice(keys)
            if "params" in keys and draw.random() < 0.5:
                key = "params"
            inner: Any = place[key]
            if isinstance(inner, (dict, list)) and draw.random() < 0.85:
                place = cast("dict[str, Any] | list[Any]", inner)
                continue
            if draw.random() < 0.2:
                del place[key]
            else:
                place[key] = copy.deepcopy(draw.choice(_ODD))
            return

    def _written(self, value: Any) -> bytes:
        """Write JSON, sometimes with more around it, and `NaN` where Python has that."""
        draw = self._draw
        ascii_only = draw.random() < 0.8
        text = json.dumps(value, ensure_ascii=ascii_only)
        data = text.encode("utf-8", "surrogatepass")
        if draw.random() < 0.03:
            data = draw.choice(
                (b"\xef\xbb\xbf%b", b"  %b\t", b"%b\x00", b"%b %b", b"\r%b")
            ).replace(b"%b", data)
        return data

    def _damaged(self, data: bytes) -> bytes:
        draw = self._draw
        at = draw.randrange(len(data)) if data else 0
        kind = draw.randrange(3)
        if kind == 0:
            return data[:at]
        if kind == 1:
            return data[:at] + bytes([draw.randrange(256)]) + data[at + 1 :]
        return data[:at] + data[at + draw.randrange(1, 9) :]


def _in_header(value: Any) -> str:
    """Write a value as a client would that puts it in a header as it is."""
    text = value if isinstance(value, str) else json.dumps(value)
    return "".join(one if one.isprintable() and one <= "\xff" else "?" for one in text)
