"""Authorizing this program at a remote MCP server: OAuth 2.1 by way of the user's browser.

The SDK finds the authorization server (RFC 9728, RFC 8414), registers this program (RFC 7591), and
exchanges the code with PKCE. What it leaves open is decided here: which addresses are connected to,
what the user sees before a browser opens, and who may answer at the loopback address.
"""

from __future__ import annotations

import asyncio
import hmac
import logging
import re
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Final, Self
from urllib.parse import parse_qs, urlsplit

import anyio
import anyio.to_thread
import httpx2
from mcp.client.auth import (
    OAuthClientProvider,
    OAuthFlowError,
    OAuthRegistrationError,
    OAuthTokenError,
)
from mcp.shared.auth import (
    AuthorizationCodeResult,
    OAuthClientInformationFull,
    OAuthClientMetadata,
    OAuthToken,
)
from pydantic import AnyUrl, ValidationError

from fast_agent.errors import ConfigError, ToolError, TrustError
from fast_agent.mcp.content import one_line, opens_safely
from fast_agent.mcp.guarded_http import GuardedTransport
from fast_agent.mcp.message_bounds import ENCODINGS, MessageBounds
from fast_agent.mcp.oauth.authorization import Authorization, canonical, same_origin
from fast_agent.models.http_client import client_options
from fast_agent.text.frozen import frozen
from fast_agent.text.web_failure import system_reason, through_proxy, web_hint
from fast_agent.trust.address import place_of_host, shown_address
from fast_agent.version import __version__

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Generator, Mapping

    from fast_agent.mcp.oauth.authorization import Authorizations, Place
    from fast_agent.mcp.server import HttpTarget, ServerSpec

CALLBACK_PATH: Final = "/callback"
WAIT_SECONDS: Final = 300.0
"""How long the user has to answer in the browser."""

_PROTOCOL: Final = "2025-06-18"
_MAX_HEAD_BYTES: Final = 16 << 10
_MAX_CALLERS: Final = 8
_HEAD_SECONDS: Final = 10.0
_SDK_LOGGER: Final = "mcp.client.auth.oauth2"
_ERROR_CODE: Final = re.compile(r'"error"\s*:\s*"([a-z_]{1,60})"')
_STATUS: Final = re.compile(r"\((\d{3})\)|: (\d{3})\b")

_PAGE: Final = """<!doctype html><meta charset="utf-8"><title>fast-agent</title>
<body style="font: 16px system-ui; margin: 3em auto; max-width: 32em"><p>{text}</p></body>
"""


@frozen(kw_only=True)
class LoginOptions:
    """How a user is asked for an authorization.

    Args:
        show: Shows the address to open, before anything opens it.
        browse: Opens an address in the browser, or returns False; None opens none.
        scope: The scopes to ask for, separated by spaces; None leaves them to the server.
        place: Where secrets are kept; None chooses.
        seconds: How long to wait for the answer.
    """

    show: Callable[[str], Awaitable[None]]
    browse: Callable[[str], Awaitable[bool]] | None = None
    scope: str | None = None
    place: Place | None = None
    seconds: float = WAIT_SECONDS


