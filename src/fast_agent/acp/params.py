"""Params: what a request brings, read field by field; nothing in it is trusted."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from fast_agent.acp.problem import INVALID_PARAMS, RequestError

if TYPE_CHECKING:
    from fast_agent.text.json_value import JsonObject, JsonValue


def text(params: JsonObject, name: str) -> str:
    """Return a required string.

    Raises:
        RequestError: It is missing, or no text.
    """
    value = params.get(name)
    if not isinstance(value, str):
        raise wrong(name, "must be a string")
    return value


def optional_text(params: JsonObject, name: str) -> str | None:
    """Return a string, or None if it is missing or null.

    Raises:
        RequestError: It is something else.
    """
    return None if params.get(name) is None else text(params, name)


def objects(params: JsonObject, name: str) -> tuple[JsonObject, ...]:
    """Return a list of objects, empty if it is missing or null.

    Raises:
        RequestError: It is something else.
    """
    value: JsonValue = params.get(name)
    if value is None:
        return ()
    if not isinstance(value, list):
        raise wrong(name, "must be a list")
    found: list[JsonObject] = []
    for index, item in enumerate(value):
        if not isinstance(item, Mapping):
            raise wrong(f"{name}[{index}]", "must be an object")
        found.append(item)
    return tuple(found)


def texts(params: JsonObject, name: str) -> tuple[str, ...]:
    """Return a list of strings, empty if it is missing or null.

    Raises:
        RequestError: It is something else.
    """
    value: JsonValue = params.get(name)
    if value is None:
        return ()
    if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
        raise wrong(name, "must be a list of texts")
    return tuple([str(item) for item in value])


def child(params: JsonObject, name: str) -> JsonObject:
    """Return an object, empty if it is missing or not an object."""
    value = params.get(name)
    return value if isinstance(value, Mapping) else {}


def directory(params: JsonObject, name: str) -> Path:
    """Return a required directory.

    Raises:
        RequestError: It is missing, not absolute, or no directory.
    """
    path = Path(text(params, name))
    if not path.is_absolute():
        raise wrong(name, "must be an absolute path")
    try:
        there = path.is_dir()
    except (OSError, ValueError):
        there = False
    if not there:
        raise wrong(name, "is not a directory")
    return path


def wrong(name: str, what: str) -> RequestError:
    """Make the answer to a request one of whose fields is wrong."""
    return RequestError(INVALID_PARAMS, f"`{name}` {what}")
