"""Frozen: values that do not change, and that cost little to define and to make.

`dataclass(frozen=True, slots=True)` compiles six methods when a class is defined, 0.4 ms a class:
of a process that answers one message, it was two fifths. Most of these methods are never called.
Here equality, hash and text are shared code, and the constructor is compiled when the first value
is made.

The constructor of a frozen dataclass also sets each field through `object.__setattr__`, which takes
many times as long as an assignment; that was a quarter of what a turn costs. Here a value is filled
by plain assignments while it is of an open class with the same fields, and becomes one of the
frozen class when it is whole.
"""

from __future__ import annotations

from dataclasses import MISSING, Field, FrozenInstanceError, dataclass, field, fields
from operator import attrgetter
from reprlib import recursive_repr
from typing import TYPE_CHECKING, Any, TypeVar, cast, dataclass_transform, overload

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from inspect import Signature

T = TypeVar("T")


@overload
def frozen(cls: type[T], /) -> type[T]: ...


@overload
def frozen(*, kw_only: bool = ...) -> Callable[[type[T]], type[T]]: ...


@dataclass_transform(frozen_default=True, field_specifiers=(field,))
def frozen(
    cls: type[T] | None = None, /, *, kw_only: bool = False
) -> type[T] | Callable[[type[T]], type[T]]:
    """Make of a class what `dataclass(frozen=True, slots=True)` makes of it, in less time.

    Args:
        cls: The class. Subclasses have to be made by `dataclass` or by this as well.
        kw_only: Whether all fields are given by name.
    """
    if cls is None:
        return lambda cls: _frozen(cls, kw_only=kw_only)
    return _frozen(cls, kw_only=kw_only)


def replaced(value: T, **changes: object) -> T:
    """Return a copy of a frozen value with other values in some fields.

    `dataclasses.replace` passes every field by name and takes ten times as long where a class has
    many. This sets only what it is given: `__post_init__` is not called.

    Args:
        value: The value to copy, of a class made by `frozen`.
        changes: The new values, by field.
    """
    made = type(value)
    copy = _COPIES.get(made)
    if copy is None:
        copy = _COPIES[made] = _compiled_copy(made)
    new = copy(value)
    for name, other in changes.items():
        setattr(new, name, other)
    new.__class__ = made
    return new


def _frozen(cls: type[T], *, kw_only: bool) -> type[T]:
    # A subclass of a frozen dataclass has to be one; what is shared here then comes from its base.
    extends = hasattr(cls, "__dataclass_fields__")
    written = None if extends else _written(cls, kw_only=kw_only)
    if not extends:
        for name, method in _SHARED.items():
            type.__setattr__(cls, name, method)
    if written is not None:
        made = _slotted(cls, written)
    else:
        made = dataclass(
            frozen=extends, slots=True, init=False, repr=False, eq=False, kw_only=kw_only
        )(cls)
        cast("Any", made).__dataclass_params__.frozen = True
    type.__setattr__(made, "__init__", _first_constructor(made))
    members = fields(cast("Any", made))
    own = made.__dict__
    if "__repr__" not in own:
        type.__setattr__(made, "__repr__", _text)
    if "__eq__" not in own:
        type.__setattr__(made, "__eq__", _equality([one.name for one in members if one.compare]))
    if own.get("__hash__") is None:
        hashed = [one.name for one in members if (one.compare if one.hash is None else one.hash)]
        type.__setattr__(made, "__hash__", _hash_of(hashed))
    return made


# What `dataclass` would read, in a third of its time: it searches each annotation three times for
# names it knows.


def _written(cls: type, *, kw_only: bool) -> dict[str, Field[Any]] | None:
    """Read the fields of a class; None where only `dataclass` reads them right."""
    given = cls.__dict__
    found: dict[str, Field[Any]] = {}
    for name, kind in given.get("__annotations__", {}).items():
        if not isinstance(kind, str) or "InitVar" in kind:
            return None
        if kind == "KW_ONLY":
            kw_only = True
        elif not kind.startswith("ClassVar"):
            default = given.get(name, MISSING)
            one = cast("Any", default if type(default) is Field else field(default=default))
            if one.default is not MISSING and type(one.default).__hash__ is None:
                raise ValueError(f"the default of `{name}` can change; use `default_factory`")
            one.name, one.type, one._field_type = name, kind, _FIELD_TYPE  # noqa: SLF001
            if one.kw_only is MISSING:
                one.kw_only = kw_only
            found[name] = one
    return found


def _slotted(cls: type[T], written: dict[str, Field[Any]]) -> type[T]:
    """Make the class again, with a slot for each field instead of a dictionary a value."""
    left_out = {"__dict__", "__weakref__", *written}
    body = {name: value for name, value in cls.__dict__.items() if name not in left_out}
    body["__slots__"] = tuple(written)
    body["__dataclass_fields__"] = written
    body["__dataclass_params__"] = _PARAMETERS
    body["__match_args__"] = tuple(
        one.name for one in written.values() if one.init and not one.kw_only
    )
    made = type(cls)(cls.__name__, cls.__bases__, body)
    made.__qualname__ = cls.__qualname__
    return made


@dataclass(frozen=True)
class _Sample:
    """What `dataclass` notes of a frozen class and of a field, to be noted here as well."""

    one: object = None


_FIELD_TYPE = cast("Any", fields(_Sample)[0])._field_type  # noqa: SLF001
_PARAMETERS = cast("Any", _Sample).__dataclass_params__