async def log_in(
    spec: ServerSpec, authorizations: Authorizations, options: LoginOptions
) -> Authorization:
    """Ask the user to authorize this program at a server, and store the grant.

    Args:
        spec: The server; one with an address.
        authorizations: Where the tokens are kept.
        options: How the user is asked.

    Returns:
        The authorization.

    Raises:
        ToolError: The server or its authorization server cannot be used, or refused.
        TrustError: The server came with a project that may not connect there.
        ConfigError: The tokens cannot be kept.
    """
    from fast_agent.mcp.server import HttpTarget

    target = spec.target
    if not isinstance(target, HttpTarget):
        raise ToolError(
            f"server `{spec.name}` is started here, and authorizes itself",
            hint="only servers with a `url` are authorized",
        )
    spec.check_start()
    place = options.place or authorizations.default_place()
    addresses = _Addresses(spec, target, is_local=await _is_local(target.url))
    kept = _LoginStorage()
    async with _Callback(target.oauth.callback_port, spec.name, options.seconds) as callback:
        metadata = OAuthClientMetadata(
            redirect_uris=[AnyUrl(callback.address)],
            client_name="fast-agent",
            software_id="fast-agent",
            software_version=__version__,
            token_endpoint_auth_method="none",  # noqa: S106 (a client without a secret)
            scope=options.scope,
        )
        if target.oauth.client_id is not None:
            kept.client = OAuthClientInformationFull(
                client_id=target.oauth.client_id,
                client_secret=target.oauth.client_secret,
                redirect_uris=[AnyUrl(callback.address)],
                token_endpoint_auth_method=(
                    None if target.oauth.client_secret is None else "client_secret_post"
                ),
            )

        async def ask(address: str) -> None:
            addresses.check_asked(address, provider)
            if options.scope is not None:
                # The SDK asks for all scopes that the server lists.
                provider.context.client_metadata.scope = options.scope
                address = str(httpx2.URL(address).copy_set_param("scope", options.scope))
            callback.expect(address)
            await options.show(address)
            if options.browse is not None:
                await options.browse(address)

        provider = OAuthClientProvider(
            canonical(target.url),
            metadata,
            kept,
            redirect_handler=ask,
            callback_handler=callback.wait,
        )
        with _sdk_without_tracebacks():
            await _ask_server(spec, target, provider, addresses)
    if kept.tokens is None:
        raise ToolError(
            f"server `{spec.name}` did not ask for authorization",
            hint="it can be used without one",
        )
    granted = _granted(target, provider, kept.tokens, authorizations.now())
    granted = replace(granted, place=place)
    with authorizations.exclusive():
        authorizations.put(granted)
    return granted


async def _ask_server(
    spec: ServerSpec,
    target: HttpTarget,
    provider: OAuthClientProvider,
    addresses: _Addresses,
) -> None:
    """Send the server a request that it refuses without an authorization."""
    transport: httpx2.AsyncBaseTransport | None = None
    if spec.grant is not None or not addresses.is_local:
        transport = GuardedTransport(addresses.check)
    bounds = MessageBounds(spec.name)

    async def check(request: httpx2.Request) -> None:
        addresses.check(str(request.url))

    client = httpx2.AsyncClient(
        **client_options(),
        headers={"accept-encoding": ENCODINGS},
        auth=provider,
        timeout=httpx2.Timeout(30.0),
        transport=transport,
        trust_env=spec.grant is None,
        event_hooks={"request": [check], "response": [bounds.apply_to_response]},
    )
    try:
        async with client:
            await _first_request(client, target)
    except (OAuthFlowError, OAuthRegistrationError, OAuthTokenError) as problem:
        raise ToolError(
            f"server `{spec.name}`: no authorization: {_problem_text(problem)}",
            hint="the server or its authorization server is at fault; ask those who run it",
        ) from None
    except (ValidationError, ValueError) as problem:
        if isinstance(problem, ValidationError):
            reason = "its authorization server violates the protocol"
        else:
            reason = one_line(str(problem))
        raise ToolError(f"server `{spec.name}`: no authorization: {reason}") from None
    except httpx2.HTTPError as problem:
        reason = system_reason(problem) or one_line(str(problem)) or type(problem).__name__
        raise ToolError(
            f"server `{spec.name}`: no authorization{through_proxy(target.url)}: {reason}",
            hint=web_hint(reason, target.url, "check the address, and that the server runs"),
        ) from problem


