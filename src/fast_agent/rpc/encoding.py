"""JSON as every edge writes it: compact, UTF-8, names in the order given."""

from __future__ import annotations

from collections.abc import Mapping
from json import JSONEncoder
from types import MappingProxyType
from typing import TYPE_CHECKING, cast

if TYPE_CHECKING:
    from fast_agent.text.json_value import JsonObject, JsonValue

NOTHING: JsonObject = MappingProxyType({})
"""The empty JSON object shared by values that carry none."""


def _plain(value: object) -> object:
    if isinstance(value, Mapping):
        return dict(cast("Mapping[str, object]", value))
    raise TypeError(f"`{type(value).__name__}` is no JSON value")


_encode = JSONEncoder(
    ensure_ascii=False, check_circular=False, allow_nan=False, separators=(",", ":"), default=_plain
).encode


def encode(value: JsonValue) -> bytes:
    """Write a JSON value on one line.

    A lone surrogate, which UTF-8 cannot carry, becomes U+FFFD.
    """
    text = _encode(value)
    try:
        return text.encode()
    except UnicodeEncodeError:
        return text.encode(errors="surrogatepass").decode(errors="replace").encode()
