"""The body of a plain request: one JSON-RPC request that every parser takes alike."""

from __future__ import annotations

from json import JSONDecoder
from typing import TYPE_CHECKING, NamedTuple, NoReturn, cast

from fast_agent.resources.encoding import NOTHING

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


def _no_constant(text: str) -> NoReturn:
    raise ValueError(f"`{text}` is no JSON")


_decode = JSONDecoder(parse_constant=_no_constant).decode


def plain_message(body: bytes) -> PlainMessage | None:
    """Read a body.

    Returns:
        The request; None for what is no request, and for what parsers disagree about: deep
        nesting, halves of surrogate pairs, constants that are no JSON, members nobody knows.
    """
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
    request = cast("JsonObject", message)
    request_id, method = request.get("id"), request.get("method")
    params = request.get("params", NOTHING)
    if (
        not request.keys() <= _MEMBERS
        or request.get("jsonrpc") != "2.0"
        or isinstance(request_id, bool)
        or not isinstance(request_id, (int, str))
        or not isinstance(method, str)
        or (params is not NOTHING and not isinstance(params, dict))
    ):
        return None
    return PlainMessage(request_id, method, cast("JsonObject", params))
