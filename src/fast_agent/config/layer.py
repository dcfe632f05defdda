"""Layers: the files and variables a configuration is put together from, and places in them.

One layer is read with its variables replaced and its paths made absolute.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field, replace
from typing import TYPE_CHECKING, Any, Final, Protocol, TypeAlias

from fast_agent.config.home import from_home
from fast_agent.diagnostics.diagnostic import Diagnostic, RelatedPlace
from fast_agent.diagnostics.rules import (
    INVALID_CONFIG_YAML,
    UNKNOWN_CONFIG_KEY,
    UNREADABLE_CONFIG,
    UNSET_CONFIG_VARIABLE,
    WRONG_CONFIG_TYPE,
    WRONG_CONFIG_VALUE,
)
from fast_agent.schema.explanation import ExpandedText, Invalid, ReadingRules, Variable, named
from fast_agent.schema.kinds import SecretText
from fast_agent.schema.reader import ABSENT, reader, takes_text
from fast_agent.text.environment import (
    UnsetVariableError,
    VariableNames,
    expand,
    has_variable,
)
from fast_agent.text.frozen import frozen
from fast_agent.text.json_value import value_at
from fast_agent.text.source import SourceError, read_source
from fast_agent.text.yaml_document import YamlDocument, YamlError, parse_yaml

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from fast_agent.diagnostics.rules import Rule
    from fast_agent.schema.kinds import Kind, PathText, Record
    from fast_agent.text.json_value import JsonValue, Keys
    from fast_agent.text.source import Source
    from fast_agent.text.span import Span
    from fast_agent.text.yaml_nodes import YamlProblem


Tree: TypeAlias = dict[str, Any]
"""A layer that was read: keys in their own spelling, `None` left out, paths absolute."""
_RULES: Final = ReadingRules(
    whole="the configuration",
    unknown_key=UNKNOWN_CONFIG_KEY,
    wrong_type=WRONG_CONFIG_TYPE,
    wrong_value=WRONG_CONFIG_VALUE,
    missing=WRONG_CONFIG_VALUE,
)


class LayerReader:
    """Reads the values of one layer; `problems` holds all that is wrong with them.

    Args:
        layer: Where the values come from, for places.
        directory: Where relative paths start, absolute.
        environ: Values of `${NAME}`; None leaves it as it is.
        rules: The rules problems are reported under.
    """

    def __init__(
        self,
        layer: Layer,
        directory: Path,
        environ: Mapping[str, str] | None,
        rules: ReadingRules = _RULES,
    ) -> None:
        self._layer = layer
        self._directory = directory
        self._environ = environ
        self._value: JsonValue = None
        self.rules = rules
        self.problems: list[Diagnostic] = []

    def tree(self, kind: Record, value: JsonValue) -> Tree:
        """Read a whole layer."""
        self._value = value
        read: Tree | Invalid = {} if value is None else reader(kind, self)(value, (), self)
        return {} if isinstance(read, Invalid) else read

    def text(self, kind: Kind, text: str, at: Keys) -> object | None:
        """Read one value given as text; None where it is wrong."""
        read: object = reader(kind, self)(Variable(text), at, self)
        return None if isinstance(read, Invalid) else read

    def given(self, kind: Kind, value: JsonValue, path: Keys) -> Any:
        """Return a value with its variables replaced."""
        environ = self._environ
        if environ is None or not isinstance(value, str) or isinstance(value, ExpandedText):
            return value
        if not has_variable(value):
            return value
        try:
            text = expand(value, environ)
        except UnsetVariableError as error:
            if not (isinstance(kind, SecretText) and path[-1:] == ("api_key",)):
                self.add(UNSET_CONFIG_VARIABLE, error.message, path, hint=error.hint)
            return ABSENT
        if isinstance(kind, SecretText) and not kind.blank and not text:
            return ABSENT
        if isinstance(environ, VariableNames) and has_variable(text) and not takes_text(kind):
            return ABSENT  # it can only be read once the variable has a value
        return Variable(text)

    def path(self, kind: PathText, text: str) -> str:
        """Return a path from the directory of the layer."""
        if "://" in text or (kind.program and "/" not in text and "\\" not in text):
            return text
        return str(self._directory / from_home(text, self._environ or {}))

    @property
    def errors(self) -> int:
        """The number of problems so far."""
        return len(self.problems)

    def add(
        self,
        code: Rule,
        message: str,
        path: Keys,
        *,
        key: bool = False,
        hint: str | None = None,
        replacement: str | None = None,  # noqa: ARG002 (settings are not rewritten)
    ) -> None:
        """Report an error at a value, or at its key."""
        self.problems.append(self._layer.place(path, key=key).problem(code, message, hint))

    def written(self, path: Keys) -> str:
        """Return a name for a value, which is never shown: it may be a secret."""
        return named(path, self)

    def value_at(self, path: Keys) -> JsonValue:
        """Return a value as the file has it; None if there is none."""
        return value_at(self._value, path)


_MAY_BE_SECRET: Final = re.compile(
    r"key|token|secret|passw|auth|bearer|cookie|\benv\b|\bheaders\b|://[^/\s]*@", re.IGNORECASE
)
_SECRET_KEYS: Final = frozenset({"api_key", "env", "headers"})


@frozen
class Place:
    """Where a setting is written.

    Args:
        path: The file as it is shown to people; empty for a variable.
        span: Where in the file, or None.
        source_line: The line, or None where it could hold a secret.
        variable: The environment variable, or None.
    """

    path: str
    span: Span | None = None
    source_line: str | None = None
    variable: str | None = None

    def problem(self, rule: Rule, message: str, hint: str | None = None) -> Diagnostic:
        """Make the diagnostic of a rule at this place."""
        where = f"environment variable `{self.variable}`: " if self.variable else ""
        return Diagnostic(
            rule.code,
            f"{where}{message}",
            self.path,
            self.span,
            severity=rule.severity,
            hint=hint,
            source_line=self.source_line,
        )


class Layer(Protocol):
    """One source of settings."""

    @property
    def path(self) -> str:
        """The file as it is shown to people; empty for the environment."""
        ...

    def has(self, keys: Keys) -> bool:
        """Whether it sets this setting."""
        ...

    def place(self, keys: Keys, *, key: bool = False) -> Place:
        """Return where it sets it, or the nearest place if it does not."""
        ...


@frozen
class FileLayer:
    """A configuration file.

    Args:
        source: Its text.
        document: What it holds.
        directory: Where its relative paths start, absolute.
        secret: Whether its lines are never shown.
        root: The root of the found set it belongs to; None for a file a user named, or of the
            home.
        written: Where settings are written that another program spells differently, by their
            keys here.
    """

    source: Source
    document: YamlDocument = field(repr=False)
    directory: Path
    secret: bool = False
    root: Path | None = None
    written: Mapping[Keys, Keys] = field(default_factory=dict["Keys", "Keys"], repr=False)

    @property
    def path(self) -> str:
        """The file as it is shown to people."""
        return self.source.path

    def has(self, keys: Keys) -> bool:
        """Whether it sets this setting."""
        return value_at(self.document.value, keys) is not None

    def place(self, keys: Keys, *, key: bool = False) -> Place:
        """Return where it sets it."""
        hidden = tuple(_secrets(self.document.value, below=False))
        return place_in(self.source, self.span(keys, key=key), secret=self.secret, hidden=hidden)

    def span(self, keys: Keys, *, key: bool = False) -> Span:
        """Return where a setting is written, or its key; the nearest there is."""
        for end in range(len(keys), 0, -1) if self.written else ():
            if keys[:end] in self.written:
                return self.document.span_of(self.written[keys[:end]] + keys[end:], key=key)
        return self.document.span_of(keys, key=key)


def without(layer: FileLayer, left_out: Iterable[Keys]) -> FileLayer:
    """Return a file as if it did not have some settings.

    Args:
        layer: The file.
        left_out: The settings, which need not be there.
    """
    document = layer.document
    value = without_keys(document.value, left_out)
    if value is document.value:
        return layer
    return replace(layer, document=YamlDocument(document.text, document.first_line, value))


def without_keys(value: JsonValue, left_out: Iterable[Keys]) -> JsonValue:
    """Return what a file says without some settings; the value itself where it has none."""
    for keys in left_out:
        value = _without(value, keys)
    return value


def _without(value: JsonValue, keys: Keys) -> JsonValue:
    if not isinstance(value, Mapping) or not keys or keys[0] not in value:
        return value
    first, rest = str(keys[0]), keys[1:]
    if not rest:
        return {key: inner for key, inner in value.items() if key != first}
    return {**value, first: _without(value[first], rest)}


@frozen
class EnvironmentLayer:
    """Settings from `SECTION__KEY` variables.

    Args:
        variables: The variable of each setting.
    """

    variables: Mapping[Keys, str]

    @property
    def path(self) -> str:
        """Empty: the environment is not a file."""
        return ""

    def has(self, keys: Keys) -> bool:
        """Whether a variable sets exactly this setting."""
        return keys in self.variables

    def place(self, keys: Keys, *, key: bool = False) -> Place:  # noqa: ARG002
        """Return the variable's name, the first of several that set a part of it."""
        found = (name for given, name in self.variables.items() if given[: len(keys)] == keys)
        return Place("", variable=next(found, None))


