"""Values that differ from run to run: kept for later steps, and replaced in what is recorded."""

from __future__ import annotations

import re
from copy import copy
from typing import TYPE_CHECKING, Any, Final, cast

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

_SLOT = re.compile(r"\$\{([^}]+)\}")
_REPEATED = re.compile(r"(.)\*(\d+)")
_PATTERNS: Final = {
    re.compile(r"\d{8}-\d{6}-[0-9a-f]{8}"): "<session>",
    re.compile(r"turn-[0-9a-f]{20}"): "turn-<digest>",  # of a run and a place in it
    re.compile(r"turn-[0-9a-f]{12}"): "turn-<id>",
    re.compile(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d(?::\d\d(?:\.\d+)?)?(?:Z|[+-]\d\d:?\d\d)?"): "<time>",
}
_KINDS: Final = {
    "requestState": "state",
    "elicitationId": "elicitation",
    "fast-agent/session": "session",
    "sessionId": "session",
    "mcp-session-id": "session",
}
"""Keys whose values are random texts, and what stands for them."""

_MEASURES: Final = frozenset({"size", "digest", "fast-agent/tokens"})
_MAX_KEPT: Final = 40
_ENDS: Final = 3


class Values:
    """The values of one exchange.

    Args:
        world: The directory of the server.
        version: The version of the program.
        port: The port of the server, where it has one.
    """

    def __init__(self, world: Path, version: str, port: int | None = None) -> None:
        self._kept: dict[str, Any] = {"dir": str(world), "port": port}
        self._fixed = {str(world): "<dir>"}
        if port is not None:
            self._fixed[f":{port}"] = ":<port>"
        self._version = version
        self._names: dict[str, str] = {}
        self._requests: dict[Any, str] = {}

    def fresh(self) -> Values:
        """Return the values of an exchange that follows: it knows those kept until now."""
        found = copy(self)
        found._kept, found._names, found._requests = {**self._kept}, {**self._names}, {}
        return found

    def know(self, sessions: Mapping[str, str]) -> None:
        """Keep the ids of sessions, by their names."""
        self._kept.update(sessions)
        self._fixed.update({found: f"<session {name}>" for name, found in sessions.items()})

    def keep(self, paths: Mapping[str, str], message: Any) -> None:
        """Keep parts of a message, by paths such as `result.requestState`."""
        for name, path in paths.items():
            self._kept[name] = found_at(message, path)

    def filled(self, value: Any) -> Any:
        """Replace each `${name}` by what was kept, and `${x*3}` by `xxx`."""
        if isinstance(value, str):
            whole = _SLOT.fullmatch(value)
            if whole is not None and whole[1] in self._kept:
                return self._kept[whole[1]]
            return _SLOT.sub(lambda slot: self._slot(slot[1]), value)
        if isinstance(value, list):
            return [self.filled(one) for one in cast("list[Any]", value)]
        if isinstance(value, dict):
            return {key: self.filled(one) for key, one in cast("dict[str, Any]", value).items()}
        return value

    def normal(self, value: Any, key: str = "") -> Any:
        """Replace what differs from run to run, by names that count from 1."""
        if isinstance(value, str):
            return self._text(value, key)
        if isinstance(value, list):
            return [self.normal(one) for one in cast("list[Any]", value)]
        if isinstance(value, dict):
            return self._object(cast("dict[str, Any]", value))
        if key == "requestId":
            return self._requests.get(value, value)
        return value

    def _object(self, value: dict[str, Any]) -> dict[str, Any]:
        if "method" in value and "id" in value:
            name = self._requests.setdefault(value["id"], f"<request {len(self._requests) + 1}>")
            value = {**value, "id": name}
        return {key: self.normal(one, key) for key, one in value.items()}

    def _text(self, text: str, key: str) -> str:
        kind = _KINDS.get(key)
        if kind is not None and text and text not in self._fixed:
            self._name(text, kind)
        if key == "version" and text == self._version:
            return "<version>"
        for found, name in (*self._names.items(), *self._fixed.items()):
            text = text.replace(found, name)
        for pattern, name in _PATTERNS.items():
            text = pattern.sub(name, text)
        return text

    def _name(self, text: str, kind: str) -> None:
        if text not in self._names:
            number = sum(name.startswith(f"<{kind} ") for name in self._names.values()) + 1
            self._names[text] = f"<{kind} {number}>"

    def _slot(self, name: str) -> str:
        repeated = _REPEATED.fullmatch(name)
        return repeated[1] * int(repeated[2]) if repeated else str(self._kept[name])


def loose(value: Any, key: str = "") -> Any:
    """Replace long texts, and sizes and digests, by what they are."""
    if isinstance(value, list):
        return [loose(one) for one in cast("list[Any]", value)]
    if isinstance(value, dict):
        return {key: loose(one, key) for key, one in cast("dict[str, Any]", value).items()}
    if key in _MEASURES:
        return f"<{key}>"
    return "<text>" if isinstance(value, str) and len(value) > _MAX_KEPT else value


def trimmed(value: Any) -> Any:
    """Replace the middle of long lists by how many entries it has."""
    if isinstance(value, list):
        items = [trimmed(one) for one in cast("list[Any]", value)]
        left = len(items) - _ENDS * 2
        return items if left < 1 else [*items[:_ENDS], f"<{left} more>", *items[-_ENDS:]]
    if isinstance(value, dict):
        return {key: trimmed(one) for key, one in cast("dict[str, Any]", value).items()}
    return value


def found_at(value: Any, path: str) -> Any:
    """Return the part of a message at a path of keys and indices; None where there is none.

    Of several paths, separated by `|`, the first that leads somewhere counts.
    """
    found = (_at(value, one) for one in path.split("|"))
    return next((one for one in found if one is not None), None)


def _at(value: Any, path: str) -> Any:
    for part in path.split("."):
        if isinstance(value, dict):
            value = cast("dict[str, Any]", value).get(part)
        elif isinstance(value, list) and part.lstrip("-").isdigit():
            items, index = cast("list[Any]", value), int(part)
            value = items[index] if -len(items) <= index < len(items) else None
        else:
            return None
    return value
