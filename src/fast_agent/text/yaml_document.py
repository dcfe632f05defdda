"""YAML documents: JSON-like values that know where they are written.

Booleans are those of YAML 1.2 (`yes` and `on` are text), dates stay text, and duplicate keys,
tags, keys that are not text and unbounded aliases are problems.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from fast_agent.errors import FastAgentError

if TYPE_CHECKING:
    from fast_agent.text.json_value import JsonValue
    from fast_agent.text.span import Span
    from fast_agent.text.yaml_nodes import Composition, YamlProblem


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
            key: Whether to give the place of the last key instead of its value.

        Returns:
            Its span in the file.
        """
        composition = self._places()
        return composition.span(*composition.place(path, key=key))

    def written(self, path: tuple[str | int, ...]) -> str:
        """Give a value as it is written in the file.

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
        YamlError: The text is no YAML, or holds what this project does not read.
    """
    # Programs without YAML files need not wait for its patterns to be compiled.
    from fast_agent.text.yaml_clean import parse_clean

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
