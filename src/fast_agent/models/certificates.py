"""What checks the certificates of servers, read once for all clients of HTTP."""

from __future__ import annotations

import os
from functools import lru_cache
from typing import TYPE_CHECKING, Final

from fast_agent.errors import ConfigError, os_reason

if TYPE_CHECKING:
    from ssl import SSLContext

_STORES: Final = ("SSL_CERT_FILE", "SSL_CERT_DIR")


def certificates() -> SSLContext:
    """Return what checks certificates: the trust store of the system, or that of the environment.

    Reading a store takes 20 ms of processor time, and a client of its own would read it again.

    Raises:
        ConfigError: The store of the environment cannot be read.
    """
    try:
        return _read(*map(os.environ.get, _STORES))
    except OSError as error:
        raise ConfigError(
            f"the certificates of `{_STORES[0]}` cannot be read: {os_reason(error)}",
            hint="set it to a file of certificates, or unset it",
        ) from error


@lru_cache(maxsize=4)
def _read(*stores: str | None) -> SSLContext:
    del stores  # they are read from the environment
    from httpx2 import create_ssl_context

    return create_ssl_context()