async def _first_request(client: httpx2.AsyncClient, target: HttpTarget) -> None:
    headers = {**target.headers, "mcp-protocol-version": _PROTOCOL}
    if target.transport == "sse":
        headers["accept"] = "text/event-stream"
        async with client.stream("GET", target.url, headers=headers):
            return
    headers["accept"] = "application/json, text/event-stream"
    hello = {
        "jsonrpc": "2.0",
        "id": 1,
        "method": "initialize",
        "params": {
            "protocolVersion": _PROTOCOL,
            "capabilities": {},
            "clientInfo": {"name": "fast-agent", "version": __version__},
        },
    }
    async with client.stream("POST", target.url, headers=headers, json=hello) as response:
        session = response.headers.get("mcp-session-id")
    if session is not None and response.is_success:
        await client.delete(target.url, headers={**headers, "mcp-session-id": session})


class _LoginStorage:
    """What the SDK asks for and wants kept; a login starts from nothing."""

    def __init__(self) -> None:
        self.client: OAuthClientInformationFull | None = None
        self.tokens: OAuthToken | None = None

    async def get_tokens(self) -> OAuthToken | None:
        return None

    async def set_tokens(self, tokens: OAuthToken) -> None:
        self.tokens = tokens

    async def get_client_info(self) -> OAuthClientInformationFull | None:
        return self.client

    async def set_client_info(self, client_info: OAuthClientInformationFull) -> None:
        self.client = client_info


class _Addresses:
    """Which addresses a login connects to, and which a user is asked to open.

    What a server names may lead to no place that is less public than the server itself: a public
    server could have this program send requests to machines that only it can reach.
    """

    def __init__(self, spec: ServerSpec, target: HttpTarget, *, is_local: bool) -> None:
        self._name = spec.name
        self._url = target.url
        self._issuer = target.oauth.issuer
        self._grant = spec.grant
        self.is_local = is_local

    def check(self, url: str) -> None:
        """Check an address that is about to be connected to.

        Raises:
            ToolError: It is less public than the server, or not encrypted.
            TrustError: The server came with a project, and the address is not approved.
        """
        if self._grant is not None:
            try:
                self._grant.check_connect(url)
            except TrustError as problem:
                raise TrustError(
                    problem.message,
                    hint="name the authorization server as `oauth: {issuer: ADDRESS}` of the "
                    "server, and approve the project again",
                ) from None
        if not same_origin(url, self._url):
            self._check_named(url)

    def _check_named(self, url: str) -> None:
        parts = urlsplit(url)
        host = parts.hostname or ""
        if self.is_local:
            return
        if parts.scheme != "https":
            raise ToolError(
                f"server `{self._name}` asks for authorization by `{_shown(url)}`, "
                "which is not encrypted"
            )
        if place_of_host(host):
            raise ToolError(
                f"server `{self._name}` asks for authorization by `{_shown(url)}`, "
                "which is not public"
            )

    def check_asked(self, address: str, provider: OAuthClientProvider) -> None:
        """Check the address a user is about to be asked to open.

        Raises:
            ToolError: It is not the address of a web page, or the server does not do PKCE.
        """
        if not opens_safely(address):
            raise ToolError(
                f"server `{self._name}` asks for authorization at an address that is not one of "
                f"a web page: `{one_line(address, 100)}`"
            )
        if not same_origin(address, self._url):
            self._check_named(address)
        context = provider.context
        metadata = context.oauth_metadata
        issuer = context.auth_server_url or context.get_authorization_base_url(self._url)
        if self._issuer is not None and issuer.rstrip("/") != self._issuer.rstrip("/"):
            raise ToolError(
                f"server `{self._name}` names `{_shown(issuer)}` as its authorization server, "
                f"and its settings name `{_shown(self._issuer)}`"
            )
        if metadata is None and context.auth_server_url is not None:
            raise ToolError(
                f"the authorization server `{_shown(issuer)}` publishes no metadata "
                "that can be read"
            )
        methods = None if metadata is None else metadata.code_challenge_methods_supported
        if metadata is not None and "S256" not in (methods or ()):
            # The protocol has clients refuse: the code could be used by who saw it.
            raise ToolError(
                f"the authorization server `{_shown(str(metadata.issuer))}` "
                "does not say that it supports PKCE"
            )


