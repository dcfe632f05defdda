"""Reading one layer against the table: every value checked, expanded and placed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, TypeAlias, assert_never

from fast_agent.config.home import from_home
from fast_agent.diagnostics.rules import (
    UNKNOWN_CONFIG_KEY,
    UNSET_CONFIG_VARIABLE,
    WRONG_CONFIG_TYPE,
    WRONG_CONFIG_VALUE,
)
from fast_agent.schema.kinds import (
    AnyMapping,
    AnyOf,
    Flag,
    FunctionName,
    JsonSchema,
    ListOf,
    MapOf,
    Number,
    OneOf,
    PathText,
    Record,
    SecretText,
    Text,
    Whole,
)
from fast_agent.text.environment import (
    UnsetVariableError,
    VariableNames,
    expand,
    has_variable,
)
from fast_agent.text.frozen import frozen
from fast_agent.text.suggestion import closest, did_you_mean

if TYPE_CHECKING:
    from fast_agent.config.layer import Keys, Layer
    from fast_agent.diagnostics.diagnostic import Diagnostic
    from fast_agent.diagnostics.rules import Rule
    from fast_agent.schema.kinds import Entry, Kind
    from fast_agent.text.json_value import JsonValue


Tree: TypeAlias = dict[str, Any]
"""A checked layer: keys in their own spelling, `None` left out, paths absolute."""

_UNSET: Final = object()


@frozen(kw_only=True)
class ReadingRules:
    """The rules problems are reported under, and what the whole file is called."""

    whole: str = "the configuration"
    unknown_key: Rule = UNKNOWN_CONFIG_KEY
    wrong_type: Rule = WRONG_CONFIG_TYPE
    wrong_value: Rule = WRONG_CONFIG_VALUE
    unset_variable: Rule = UNSET_CONFIG_VARIABLE


class Reader:
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
        rules: ReadingRules = ReadingRules(),  # noqa: B008 (a frozen value)
    ) -> None:
        self._layer = layer
        self._directory = directory
        self._environ = environ
        self._rules = rules
        self.problems: list[Diagnostic] = []

    def tree(self, kind: Record, value: JsonValue) -> Tree:
        """Read a whole layer."""
        read = self._read(kind, value, ())
        return {} if read is _UNSET else read

    def text(self, kind: Kind, text: str, at: Keys) -> object | None:
        """Read one value given as text; None where it is wrong."""
        read = self._checked(kind, from_text(kind, text), at)
        return None if read is _UNSET else read

    def _read(self, kind: Kind, value: JsonValue, at: Keys) -> Any:
        if value is None:
            return _UNSET
        environ = self._environ
        if environ is not None and isinstance(value, str) and has_variable(value):
            return self._expanded(kind, value, at, environ)
        return self._checked(kind, value, at)

    def _expanded(self, kind: Kind, text: str, at: Keys, environ: Mapping[str, str]) -> Any:
        try:
            value = expand(text, environ)
        except UnsetVariableError as error:
            if not (isinstance(kind, SecretText) and at[-1:] == ("api_key",)):
                self._problem(self._rules.unset_variable, at, error.message, error.hint)
            return _UNSET
        if isinstance(kind, SecretText) and not kind.blank and not value:
            return _UNSET
        if isinstance(environ, VariableNames) and has_variable(value) and not _takes_text(kind):
            return _UNSET  # it can only be read once the variable has a value
        return self._checked(kind, from_text(kind, value), at)

    def _checked(self, kind: Kind, value: JsonValue, at: Keys) -> Any:  # noqa: C901
        match kind:
            case Text():
                return self._text(kind, value, at)
            case Flag():
                return value if isinstance(value, bool) else self._wrong_type(kind, value, at)
            case Whole() | Number():
                return self._number(kind, value, at)
            case OneOf():
                return self._word(kind, value, at)
            case ListOf():
                return self._list(kind, value, at)
            case MapOf():
                return self._map(kind, value, at)
            case Record():
                return self._record(kind, value, at)
            case AnyOf():
                branch = branch_of(kind, value)
                if branch is None:
                    return self._wrong_type(kind, value, at)
                return self._checked(branch, value, at)
            case AnyMapping() | JsonSchema():
                if isinstance(value, Mapping):
                    return {key: self._free(inner, (*at, key)) for key, inner in value.items()}
                return self._wrong_type(kind, value, at)
            case FunctionName():
                return self._wrong_type(kind, value, at)
        assert_never(kind)

    def _text(self, kind: Text, value: JsonValue, at: Keys) -> Any:
        if not isinstance(value, str):
            return self._wrong_type(kind, value, at)
        if not kind.blank and not value.strip():
            return self._problem(self._rules.wrong_value, at, f"{self._named(at)} is empty")
        if isinstance(kind, PathText):
            return self._path(kind, value)
        return value

    def _path(self, kind: PathText, text: str) -> str:
        if "://" in text or (kind.program and "/" not in text and "\\" not in text):
            return text
        return str(self._directory / from_home(text, self._environ or {}))

    def _number(self, kind: Whole | Number, value: JsonValue, at: Keys) -> Any:
        whole = isinstance(kind, Whole)
        if isinstance(value, bool) or not isinstance(value, int if whole else int | float):
            return self._wrong_type(kind, value, at)
        if abs(value) < float("inf") and kind.allows(value):
            return value
        message = f"{self._named(at)} must be {expected(kind)}"
        return self._problem(self._rules.wrong_value, at, message)

    def _word(self, kind: OneOf, value: JsonValue, at: Keys) -> Any:
        if not isinstance(value, str):
            return self._wrong_type(kind, value, at)
        if value in kind.choices:
            return value
        near = closest(value, kind.choices)
        hint = did_you_mean(near)
        message = f"{self._named(at)} must be {expected(kind)}"
        return self._problem(self._rules.wrong_value, at, message, hint)

    def _list(self, kind: ListOf, value: JsonValue, at: Keys) -> Any:
        if isinstance(value, str) or not isinstance(value, Sequence):
            if not kind.single:
                return self._wrong_type(kind, value, at)
            value = [value]
        read: list[Any] = []
        for index, item in enumerate(value):
            here = (*at, index)
            if item is None:
                self._wrong_type(kind.item, item, here)
                continue
            checked = self._read(kind.item, item, here)
            if checked is not _UNSET:
                read.append(checked)
        return read

    def _map(self, kind: MapOf, value: JsonValue, at: Keys) -> Any:
        if not isinstance(value, Mapping):
            return self._wrong_type(kind, value, at)
        read: Tree = {}
        for key, inner in value.items():
            here = (*at, key)
            if not key.strip():
                self._problem(self._rules.wrong_value, here, f"a key of {self._named(at)} is empty")
                continue
            if inner is None:
                self._wrong_type(kind.value, inner, here)
                continue
            checked = self._read(kind.value, inner, here)
            if checked is not _UNSET:
                read[key] = checked
        return read

    def _record(self, kind: Record, value: JsonValue, at: Keys) -> Any:
        if not isinstance(value, Mapping):
            return self._wrong_type(kind, value, at)
        read: Tree = {}
        for key, inner in value.items():
            entry = entry_of(kind, key)
            if entry is None:
                self._unknown(kind, key, at)
                continue
            if key != entry.name and entry.name in value:
                message = f"{self._named((*at, key))} and `{entry.name}` are the same"
                self._problem(self._rules.wrong_value, (*at, key), message, "keep one of them")
                continue
            checked = self._read(entry.kind, inner, (*at, key))
            if checked is not _UNSET:
                read[entry.name] = checked
        missing = [entry for entry in kind.entries if entry.required and entry.name not in read]
        for entry in missing:
            if value.get(entry.name) is None:
                message = f"{self._named(at)} lacks `{entry.name}`"
                hint = f"`{entry.name}` is {entry.doc}"
                self._problem(self._rules.wrong_value, at, message, hint)
        return _UNSET if missing else read

    def _free(self, value: JsonValue, at: Keys) -> Any:
        """Expand the texts in a value that may be anything."""
        if isinstance(value, str):
            read = self._read(Text(blank=True), value, at)
            return None if read is _UNSET else read
        if isinstance(value, Mapping):
            return {key: self._free(inner, (*at, key)) for key, inner in value.items()}
        if isinstance(value, Sequence):
            return [self._free(inner, (*at, index)) for index, inner in enumerate(value)]
        return value

    def _unknown(self, kind: Record, key: str, at: Keys) -> None:
        names = tuple(entry.name for entry in kind.entries)
        near = closest(key, names)
        hint = did_you_mean(near, f"known keys: {', '.join(names)}")
        where = f" in {self._named(at)}" if at else ""
        place = self._layer.place((*at, key), key=True)
        message = f"unknown key `{key}`{where}"
        self.problems.append(place.problem(self._rules.unknown_key, message, hint))

    def _named(self, at: Keys) -> str:
        """Name a setting as people write it: `mcp.servers.time.args[0]`."""
        text = ""
        for part in at:
            text += f"[{part}]" if isinstance(part, int) else f".{part}" if text else part
        return f"`{text}`" if text else self._rules.whole

    def _wrong_type(self, kind: Kind, value: JsonValue, at: Keys) -> object:
        # The value itself is never shown: it may be a secret in the wrong place.
        message = f"{self._named(at)} must be {expected(kind)}, not {given(value)}"
        return self._problem(self._rules.wrong_type, at, message)

    def _problem(self, rule: Rule, at: Keys, message: str, hint: str | None = None) -> object:
        self.problems.append(self._layer.place(at).problem(rule, message, hint))
        return _UNSET


def entry_of(kind: Record, key: str) -> Entry | None:
    """Find the field of a record by its name or its other spelling."""
    for entry in kind.entries:
        if key in (entry.name, entry.spelling):
            return entry
    return None


def _takes_text(kind: Kind) -> bool:
    if isinstance(kind, AnyOf):
        return any(map(_takes_text, kind.kinds))
    return isinstance(kind, Text)


def branch_of(kind: AnyOf, value: JsonValue) -> Kind | None:
    """Choose the branch that takes the JSON type of a value."""
    for branch in kind.kinds:
        match branch:
            case Flag():
                fits = isinstance(value, bool)
            case Whole() | Number():
                fits = isinstance(value, int | float) and not isinstance(value, bool)
            case Text() | OneOf() | FunctionName():
                fits = isinstance(value, str)
            case ListOf():
                fits = isinstance(value, Sequence) and not isinstance(value, str)
            case _:
                fits = isinstance(value, Mapping)
        if fits:
            return branch
    return None


def from_text(kind: Kind, text: str) -> JsonValue:
    """Convert a string that came from a variable to a JSON value, as its kind requires.

    Args:
        kind: What is wanted.
        text: The text; it stays one where it cannot be what is wanted.
    """
    if isinstance(kind, Text | OneOf | FunctionName):
        return text
    if isinstance(kind, Flag):
        return {"true": True, "false": False, "1": True, "0": False}.get(text.lower(), text)
    import json

    try:
        value: JsonValue = json.loads(text)
    except (ValueError, RecursionError):
        return text
    if isinstance(kind, AnyOf) and branch_of(kind, value) is None:
        return text
    return text if value is None else value


def built(kind: Kind, value: Any) -> Any:
    """Make the value of a checked tree.

    Args:
        kind: What it was checked against.
        value: The tree, or a part of it.
    """
    match kind:
        case Record():
            kinds = {entry.name: entry.kind for entry in kind.entries}
            return kind.build(**{key: built(kinds[key], inner) for key, inner in value.items()})
        case MapOf():
            return MappingProxyType({key: built(kind.value, one) for key, one in value.items()})
        case ListOf():
            return tuple(built(kind.item, one) for one in value)
        case AnyOf():
            branch = branch_of(kind, value)
            return value if branch is None else built(branch, value)
        case PathText(program=False):
            return value if "://" in value else Path(value)
        case _:
            return value


def expected(kind: Kind) -> str:
    """Describe what a kind accepts, such as `an integer from 1`."""
    match kind:
        case PathText():
            return "a path"
        case Text():
            return "a text"
        case Flag():
            return "`true` or `false`"
        case Whole():
            return f"an integer{_bounds(kind.minimum, kind.maximum)}"
        case Number():
            return f"a number{_bounds(kind.minimum, kind.maximum, kind.above, kind.below)}"
        case OneOf():
            return " or ".join(f"`{choice}`" for choice in kind.choices)
        case ListOf():
            return "a list"
        case AnyOf():
            return " or ".join(expected(one) for one in kind.kinds)
        case _:
            return "a mapping"


def given(value: JsonValue) -> str:
    """Return the type of a value without revealing the value."""
    if value is None:
        return "nothing"
    if isinstance(value, bool):
        return "`true`" if value else "`false`"
    if isinstance(value, int):
        return "an integer"
    if isinstance(value, float):
        return "a number"
    if isinstance(value, str):
        return "a text"
    return "a mapping" if isinstance(value, Mapping) else "a list"


def _bounds(
    minimum: float | None,
    maximum: float | None,
    above: float | None = None,
    below: float | None = None,
) -> str:
    words = ""
    if minimum is not None:
        words += f" from {minimum:g}"
    if above is not None:
        words += f" above {above:g}"
    if maximum is not None:
        words += f" up to {maximum:g}"
    if below is not None:
        words += f" below {below:g}"
    return words
