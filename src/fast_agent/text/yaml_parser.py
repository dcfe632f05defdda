"""PyYAML's C parser, with the tags left out. Importing this module costs some 30 ms."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from yaml import MarkedYAMLError, YAMLError
from yaml._yaml import CParser
from yaml.events import (
    MappingEndEvent,
    MappingStartEvent,
    SequenceEndEvent,
    SequenceStartEvent,
)
from yaml.reader import ReaderError

from fast_agent.errors import FastAgentError

if TYPE_CHECKING:
    from yaml.nodes import Node

_LEADING = re.compile(r"^[ \-?:]*", re.MULTILINE)

_HINTS = (
    ("mapping values are not allowed", "put a value that holds `: ` in quotes"),
    ("could not find expected ':'", "write `key: value`"),
    ("cannot start any token", "put the value in quotes; indent with spaces, not tabs"),
    ("tab character", "indent with spaces, not tabs"),
    ("unexpected end of stream", "close the quotes or brackets"),
    ("did not find expected ',' or", "close the brackets"),
    ("undefined alias", "put the value in quotes if the `*` belongs to it"),
    ("unknown escape character", "use single quotes where `\\` is a plain backslash"),
    ("another document", "one YAML text, without a second `---`"),
    ("did not find expected", "check the indentation and the quotes"),
)


class ParserError(FastAgentError):
    """The text is not YAML.

    Args:
        message: What the parser found.
        index: Index of the character it stopped at.
        hint: What to do, or None.
    """

    def __init__(self, message: str, index: int, hint: str | None = None) -> None:
        super().__init__(message, hint=hint)
        self.index = index


class _Parser(CParser):
    """Gives every untagged node the tag `?`: scalars are resolved by the caller."""

    def resolve(self, kind: object, value: object, implicit: object) -> str:  # noqa: ARG002
        return "?"

    def descend_resolver(self, node: object, index: object) -> None:
        """Skip this step: there are no resolvers by path."""

    def ascend_resolver(self) -> None:
        """Do nothing."""


def compose(text: str) -> Node | None:
    """Parse one document into PyYAML nodes with marks.

    Args:
        text: The document; `check_depth` must have passed it, for the parser recurses.

    Returns:
        The root node, or None for an empty document. Aliases are shared nodes.

    Raises:
        ParserError: The text is not YAML, or more than one document.
    """
    try:
        return _Parser(text).get_single_node()
    except YAMLError as error:
        raise _parser_error(error) from None


def check_depth(text: str, limit: int) -> None:
    """Refuse text that nests too deep, without recursion.

    Args:
        text: The document.
        limit: Deepest nesting allowed.

    Raises:
        ParserError: It nests deeper, or is not YAML.
    """
    brackets = text.count("[") + text.count("{")
    if brackets < limit and max(map(len, _LEADING.findall(text))) < limit:
        return
    depth = 0
    try:
        parser = _Parser(text)
        while (event := parser.get_event()) is not None:
            if isinstance(event, MappingStartEvent | SequenceStartEvent):
                depth += 1
                if depth > limit:
                    index = event.start_mark.index
                    raise ParserError(f"nested deeper than {limit} levels", index)
            elif isinstance(event, MappingEndEvent | SequenceEndEvent):
                depth -= 1
    except YAMLError as error:
        problem = _parser_error(error)
        if "maximum nesting depth" in problem.message:  # PyYAML 6.0.4 has a limit of its own
            problem = ParserError(f"nested deeper than {limit} levels", problem.index)
        raise problem from None


def _parser_error(error: YAMLError) -> ParserError:
    if isinstance(error, ReaderError):
        return ParserError("a character is not allowed in YAML", int(error.position))
    message, index = str(error), 0
    if isinstance(error, MarkedYAMLError):
        mark = error.problem_mark or error.context_mark
        if error.context_mark and "unexpected end of stream" in str(error.problem):
            mark = error.context_mark  # where the quotes open says more than the end of the file
        index = 0 if mark is None else mark.index
        message = error.problem or message
        if error.context and "document" not in error.context:
            message = f"{message}, {error.context}"
    hint = next((hint for part, hint in _HINTS if part in message), None)
    return ParserError(f"not valid YAML: {message}", index, hint)
