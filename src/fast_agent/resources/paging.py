"""Pages of a sorted list, with cursors that survive changes of the list.

A cursor contains the last key of its page: the next page starts after it, wherever that is then.
"""

from __future__ import annotations

from binascii import Error, a2b_base64, b2a_base64, crc32
from bisect import bisect_right
from typing import TYPE_CHECKING, NamedTuple

from fast_agent.resources.problem import bad_params

if TYPE_CHECKING:
    from collections.abc import Sequence

    from fast_agent.text.json_value import JsonValue

_LONGEST = 8192
_URL_SAFE = bytes.maketrans(b"+/", b"-_")
_STANDARD = bytes.maketrans(b"-_", b"+/")


class Page(NamedTuple):
    """A slice of a list, and the cursor of the next one (None on the last)."""

    start: int
    end: int
    cursor: str | None


def page(kind: str, keys: Sequence[str], cursor: JsonValue, size: int) -> Page:
    """Find the page a request asks for.

    Args:
        kind: What is listed, such as `resources/list`; a cursor of another kind is refused.
        keys: Each entry's key, sorted and unique.
        cursor: The request's `cursor`; None for the first page.
        size: Most entries of a page.

    Raises:
        RequestRefused: The cursor is none that this function gave for this kind.
    """
    start = 0 if cursor is None else bisect_right(keys, _last_key(kind, cursor))
    end = min(start + size, len(keys))
    return Page(start, end, _cursor(kind, keys[end - 1]) if end < len(keys) else None)


def _cursor(kind: str, key: str) -> str:
    raw = key.encode()
    sealed = crc32(raw, crc32(kind.encode())).to_bytes(4, "big") + raw
    return b2a_base64(sealed, newline=False).translate(_URL_SAFE).rstrip(b"=").decode("ascii")


def _last_key(kind: str, cursor: JsonValue) -> str:
    if isinstance(cursor, str) and len(cursor) <= _LONGEST and cursor.isascii():
        text = cursor.encode().translate(_STANDARD)
        try:
            sealed = a2b_base64(text + b"=" * (-len(text) % 4), strict_mode=True)
            key = sealed[4:].decode()
        except (Error, UnicodeDecodeError):
            key = ""
        if key and _cursor(kind, key) == cursor:
            return key
    raise bad_params("`cursor` is none that this server gave for this list; ask without one")
