"""Which HTTP requests reach the application: by their `Host`, their `Origin` and their token.

A page of another site can make a browser send requests to a server that only its user reaches. The
browser names the origin of the page in `Origin`. A page may also have its own name that it
lets point to this machine (DNS rebinding); then the browser says that name in `Host`.
"""

from __future__ import annotations

import hmac
import ipaddress
import re
import socket
from typing import TYPE_CHECKING, Final, NamedTuple

from fast_agent.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    Headers = Sequence[tuple[bytes, bytes]]

HEALTH_PATH: Final = "/health"
"""Where the server says whether it takes calls."""

_HOST = re.compile(r"(\[[0-9a-f:.]+\]|[a-z0-9._-]+)(?::([0-9]{1,5}))?", re.IGNORECASE)
_ORIGIN = re.compile(
    r"[a-z][a-z0-9+.-]*://(\[[0-9a-f:.]+\]|[a-z0-9._-]+)(:[0-9]{1,5})?", re.IGNORECASE
)
_MAX_SHOWN = 100
_MAX_ACCEPTED = 64
_SINGLE = (
    b"host",
    b"origin",
    b"authorization",
    b"transfer-encoding",
    b"mcp-session-id",
    b"mcp-protocol-version",
)
"""Headers that have one value. Of two, each side of a proxy might believe another one."""
_METHODS = b"GET, POST, DELETE"
_EXPOSED = b"Mcp-Session-Id, MCP-Protocol-Version"
_PREFLIGHT_SECONDS = b"600"


class HttpSettings(NamedTuple):
    """How to listen.

    Args:
        host: The address.
        port: The port; 0 for any free one.
        token: What clients must send; None accepts all clients that reach the address.
        allow_hosts: Further names accepted in `Host`, in addition to the server's own, with a port
            or for any port.
        allow_origins: Origins of web pages that may call, such as `https://app.example.com`.
        trusted_proxies: Addresses or networks of the proxies in front of this server, whose
            `X-Forwarded-For` says which client a request is from.
    """

    host: str = "127.0.0.1"
    port: int = 8000
    token: str | None = None
    allow_hosts: tuple[str, ...] = ()
    allow_origins: tuple[str, ...] = ()
    trusted_proxies: tuple[str, ...] = ()

    @property
    def loopback(self) -> bool:
        """Whether only this machine reaches the address."""
        if self.host == "localhost":
            return True
        try:
            return ipaddress.ip_address(self.host).is_loopback
        except ValueError:
            return False

    def check(self) -> None:
        """Check the names that are accepted, before anything listens.

        Raises:
            ConfigError: One of them is not a host name, not an origin, or not an address.
        """
        _check(
            "--allow-host",
            self.allow_hosts,
            lambda one: None if _HOST.fullmatch(one) else "a host name",
            "pass the name that clients use, such as `agents.example.com`",
        )
        _check(
            "--allow-origin",
            self.allow_origins,
            lambda one: None if _ORIGIN.fullmatch(one) else "an origin",
            "pass scheme and host of the page, such as `https://app.example.com`",
        )
        _check(
            "--trusted-proxy",
            self.trusted_proxies,
            _no_network,
            "pass an address or a network, such as `127.0.0.1` or `10.0.0.0/8`",
        )


class Refusal(NamedTuple):
    """An answer that needs no application.

    Args:
        status: The HTTP status.
        error: What is wrong, and what to do; None for an answer without a body.
        headers: More headers.
        closes: Whether the connection ends, because the rest of the request cannot be read.
    """

    status: int
    error: str | None
    headers: Headers = ()
    closes: bool = False


class AccessCheck(NamedTuple):
    """What a policy says of a request.

    Args:
        refusal: The answer where the request must not reach the application, else None.
        headers: Headers of every answer.
    """

    refusal: Refusal | None
    headers: Headers = ()


