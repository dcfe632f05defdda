"""A method's answer: plain data and JSON bytes, each made from the other when asked for."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from fast_agent.rpc.message import encode

if TYPE_CHECKING:
    from collections.abc import Iterable

    from fast_agent.text.json_value import JsonObject


class Answer:
    """The result of a request.

    Args:
        data: The result as data, or None where `json` has it.
        json: The result as JSON, or None where `data` has it.
        cacheable: Whether the newest protocol wants `ttlMs` and `cacheScope` on it.
    """

    __slots__ = ("_data", "_json", "cacheable")

    def __init__(
        self,
        data: JsonObject | None = None,
        json: bytes | None = None,
        *,
        cacheable: bool = False,
    ) -> None:
        self._data = data
        self._json = json
        self.cacheable = cacheable

    @classmethod
    def of_list(
        cls, key: str, items: Iterable[bytes], cursor: str | None = None, *, cacheable: bool = True
    ) -> Answer:
        """Make an answer of a list whose entries are JSON already.

        Args:
            key: The list's name, such as `resources`.
            items: The entries.
            cursor: The `nextCursor`, or None on the last page.
            cacheable: As for the class.
        """
        end = b"]}" if cursor is None else b'],"nextCursor":' + encode(cursor) + b"}"
        json = b"".join((b'{"', key.encode(), b'":[', b",".join(items), end))
        return cls(json=json, cacheable=cacheable)

    @property
    def data(self) -> JsonObject:
        """The result as data, which must not be changed."""
        if self._data is None:
            from json import loads

            self._data = cast("JsonObject", loads(self._json or b"{}"))
        return self._data

    @property
    def json(self) -> bytes:
        """The result as JSON on one line."""
        if self._json is None:
            self._json = encode(self._data or {})
        return self._json

    def with_fields(self, more: Answer) -> Answer:
        """Join two answers; where both are data, their `_meta` are merged.

        Args:
            more: Fields that are not here yet. An answer given as JSON has no `_meta`.
        """
        if self._json is not None:
            head, tail = self._json[:-1], more.json[1:]
            joint = b"" if head == b"{" else b","
            return Answer(json=b"".join((head, joint, tail)), cacheable=self.cacheable)
        data = self.data
        merged = {**data, **more.data}
        if (meta := data.get("_meta")) is not None:
            merged["_meta"] = {
                **cast("JsonObject", meta),
                **cast("JsonObject", more.data.get("_meta", {})),
            }
        return Answer(merged, cacheable=self.cacheable)


EMPTY = Answer({})
