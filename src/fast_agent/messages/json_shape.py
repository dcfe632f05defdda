"""Checked access to the fields of a JSON object, collecting every problem instead of the first."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, cast

from fast_agent.messages.content import NOTHING
from fast_agent.text.frozen import frozen

if TYPE_CHECKING:
    from collections.abc import Iterator

    from fast_agent.messages.json_text import JsonPath
    from fast_agent.text.json_value import JsonObject, JsonValue


@frozen
class ShapeProblem:
    """A value that does not have the shape it must have.

    Args:
        path: Where it is in the JSON document.
        message: What is wrong; names the value by its path.
        hint: What to write, or None.
        key: The key is meant, not the value.
        replacement: A value that would put it right, or None.
    """

    path: JsonPath
    message: str
    hint: str | None = None
    key: bool = False
    replacement: JsonValue = None


@frozen
class Node:
    """A value in a JSON document that is being read.

    Args:
        value: The value.
        path: Where it is.
        problems: Where problems go.
    """

    value: JsonValue
    path: JsonPath
    problems: list[ShapeProblem]

    @property
    def name(self) -> str:
        """The path as people write it: `messages[7].role`."""
        return path_text(self.path)

    def report(
        self,
        message: str,
        hint: str | None = None,
        *,
        key: bool = False,
        replacement: JsonValue = None,
    ) -> None:
        """Note a problem of this value; `message` follows its name."""
        text = f"`{self.name}` {message}" if self.path else f"the history {message}"
        self.problems.append(ShapeProblem(self.path, text, hint, key, replacement))

    def must_be(self, what: str, *, hint: str | None = None) -> None:
        """Note that this value is not `what`."""
        self.report(f"must be {what}, not {kind_of(self.value)}", hint)

    def child(self, key: str | int, value: JsonValue) -> Node:
        """Make the node of a value inside this one."""
        return Node(value, (*self.path, key), self.problems)

    def fields(self) -> JsonObject | None:
        """Return the value as an object; note a problem and return None if it is not one."""
        if isinstance(self.value, Mapping):
            return self.value
        self.must_be("an object")
        return None

    def items(self) -> Iterator[Node]:
        """Yield the nodes of a list's values; none for null; note any other value."""
        if isinstance(self.value, list):
            for index, value in enumerate(self.value):
                yield self.child(index, value)
        elif self.value is not None:
            self.must_be("a list")

    def entries(self) -> Iterator[tuple[str, Node]]:
        """Yield the nodes of an object's values by key; none for null; note any other value."""
        if self.value is None:
            return
        for key, value in (self.fields() or NOTHING).items():
            yield key, self.child(key, value)

    def string(self, key: str, *, hint: str | None = None) -> str:
        """Return the required string field `key`."""
        found = self.optional_string(key)
        if found is None and self.field(key) is None:
            self.report(f"has no `{key}`", hint=hint)
        return found or ""

    def optional_string(self, key: str) -> str | None:
        """Return the string field `key`; None if it is missing or null."""
        value = self.field(key)
        if value is None or isinstance(value, str):
            return value
        self.child(key, value).must_be("a string")
        return None

    def flag(self, key: str) -> bool:
        """Return the true-or-false field `key`; False if it is missing or null."""
        value = self.field(key)
        if value is None or isinstance(value, bool):
            return bool(value)
        self.child(key, value).must_be("true or false")
        return False

    def field(self, key: str) -> JsonValue:
        """Return the raw value of `key`; None if it is missing."""
        return cast("JsonObject", self.value).get(key)

    def rest(self, known: frozenset[str]) -> JsonObject:
        """Return the fields that are not `known`."""
        fields = cast("JsonObject", self.value)
        if fields.keys() <= known:
            return NOTHING
        return {key: value for key, value in fields.items() if key not in known}


def kind_of(value: JsonValue) -> str:
    """Return the kind of a JSON value in words, including short values themselves."""
    if value is None:
        return "null"
    if isinstance(value, str) and 0 < len(value) <= 30:
        return f"`{value}`"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return "a string"
    if isinstance(value, (int, float)):
        return "a number"
    return "an object" if isinstance(value, Mapping) else "a list"


def path_text(path: JsonPath) -> str:
    """Write a path the way people do."""
    text = ""
    for part in path:
        if isinstance(part, int):
            text += f"[{part}]"
        else:
            text += f".{part}" if text else part
    return text