class _Callback:
    """The loopback address the browser is sent back to; used as `async with`.

    Only the answer with the state of the request counts: any page the user has open could send
    requests here. Others get a 400 and change nothing.
    """

    def __init__(self, port: int | None, name: str, seconds: float) -> None:
        self._port = port or 0
        self._name = name
        self._seconds = seconds
        self._server: asyncio.Server | None = None
        self._state: str | None = None
        self._answered = anyio.Event()
        self._answer: dict[str, str] = {}
        self._callers = 0
        self.address = ""

    async def __aenter__(self) -> Self:
        try:
            self._server = await asyncio.start_server(
                self._serve, "127.0.0.1", self._port, limit=_MAX_HEAD_BYTES
            )
        except OSError as error:
            raise ConfigError(
                f"cannot listen on 127.0.0.1:{self._port} for the browser's answer",
                hint="choose another `oauth.callback_port`, or leave it out",
            ) from error
        port = self._server.sockets[0].getsockname()[1]
        self.address = f"http://127.0.0.1:{port}{CALLBACK_PATH}"
        return self

    async def __aexit__(self, *_: object) -> None:
        if self._server is not None:
            self._server.close()

    def expect(self, address: str) -> None:
        """Take the answer to a request: the one that has its state."""
        self._state = parse_qs(urlsplit(address).query).get("state", [""])[0]

    async def wait(self) -> AuthorizationCodeResult:
        """Wait for the browser.

        Raises:
            ToolError: It does not come in time, or the user or the server refused.
        """
        with anyio.move_on_after(self._seconds) as scope:
            await self._answered.wait()
        if scope.cancelled_caught:
            raise ToolError(
                f"server `{self._name}`: no authorization came within {self._seconds:g} s"
            )
        code = self._answer.get("code")
        if not code:
            error = one_line(self._answer.get("error", "no code"), 60)
            said = one_line(self._answer.get("error_description", ""), 200)
            raise ToolError(
                f"server `{self._name}`: the authorization was refused: {error}"
                + (f" ({said})" if said else "")
            )
        return AuthorizationCodeResult(
            code=code, state=self._answer.get("state"), iss=self._answer.get("iss")
        )

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._callers += 1
        try:
            if self._callers <= _MAX_CALLERS:
                async with asyncio.timeout(_HEAD_SECONDS):
                    head = await reader.readuntil(b"\r\n\r\n")
                    status, text = self._take(head)
                    page = _PAGE.format(text=text).encode()
                    writer.write(
                        f"HTTP/1.1 {status}\r\nContent-Type: text/html; charset=utf-8\r\n"
                        f"Content-Length: {len(page)}\r\nCache-Control: no-store\r\n"
                        "Referrer-Policy: no-referrer\r\nConnection: close\r\n\r\n".encode()
                        + page
                    )
                    await writer.drain()
        except (OSError, TimeoutError, asyncio.IncompleteReadError, asyncio.LimitOverrunError):
            pass
        finally:
            self._callers -= 1
            writer.close()

    def _take(self, head: bytes) -> tuple[str, str]:
        """Read a request, and return the status and text of the answer."""
        method, _, rest = head.partition(b"\r\n")[0].decode("latin-1").partition(" ")
        parts = urlsplit(rest.partition(" ")[0])
        if method != "GET" or parts.path != CALLBACK_PATH:
            return "404 Not Found", "There is nothing here."
        values = {name: found[0] for name, found in parse_qs(parts.query).items()}
        if not self._state or not hmac.compare_digest(
            values.get("state", "").encode(), self._state.encode()
        ):
            return "400 Bad Request", "This answer belongs to no request of fast-agent."
        if not self._answered.is_set():
            self._answer = values
            self._answered.set()
        if "code" in values:
            return "200 OK", "fast-agent is authorized. You can close this page."
        return "200 OK", "fast-agent was not authorized. You can close this page."


