"""Reading one layer of settings: its variables replaced, its paths made absolute."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, TypeAlias

from fast_agent.config.home import from_home
from fast_agent.diagnostics.rules import (
    UNKNOWN_CONFIG_KEY,
    UNSET_CONFIG_VARIABLE,
    WRONG_CONFIG_TYPE,
    WRONG_CONFIG_VALUE,
)
from fast_agent.schema.explanation import Expanded, Invalid, ReadingRules, Variable, named
from fast_agent.schema.kinds import SecretText
from fast_agent.schema.reader import ABSENT, reader, takes_text
from fast_agent.text.environment import (
    UnsetVariableError,
    VariableNames,
    expand,
    has_variable,
)
from fast_agent.text.json_value import value_at

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from fast_agent.config.layer import Layer
    from fast_agent.diagnostics.diagnostic import Diagnostic
    from fast_agent.diagnostics.rules import Rule
    from fast_agent.schema.kinds import Kind, PathText, Record
    from fast_agent.text.json_value import JsonValue, Keys


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
        if environ is None or not isinstance(value, str) or isinstance(value, Expanded):
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
