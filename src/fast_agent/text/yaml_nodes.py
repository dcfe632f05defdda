"""The thorough way to read YAML: values with places, and every problem with its place.

PyYAML's C parser finds the structure; scalars are resolved here by the core schema of YAML 1.2,
and everything JSON cannot hold is refused: tags, keys that are not text, infinities.
"""

from __future__ import annotations

import math
import re
from bisect import bisect_right
from typing import TYPE_CHECKING, Any, Literal

from fast_agent.text.frozen import frozen
from fast_agent.text.span import Position, Span

if TYPE_CHECKING:
    from fast_agent.text.json_value import JsonValue

MAX_DEPTH = 64
"""Deepest nesting of lists and mappings."""

MAX_NODES = 20_000
"""Most values that aliases may add to a document."""

_MAX_DIGITS = 400


@frozen
class YamlProblem:
    """One thing that is wrong with a YAML text.

    Args:
        message: What is wrong.
        span: Where.
        hint: What to do, or None.
        kind: `duplicate-key`, or `syntax` for all else.
        first: The place of the first of two duplicate keys.
    """

    message: str
    span: Span
    hint: str | None = None
    kind: Literal["syntax", "duplicate-key"] = "syntax"
    first: Span | None = None


class _StopError(Exception):
    """The document is too large or too deep to continue."""


_NULL = frozenset({"", "~", "null", "Null", "NULL"})
_TRUE = frozenset({"true", "True", "TRUE"})
_FALSE = frozenset({"false", "False", "FALSE"})
_NOT_TEXT_START = frozenset("~nNtTfF+-.0123456789")
_INT = re.compile(r"[-+]?[0-9]+|0o[0-7]+|0x[0-9a-fA-F]+")
_FLOAT = re.compile(r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?")
_NO_NUMBER = re.compile(r"[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN)")


def resolve(text: str) -> bool | int | float | str | None:
    """Resolve an unquoted scalar by the core schema of YAML 1.2.

    Args:
        text: The scalar as written.

    Returns:
        None, a bool, a number, or the text itself. `yes`, `on` and dates are text.

    Raises:
        ValueError: It is a number JSON cannot hold.
    """
    if text in _NULL:
        return None
    if text[0] not in _NOT_TEXT_START:
        return text
    if text in _TRUE:
        return True
    if text in _FALSE:
        return False
    if _INT.fullmatch(text):
        if len(text) > _MAX_DIGITS:
            raise ValueError(f"the number is longer than {_MAX_DIGITS} digits")
        base = 8 if text[:2] == "0o" else 16 if text[:2] == "0x" else 10
        return int(text, base)
    if _FLOAT.fullmatch(text):
        number = float(text)
        if math.isinf(number):
            raise ValueError("the number is too large")
        return number
    if _NO_NUMBER.fullmatch(text):
        raise ValueError("infinities and NaN are not allowed")
    return text


# libyaml reads these as line ends, as YAML 1.1 did, or refuses them; YAML 1.2 has them as text.
_FOREIGN = "\x85\u2028\u2029\ufeff"
_NOT_ALLOWED = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x84\x86-\x9f\ud800-\udfff\ufffe\uffff]")
_TAGGED = re.compile(r"(?:&\S+\s+)?(!\S*)")


