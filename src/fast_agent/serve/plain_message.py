"""The body of a plain request: one JSON-RPC message that every parser takes alike."""

from __future__ import annotations

from json import JSONDecoder
from typing import TYPE_CHECKING, NamedTuple, NoReturn, cast

from fast_agent.rpc.encoding import NOTHING

if TYPE_CHECKING:
    from fast_agent.text.json_value import JsonObject

LARGEST = 1 << 16
"""Most bytes of a plain body."""

_DEEPEST = 64
_MEMBERS = frozenset({"jsonrpc", "id", "method", "params"})


class PlainMessage(NamedTuple):
    """A request.

    Args:
        id: Its id.
        method: What it asks for.
        params: With what; empty where it has none.
    """

    id: int | str
    method: str
    params: JsonObject


class PlainNotification(NamedTuple):
    """A notification.

    Args:
        method: What it tells.
        params: More of that; empty where there is none.
    """

    method: str
    params: JsonObject


def _no_constant(text: str) -> NoReturn:
    raise ValueError(f"`{text}` is no JSON")


_decode = JSONDecoder(parse_constant=_no_constant).decode


def plain_message(body: bytes) -> PlainMessage | None:
    """Read a body.

    Returns:
        The request; None for what is no request, and for what parsers disagree about: deep
        nesting, halves of surrogate pairs, constants that are no JSON, members nobody knows.
    """
    message = _read(body)
    if message is None:
        return None
    request_id = message.get("id")
    if isinstance(request_id, bool) or not isinstance(request_id, (int, str)):
        return None
    return PlainMessage(request_id, cast("str", message["method"]), _params_of(message))


def plain_notification(body: bytes) -> PlainNotification | None:
    """Read a body that may be a notification; the rest is as for `plain_message`."""
    message = _read(body)
    if message is None or "id" in message:
        return None
    return PlainNotification(cast("str", message["method"]), _params_of(message))


def _read(body: bytes) -> JsonObject | None:
    """Read what has a method."""
    if (
        len(body) > LARGEST
        or body.count(b"{") + body.count(b"[") > _DEEPEST
        or b"\\ud" in body
        or b"\\uD" in body
    ):
        return None
    try:
        message: object = _decode(body.decode())
    except (ValueError, RecursionError):
        return None
    if not isinstance(message, dict):
        return None
    found = cast("JsonObject", message)
    params = found.get("params", NOTHING)
    if (
        not found.keys() <= _MEMBERS
        or found.get("jsonrpc") != "2.0"
        or not isinstance(found.get("method"), str)
        or (params is not NOTHING and not isinstance(params, dict))
    ):
        return None
    return found


def _params_of(message: JsonObject) -> JsonObject:
    return cast("JsonObject", message.get("params", NOTHING))
