"""Messages of JSON-RPC 2.0: reading and writing them, and saying what is wrong with one.

Every transport reads messages here, so a malformed one has the same answer on all of them. Over
standard input and output, a message is a line of bounded length.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from json import JSONDecoder, JSONEncoder
from math import isfinite
from types import MappingProxyType
from typing import TYPE_CHECKING, Final, NamedTuple, NoReturn, TypeAlias, cast

if TYPE_CHECKING:
    from collections.abc import Iterator

    from fast_agent.text.json_value import JsonObject, JsonValue

NOTHING: JsonObject = MappingProxyType({})
"""The empty JSON object shared by values that carry none."""


PARSE_ERROR: Final = -32700
INVALID_REQUEST: Final = -32600
METHOD_NOT_FOUND: Final = -32601
INVALID_PARAMS: Final = -32602
INTERNAL_ERROR: Final = -32603
CANCELLED: Final = -32800
IN_USE: Final = -32009
"""Another server is using what is asked for; an error of this program, which may pass."""
MAX_DEPTH: Final = 200
"""Maximum depth of arrays and objects in a message: what handles one may be recursive."""
RequestId: TypeAlias = "int | str"


def _json_value(value: object) -> object:
    if isinstance(value, Mapping):
        return dict(cast("Mapping[str, object]", value))
    raise TypeError(f"`{type(value).__name__}` is not a JSON value")


_encode = JSONEncoder(
    ensure_ascii=False,
    check_circular=False,
    allow_nan=False,
    separators=(",", ":"),
    default=_json_value,
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


class Request(NamedTuple):
    """A message that wants an answer.

    Args:
        id: Chosen by its sender.
        method: What is asked for.
        params: Parameters by name; empty if the message has none.
    """

    id: RequestId
    method: str
    params: JsonObject


class Notification(NamedTuple):
    """A message without an answer.

    Args:
        method: What it is about.
        params: Parameters by name; empty if the message has none.
    """

    method: str
    params: JsonObject


class Response(NamedTuple):
    """The answer to a request.

    Args:
        id: That of the request; None if the message names no valid one.
        result: What was asked for; None with an error.
        error: Why there is no result; None with one.
    """

    id: RequestId | None
    result: JsonValue
    error: JsonObject | None


Message: TypeAlias = Request | Notification | Response


class RpcError(Exception):
    """A request that is answered with an error.

    Args:
        code: JSON-RPC error code.
        message: What is wrong, lower-case start, no trailing period.
        data: More of it; None if there is none.
    """

    def __init__(
        self, code: int, message: str, data: Mapping[str, JsonValue] | None = None
    ) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.data = data

    @property
    def wire(self) -> JsonObject:
        """The error object as it is sent."""
        error: dict[str, JsonValue] = {"code": self.code, "message": self.message}
        return error if self.data is None else {**error, "data": self.data}


class InvalidMessageError(RpcError):
    """Bytes that are not a message.

    Args:
        code: JSON-RPC error code.
        message: What is wrong.
        request_id: The id to answer to; None if the message has no valid one.
    """

    def __init__(self, code: int, message: str, request_id: RequestId | None = None) -> None:
        super().__init__(code, message)
        self.request_id = request_id


class RemoteError(Exception):
    """An error that the other side sent, or the absence of an answer.

    Args:
        message: Why.
        code: The code of the answer; None if the connection ended.
        data: Further data of the answer; None if there is none.
    """

    def __init__(self, message: str, code: int | None = None, data: JsonValue = None) -> None:
        super().__init__(message)
        self.message = message
        self.code = code
        self.data = data


def decode(data: bytes) -> JsonValue:
    """Return the JSON value in `data`.

    Raises:
        InvalidMessageError: It is not JSON in UTF-8, its cause says where; or nested too deeply.
    """
    try:
        value = cast("JsonValue", _decode(data.decode()))
    except (ValueError, RecursionError) as problem:
        raise InvalidMessageError(PARSE_ERROR, "the message is not JSON") from problem
    # Counting brackets is far cheaper than walking the value, which is rarely needed.
    if data.count(b"[") + data.count(b"{") > MAX_DEPTH and _is_deeper(value, MAX_DEPTH):
        msg = f"the message is nested more than {MAX_DEPTH} levels deep"
        raise InvalidMessageError(INVALID_REQUEST, msg)
    return value


def read_message(data: bytes) -> Message:
    """Return the message in `data`.

    Raises:
        InvalidMessageError: It is not a message; the error says what is wrong with it.
    """
    return message_of(decode(data))


def message_of(value: JsonValue) -> Message:
    """Return the message that a JSON value is.

    Raises:
        InvalidMessageError: It is not a message; the error says what is wrong with it.
    """
    if isinstance(value, list):
        raise InvalidMessageError(INVALID_REQUEST, "the message is an array; send one object")
    if not isinstance(value, dict):
        raise InvalidMessageError(INVALID_REQUEST, "the message is not an object")
    given = value.get("id")
    has_id = isinstance(given, (int, str)) and not isinstance(given, bool)
    found = cast("RequestId", given) if has_id else None
    method, params = value.get("method"), value.get("params")
    if "method" not in value and ("result" in value or "error" in value):
        error = value.get("error")
        return Response(found, value.get("result"), error if isinstance(error, Mapping) else None)
    if value.get("jsonrpc") != "2.0":
        raise InvalidMessageError(INVALID_REQUEST, '`jsonrpc` must be "2.0"', found)
    if not isinstance(method, str):
        raise InvalidMessageError(INVALID_REQUEST, "`method` must be a string", found)
    if "id" in value and not has_id:
        raise InvalidMessageError(INVALID_REQUEST, "`id` must be a string or an integer")
    if params is not None and not isinstance(params, dict):
        raise InvalidMessageError(INVALID_REQUEST, "`params` must be an object", found)
    given_params: JsonObject = NOTHING if params is None else params
    if found is None:
        return Notification(method, given_params)
    return Request(found, method, given_params)


def result_message(request_id: RequestId, result: bytes) -> bytes:
    """Return the answer to a request, whose result is JSON already."""
    return b'{"jsonrpc":"2.0","id":%b,"result":%b}' % (_id(request_id), result)


def error_message(request_id: RequestId | None, error: JsonObject) -> bytes:
    """Return the answer to a request that has no result."""
    name = b"null" if request_id is None else _id(request_id)
    return b'{"jsonrpc":"2.0","id":%b,"error":%b}' % (name, encode(error))


def request_message(request_id: RequestId, method: str, params: JsonObject) -> bytes:
    """Return a request."""
    return encode({"jsonrpc": "2.0", "id": request_id, "method": method, "params": params})


def notification_message(method: str, params: JsonObject) -> bytes:
    """Return a notification; empty parameters are left out."""
    message: dict[str, JsonValue] = {"jsonrpc": "2.0", "method": method}
    return encode({**message, "params": params} if params else message)


def _id(request_id: RequestId) -> bytes:
    return b"%d" % request_id if isinstance(request_id, int) else encode(request_id)


def _no_constant(text: str) -> NoReturn:
    raise ValueError(f"`{text}` is not JSON")


def _finite(text: str) -> float:
    number = float(text)
    if not isfinite(number):
        raise ValueError("a number is too large")
    return number


_decode = JSONDecoder(parse_constant=_no_constant, parse_float=_finite).decode


def _is_deeper(value: JsonValue, most: int) -> bool:
    level: list[JsonValue] = [value]
    for _ in range(most):
        level = [
            part
            for one in level
            if isinstance(one, dict | list)
            for part in (one.values() if isinstance(one, dict) else one)
            if isinstance(part, dict | list)
        ]
        if not level:
            return False
    return True


MAX_LINE_BYTES: Final = 4 << 20
"""Maximum size of a message; an edge whose messages carry pictures allows more."""
_BLANKS: Final = b" \t\r\n"
"""What JSON takes for white space."""
CHUNK_BYTES: Final = 1 << 16
"""How much is read at once."""


class Lines:
    """Splits chunks of bytes into lines of bounded length.

    Args:
        max_bytes: Maximum size of a line.
    """

    def __init__(self, max_bytes: int = MAX_LINE_BYTES) -> None:
        self.max_bytes = max_bytes
        self._parts: list[bytes] = []
        self._size = 0

    def feed(self, chunk: bytes) -> Iterator[bytes | None]:
        """Yield the lines that a chunk ends, without blank ones; None for one that is too long."""
        *ended, rest = chunk.split(b"\n")
        for piece in ended:
            self._add(piece)
            yield from self.end()
        self._add(rest)

    def end(self) -> Iterator[bytes | None]:
        """Yield what was fed since the last line end, unless that is blank."""
        parts, size = self._parts, self._size
        self._parts, self._size = [], 0
        if size > self.max_bytes:
            yield None
        elif line := (parts[0] if len(parts) == 1 else b"".join(parts)).strip(_BLANKS):
            yield line

    @property
    def begun(self) -> bytes:
        """The bytes that were fed since the last line end."""
        return b"".join(self._parts)

    def _add(self, piece: bytes) -> None:
        self._size += len(piece)
        if self._size > self.max_bytes:
            self._parts.clear()
        elif piece:
            self._parts.append(piece)


def too_long(max_bytes: int) -> InvalidMessageError:
    """Return the error that answers a line which is too long."""
    return InvalidMessageError(INVALID_REQUEST, f"a message is longer than {max_bytes:,} bytes")


def take_stdio() -> tuple[int, int]:
    """Take standard input and output for messages alone.

    From now on, what anything else prints goes to standard error, and what it reads is empty.

    Returns:
        Descriptors to read messages from and to write them to.
    """
    own_input, own_output = os.dup(0), os.dup(1)
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    os.dup2(2, 1)
    return own_input, own_output