# What all frozen classes share.


def _no_assignment(_: object, name: str, __: object) -> None:
    raise FrozenInstanceError(f"cannot assign to field {name!r}")


def _no_deletion(_: object, name: str) -> None:
    raise FrozenInstanceError(f"cannot delete field {name!r}")


def _get_state(self: Any) -> list[object]:
    return [getattr(self, one.name) for one in fields(self)]


def _set_state(self: Any, state: Sequence[object]) -> None:
    for one, value in zip(fields(self), state, strict=True):
        object.__setattr__(self, one.name, value)


@recursive_repr()
def _text(self: Any) -> str:
    shown = (f"{one.name}={getattr(self, one.name)!r}" for one in fields(self) if one.repr)
    return f"{type(self).__qualname__}({', '.join(shown)})"


class _ConstructorSignature:
    """The signature of a class, whose constructor may not be compiled yet."""

    def __get__(self, value: object, owner: type) -> Signature:
        from inspect import signature

        found = signature(_constructor_of(owner))
        return found.replace(parameters=[*found.parameters.values()][1:])


_SHARED = {
    "__setattr__": _no_assignment,
    "__delattr__": _no_deletion,
    "__getstate__": _get_state,
    "__setstate__": _set_state,
    "__signature__": _ConstructorSignature(),
}


_COPIES: dict[type, Callable[[Any], Any]] = {}
"""The compiled copies of `replaced`, by class; a class is compiled at its first copy."""


# What each class has for itself.


def _equality(names: Sequence[str]) -> Callable[[object, object], bool]:
    values = _getter(names)

    def __eq__(self: object, other: object) -> bool:  # noqa: N807
        return values(self) == values(other) if type(other) is type(self) else NotImplemented

    return __eq__


def _hash_of(names: Sequence[str]) -> Callable[[object], int]:
    values = _getter(names)

    def __hash__(self: object) -> int:  # noqa: N807
        return hash(values(self))

    return __hash__


def _getter(names: Sequence[str]) -> Callable[[object], object]:
    return attrgetter(*names) if names else lambda _: ()


def _first_constructor(made: type) -> Callable[..., None]:
    """Return a constructor that makes way for the compiled one when it is called."""

    def __init__(self: object, *given: object, **named: object) -> None:  # noqa: N807
        _compiled(made)(self, *given, **named)

    __init__.__dict__["of"] = made
    return __init__


def _constructor_of(owner: type) -> Callable[..., None]:
    """Return the constructor that a class has or inherits, compiled."""
    constructor = cast("Any", owner).__init__
    made = getattr(constructor, "of", None)
    return constructor if made is None else _compiled(made)


def _compiled(made: type) -> Callable[..., None]:
    """Compile the constructor of a class, for this and all later calls."""
    members = fields(cast("Any", made))
    known: dict[str, Any] = {
        "_become": object.__dict__["__class__"].__set__,
        "_made": made,
        "_open": _open_class(made),
        "_missing": MISSING,
    }
    # Written as text, as `dataclass` does it: only so has it a parameter for each field.
    exec("\n".join(_constructor(members, made, known)), known)  # noqa: S102
    known["__init__"].__qualname__ = f"{made.__qualname__}.__init__"
    type.__setattr__(made, "__init__", known["__init__"])
    return known["__init__"]


def _compiled_copy(made: type) -> Callable[[Any], Any]:
    """Compile a function that copies a value of a class into one of its open class."""
    known: dict[str, Any] = {"_new": object.__new__, "_open": _open_class(made)}
    lines = ["def copy(value):", "    new = _new(_open)"]
    lines += [f"    new.{one.name} = value.{one.name}" for one in fields(cast("Any", made))]
    exec("\n".join([*lines, "    return new"]), known)  # noqa: S102
    return known["copy"]


def _open_class(made: type) -> type:
    """Return a class with the same fields that can be assigned to."""
    body = {"__slots__": (), "__setattr__": object.__setattr__, "__delattr__": object.__delattr__}
    return type(made)(made.__name__, (made,), body)


def _constructor(
    members: tuple[Field[Any], ...], made: type, known: dict[str, Any]
) -> Iterator[str]:
    """Write the constructor; `known` takes up what its text names."""
    placed = [one for one in members if one.init and not one.kw_only]
    named = [one for one in members if one.init and one.kw_only]
    parameters = [_parameter(one) for one in placed]
    if named:
        parameters += ["*", *(_parameter(one) for one in named)]
    yield f"def __init__({', '.join(['self', *parameters])}):"
    yield "    _become(self, _open)"
    for one in members:
        known[f"_default_{one.name}"] = one.default
        known[f"_new_{one.name}"] = one.default_factory
        if value := _value(one):
            yield f"    self.{one.name} = {value}"
    yield "    self.__class__ = _made"
    if hasattr(made, "__post_init__"):
        yield "    self.__post_init__()"


def _parameter(one: Field[Any]) -> str:
    if one.default_factory is not MISSING:
        return f"{one.name}=_missing"
    return one.name if one.default is MISSING else f"{one.name}=_default_{one.name}"


def _value(one: Field[Any]) -> str | None:
    """Write what a field is set to; None where no constructor sets it."""
    if one.default_factory is not MISSING:
        made = f"_new_{one.name}()"
        return f"{made} if {one.name} is _missing else {one.name}" if one.init else made
    if one.init:
        return one.name
    return None if one.default is MISSING else f"_default_{one.name}"
