"""Explanations: why a value is invalid, in words, with the change that would fix it.

Only asked for a value already found wrong; every function reports and returns `INVALID`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Final, Protocol, cast

from fast_agent.schema.kinds import (
    AnyOf,
    Flag,
    FunctionName,
    Integer,
    ListOf,
    Number,
    OneOf,
    PathText,
    Record,
    Text,
)
from fast_agent.text.frozen import frozen
from fast_agent.text.wording import closest, did_you_mean

if TYPE_CHECKING:
    from fast_agent.diagnostics.rules import Rule
    from fast_agent.schema.kinds import Entry, Kind
    from fast_agent.text.json_value import JsonValue, Keys


@frozen(kw_only=True)
class ReadingRules:
    """The rules a kind of file reports problems under, and how it speaks of itself.

    Args:
        whole: What the whole file is called.
        key: What its keys are called.
        reveals: Whether messages may show values; in settings, any may be a secret that stands in
            the wrong place.
        unknown_key: A key it does not have.
        wrong_type: A value of another type.
        wrong_value: A value out of what is allowed.
        missing: A key that must be given.
    """

    whole: str
    key: str = "key"
    reveals: bool = False
    unknown_key: Rule
    wrong_type: Rule
    wrong_value: Rule
    missing: Rule


class Findings(Protocol):
    """Where a reader reports what is wrong with a file."""

    @property
    def errors(self) -> int:
        """The number of errors so far."""
        ...

    @property
    def rules(self) -> ReadingRules:
        """The rules to report under."""
        ...

    def add(
        self,
        code: Rule,
        message: str,
        path: Keys,
        *,
        key: bool = False,
        hint: str | None = None,
        replacement: str | None = None,
    ) -> None:
        """Report an error at a value or its key, with what to write instead."""
        ...

    def written(self, path: Keys) -> str:
        """Return a value as it is written."""
        ...

    def value_at(self, path: Keys) -> JsonValue:
        """Return a value as the file has it; None if there is none."""
        ...


_YES = frozenset({"yes", "on", "true", "y", "1"})
_NO = frozenset({"no", "off", "false", "n", "0"})
_WHOLE = re.compile(r"[-+]?[0-9]{1,18}(?:\.0+)?")
_NUMBER = re.compile(r"[-+]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)")
_PLAIN_ITEMS = re.compile(r"[\w./*?-]+(?:\s*,\s*[\w./*?-]+)*")
_MAX_SHOWN = 40


def explain_text(kind: Text, value: object, path: Keys, findings: Findings) -> Invalid:
    """Report a value that is not a string, or a blank string."""
    if isinstance(value, str):
        message = f"{named(path, findings)} must not be empty"
        return _wrong_value(message, path, findings, "remove it")
    meant = hint = None
    if isinstance(value, bool | int | float):
        meant = f'"{findings.written(path)}"' if findings.rules.reveals else None
        hint = _write(meant) or "put it in quotes"
    return _wrong_type(expected(kind), value, path, findings, hint, meant)


def explain_function(value: object, path: Keys, findings: Findings) -> Invalid:
    """Report a value that names no function."""
    if not isinstance(value, str):
        return _wrong_type("a string of the form `file.py:name`", value, path, findings)
    message = f"{named(path, findings)} must have the form `file.py:name`, not {described(value)}"
    return _wrong_value(message, path, findings, "name the file, then the function in it")


def explain_flag(value: object, path: Keys, findings: Findings) -> Invalid:
    """Report a value that is neither true nor false."""
    word = _literal(value).lower()
    meant = "true" if word in _YES else "false" if word in _NO else None
    return _wrong_type(expected(Flag()), value, path, findings, _write(meant), meant)


def explain_number(
    kind: Integer | Number, value: object, path: Keys, findings: Findings
) -> Invalid:
    """Report a value that is not a number of the kind."""
    meant = hint = None
    text = _literal(value)
    if isinstance(kind, Integer):
        meant = text.partition(".")[0] if _WHOLE.fullmatch(text) else None
    elif _NUMBER.fullmatch(text):
        meant = text
    if meant is not None and not findings.rules.reveals:
        hint = "leave out the quotes" if meant == value else None
        meant = None
    return _wrong_type(expected(kind), value, path, findings, hint or _write(meant), meant)


def explain_range(kind: Integer | Number, value: object, path: Keys, findings: Findings) -> Invalid:
    """Report a number out of its bounds."""
    message = f"{named(path, findings)} must be {expected(kind)}{_not(value, findings)}"
    return _wrong_value(message, path, findings)


def explain_choice(
    choices: tuple[str, ...], value: object, path: Keys, findings: Findings
) -> Invalid:
    """Report a value that is none of the words allowed."""
    if not isinstance(value, str):
        return _wrong_type(expected(OneOf(choices)), value, path, findings)
    near = closest(value, choices)
    message = f"{named(path, findings)} must be {expected(OneOf(choices))}{_not(value, findings)}"
    return _wrong_value(message, path, findings, did_you_mean(near), near)


def explain_list(kind: ListOf, value: object, path: Keys, findings: Findings) -> Invalid:
    """Report a value that is not a list."""
    if isinstance(value, str) and not findings.rules.reveals:
        hint = "put it in brackets: `[…]`"
        return _wrong_type(expected(kind), value, path, findings, hint)
    plain = isinstance(value, str) and _PLAIN_ITEMS.fullmatch(_literal(value))
    meant = f"[{value}]" if plain else None
    return _wrong_type(expected(kind), value, path, findings, _write(meant), meant)


def explain_mapping(kind: Kind, value: object, path: Keys, findings: Findings) -> Invalid:
    """Report a value that is not a mapping."""
    return _wrong_type(expected(kind), value, path, findings)


def explain_union(kind: AnyOf, value: object, path: Keys, findings: Findings) -> Invalid:
    """Report a value that is of none of several kinds."""
    meant = None
    texts = kind.kinds == (Text(), ListOf(Text()))
    if texts and isinstance(value, int | float) and findings.rules.reveals:
        meant = f'"{findings.written(path)}"'
    return _wrong_type(expected(kind), value, path, findings, _write(meant), meant)


def explain_unknown_key(
    key: str, known: tuple[str, ...], path: Keys, findings: Findings, hint: str | None = None
) -> Invalid:
    """Report a key a mapping does not have.

    Args:
        key: The key.
        known: Those it has.
        path: Where the key stands.
        findings: Where to report.
        hint: What to write instead; None looks for one that is spelled alike.
    """
    rules, place = findings.rules, named(path[:-1], findings)
    if not key.strip():
        findings.add(rules.wrong_value, f"{place} has an empty key", path, key=True)
        return INVALID
    near = closest(key, known) if hint is None else None
    hint = hint or did_you_mean(near, f"it has {listed(known)}")
    siblings = findings.value_at(path[:-1])
    taken = isinstance(siblings, dict) and near in siblings
    findings.add(
        rules.unknown_key,
        f"{place} has no {rules.key} `{clipped(key)}`",
        path,
        key=True,
        hint=hint,
        replacement=None if taken else near,
    )
    return INVALID


def explain_twice(other: str, path: Keys, findings: Findings) -> None:
    """Report a key that is given in both its spellings."""
    message = f"{named(path, findings)} is given twice, as `{other}` and as `{path[-1]}`"
    rule = findings.rules.wrong_type
    findings.add(rule, message, path, key=True, hint="keep one of them")


def explain_missing(entry: Entry, path: Keys, findings: Findings) -> None:
    """Report a mapping without a key it must have."""
    message = f"{named(path, findings)} needs `{entry.name}`"
    hint = f"add `{entry.name}`: {entry.doc}"
    findings.add(findings.rules.missing, message, path, hint=hint)


def named(path: Keys, findings: Findings) -> str:
    """Name a value as messages do: `tools.time[0]`, or what the whole file is called."""
    return f"`{shown(path)}`" if path else findings.rules.whole


def shown(path: Keys) -> str:
    """Write a path as people do: `tools.time[0]`."""
    text = ""
    for step in path:
        text += f"[{step}]" if isinstance(step, int) else f".{step}" if text else step
    return text


def listed(words: Mapping[str, object] | tuple[str, ...]) -> str:
    """Write words as people do: `a`, `b` or `c`."""
    quoted = [f"`{word}`" for word in words]
    if len(quoted) < 2:
        return "".join(quoted)
    return f"{', '.join(quoted[:-1])} or {quoted[-1]}"


_PLURAL: Final = {
    "a string": "strings",
    "a path": "paths",
    "a function as `file.py:name`": "functions as `file.py:name`",
}


def expected(kind: Kind) -> str:
    """Describe what a kind accepts."""
    if isinstance(kind, Text):
        return "a path" if isinstance(kind, PathText) else "a string"
    if isinstance(kind, FunctionName):
        return "a function as `file.py:name`"
    if isinstance(kind, Flag):
        return "`true` or `false`"
    if isinstance(kind, Integer | Number):
        return _expected_number(kind)
    if isinstance(kind, OneOf):
        return f"one of {listed(kind.choices)}" if len(kind.choices) > 1 else listed(kind.choices)
    if isinstance(kind, ListOf):
        item = expected(kind.item)
        many = f"a list of {_PLURAL.get(item, 'entries')}"
        return f"{item} or {many}" if kind.single else many
    if isinstance(kind, AnyOf):
        return " or ".join(expected(one) for one in kind.kinds)
    if isinstance(kind, Record):
        return "a mapping of its fields"
    return "a mapping"


def described(value: object) -> str:
    """Describe a value, with the value itself."""
    if value is None:
        return "empty (null)"
    if isinstance(value, bool):
        return f"`{str(value).lower()}`"
    if isinstance(value, int | float):
        return f"the number `{value}`"
    if isinstance(value, ExpandedText):
        return "the value of that variable"
    if isinstance(value, str):
        return f"the string `{clipped(value)}`"
    if isinstance(value, Mapping):
        return "a mapping"
    # Only from Python: a path, a date, an object.
    return "a list" if isinstance(value, list) else f"a `{type(value).__name__}`"


def typed(value: object) -> str:
    """Describe the type of a value without revealing the value."""
    if isinstance(value, str):
        return "a string"
    if isinstance(value, int | float) and not isinstance(value, bool):
        return "a whole number" if isinstance(value, int) else "a number"
    return described(value)


def clipped(text: str) -> str:
    """Shorten a string to one line that fits into a message."""
    line = " ".join(text.split())
    return line if len(line) <= _MAX_SHOWN else f"{line[: _MAX_SHOWN - 1]}…"


def _literal(value: object) -> str:
    """Return a scalar as text to guess from; empty if it came from a variable."""
    if isinstance(value, ExpandedText) or not isinstance(value, str | int | float):
        return ""
    return str(value).strip()


def _expected_number(kind: Integer | Number) -> str:
    what = "a whole number" if isinstance(kind, Integer) else "a number"
    bounds: list[str] = []
    if isinstance(kind, Number) and kind.above is not None:
        bounds.append(f"above {kind.above:g}")
    if kind.minimum is not None:
        bounds.append(f"of at least {kind.minimum:g}")
    if kind.maximum is not None:
        bounds.append(f"{'up to' if bounds else 'of at most'} {kind.maximum:g}")
    if isinstance(kind, Number) and kind.below is not None:
        bounds.append(f"below {kind.below:g}")
    text = " ".join([what, " and ".join(bounds)]).rstrip()
    also = cast("tuple[int, ...]", getattr(kind, "also", ()))
    return text + "".join(f" (or {number})" for number in also)


def _write(meant: str | None) -> str | None:
    return None if meant is None else f"write `{meant}`"


def _not(value: object, findings: Findings) -> str:
    return f", not {described(value)}" if findings.rules.reveals else ""


def _wrong_type(
    wanted: str,
    value: object,
    path: Keys,
    findings: Findings,
    hint: str | None = None,
    replacement: str | None = None,
) -> Invalid:
    is_given = described(value) if findings.rules.reveals else typed(value)
    message = f"{named(path, findings)} must be {wanted}, not {is_given}"
    rule = findings.rules.wrong_type
    findings.add(rule, message, path, hint=hint, replacement=replacement)
    return INVALID


def _wrong_value(
    message: str,
    path: Keys,
    findings: Findings,
    hint: str | None = None,
    replacement: str | None = None,
) -> Invalid:
    rule = findings.rules.wrong_value
    findings.add(rule, message, path, hint=hint, replacement=replacement)
    return INVALID


class Invalid:
    """The type of `INVALID`."""

    __slots__ = ()


INVALID: Final = Invalid()
"""The result for a value that was reported and has no meaning."""


class ExpandedText(str):
    """A text in which variables were replaced: it may hold a secret, so messages keep it back."""

    __slots__ = ()


class Variable(ExpandedText):
    """A text that is one whole `${VARIABLE}`: it may still become a number or a boolean."""

    __slots__ = ()
