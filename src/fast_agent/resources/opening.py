"""How a client opens, and which protocol its requests then speak.

The first request decides: one that carries the newest protocol's envelope in `_meta` opens a
session without a handshake, anything else opens one that needs `initialize`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, cast

from fast_agent.resources.era import HANDSHAKE_VERSIONS, MODERN_VERSIONS
from fast_agent.resources.problem import UNSUPPORTED_VERSION, RequestRefused, bad_params, shown
from fast_agent.rpc.message import INVALID_REQUEST, METHOD_NOT_FOUND

if TYPE_CHECKING:
    from fast_agent.resources.session import Session
    from fast_agent.text.json_value import JsonObject

VERSION = "io.modelcontextprotocol/protocolVersion"
CLIENT = "io.modelcontextprotocol/clientInfo"
CAPABILITIES = "io.modelcontextprotocol/clientCapabilities"

HANDSHAKE_ONLY = frozenset(
    {"initialize", "ping", "logging/setLevel", "resources/subscribe", "resources/unsubscribe"}
)
MODERN_ONLY = frozenset({"server/discover", "subscriptions/listen"})


def envelope(params: JsonObject) -> JsonObject | None:
    """The newest protocol's envelope: `_meta`, where it names a protocol version."""
    meta = params.get("_meta")
    if isinstance(meta, Mapping) and VERSION in meta:
        return meta
    return None


def admit(session: Session, method: str, params: JsonObject) -> None:
    """Settle the session's protocol with a request, before it is answered.

    Args:
        session: The client's; its `opened` and `protocol` are set here.
        method: The request's.
        params: The request's.

    Raises:
        RequestRefused: The request belongs to the other era, its envelope is incomplete, or its
            version is none that is spoken here.
    """
    found = envelope(params) if method != "initialize" else None
    if session.opened is None:
        session.opened = "handshake" if found is None else "modern"
    if session.opened == "handshake":
        if found is not None:
            raise RequestRefused(
                INVALID_REQUEST,
                "this connection was opened by a handshake; requests with the envelope of"
                f" {MODERN_VERSIONS[-1]} need a separate connection",
            )
        if method in MODERN_ONLY:
            raise unknown_method(method)
        if method == "initialize" and session.protocol is not None:
            raise RequestRefused(INVALID_REQUEST, "the session is initialized already")
        return
    if method == "initialize":
        asked = params.get("protocolVersion")
        raise unsupported(asked if isinstance(asked, str) else None)
    _check_envelope(found, params)
    session.protocol = cast("str", cast("JsonObject", found)[VERSION])
    if method in HANDSHAKE_ONLY:
        raise unknown_method(method)


def _check_envelope(found: JsonObject | None, params: JsonObject) -> None:
    meta = found if found is not None else params.get("_meta")
    keys: JsonObject = meta if isinstance(meta, Mapping) else {}
    if missing := [key for key in (VERSION, CAPABILITIES) if key not in keys]:
        raise bad_params(f"`params._meta` lacks {' and '.join(f'`{key}`' for key in missing)}")
    version = keys[VERSION]
    if not isinstance(version, str):
        raise bad_params(f"`{VERSION}` is not a string")
    if version not in MODERN_VERSIONS:
        raise unsupported(version)


def negotiate(params: JsonObject) -> str:
    """Pick the version that answers `initialize`: the client's where it is spoken here.

    Raises:
        RequestRefused: The parameters are not those of `initialize`.
    """
    version = params.get("protocolVersion")
    if not isinstance(version, str):
        raise bad_params("`protocolVersion` is missing or no string")
    for key in ("capabilities", "clientInfo"):
        if not isinstance(params.get(key), Mapping):
            raise bad_params(f"`{key}` is missing or no object")
    capabilities = cast("JsonObject", params["capabilities"])
    for key, value in capabilities.items():
        if value is not None and not isinstance(value, Mapping):
            raise bad_params(f"`capabilities.{shown(key)}` is not an object")
    client = cast("JsonObject", params["clientInfo"])
    for key in ("name", "version"):
        if not isinstance(client.get(key), str):
            raise bad_params(f"`clientInfo.{key}` is missing or no string")
    return version if version in HANDSHAKE_VERSIONS else HANDSHAKE_VERSIONS[-1]


def unknown_method(method: str) -> RequestRefused:
    """Refuse a method that is not served."""
    return RequestRefused(METHOD_NOT_FOUND, f"there is no method `{shown(method)}`")


def unsupported(requested: str | None) -> RequestRefused:
    """Refuse a protocol version, naming those that are spoken."""
    data = {"supported": list(MODERN_VERSIONS)}
    if requested is None:
        return RequestRefused(UNSUPPORTED_VERSION, "unsupported protocol version", data)
    return RequestRefused(
        UNSUPPORTED_VERSION, "unsupported protocol version", {**data, "requested": requested}
    )
