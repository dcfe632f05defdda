"""Requests with a token: the authorization of a server, renewed when it expires or is refused."""

from __future__ import annotations

import re
from base64 import b64encode
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Final, cast
from urllib.parse import quote

import anyio
import anyio.to_thread
import httpx2
from mcp.shared.auth import OAuthToken
from pydantic import ValidationError

from fast_agent.errors import ConfigError, ToolError
from fast_agent.mcp.content import one_line
from fast_agent.mcp.oauth.authorization import EXPIRY_MARGIN_SECONDS, same_origin

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from fast_agent.mcp.oauth.authorization import Authorization, Authorizations

_PARAMETER: Final = r'(?:^|[\s,]){name}\s*=\s*(?:"([^"]*)"|([^\s,]+))'
_SCOPE_LIMIT: Final = 400


class BearerAuth(httpx2.Auth):
    """Sends the token of a server with each request to it, and to no other host.

    A token that expired or was refused is renewed once; of several processes that find so at the
    same time, one renews it and the others use what it got. No user is asked here:
    `fast-agent auth login` authorizes.

    Args:
        name: The server, for messages.
        url: Its address.
        authorizations: What was granted.
        login: The command that authorizes, for hints.
    """

    def __init__(self, name: str, url: str, authorizations: Authorizations, login: str) -> None:
        self._name = name
        self._url = url
        self._authorizations = authorizations
        self._login = login
        self._renewing = anyio.Lock()
        self.problem: ToolError | None = None
        """Why the server refuses requests; None while it takes them."""

    def redact(self, text: str) -> str:
        """Return text with a mark instead of each token, for servers that repeat theirs."""
        from fast_agent.text.redaction import MARK

        for secret in self._authorizations.secrets:
            if secret in text:
                text = text.replace(secret, MARK)
        return text

    async def async_auth_flow(
        self, request: httpx2.Request
    ) -> AsyncGenerator[httpx2.Request, httpx2.Response]:
        """Send a request, and again with a renewed token where it is refused."""
        if "authorization" in request.headers or not same_origin(str(request.url), self._url):
            yield request
            return
        refused, has_renewed = "", False
        while True:
            held = self._held()
            if held is not None and not has_renewed and self._needs_renewal(held, refused):
                has_renewed = True
                async with self._exclusive():
                    # Another request, or another process, may have renewed it in between.
                    current = self._held()
                    if current is not None and current.access_token == held.access_token:
                        answer = yield renewal_request(current)
                        await answer.aread()
                        self._take(current, answer)
                held = self._held()
            if held is not None:
                request.headers["authorization"] = f"Bearer {held.access_token}"
            response = yield request
            if response.status_code != 401 or held is None or refused:
                break
            refused = held.access_token
            now = self._held()
            is_other = now is not None and now.access_token != refused
            if not is_other and (has_renewed or held.refresh_token is None):
                break
        self._note(response, held)

    def _held(self) -> Authorization | None:
        try:
            return self._authorizations.get(self._url)
        except ConfigError as problem:
            self.problem = ToolError(f"server `{self._name}`: {problem.message}", hint=problem.hint)
            return None

    def _needs_renewal(self, held: Authorization, refused: str) -> bool:
        if held.refresh_token is None:
            return False
        expires = held.expires_at
        has_expired = expires is not None and (
            expires - EXPIRY_MARGIN_SECONDS <= self._authorizations.now()
        )
        return has_expired or held.access_token == refused

    @asynccontextmanager
    async def _exclusive(self) -> AsyncGenerator[None]:
        """Renew tokens in one request of one process at a time."""
        async with self._renewing:
            lock = self._authorizations.exclusive()
            await anyio.to_thread.run_sync(lock.__enter__)
            try:
                yield
            finally:
                lock.__exit__(None, None, None)

    def _take(self, held: Authorization, response: httpx2.Response) -> None:
        """Keep the tokens of an answer; what was revoked is forgotten."""
        if response.status_code == 200:
            try:
                token = OAuthToken.model_validate_json(response.content)
            except ValidationError:
                self._refuse("the authorization server sent no token")
                return
            self._authorizations.put(renewed(held, token, self._authorizations.now()))
            return
        if response.status_code in (400, 401) and oauth_error(response) == "invalid_grant":
            self._authorizations.remove(self._url)
            self._refuse("the authorization expired or was revoked")
        else:
            self._refuse(f"the authorization cannot be renewed: HTTP {response.status_code}")

    def _refuse(self, reason: str) -> None:
        self.problem = ToolError(
            f"server `{self._name}`: {reason}", hint=f"`{self._login}` authorizes again"
        )

    def _note(self, response: httpx2.Response, held: Authorization | None) -> None:
        """Keep why a request was refused, for the error of the request."""
        challenge = response.headers.get("www-authenticate", "")
        if response.status_code == 401:
            bearer = challenge.lower().startswith("bearer")
            if self.problem is None and (bearer or held is not None):
                self.problem = ToolError(
                    f"server `{self._name}` requires authorization"
                    if held is None
                    else f"server `{self._name}` refuses the authorization",
                    hint=f"`{self._login}` authorizes this program in your browser; "
                    "or give the server's credentials in its `headers`",
                )
        elif response.status_code == 403 and _parameter(challenge, "error") == "insufficient_scope":
            scope = one_line(_parameter(challenge, "scope") or "", _SCOPE_LIMIT)
            login = f"{self._login} --scope {_quoted(scope)}" if scope else self._login
            self.problem = ToolError(
                f"server `{self._name}` requires more authorization than was granted",
                hint=f"`{login}` asks for it",
            )
        else:
            self.problem = None


