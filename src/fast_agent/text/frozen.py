"""Frozen: values that do not change, and that cost little to make.

The constructor of a frozen dataclass sets each field through `object.__setattr__`, which takes many
times as long as an assignment; that was a quarter of what a turn costs. Here a value is filled by
plain assignments while it is of an open class with the same fields, and becomes one of the frozen
class when it is whole.
"""

from __future__ import annotations

from dataclasses import MISSING, dataclass, field, fields
from typing import TYPE_CHECKING, Any, TypeVar, cast, dataclass_transform

if TYPE_CHECKING:
    from collections.abc import Iterator
    from dataclasses import Field

T = TypeVar("T")


@dataclass_transform(frozen_default=True, field_specifiers=(field,))
def frozen(cls: type[T]) -> type[T]:
    """Make of a class what `dataclass(frozen=True, slots=True)` makes of it, quicker to construct.

    Meant for values that are made by the thousand.

    Args:
        cls: The class. Its fields may be `KW_ONLY`, and their defaults are values, not factories;
            it has no `__post_init__`. What subclasses it is made by `dataclass` or this again.
    """
    made = dataclass(frozen=True, slots=True, init=False)(cls)
    body = {"__slots__": (), "__setattr__": object.__setattr__, "__delattr__": object.__delattr__}
    known: dict[str, Any] = {
        "_become": object.__dict__["__class__"].__set__,
        "_made": made,
        "_open": type(cls.__name__, (made,), body),
    }
    # Written as text, as `dataclass` does it: only so has it a parameter for each field.
    exec("\n".join(_constructor(fields(cast("Any", made)), known)), known)  # noqa: S102
    known["__init__"].__qualname__ = f"{cls.__qualname__}.__init__"
    type.__setattr__(made, "__init__", known["__init__"])
    return made


def _constructor(members: tuple[Field[Any], ...], known: dict[str, Any]) -> Iterator[str]:
    """Write the constructor; `known` takes up what its text names."""
    placed = [one for one in members if not one.kw_only]
    named = [one for one in members if one.kw_only]
    parameters = [_parameter(one, known) for one in placed]
    if named:
        parameters += ["*", *(_parameter(one, known) for one in named)]
    yield f"def __init__(self, {', '.join(parameters)}):"
    yield "    _become(self, _open)"
    for one in members:
        yield f"    self.{one.name} = {one.name}"
    yield "    self.__class__ = _made"


def _parameter(one: Field[Any], known: dict[str, Any]) -> str:
    if one.default is not MISSING:
        known[f"_{one.name}"] = one.default
        return f"{one.name}=_{one.name}"
    return one.name