class Composition:
    """One document read into a value and its places, with all its problems.

    Args:
        text: The document, with line feeds as line ends.
        first_line: Line number of its first line.
    """

    def __init__(self, text: str, first_line: int) -> None:
        self._text = text
        self._first_line = first_line
        self._starts = [0]
        self._starts.extend(match.end() for match in re.finditer("\n", text))
        self._visited = 0
        self._back: dict[int, str] = {}
        self._root: Any = None
        self.problems: list[YamlProblem] = []
        self.value: JsonValue = self._compose()

    def place(self, path: tuple[str | int, ...], *, key: bool) -> tuple[int, int]:
        """Find where a value, or the key of a value, is written.

        Args:
            path: Keys and indexes from the root; the part that does not exist is left off.
            key: Whether to return the place of the last key instead of its value.

        Returns:
            The indexes of the first character and behind the last.
        """
        node, key_node = self._root, None
        if node is None:
            return 0, 0
        for step in path:
            found = _child(node, step, self._stand_in_text)
            if found is None:
                break
            key_node, node = found
        chosen = key_node if key and key_node is not None else node
        start = chosen.start_mark.index
        return start, self._trim(start, chosen.end_mark.index)

    def span(self, start: int, end: int) -> Span:
        """Turn two indexes into a span of the file."""
        return Span(self._position(start), self._position(end))

    def _compose(self) -> JsonValue:
        bad = _NOT_ALLOWED.search(self._text)
        if bad:
            message = f"control character U+{ord(bad[0]):04X} is not allowed"
            self._problem(message, bad.start(), bad.end(), "remove it, or escape it in quotes")
            return None
        text = self._text
        if any(char in text for char in _FOREIGN):
            text = self._stand_ins(text)
        from fast_agent.text import yaml_parser

        try:
            yaml_parser.check_depth(text, MAX_DEPTH)
            self._root = yaml_parser.compose(text)
        except yaml_parser.ParserError as error:
            self._problem(error.message, error.index, error.index + 1, error.hint)
            return None
        try:
            return None if self._root is None else self._convert(self._root, 0)
        except _StopError:
            return None

    def _convert(self, node: Any, depth: int) -> JsonValue:
        start: int = node.start_mark.index
        self._visited += 1
        if depth > MAX_DEPTH:
            self._problem(f"nested deeper than {MAX_DEPTH} levels", start, start + 1)
            raise _StopError
        # Every value written takes a character or more: what is beyond comes from aliases.
        if self._visited > MAX_NODES + len(self._text):
            message = f"aliases make the document grow by more than {MAX_NODES:,} values"
            self._problem(message, start, start + 1, "use fewer aliases")
            raise _StopError
        self._refuse_tag(node)
        if node.id == "scalar":
            return self._scalar(node)
        if node.id == "sequence":
            return [self._convert(item, depth + 1) for item in node.value]
        return self._mapping(node, depth)

    def _mapping(self, node: Any, depth: int) -> JsonValue:
        values: dict[str, JsonValue] = {}
        first: dict[str, Any] = {}
        for key_node, value_node in node.value:
            key = self._key(key_node)
            value = self._convert(value_node, depth + 1)
            if key is None:
                continue
            if key in values:
                self._duplicate(key, first[key], key_node)
                continue
            values[key] = value
            first[key] = key_node
        return values

    def _duplicate(self, key: str, first: Any, second: Any) -> None:
        first_span = self.span(first.start_mark.index, first.end_mark.index)
        span = self.span(second.start_mark.index, second.end_mark.index)
        message = f"key `{key}` is given twice; the first is on line {first_span.start.line}"
        self.problems.append(
            YamlProblem(message, span, "keep one of them", "duplicate-key", first_span)
        )

    def _key(self, node: Any) -> str | None:
        start: int = node.start_mark.index
        end = self._trim(start, node.end_mark.index)
        if node.id != "scalar":
            self._problem("a key must be a string, not a list or a mapping", start, end)
            return None
        self._refuse_tag(node)
        key = self._scalar(node)
        if not isinstance(key, str):
            shown = self._text[start:end]
            hint = f'write `"{shown}"`' if shown else "write a key before the colon"
            self._problem("a key must be a string", start, max(end, start + 1), hint)
            return None
        return key

    def _scalar(self, node: Any) -> JsonValue:
        text: str = node.value
        if self._back:
            text = text.translate(self._back)
        if node.style:
            return text
        try:
            return resolve(text)
        except ValueError as error:
            start: int = node.start_mark.index
            hint = "put it in quotes if it is text"
            self._problem(str(error), start, node.end_mark.index, hint)
            return None

    def _refuse_tag(self, node: Any) -> None:
        start: int = node.start_mark.index
        if self._text[start : start + 1] in {"!", "&"}:
            tagged = _TAGGED.match(self._text, start)
            if tagged:
                message = f"tag `{tagged[1]}` is not allowed"
                self._problem(message, tagged.start(1), tagged.end(1), "remove the tag")

    def _trim(self, start: int, end: int) -> int:
        """Cut the blanks off the end of a block, whose mark is where the next token starts."""
        return start + len(self._text[start:end].rstrip())

    def _stand_in_text(self, text: str) -> str:
        return text.translate(self._back) if self._back else text

    def _stand_ins(self, text: str) -> str:
        """Replace each foreign character with an unused private one; lengths stay."""
        used = set(text)
        free = (number for number in range(0xE000, 0xF8FF) if chr(number) not in used)
        table = {ord(char): next(free) for char in _FOREIGN if char in used}
        self._back = {stand_in: chr(char) for char, stand_in in table.items()}
        return text.translate(table)

    def _problem(self, message: str, start: int, end: int, hint: str | None = None) -> None:
        self.problems.append(YamlProblem(message, self.span(start, end), hint))

    def _position(self, index: int) -> Position:
        index = max(0, min(index, len(self._text)))
        line = bisect_right(self._starts, index)
        return Position(line + self._first_line - 1, index - self._starts[line - 1] + 1)


def _child(node: Any, step: str | int, original: Any) -> tuple[Any, Any] | None:
    if node.id == "sequence" and isinstance(step, int) and 0 <= step < len(node.value):
        return None, node.value[step]
    if node.id == "mapping":
        for key, value in node.value:
            if key.id == "scalar" and original(key.value) == step:
                return key, value
    return None
