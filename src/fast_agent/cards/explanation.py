"""Explanations: why a value is invalid, in words, with the change that would fix it.

Only asked for a value already found wrong; every function reports and returns `INVALID`.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final, cast

from fast_agent.cards.collector import listed, shown
from fast_agent.diagnostics import rules
from fast_agent.schema.kinds import (
    AnyOf,
    Flag,
    FunctionName,
    ListOf,
    Number,
    OneOf,
    Record,
    Text,
    Whole,
)
from fast_agent.text.suggestion import closest, did_you_mean

if TYPE_CHECKING:
    from fast_agent.cards.collector import DiagnosticCollector, Path
    from fast_agent.schema.kinds import Kind


_YES = frozenset({"yes", "on", "true", "y", "1"})
_NO = frozenset({"no", "off", "false", "n", "0"})
_WHOLE = re.compile(r"[-+]?[0-9]{1,18}(?:\.0+)?")
_NUMBER = re.compile(r"[-+]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)")
_PLAIN_ITEMS = re.compile(r"[\w./*?-]+(?:\s*,\s*[\w./*?-]+)*")
_MAX_SHOWN = 40


def explain_text(value: object, path: Path, findings: DiagnosticCollector) -> Invalid:
    """Report a value that is not a string, or a blank string."""
    if isinstance(value, str):
        return _bad_value(f"`{shown(path)}` must not be empty", path, findings, "remove the field")
    if isinstance(value, bool | int | float):
        quoted = f'"{findings.written(path)}"'
        return _wrong_type("text", value, path, findings, f"write `{quoted}`", quoted)
    return _wrong_type("text", value, path, findings)


def explain_function(value: object, path: Path, findings: DiagnosticCollector) -> Invalid:
    """Report a value that names no function."""
    if not isinstance(value, str):
        return _wrong_type("text of the form `file.py:name`", value, path, findings)
    message = f"`{shown(path)}` must have the form `file.py:name`, not {described(value)}"
    return _bad_value(message, path, findings, "name the file, then the function in it")


def explain_flag(value: object, path: Path, findings: DiagnosticCollector) -> Invalid:
    """Report a value that is neither true nor false."""
    word = _literal(value).lower()
    meant = "true" if word in _YES else "false" if word in _NO else None
    hint = f"write `{meant}`" if meant else None
    return _wrong_type("`true` or `false`", value, path, findings, hint, meant)


def explain_number(
    kind: Whole | Number, value: object, path: Path, findings: DiagnosticCollector
) -> Invalid:
    """Report a value that is not a number of the kind."""
    meant = None
    text = _literal(value)
    if isinstance(kind, Whole):
        meant = text.partition(".")[0] if _WHOLE.fullmatch(text) else None
    elif _NUMBER.fullmatch(text):
        meant = text
    hint = f"write `{meant}`" if meant else None
    return _wrong_type(expected(kind), value, path, findings, hint, meant)


def explain_range(
    kind: Whole | Number, value: object, path: Path, findings: DiagnosticCollector
) -> Invalid:
    """Report a number out of its bounds."""
    message = f"`{shown(path)}` must be {expected(kind)}, not {described(value)}"
    return _bad_value(message, path, findings)


def explain_choice(
    choices: tuple[str, ...], value: object, path: Path, findings: DiagnosticCollector
) -> Invalid:
    """Report a value that is none of the words allowed."""
    if not isinstance(value, str):
        return _wrong_type(f"one of {listed(choices)}", value, path, findings)
    near = closest(value, choices)
    message = f"`{shown(path)}` must be one of {listed(choices)}, not {described(value)}"
    hint = did_you_mean(near)
    return _bad_value(message, path, findings, hint, near)


def explain_list(kind: ListOf, value: object, path: Path, findings: DiagnosticCollector) -> Invalid:
    """Report a value that is not a list."""
    hint = meant = None
    if isinstance(value, str) and _PLAIN_ITEMS.fullmatch(_literal(value)):
        meant = f"[{value}]"
        hint = f"write `{meant}`"
    return _wrong_type(expected(kind), value, path, findings, hint, meant)


def explain_mapping(
    kind: Kind, value: object, path: Path, findings: DiagnosticCollector
) -> Invalid:
    """Report a value that is not a mapping."""
    return _wrong_type(expected(kind), value, path, findings)


def explain_union(kind: AnyOf, value: object, path: Path, findings: DiagnosticCollector) -> Invalid:
    """Report a value that is of none of several kinds."""
    meant = hint = None
    if kind.kinds == (Text(), ListOf(Text())) and isinstance(value, int | float):
        meant = f'"{findings.written(path)}"'
        hint = f"write `{meant}`"
    return _wrong_type(expected(kind), value, path, findings, hint, meant)


def explain_unknown_key(
    key: str, known: tuple[str, ...], path: Path, findings: DiagnosticCollector
) -> Invalid:
    """Report a key a mapping does not have."""
    place = shown(path[:-1])
    if not key.strip():
        findings.add(rules.BAD_VALUE, f"`{place}` has an empty key", path, key=True)
        return INVALID
    near = closest(key, known)
    hint = did_you_mean(near, f"it has {listed(known)}")
    siblings = findings.value_at(path[:-1])
    taken = isinstance(siblings, dict) and near in siblings
    findings.add(
        rules.UNKNOWN_FIELD,
        f"`{place}` has no field `{clipped(key)}`",
        path,
        key=True,
        hint=hint,
        replacement=None if taken else near,
    )
    return INVALID


def expected(kind: Kind) -> str:
    """Describe what a kind accepts."""
    if isinstance(kind, Text):
        return "text"
    if isinstance(kind, FunctionName):
        return "a function as `file.py:name`"
    if isinstance(kind, Flag):
        return "`true` or `false`"
    if isinstance(kind, Whole | Number):
        return _expected_number(kind)
    if isinstance(kind, OneOf):
        return f"one of {listed(kind.choices)}" if len(kind.choices) > 1 else listed(kind.choices)
    if isinstance(kind, ListOf):
        item = expected(kind.item)
        plural = {"text": "texts", "a function as `file.py:name`": "functions as `file.py:name`"}
        many = f"a list of {plural.get(item, 'entries')}"
        return f"{item} or {many}" if kind.single else many
    if isinstance(kind, AnyOf):
        return " or ".join(expected(one) for one in kind.kinds)
    if isinstance(kind, Record):
        return "a mapping of its fields"
    return "a mapping"


def described(value: object) -> str:
    """Describe a value."""
    if value is None:
        return "empty (null)"
    if isinstance(value, bool):
        return f"`{str(value).lower()}`"
    if isinstance(value, int | float):
        return f"the number `{value}`"
    if isinstance(value, Expanded):
        return "the value of that variable"
    if isinstance(value, str):
        return f"the text `{clipped(value)}`"
    return "a list" if isinstance(value, list) else "a mapping"


def clipped(text: str) -> str:
    """Shorten a string to one line that fits into a message."""
    line = " ".join(text.split())
    return line if len(line) <= _MAX_SHOWN else f"{line[: _MAX_SHOWN - 1]}…"


def _literal(value: object) -> str:
    """Return a scalar as text to guess from; empty if it came from a variable."""
    if isinstance(value, Expanded) or not isinstance(value, str | int | float):
        return ""
    return str(value).strip()


def _expected_number(kind: Whole | Number) -> str:
    what = "a whole number" if isinstance(kind, Whole) else "a number"
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


def _wrong_type(
    wanted: str,
    value: object,
    path: Path,
    findings: DiagnosticCollector,
    hint: str | None = None,
    replacement: str | None = None,
) -> Invalid:
    message = f"`{shown(path)}` must be {wanted}, not {described(value)}"
    findings.add(rules.WRONG_TYPE, message, path, hint=hint, replacement=replacement)
    return INVALID


def _bad_value(
    message: str,
    path: Path,
    findings: DiagnosticCollector,
    hint: str | None = None,
    replacement: str | None = None,
) -> Invalid:
    findings.add(rules.BAD_VALUE, message, path, hint=hint, replacement=replacement)
    return INVALID


class Invalid:
    """The type of `INVALID`."""

    __slots__ = ()


INVALID: Final = Invalid()
"""Stands for a value that was reported and has no meaning."""


class Expanded(str):
    """A text in which variables were replaced: it may hold a secret, so messages keep it back."""

    __slots__ = ()


class Variable(Expanded):
    """A text that is one whole `${VARIABLE}`: it may still become a number or a boolean."""

    __slots__ = ()
