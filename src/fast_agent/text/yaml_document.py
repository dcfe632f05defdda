"""YAML documents: JSON-like values that know where they are written.

Booleans are those of YAML 1.2 (`yes` and `on` are text), dates stay text, and duplicate keys,
tags, keys that are not text and unbounded aliases are problems.
"""

from __future__ import annotations

import re
from functools import cache
from typing import TYPE_CHECKING, cast

from fast_agent.errors import FastAgentError

if TYPE_CHECKING:
    from fast_agent.text.json_value import JsonValue
    from fast_agent.text.span import Span
    from fast_agent.text.yaml_nodes import Composition, YamlProblem


# Characters that are not line ends here but are for others, or that YAML does not allow.
# Named, not excluded: what excludes also characters above U+FFFF takes Python 9 ms to compile.
_ODD = r"[\x00-\t\x0b-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff\ufeff\ufffe\uffff]"
_QUOTED = r"""'[^'\n]*+' | "[^"\\\n]*+\""""
_PLAIN = r"""[^\n'"\[\]{},:?\#&*!|>%@`]*+"""
_IN_FLOW = rf"""
    {_QUOTED}
  | (?!0[xo]) (?: [A-Za-z0-9_] | \.{{0,2}}/ | --(?=[a-z]) )
    {_PLAIN} (?: :(?=[A-Za-z_]) {_PLAIN} )*+ [*?]?
"""
_LIST = rf"\[ (?: [ ]*+ ,? [ ]*+ (?: {_IN_FLOW} ) )*+ [ ]*+ \]"
_MAPPING = rf"""
\{{ (?: [ ]*+ ,? [ ]*+ (?: [A-Za-z_][\w-]*+ | {_QUOTED} ) : [ ]++ (?: {_LIST} | {_IN_FLOW} ) )*+
[ ]*+ \}}
"""
_USUAL = rf"""
(?: [ ]*+ (?:\#[^\n]*+)? \n )*+ (?![ ])                 # the root is not indented
(?>
    (?: [ ]*+ (?:\#[^\n]*+)? \n )                       # nothing, or a comment
  | [A-Za-z_][\w-]*+ : [ ] [|>]-? \n                    # a text, and its lines
        (?P<indent>[ ]+) [^ \n] [^\n]*+ \n
        (?: (?P=indent) [^\n]*+ \n | [ ]*+ \n )*+
  | (?= [ ] | -[ ] | [A-Za-z_][\w.-]*+ : )            # only fields at the root
    [ ]{{0,39}}+ (?: -[ ]++ )?                            # a list item
    (?: [A-Za-z_][\w.-]*+ : (?:[ ]+|(?=\n)) )?          # a key
    (?: (?: {_QUOTED} | {_LIST} | {_MAPPING} )          # quotes, or a list or mapping on one line
        (?: [ ]++ (?: \# [^\n]*+ )? )?
      | (?!0[xo]) [A-Za-z0-9_./$(] [^\n:]*+ (?: :(?![ \n]) [^\n:]*+ )*+    # plain text
      | -[0-9][0-9.]*+
    )? \n
)*+
"""
"""Lines as cards have them: no anchors, tags, deeper mappings on one line, escapes or documents."""
_EXACT = 2.0**53


class YamlError(FastAgentError):
    """A text is not the YAML this project reads.

    Args:
        problems: Everything that is wrong, in file order; never empty.
        document: What could be read all the same, such as the first of two equal keys; None
            where the text has no structure.
    """

    def __init__(
        self, problems: tuple[YamlProblem, ...], document: YamlDocument | None = None
    ) -> None:
        super().__init__(problems[0].message, hint=problems[0].hint)
        self.problems = problems
        self.document = document


