"""Web proxies, as the environment or the system names them."""

from __future__ import annotations

from typing import Final
from urllib.parse import urlsplit

PROXY_HINT: Final = "check the proxy in `HTTPS_PROXY`, `HTTP_PROXY` or `ALL_PROXY`, and `NO_PROXY`"


def proxy_of(url: str) -> str | None:
    """Return the address of the proxy for a URL; None if it is connected to directly."""
    from urllib.request import getproxies, proxy_bypass

    parts, proxies = urlsplit(url), getproxies()
    proxy = proxies.get(parts.scheme) or proxies.get("all")
    if not proxy or proxy_bypass(parts.netloc.rpartition("@")[2]):
        return None
    return proxy if "://" in proxy else f"http://{proxy}"


def through_proxy(url: str) -> str:
    """Return ` through the proxy …`, without its password; empty if there is none for a URL."""
    proxy = proxy_of(url)
    if proxy is None:
        return ""
    scheme, _, rest = proxy.partition("://")
    return f" through the proxy `{scheme}://{rest.rpartition('@')[2]}`"