def _granted(
    target: HttpTarget, provider: OAuthClientProvider, tokens: OAuthToken, now: float
) -> Authorization:
    context = provider.context
    metadata, client = context.oauth_metadata, context.client_info
    if client is None:
        raise TypeError("a token was granted to no client")
    base = context.get_authorization_base_url(context.server_url)
    revocation = None if metadata is None else metadata.revocation_endpoint
    sends_resource = context.should_include_resource_param(context.protocol_version)
    return Authorization(
        server=canonical(target.url),
        issuer=base if metadata is None else str(metadata.issuer),
        token_endpoint=f"{base}/token" if metadata is None else str(metadata.token_endpoint),
        revocation_endpoint=None if revocation is None else str(revocation),
        resource=context.get_resource_url() if sends_resource else None,
        client_id=client.client_id,
        client_secret=client.client_secret,
        auth_method=client.token_endpoint_auth_method,
        access_token=tokens.access_token,
        refresh_token=tokens.refresh_token,
        scope=tokens.scope,
        expires_at=None if tokens.expires_in is None else now + tokens.expires_in,
        granted_at=now,
    )


async def open_browser(address: str, environ: Mapping[str, str]) -> bool:
    """Open an address in the browser of the user's desktop.

    Args:
        address: One that the user was shown.
        environ: The environment.

    Returns:
        False where there is no desktop: browsers in the terminal would take the terminal.
    """
    import sys
    import webbrowser

    desktop = ("DISPLAY", "WAYLAND_DISPLAY", "BROWSER")
    if sys.platform not in {"darwin", "win32"} and not any(map(environ.get, desktop)):
        return False
    return await anyio.to_thread.run_sync(webbrowser.open, address)


async def revoke(authorization: Authorization, spec_name: str) -> bool:
    """Revoke an authorization at the authorization server.

    Returns:
        Whether it did; False where it offers no such thing, or cannot be reached.
    """
    from fast_agent.mcp.oauth.bearer import revocation_request

    request = revocation_request(authorization)
    if request is None:
        return False
    bounds = MessageBounds(spec_name)
    try:
        async with httpx2.AsyncClient(
            **client_options(),
            timeout=httpx2.Timeout(10.0),
            event_hooks={"response": [bounds.apply_to_response]},
            headers={"accept-encoding": ENCODINGS},
        ) as client:
            response = await client.send(request)
    except httpx2.HTTPError:
        return False
    return response.is_success


def _shown(url: str) -> str:
    return one_line(shown_address(url), 200)


def _problem_text(problem: Exception) -> str:
    """Return what went wrong, without what a token endpoint answered: it may repeat the code."""
    text = str(problem)
    if not isinstance(problem, OAuthTokenError):
        return one_line(text)
    status, code = _STATUS.search(text), _ERROR_CODE.search(text)
    said = "the authorization server refused the token"
    if status is not None:
        said += f": HTTP {status[1] or status[2]}"
    return said + (f", {code[1]}" if code is not None else "")


async def _is_local(url: str) -> bool:
    """Return whether a server is on this machine or in a private network, by its address too."""
    parts = urlsplit(url)
    host = parts.hostname or ""
    if place_of_host(host):
        return True
    try:
        found = await anyio.getaddrinfo(host, parts.port or 443)
    except OSError:
        return False
    return any(place_of_host(str(one[4][0])) for one in found)


@contextmanager
def _sdk_without_tracebacks() -> Generator[None]:
    """Keep the SDK from logging failures with what was answered, which may hold a token."""

    def plain(record: logging.LogRecord) -> bool:
        record.exc_info, record.exc_text = None, None
        return True

    logger = logging.getLogger(_SDK_LOGGER)
    logger.addFilter(plain)
    try:
        yield
    finally:
        logger.removeFilter(plain)
