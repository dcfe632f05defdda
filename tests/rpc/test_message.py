"""Messages: what is read from bytes, and what is wrong with what is not a message."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fast_agent.rpc.message import (
    CANCELLED,
    IN_USE,
    INTERNAL_ERROR,
    INVALID_PARAMS,
    INVALID_REQUEST,
    MAX_DEPTH,
    METHOD_NOT_FOUND,
    PARSE_ERROR,
    InvalidMessageError,
    Message,
    Notification,
    Request,
    Response,
    error_message,
    notification_message,
    read_message,
    request_message,
    result_message,
)

JSON = -32700
INVALID = -32600
NO_JSON = "the message is not JSON"
BAD_ID = "`id` must be a string or an integer"
BAD_METHOD = "`method` must be a string"
BAD_PARAMS = "`params` must be an object"
TOO_DEEP = "the message is nested more than 200 levels deep"
DEEP = b'{"jsonrpc":"2.0","method":"m","params":{"a":%b1%b}}'


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (b'{"jsonrpc":"2.0","id":1,"method":"m"}', Request(1, "m", {})),
        (b'{"jsonrpc":"2.0","id":-1,"method":"m"}', Request(-1, "m", {})),
        (b'{"jsonrpc":"2.0","id":"","method":""}', Request("", "", {})),
        (b'{"jsonrpc":"2.0","id":1,"method":"m","params":null}', Request(1, "m", {})),
        (b'{"jsonrpc":"2.0","id":1,"method":"m","params":{"a":[]}}', Request(1, "m", {"a": []})),
        (b'{"jsonrpc":"2.0","id":1,"method":"m","result":{}}', Request(1, "m", {})),
        (b'{"jsonrpc":"2.0","id":1,"method":"m","more":5}', Request(1, "m", {})),
        (b'{"jsonrpc":"2.0","method":"m"}', Notification("m", {})),
        (b'{"jsonrpc":"2.0","method":"m","params":{"a":1e300}}', Notification("m", {"a": 1e300})),
        (b'{"jsonrpc":"2.0","id":1,"result":5}', Response(1, 5, None)),
        (b'{"jsonrpc":"2.0","id":"a","result":null}', Response("a", None, None)),
        (b'{"jsonrpc":"2.0","id":1,"error":{"code":1}}', Response(1, None, {"code": 1})),
        (b'{"jsonrpc":"2.0","id":1,"error":5}', Response(1, None, None)),
        (b'{"jsonrpc":"2.0","id":null,"error":{}}', Response(None, None, {})),
        (b'{"id":true,"result":{}}', Response(None, {}, None)),
    ],
)
def test_messages(data: bytes, expected: Message) -> None:
    assert read_message(data) == expected


@pytest.mark.spec("TR-N3.2a")
@pytest.mark.parametrize(
    ("data", "code", "message", "request_id"),
    [
        (b"", JSON, NO_JSON, None),
        (b"{", JSON, NO_JSON, None),
        (b"\xff", JSON, NO_JSON, None),
        (b"\xef\xbb\xbf{}", JSON, NO_JSON, None),
        (b'{"jsonrpc":"2.0","id":NaN,"method":"m"}', JSON, NO_JSON, None),
        (
            b'{"jsonrpc":"2.0","method":"m","params":{"a":1e999}}',
            JSON,
            NO_JSON,
            None,
        ),
        (b'{"id":' + b"9" * 5000 + b"}", JSON, NO_JSON, None),
        (b"[" * 100_000, JSON, NO_JSON, None),
        (
            DEEP % (b"[" * 199, b"]" * 199),
            INVALID,
            TOO_DEEP,
            None,
        ),
        (b"1", INVALID, "the message is not an object", None),
        (b"null", INVALID, "the message is not an object", None),
        (b'"{}"', INVALID, "the message is not an object", None),
        (b"[]", INVALID, "the message is an array; send one object", None),
        (b"{}", INVALID, '`jsonrpc` must be "2.0"', None),
        (b'{"id":1,"method":"m"}', INVALID, '`jsonrpc` must be "2.0"', 1),
        (b'{"jsonrpc":2.0,"id":"a","method":"m"}', INVALID, '`jsonrpc` must be "2.0"', "a"),
        (b'{"jsonrpc":"2.0"}', INVALID, BAD_METHOD, None),
        (b'{"jsonrpc":"2.0","id":1}', INVALID, BAD_METHOD, 1),
        (b'{"jsonrpc":"2.0","id":1,"method":null}', INVALID, BAD_METHOD, 1),
        (
            b'{"jsonrpc":"2.0","id":1,"method":5,"result":1}',
            INVALID,
            BAD_METHOD,
            1,
        ),
        (
            b'{"jsonrpc":"2.0","id":null,"method":"m"}',
            INVALID,
            BAD_ID,
            None,
        ),
        (
            b'{"jsonrpc":"2.0","id":true,"method":"m"}',
            INVALID,
            BAD_ID,
            None,
        ),
        (
            b'{"jsonrpc":"2.0","id":1.5,"method":"m"}',
            INVALID,
            BAD_ID,
            None,
        ),
        (
            b'{"jsonrpc":"2.0","id":[],"method":"m"}',
            INVALID,
            BAD_ID,
            None,
        ),
        (
            b'{"jsonrpc":"2.0","id":1,"method":"m","params":[]}',
            INVALID,
            BAD_PARAMS,
            1,
        ),
        (b'{"jsonrpc":"2.0","method":"m","params":0}', INVALID, BAD_PARAMS, None),
    ],
)
def test_what_is_not_a_message(
    data: bytes, code: int, message: str, request_id: int | str | None
) -> None:
    with pytest.raises(InvalidMessageError) as raised:
        read_message(data)
    problem = raised.value
    assert (problem.code, problem.message, problem.request_id) == (code, message, request_id)


def test_depth() -> None:
    # The object and `params` are two of the levels.
    inner = MAX_DEPTH - 2
    read_message(DEEP % (b"[" * inner, b"]" * inner))
    wide = b'{"jsonrpc":"2.0","method":"m","params":{"a":[%b1]}}' % (b"[]," * 5000)
    read_message(wide)
    text = json.dumps({"jsonrpc": "2.0", "method": "m", "params": {"a": "[" * 5000}})
    read_message(text.encode())
    with pytest.raises(InvalidMessageError):
        read_message(DEEP % (b"[" * (inner + 1), b"]" * (inner + 1)))


FLOATS = st.floats(allow_nan=False, allow_infinity=False)
VALUES: st.SearchStrategy[Any] = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=10,
)
IDS = st.integers() | st.text()
PARAMS = st.dictionaries(st.text(), VALUES, max_size=3)


@given(IDS, st.text(), PARAMS, VALUES)
def test_what_is_written_is_read_again(
    request_id: int | str, method: str, params: dict[str, Any], result: object
) -> None:
    assert read_message(request_message(request_id, method, params)) == (request_id, method, params)
    assert read_message(notification_message(method, params)) == (method, params)
    json_result = json.dumps(result).encode()
    assert read_message(result_message(request_id, json_result)) == (request_id, result, None)
    assert read_message(error_message(request_id, params)) == (request_id, None, params)


@given(st.binary(max_size=40) | VALUES.map(json.dumps).map(str.encode))
def test_any_bytes_are_a_message_or_an_error(data: bytes) -> None:
    problem = problem_of(data)
    if problem is not None:
        assert problem.code in {JSON, INVALID}
        assert len(error_message(problem.request_id, problem.wire)) < 200


def problem_of(data: bytes) -> InvalidMessageError | None:
    try:
        read_message(data)
    except InvalidMessageError as problem:
        return problem
    return None


def test_codes_of_errors_are_those_that_clients_know() -> None:
    assert (PARSE_ERROR, INVALID_REQUEST, METHOD_NOT_FOUND) == (-32700, -32600, -32601)
    assert (INVALID_PARAMS, INTERNAL_ERROR) == (-32602, -32603)
    assert (CANCELLED, IN_USE) == (-32800, -32009)
