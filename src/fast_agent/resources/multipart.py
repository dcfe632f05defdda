"""Several documents as one: RFC 2046 `multipart/mixed`, readable as text and parsed back exactly.

A body goes in as it is where it is UTF-8, and as base64 where not, so the whole is always text. The
line end before a boundary belongs to the boundary: a body keeps its own last line end, or none.
"""

from __future__ import annotations

import re
from time import gmtime
from typing import TYPE_CHECKING, NamedTuple

from fast_agent.resources.problem import TooLarge
from fast_agent.resources.resource import DEFAULT_LIMITS, UNKNOWN_TYPE
from fast_agent.text.frozen import frozen

if TYPE_CHECKING:
    from collections.abc import Sequence

    from fast_agent.resources.resource import Limits
    from fast_agent.resources.uri import Uri

_DAYS = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
_MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
_PLAIN_TYPE = re.compile(r"(?!multipart/|message/)[A-Za-z0-9!#$&^_.+-]+/[A-Za-z0-9!#$&^_.+-]+")
_SAMPLES = 3


@frozen
class Part:
    """A document of a multipart answer.

    Args:
        uri: Where it reads alone.
        mime_type: Its media type, without parameters.
        data: Its bytes.
        modified: When it last changed, in seconds since 1970, or None where that is not known.
        problem: Why it could not be read, or None; `data` is then a text that says so.
    """

    uri: Uri
    mime_type: str
    data: bytes
    modified: float | None = None
    problem: str | None = None

    @classmethod
    def failed(cls, uri: Uri, reason: str) -> Part:
        """Stand in for a document that cannot be read.

        Args:
            uri: The document's.
            reason: Why, in words that follow the URI.
        """
        return cls(uri, "text/plain", f"`{uri}` {reason}\n".encode(), problem=reason)


class Multipart(NamedTuple):
    """A composed answer: its media type, boundary included, and its bytes, which are UTF-8."""

    mime_type: str
    data: bytes


def compose(uri: str, parts: Sequence[Part], limits: Limits = DEFAULT_LIMITS) -> Multipart:
    """Combine documents; the same documents produce the same bytes.

    Each part has `Content-Type`, `Content-Location` (the URI it reads under alone),
    `Content-Length` (of the document's bytes, before any base64), `ETag` (SHA-256) and, where
    known, `Last-Modified`. A part that could not be read has `X-Resource-Problem`.

    Args:
        uri: What was asked for, for messages.
        parts: The documents, in order.
        limits: `parts` and `answer_bytes` bound the answer.

    Raises:
        TooLarge: There are more parts or bytes than allowed.
    """
    samples = [part.uri.text for part in parts[:_SAMPLES]]
    if len(parts) > limits.parts:
        raise TooLarge(uri, len(parts), limits.parts, unit="parts", samples=samples)
    size = sum(len(part.data) for part in parts)
    if size > limits.answer_bytes:
        raise TooLarge(uri, size, limits.answer_bytes, samples=samples)
    from hashlib import sha256

    digests = [sha256(part.data).hexdigest() for part in parts]
    encoded = [
        _head(part, digest) + _body(part) for part, digest in zip(parts, digests, strict=True)
    ]
    boundary = _boundary(parts, digests, encoded)
    mark = f"--{boundary}".encode()
    mime_type = f'multipart/mixed; boundary="{boundary}"'
    pieces = [f"MIME-Version: 1.0\r\nContent-Type: {mime_type}\r\n".encode()]
    for one in encoded:
        pieces += [b"\r\n", mark, b"\r\n", one]
    pieces += [b"\r\n", mark, b"--\r\n"]
    return Multipart(mime_type, b"".join(pieces))


def _boundary(parts: Sequence[Part], digests: Sequence[str], encoded: Sequence[bytes]) -> str:
    """Derive a boundary from the documents and make sure that none holds it."""
    from hashlib import sha256

    named = [f"{part.uri} {digest}" for part, digest in zip(parts, digests, strict=True)]
    attempt = 0
    while True:
        seed = "\n".join([str(attempt), *named])
        boundary = "part-" + sha256(seed.encode()).hexdigest()[:32]
        if not any(boundary.encode() in one for one in encoded):
            return boundary
        attempt += 1


def _is_text(data: bytes) -> bool:
    try:
        data.decode()
    except UnicodeDecodeError:
        return False
    return True


def _body(part: Part) -> bytes:
    if _is_text(part.data):
        return part.data
    from base64 import encodebytes

    return encodebytes(part.data).rstrip(b"\n").replace(b"\n", b"\r\n")


def _head(part: Part, digest: str) -> bytes:
    text = _is_text(part.data)
    kind = part.mime_type if _PLAIN_TYPE.fullmatch(part.mime_type) else UNKNOWN_TYPE
    lines = [
        f"Content-Type: {kind}; charset=utf-8" if text else f"Content-Type: {kind}",
        f"Content-Transfer-Encoding: {'8bit' if text else 'base64'}",
        f"Content-Location: {part.uri}",
        f"Content-Length: {len(part.data)}",
        f'ETag: "sha256-{digest}"',
    ]
    if part.modified is not None:
        lines.append(f"Last-Modified: {http_date(part.modified)}")
    if part.problem is not None:
        reason = "".join(c if " " <= c <= "~" else "?" for c in part.problem)
        lines.append(f"X-Resource-Problem: {reason}")
    return "".join(f"{line}\r\n" for line in (*lines, "")).encode()


def http_date(seconds: float) -> str:
    """Write a moment as HTTP does: `Sun, 06 Nov 1994 08:49:37 GMT`."""
    moment = gmtime(seconds)
    return (
        f"{_DAYS[moment.tm_wday]}, {moment.tm_mday:02} {_MONTHS[moment.tm_mon - 1]}"
        f" {moment.tm_year:04} {moment.tm_hour:02}:{moment.tm_min:02}:{moment.tm_sec:02} GMT"
    )
