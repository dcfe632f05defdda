"""Why the web is not reached: the system's reason, the certificate, or the proxy."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit

from fast_agent.errors import os_reason

if TYPE_CHECKING:
    from collections.abc import Iterator

PROXY_HINT: Final = "check the proxy in `HTTPS_PROXY`, `HTTP_PROXY` or `ALL_PROXY`, and `NO_PROXY`"
THIS_MACHINE: Final = ("localhost", "127.0.0.1", "::1")
_CERTIFICATE_HINT: Final = "set `SSL_CERT_FILE` to the file that certifies the server"


def proxy_of(url: str) -> str | None:
    """Return the address of the proxy for a URL; None if it is connected to directly.

    This machine is, whatever the variables say: no proxy leads back to it.
    """
    from urllib.request import getproxies, proxy_bypass

    try:
        parts = urlsplit(url)
    except ValueError:  # brackets that are not closed
        return None
    proxies = getproxies()
    proxy = proxies.get(parts.scheme) or proxies.get("all")
    if not proxy or parts.hostname in THIS_MACHINE or proxy_bypass(parts.netloc.rpartition("@")[2]):
        return None
    return proxy if "://" in proxy else f"http://{proxy}"


def through_proxy(url: str) -> str:
    """Return ` through the proxy …`, without its password; empty if there is none for a URL."""
    proxy = proxy_of(url)
    if proxy is None:
        return ""
    scheme, _, rest = proxy.partition("://")
    return f" through the proxy `{scheme}://{rest.rpartition('@')[2]}`"


def system_reason(error: BaseException) -> str | None:
    """Return why the system made no connection; None if an error has no such cause."""
    found = [one for one in (error, *causes(error)) if isinstance(one, OSError)]
    return os_reason(found[-1]) if found else None


def causes(error: BaseException) -> Iterator[BaseException]:
    """Yield what an error was raised from, the nearest first."""
    cause = error.__cause__ or error.__context__
    while cause is not None:
        yield cause
        cause = cause.__cause__ or cause.__context__


def web_hint(reason: str, url: str, otherwise: str) -> str:
    """Return what to do about a connection that was not made.

    Args:
        reason: Why, as messages say it.
        url: What was asked for.
        otherwise: What to do if neither a certificate nor a proxy is in the way.
    """
    if "certificate" in reason:
        return _CERTIFICATE_HINT
    return PROXY_HINT if proxy_of(url) else otherwise
