"""A server that wants OAuth tokens, with its authorization server, for tests; both can lie."""

from __future__ import annotations

import hashlib
import json
import secrets
from base64 import b64decode, urlsafe_b64encode
from contextlib import suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any, Self
from urllib.error import HTTPError
from urllib.parse import parse_qsl, unquote, urlencode, urlsplit
from urllib.request import urlopen

import anyio
import anyio.to_thread


@dataclass
class Grant:
    """What one authorization allows."""

    client: str
    scope: str
    refresh: str
    access: set[str] = field(default_factory=set[str])


class Server(ThreadingHTTPServer):
    """An MCP server at `/mcp` and `/sse`, and the authorization server it trusts, on one port.

    Attributes:
        metadata: Changes of the authorization server's metadata.
        resource: Changes of the server's own metadata.
        expires_in: How long tokens live, as they say themselves.
        answers: By path, the status, headers and body that are sent instead of the right ones.
        heard: Method, path, headers and form of each request.
    """

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.metadata: dict[str, Any] = {}
        self.resource: dict[str, Any] = {}
        self.expires_in: int | None = 3600
        self.answers: dict[str, tuple[int, dict[str, str], str]] = {}
        self.heard: list[tuple[str, str, dict[str, str], dict[str, str]]] = []
        self.clients: dict[str, dict[str, Any]] = {}
        self.codes: dict[str, dict[str, str]] = {}
        self.grants: list[Grant] = []
        self.rotates = True
        self.repeats_token = False
        self.needs_scope = ""
        self._thread = Thread(target=self.serve_forever, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.shutdown()
        self.server_close()
        self._thread.join()

    @property
    def root(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"

    @property
    def url(self) -> str:
        return f"{self.root}/mcp"

    @property
    def paths(self) -> list[str]:
        """What was asked for, without queries."""
        return [path for _, path, _, _ in self.heard]

    def expire(self) -> None:
        """Let every access token expire."""
        for grant in self.grants:
            grant.access.clear()

    def revoke(self) -> None:
        """Forget every grant."""
        self.grants.clear()

    def grant_of(self, token: str) -> Grant | None:
        return next((one for one in self.grants if token in one.access), None)


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: Server  # pyright: ignore[reportIncompatibleVariableOverride]

    def do_GET(self) -> None:
        parts = urlsplit(self.path)
        self._note(parts.path, {})
        if self._lies(parts.path):
            return
        if parts.path.startswith("/.well-known/oauth-protected-resource"):
            self._json(
                {
                    "resource": self.server.url,
                    "authorization_servers": [self.server.root],
                    "scopes_supported": ["read", "write"],
                    **self.server.resource,
                }
            )
        elif parts.path == "/.well-known/oauth-authorization-server":
            root = self.server.root
            self._json(
                {
                    "issuer": root,
                    "authorization_endpoint": f"{root}/authorize",
                    "token_endpoint": f"{root}/token",
                    "registration_endpoint": f"{root}/register",
                    "revocation_endpoint": f"{root}/revoke",
                    "code_challenge_methods_supported": ["S256"],
                    **self.server.metadata,
                }
            )
        elif parts.path == "/authorize":
            self._authorize(dict(parse_qsl(parts.query)))
        elif parts.path == "/mcp" and self._allowed():
            self._reply(405)
        elif parts.path != "/mcp":
            self._reply(404)

    def do_POST(self) -> None:
        path = urlsplit(self.path).path
        body = self.rfile.read(int(self.headers.get("content-length") or 0)).decode()
        form = dict(parse_qsl(body)) if path in {"/token", "/revoke"} else {}
        self._note(path, form)
        if self._lies(path):
            return
        if path == "/register":
            client = {**json.loads(body), "client_id": f"client-{len(self.server.clients)}"}
            self.server.clients[client["client_id"]] = client
            self._json(client, 201)
        elif path == "/token":
            self._token(form)
        elif path == "/revoke":
            self.server.grants = [
                one for one in self.server.grants
                if form["token"] != one.refresh and form["token"] not in one.access
            ]  # fmt: skip
            self._json({})
        elif path == "/mcp" and self._allowed():
            self._mcp(json.loads(body))

    def do_DELETE(self) -> None:
        self._note(self.path, {})
        self._reply(405)

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002
        del format, args

    def _note(self, path: str, form: dict[str, str]) -> None:
        headers = {name.lower(): value for name, value in self.headers.items()}
        self.server.heard.append((self.command, path, headers, form))

    def _lies(self, path: str) -> bool:
        lie = self.server.answers.get(path)
        if lie is not None:
            self._reply(lie[0], lie[2], lie[1])
        return lie is not None

    def _authorize(self, asked: dict[str, str]) -> None:
        client = self.server.clients.get(asked["client_id"], {})
        assert asked["redirect_uri"] in client.get("redirect_uris", [asked["redirect_uri"]])
        assert asked["code_challenge_method"] == "S256"
        assert asked["resource"] == self.server.url
        code = secrets.token_urlsafe(16)
        self.server.codes[code] = asked
        back = {"code": code, "state": asked["state"], "iss": self.server.root}
        self._reply(302, headers={"location": f"{asked['redirect_uri']}?{urlencode(back)}"})

    def _token(self, form: dict[str, str]) -> None:
        basic = self.headers.get("authorization", "")
        if basic.startswith("Basic "):
            name, _, secret = b64decode(basic[6:]).decode().partition(":")
            form = {**form, "client_id": unquote(name), "client_secret": unquote(secret)}
        if form["grant_type"] == "authorization_code":
            asked = self.server.codes.pop(form["code"], None)
            digest = hashlib.sha256(form["code_verifier"].encode()).digest()
            challenge = urlsafe_b64encode(digest).decode().rstrip("=")
            if asked is None or asked["code_challenge"] != challenge:
                self._json({"error": "invalid_grant", "code": form["code"]}, 400)
                return
            grant = Grant(form["client_id"], asked.get("scope", ""), secrets.token_urlsafe(24))
            self.server.grants.append(grant)
        else:
            found = [one for one in self.server.grants if one.refresh == form["refresh_token"]]
            if not found:
                self._json({"error": "invalid_grant"}, 400)
                return
            grant = found[0]
            if self.server.rotates:
                grant.refresh = secrets.token_urlsafe(24)
        token = secrets.token_urlsafe(24)
        grant.access.add(token)
        answer: dict[str, Any] = {
            "access_token": token, "token_type": "bearer", "refresh_token": grant.refresh,
        }  # fmt: skip
        if self.server.expires_in is not None:
            answer["expires_in"] = self.server.expires_in
        self._json(answer)

    def _allowed(self) -> bool:
        token = self.headers.get("authorization", "").removeprefix("Bearer ")
        grant = self.server.grant_of(token)
        metadata = f"{self.server.root}/.well-known/oauth-protected-resource/mcp"
        if grant is None:
            challenge = f'Bearer resource_metadata="{metadata}"'
            self._reply(401, headers={"www-authenticate": challenge})
            return False
        if self.server.needs_scope not in grant.scope.split() and self.server.needs_scope:
            challenge = f'Bearer error="insufficient_scope", scope="{self.server.needs_scope}"'
            self._reply(403, headers={"www-authenticate": challenge})
            return False
        return True

    def _mcp(self, message: dict[str, Any]) -> None:
        result: dict[str, Any]
        match message.get("method"):
            case "initialize":
                result = {
                    "protocolVersion": message["params"]["protocolVersion"],
                    "capabilities": {"tools": {}},
                    "serverInfo": {"name": "authorized", "version": "1"},
                }
            case "tools/list":
                result = {"tools": [{"name": "whoami", "inputSchema": {"type": "object"}}]}
            case "tools/call":
                said = self.headers["authorization"] if self.server.repeats_token else "a friend"
                result = {"content": [{"type": "text", "text": f"you are {said}"}]}
            case "ping":
                result = {}
            case _:
                self._reply(202 if "id" not in message else 400)
                return
        self._json({"jsonrpc": "2.0", "id": message["id"], "result": result})

    def _json(self, value: object, status: int = 200) -> None:
        self._reply(status, json.dumps(value), {"content-type": "application/json"})

    def _reply(self, status: int, text: str = "", headers: dict[str, str] | None = None) -> None:
        body = text.encode()
        self.send_response(status)
        for name, value in (headers or {}).items():
            self.send_header(name, value)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


async def browse(address: str) -> bool:
    """Open an address as a browser does: redirects are followed to where they lead."""

    def fetch() -> None:
        # Not by the client of the product, whose log the tests read.
        with suppress(HTTPError), urlopen(address, timeout=20) as page:
            page.read()

    await anyio.to_thread.run_sync(fetch)
    return True
