"""Words for kinds and values, for messages."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from fast_agent.cards.kinds import AnyOf, Flag, ListOf, Number, OneOf, Text, Whole
from fast_agent.config.kinds import PathText

if TYPE_CHECKING:
    from fast_agent.cards.kinds import Kind
    from fast_agent.text.json_value import JsonValue


def expected(kind: Kind) -> str:
    """Say what a kind takes, such as `an integer from 1`."""
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
    """Say what type a value has, without telling the value."""
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
