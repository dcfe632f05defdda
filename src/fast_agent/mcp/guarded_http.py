"""HTTP for addresses that no user named: each request is asked about again, redirects included.

The name is resolved here, and the connection goes to the address that was judged: a second lookup
could be answered with another one. Behind a proxy the proxy resolves it, and connects.
"""

from __future__ import annotations

import ipaddress
import socket
from typing import TYPE_CHECKING, Final

import anyio
import httpx2

from fast_agent.errors import TrustError
from fast_agent.models.http_client import certificates
from fast_agent.text.web_failure import proxy_of
from fast_agent.trust.address import place_of_host

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    Judge = Callable[[str], None]

_LOCAL_NAMES: Final = (".local", ".localhost", ".internal", ".lan", ".home.arpa", ".test")


class GuardedTransport(httpx2.AsyncBaseTransport):
    """A transport that asks before each request, and judges the address it resolved to.

    It carries no cookies and reads no `.netrc`. Proxies and certificates are those of the
    environment, which no project can set.

    Args:
        check: Raises `TrustError` for a URL that was not approved.
    """

    def __init__(self, check: Judge) -> None:
        self._check = check
        self._inner: dict[str | None, httpx2.AsyncHTTPTransport] = {}

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        """Send a request to the address that was judged, or to the proxy."""
        self._check(str(request.url))
        request.headers.pop("cookie", None)
        host, port = request.url.host, request.url.port or _port_of(request.url)
        proxy = proxy_of(str(request.url))
        try:
            found = await anyio.getaddrinfo(host, port, type=socket.SOCK_STREAM)
        except OSError as error:
            if proxy is None:
                raise httpx2.ConnectError(f"`{host}` cannot be resolved") from error
            # Where only the proxy reaches the network, only the proxy knows its names.
        else:
            address = judged(host, [str(one[4][0]) for one in found])
            if proxy is None:
                _send_to_address(request, address)
        if proxy not in self._inner:
            self._inner[proxy] = httpx2.AsyncHTTPTransport(verify=certificates(), proxy=proxy)
        return await self._inner[proxy].handle_async_request(request)

    async def aclose(self) -> None:
        """Close the connections."""
        for inner in self._inner.values():
            await inner.aclose()


def judged(host: str, addresses: Iterable[str]) -> str:
    """Return the address to connect to.

    Args:
        host: The name or address in the URL.
        addresses: What it resolved to.

    Raises:
        TrustError: A public name leads to this machine, or to a private or link-local address.
    """
    addresses = [one.partition("%")[0] for one in addresses]
    if not addresses:
        raise TrustError(f"no connection to `{host}`: it has no address")
    if _is_public(host):
        for one in addresses:
            if place_of_host(one):
                raise TrustError(
                    f"no connection to `{host}`: the name resolves to `{one}`, which is not public",
                    hint="name the address itself, so that an approval says where it goes",
                )
    elif not _is_literal(host) and host.endswith("localhost"):
        for one in addresses:
            if not ipaddress.ip_address(one).is_loopback:
                raise TrustError(f"no connection to `{host}`: it is not this machine")
    return addresses[0]


def _send_to_address(request: httpx2.Request, address: str) -> None:
    """Send a request to an address, while TLS and the server still see the name."""
    host = request.url.host
    if host == address:
        return
    request.extensions = {**request.extensions, "sni_hostname": host}
    request.url = request.url.copy_with(host=address)


def _port_of(url: httpx2.URL) -> int:
    return 443 if url.scheme == "https" else 80


def _is_public(host: str) -> bool:
    """Return whether a name is one that anybody could have registered."""
    if _is_literal(host):
        return False
    name = host.lower().rstrip(".")
    return "." in name and not f".{name}".endswith(_LOCAL_NAMES)


def _is_literal(host: str) -> bool:
    try:
        ipaddress.ip_address(host.strip("[]"))
    except ValueError:
        return False
    return True