def place_in(
    source: Source, span: Span | None, *, secret: bool, hidden: tuple[str, ...] = ()
) -> Place:
    """Make a place in a file; a line that may hold a secret is not shown.

    Args:
        source: The file.
        span: Where in it, or None.
        secret: Whether none of its lines is shown.
        hidden: Texts no shown line may hold.
    """
    if span is None:
        return Place(source.path)
    line = source.line(span.start.line)
    hide = secret or _MAY_BE_SECRET.search(line) or any(text in line for text in hidden)
    return Place(source.path, span, None if hide else line)


def _secrets(value: JsonValue, *, below: bool) -> Iterator[str]:
    """Find the lines of every text below a key whose values may be secrets."""
    if isinstance(value, str):
        if below:
            yield from filter(None, (line.strip() for line in value.splitlines()))
    elif isinstance(value, Mapping):
        for key, inner in value.items():
            yield from _secrets(inner, below=below or key in _SECRET_KEYS)
    elif isinstance(value, Sequence):
        for inner in value:
            yield from _secrets(inner, below=below)


def read_layer(
    path: Path, shown: str, problems: list[Diagnostic], *, secret: bool = False
) -> FileLayer | None:
    """Read a configuration file.

    Args:
        path: The file.
        shown: What messages call it.
        problems: Takes what is wrong with it.
        secret: Whether its lines are never shown.

    Returns:
        The layer; None where there is a problem.
    """
    try:
        source = read_source(path, shown=shown)
    except SourceError as error:
        place = Place(shown, error.span)
        message = f"the configuration cannot be read: {error.message}"
        problems.append(place.problem(UNREADABLE_CONFIG, message, error.hint))
        return None
    try:
        document = parse_yaml(source.text)
    except YamlError as error:
        if path.suffix.lower() == ".md":  # a card, where `-c` was taken for `--card`
            message = "the configuration cannot be read: it is a Markdown file"
            hint = "load a card with `--card`"
            problems.append(Place(shown, None).problem(UNREADABLE_CONFIG, message, hint))
            return None
        problems.extend(_yaml_problem(item, source, secret=secret) for item in error.problems)
        return None
    return FileLayer(source, document, path.parent, secret)


def _yaml_problem(problem: YamlProblem, source: Source, *, secret: bool) -> Diagnostic:
    place = place_in(source, problem.span, secret=secret)
    diagnostic = place.problem(INVALID_CONFIG_YAML, problem.message, problem.hint)
    if problem.first is None:
        return diagnostic
    return replace(
        diagnostic, related=(RelatedPlace("first given here", source.path, problem.first),)
    )
