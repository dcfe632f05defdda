"""What checks the certificates of servers, read once for all clients of HTTP."""

from __future__ import annotations

import os
from functools import lru_cache
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from ssl import SSLContext

_STORES: Final = ("SSL_CERT_FILE", "SSL_CERT_DIR")


def certificates() -> SSLContext:
    """Return what checks certificates: the trust store of the system, or that of the environment.

    Reading a store takes 20 ms of processor time, and a client of its own would read it again.
    """
    return _read(*map(os.environ.get, _STORES))


@lru_cache(maxsize=4)
def _read(*stores: str | None) -> SSLContext:
    del stores  # they are read from the environment
    from httpx2 import create_ssl_context

    return create_ssl_context()
