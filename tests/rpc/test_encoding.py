"""JSON as every edge writes it."""

from __future__ import annotations

from types import MappingProxyType
from typing import Any

import pytest

from fast_agent.rpc.message import NOTHING, encode


@pytest.mark.parametrize(
    ("value", "written"),
    [
        ({"b": 1, "a": [True, None, 1.5]}, b'{"b":1,"a":[true,null,1.5]}'),
        ("größe 😀", '"größe 😀"'.encode()),
        ("a\nb\u2028c", '"a\\nb\u2028c"'.encode()),
        (NOTHING, b"{}"),
        ({"a": MappingProxyType({"b": NOTHING})}, b'{"a":{"b":{}}}'),
        ("\ud83d", '"\ufffd\ufffd\ufffd"'.encode()),
    ],
)
def test_json_is_compact_utf_8_in_the_order_given(value: Any, written: bytes) -> None:
    assert encode(value) == written


@pytest.mark.parametrize("value", [float("nan"), [float("inf")]])
def test_what_json_cannot_say_is_refused(value: Any) -> None:
    with pytest.raises(ValueError, match="JSON compliant"):
        encode(value)
    with pytest.raises(TypeError, match="`object`"):
        encode(object())  # pyright: ignore[reportArgumentType]