class YamlDocument:
    """One document: a value, and the places of everything in it, found when first asked for.

    Args:
        text: The document's text.
        first_line: Line number of its first line in the file.
        value: What it holds.
        composition: The places, where they are known already.
    """

    __slots__ = ("_composition", "first_line", "text", "value")

    def __init__(
        self,
        text: str,
        first_line: int,
        value: JsonValue,
        composition: Composition | None = None,
    ) -> None:
        self.text = text
        self.first_line = first_line
        self.value = value
        self._composition = composition

    def span_of(self, path: tuple[str | int, ...], *, key: bool = False) -> Span:
        """Find where something is written.

        Args:
            path: Keys and indexes from the root; a part that does not exist is left off.
            key: Whether to return the place of the last key instead of its value.

        Returns:
            Its span in the file.
        """
        composition = self._places()
        return composition.span(*composition.place(path, key=key))

    def written(self, path: tuple[str | int, ...]) -> str:
        """Return a value as it is written in the file.

        Args:
            path: Keys and indexes from the root.

        Returns:
            The text, quotes included.
        """
        start, end = self._places().place(path, key=False)
        return self.text[start:end]

    def _places(self) -> Composition:
        if self._composition is None:
            from fast_agent.text.yaml_nodes import Composition

            self._composition = Composition(self.text, self.first_line)
        return self._composition


def parse_yaml(text: str, *, first_line: int = 1) -> YamlDocument:
    """Read one YAML document.

    Args:
        text: The document, with line feeds as line ends.
        first_line: Line number of its first line in the file it comes from.

    Returns:
        The document; its value is None where the text is empty.

    Raises:
        YamlError: The text is not YAML, or holds what this project does not read.
    """
    # Programs without YAML files need not wait for its patterns to be compiled.
    value = parse_clean(text)
    if value is not None:
        return YamlDocument(text, first_line, value)
    from fast_agent.text.yaml_nodes import Composition

    composition = Composition(text, first_line)
    document = YamlDocument(text, first_line, composition.value, composition)
    if composition.problems:
        problems = tuple(sorted(composition.problems, key=lambda problem: problem.span))
        raise YamlError(problems, None if composition.value is None else document)
    return document


class _UnusualError(Exception):
    """The value holds something only `yaml_nodes` can judge."""


@cache
def _patterns() -> tuple[re.Pattern[str], re.Pattern[str]]:
    # Compiled with the first document: 2 ms that a start without cards need not spend.
    return re.compile(_USUAL, re.VERBOSE), re.compile(_ODD)


def parse_clean(text: str) -> dict[str, JsonValue] | None:
    """Read a YAML mapping, if it is a plain one.

    Args:
        text: One document, with line feeds as line ends.

    Returns:
        The mapping; None where the text has to be read the thorough way.
    """
    text = text.removeprefix("---\n")
    whole = text if text[-1:] == "\n" else f"{text}\n"
    usual, odd = _patterns()
    if usual.fullmatch(whole) is None or odd.search(text):
        return None
    if whole is not text and ("|" in text or ">" in text):
        return None  # where a last text ends depends on the line end that is not there
    from yaml12 import parse_yaml

    try:
        value: object = parse_yaml(text)
        if type(value) is not dict:
            return None
        mapping = cast("dict[object, object]", value)
        keys = _count_keys(mapping)
    except (ValueError, _UnusualError):
        return None
    # A comment at the root is no part of a text, whose lines are indented.
    rest = re.sub(r"(?m)^#[^\n]*\n", "", whole) if "#" in whole else whole
    if keys != _colons(rest):
        return None
    return cast("dict[str, JsonValue]", mapping)


def _colons(text: str) -> int:
    return text.count(": ") + text.count(":\n")


def _count_keys(mapping: dict[object, object]) -> int:
    """Count the keys of a mapping and all in it, and the key-like colons of its texts."""
    count = 0
    pending: list[object] = [mapping]
    for value in pending:
        if isinstance(value, str):
            if ":" in value:
                count += _colons(value)
        elif isinstance(value, dict):
            inner = cast("dict[object, object]", value)
            count += len(inner)
            for key in inner:
                if type(key) is not str:
                    raise _UnusualError
            pending.extend(inner.values())
        elif isinstance(value, list):
            pending.extend(cast("list[object]", value))
        elif not _is_plain_scalar(value):
            raise _UnusualError
    return count


def _is_plain_scalar(value: object) -> bool:
    if isinstance(value, float):
        return abs(value) < _EXACT  # a whole number beyond 64 bits has become a decimal one
    return value is None or isinstance(value, int)
