"""What all clients of HTTP are made with: certificates, and no proxy for this machine."""

from __future__ import annotations

import os
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final

from fast_agent.errors import ConfigError, os_reason
from fast_agent.text.web_failure import THIS_MACHINE

if TYPE_CHECKING:
    from ssl import SSLContext

_STORES: Final = ("SSL_CERT_FILE", "SSL_CERT_DIR")


def client_options() -> dict[str, Any]:
    """Return the arguments of a client of `httpx2`, or of `httpx`, which takes the same.

    Raises:
        ConfigError: The store of certificates of the environment cannot be read.
    """
    # A model or a server on this machine is reached directly, though few set `NO_PROXY` for it.
    hosts = (f"[{host}]" if ":" in host else host for host in THIS_MACHINE)
    return {"verify": certificates(), "mounts": dict.fromkeys(f"all://{host}" for host in hosts)}


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
