from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fast_agent.errors import ResourceError
from fast_agent.resources.problem import (
    AmbiguousName,
    InvalidUri,
    NotFound,
    RequestRefused,
    TooLarge,
    UnavailableResource,
    error_object,
    shown,
)
from fast_agent.rpc.message import encode
from fast_agent.text.visible import visible


@pytest.mark.parametrize(
    ("problem", "before", "now", "message"),
    [
        (InvalidUri("x", "is bad"), -32602, -32602, "`x` is not a resource URI: it is bad"),
        (NotFound("x", ["y"]), -32002, -32602, "there is no resource `x`; close to it: `y`"),
        (
            AmbiguousName("x", ["y", "z"]),
            -32602,
            -32602,
            "`x` can mean 2 resources; ask for one of `y`, `z`",
        ),
        (TooLarge("x", 9, 5), -32602, -32602, "`x` holds 9 bytes, more than the limit of 5"),
        (UnavailableResource("x", "does not exist"), -32603, -32603, "`x` does not exist"),
    ],
)
def test_codes(problem: ResourceError, before: int, now: int, message: str) -> None:
    old, new = error_object(problem, "handshake"), error_object(problem, "modern")
    assert (old["code"], new["code"]) == (before, now)
    assert old["message"] == new["message"] == message
    data = json.loads(encode(new["data"]))
    assert data["uri"] == "x"
    assert isinstance(problem, ResourceError)


def test_data() -> None:
    assert error_object(TooLarge("x", 9, 5, unit="parts", samples=["a"]), "modern")["data"] == {
        "uri": "x",
        "count": 9,
        "limit": 5,
        "unit": "parts",
        "samples": ("a",),
    }
    many = NotFound("x", [str(n) for n in range(50)])
    assert len(many.suggestions) == 10
    assert error_object(RequestRefused(-32600, "no", {"a": 1}), "modern") == {
        "code": -32600,
        "message": "no",
        "data": {"a": 1},
    }
    assert "data" not in error_object(RequestRefused(-32600, "no"), "modern")


@given(st.text())
def test_whatever_is_asked_for_the_error_is_one_short_line(text: str) -> None:
    for problem in (
        InvalidUri(text, "is bad"),
        NotFound(text, [text]),
        UnavailableResource(text, "is gone"),
    ):
        error = error_object(problem, "modern")
        message = str(error["message"])
        assert visible(message) == message
        encode(error)
    assert len(shown(text * 100)) < 2500