class AccessPolicy:
    """Checks the heads of requests.

    Args:
        settings: Where the server listens, and whom it lets in.
        port: The port it listens on.
    """

    def __init__(self, settings: HttpSettings, port: int) -> None:
        self._token = None if settings.token is None else b"bearer " + settings.token.encode()
        self._loopback = settings.loopback
        self._port = str(port)
        self._own_host = f"localhost:{port}".encode()
        self._names = {"localhost", _bare(settings.host), *_machine_names()}
        if self._loopback:
            self._names = {"localhost", "127.0.0.1", "[::1]", _bare(settings.host)}
        self._accepted: set[bytes] = set()
        """Values of `Host` that were accepted, so that they are not taken apart again."""
        self._hosts = {one.lower() for one in settings.allow_hosts}
        self._origins = {one.lower() for one in settings.allow_origins}

    def check(
        self, method: str, given: Mapping[bytes, bytes], headers: Headers, path: str = ""
    ) -> AccessCheck:
        """Check a request by its head.

        Args:
            method: The HTTP method.
            given: The headers by their names, in lower case.
            headers: The headers as they came.
            path: What is requested. `HEALTH_PATH` takes no token, and HTTP/1.0 without a `Host`:
                load balancers may send neither.
        """
        if len(given) < len(headers) and (twice := _repeated_header(headers)):
            return AccessCheck(Refusal(400, f"the request has more than one `{twice}` header"))
        host = given.get(b"host", self._own_host if path == HEALTH_PATH else None)
        refusal = self._check_host(host)
        if host is None or refusal is not None:
            return AccessCheck(refusal)
        origin = given.get(b"origin")
        if origin is None and self._token is None:
            return _ACCEPTED
        shared: Headers = ()
        if origin is not None:
            if origin.decode("latin-1").lower() in self._origins:
                shared = _sharing(origin)
            elif not self._is_own_origin(origin, host):
                return AccessCheck(_unknown_origin(origin))
            if shared and method == "OPTIONS" and b"access-control-request-method" in given:
                return AccessCheck(_preflight(given), shared)
        has_right = self._token is None or self._has_valid_token(given.get(b"authorization"))
        if not has_right and path != HEALTH_PATH:
            return AccessCheck(_NO_TOKEN, shared)
        return AccessCheck(None, shared)

    def _check_host(self, given: bytes | None) -> Refusal | None:
        if given is None:
            return Refusal(400, "the request has no `Host` header")
        if given in self._accepted:
            return None
        host = given.decode("latin-1").lower()
        found = _HOST.fullmatch(host)
        if found is None:
            return Refusal(400, "the `Host` header is not a host name")
        name = found[1].removesuffix(".")
        if name in self._hosts or host in self._hosts or self._is_own(name, found[2] or "80"):
            if len(self._accepted) < _MAX_ACCEPTED:
                self._accepted.add(given)
            return None
        return Refusal(
            421,
            f"unknown `Host` `{_shown(host)}`;"
            f" to accept it, serve with `--allow-host {_shown(name)}`",
        )

    def _is_own(self, name: str, port: str) -> bool:
        """Whether this is how the server itself is reached.

        Where other machines connect, the port may be another one that is forwarded to this.
        """
        if self._loopback:
            return name in self._names and port == self._port
        return name in self._names or _is_address(name)

    def _is_own_origin(self, origin: bytes, host: bytes) -> bool:
        """Whether a page comes from this server, as far as it could serve one."""
        scheme, separator, name = origin.decode("latin-1").lower().partition("://")
        if not separator or scheme not in {"http", "https"}:
            return False
        if self._loopback and scheme == "http":
            found = _HOST.fullmatch(name)
            return found is not None and self._is_own(found[1], found[2] or "80")
        return name == host.decode("latin-1").lower()

    def _has_valid_token(self, given: bytes | None) -> bool:
        if given is None or self._token is None:
            return False
        kind, space, token = given.partition(b" ")
        return hmac.compare_digest(kind.lower() + space + token.strip(), self._token)


_ACCEPTED = AccessCheck(None)
_NO_TOKEN = Refusal(401, "a bearer token is needed", [(b"www-authenticate", b"Bearer")])


def _check(
    option: str, given: Iterable[str], missed: Callable[[str], str | None], hint: str
) -> None:
    """Check the values of an option; `missed` returns what a value is not, or None."""
    for one in given:
        if (kind := missed(one)) is not None:
            raise ConfigError(f"`{option} {one}` is not {kind}", hint=hint)


def _no_network(text: str) -> str | None:
    try:
        ipaddress.ip_network(text)
    except ValueError as error:
        return f"an address: {error}"
    return None


def _repeated_header(headers: Headers) -> str | None:
    """Return a header that may be given once only, and was given more often."""
    names = [name for name, _ in headers]
    return next((one.decode() for one in _SINGLE if names.count(one) > 1), None)


def _preflight(given: Mapping[bytes, bytes]) -> Refusal:
    """Answer what a browser asks before it sends the request of a page."""
    asked = given.get(b"access-control-request-headers", b"")
    return Refusal(
        204,
        None,
        [
            (b"access-control-allow-methods", _METHODS),
            (b"access-control-allow-headers", asked),
            (b"access-control-max-age", _PREFLIGHT_SECONDS),
        ],
    )


def _sharing(origin: bytes) -> Headers:
    """Return the headers by which a browser lets a page read the answer."""
    return [
        (b"access-control-allow-origin", origin),
        (b"access-control-expose-headers", _EXPOSED),
        (b"vary", b"Origin"),
    ]


def _unknown_origin(origin: bytes) -> Refusal:
    given = _shown(origin.decode("latin-1"))
    remedy = f"; to accept it, serve with `--allow-origin {given}`" if "://" in given else ""
    return Refusal(403, f"unknown `Origin` `{given}`{remedy}")


def _shown(text: str) -> str:
    printable = "".join(one if one.isascii() and one.isprintable() else "?" for one in text)
    return printable[:_MAX_SHOWN]


def _bare(host: str) -> str:
    return f"[{host}]" if ":" in host else host.lower()


def _machine_names() -> set[str]:
    name = socket.gethostname().lower()
    return {name, name.partition(".")[0]} - {""}


def _is_address(name: str) -> bool:
    try:
        ipaddress.ip_address(name.removeprefix("[").removesuffix("]"))
    except ValueError:
        return False
    return True