def renewal_request(held: Authorization) -> httpx2.Request:
    """Return the request for a new token: RFC 6749, section 6."""
    data = {"grant_type": "refresh_token", "refresh_token": held.refresh_token or ""}
    if held.resource is not None:
        data["resource"] = held.resource
    return _token_request(held.token_endpoint, held, data)


def revocation_request(held: Authorization) -> httpx2.Request | None:
    """Return the request that revokes an authorization, RFC 7009; None where that cannot be."""
    if held.revocation_endpoint is None:
        return None
    # Revoking a refresh token ends the access tokens of its grant too.
    if held.refresh_token:
        data = {"token": held.refresh_token, "token_type_hint": "refresh_token"}
    else:
        data = {"token": held.access_token, "token_type_hint": "access_token"}
    return _token_request(held.revocation_endpoint, held, data)


def renewed(held: Authorization, token: OAuthToken, now: float) -> Authorization:
    """Return an authorization with the tokens of an answer; what the answer leaves out stays."""
    return replace(
        held,
        access_token=token.access_token,
        refresh_token=token.refresh_token or held.refresh_token,
        scope=token.scope or held.scope,
        expires_at=None if token.expires_in is None else now + token.expires_in,
    )


def oauth_error(response: httpx2.Response) -> str:
    """Return the code of an error answer, such as `invalid_grant`; empty where it has none."""
    try:
        body = cast("object", response.json())
    except ValueError:
        return ""
    code = cast("dict[str, object]", body).get("error") if isinstance(body, dict) else None
    return code if isinstance(code, str) and re.fullmatch(r"[a-z_]{1,60}", code) else ""


def _token_request(endpoint: str, held: Authorization, data: dict[str, str]) -> httpx2.Request:
    data = {**data, "client_id": held.client_id}
    headers = {"accept": "application/json"}
    if held.client_secret is not None:
        if held.auth_method == "client_secret_basic":
            pair = f"{quote(held.client_id, safe='')}:{quote(held.client_secret, safe='')}"
            headers["authorization"] = f"Basic {b64encode(pair.encode()).decode()}"
        else:
            data["client_secret"] = held.client_secret
    return httpx2.Request("POST", endpoint, data=data, headers=headers)


def _parameter(challenge: str, name: str) -> str | None:
    found = re.search(_PARAMETER.format(name=name), challenge)
    return None if found is None else found[1] or found[2]


def _quoted(text: str) -> str:
    import shlex

    return shlex.quote(text)
