"""Checked access to the fields of a JSON object, collecting every problem instead of the first.

Problems are those of a history text; diagnostics with places are made of them here.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, cast

from fast_agent.diagnostics.diagnostic import Diagnostic, Fix, Related
from fast_agent.diagnostics.rules import DUPLICATE_HISTORY_KEY, INVALID_HISTORY_JSON
from fast_agent.errors import HistoryError
from fast_agent.messages.message import NOTHING
from fast_agent.text.frozen import frozen
from fast_agent.text.span import Span

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from fast_agent.diagnostics.rules import Rule
    from fast_agent.messages.json_text import JsonFault, JsonPath
    from fast_agent.text.json_value import JsonObject, JsonValue
    from fast_agent.text.source import Source

_MAX_SHOWN = 20_000


@frozen
class Problem:
    """A problem in a text.

    Args:
        rule: The rule it breaks.
        message: What is wrong.
        start: Offset in the text of the first character it concerns.
        end: Offset after the last.
        hint: What to do, or None.
        replacement: Text that would put it right in place of that stretch, or None.
        first: Offsets of the other place of a duplicate, or None.
    """

    rule: Rule
    message: str
    start: int
    end: int
    hint: str | None = None
    replacement: str | None = None
    first: tuple[int, int] | None = None

    @classmethod
    def of_fault(cls, fault: JsonFault, offset: int = 0) -> Problem:
        """Make the problem of a fault in JSON that starts at `offset` of the text."""
        rule = INVALID_HISTORY_JSON if fault.first is None else DUPLICATE_HISTORY_KEY
        first = None
        if fault.first is not None:
            first = (fault.first[0] + offset, fault.first[1] + offset)
        return cls(rule, fault.message, fault.start + offset, fault.end + offset, first=first)

    def diagnostic(self, source: Source) -> Diagnostic:
        """Convert it to a diagnostic at its place in `source`."""
        span = span_between(source, self.start, self.end)
        related: tuple[Related, ...] = ()
        if self.first is not None:
            related = (Related("it is here first", source.path, span_between(source, *self.first)),)
        line = source.line(span.start.line)
        return Diagnostic(
            self.rule.code,
            self.message,
            source.path,
            span,
            self.rule.severity,
            self.hint,
            None if self.replacement is None else Fix(span, self.replacement),
            related,
            line if len(line) <= _MAX_SHOWN else None,
        )


def span_between(source: Source, start: int, end: int) -> Span:
    """Make the span between two offsets of a source."""
    return Span(source.position(start), source.position(end))


def refuse(source: Source, problems: Iterable[Problem]) -> HistoryError:
    """Make the error that says a history cannot be read, with all its problems in order.

    Args:
        source: The text they are in.
        problems: At least one.

    Returns:
        The error, to be raised.
    """
    found = [problem.diagnostic(source) for problem in sorted(problems, key=lambda p: p.start)]
    where = f"history `{source.path}`" if source.path else "the history"
    if len(found) == 1:
        return HistoryError(
            f"{where} is wrong: {found[0].message}", hint=found[0].hint, diagnostics=found
        )
    return HistoryError(f"{where} has {len(found)} problems", diagnostics=found)


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
