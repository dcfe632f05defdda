"""Dependencies: values a program passes to its function tools, by the parameter's type."""

from __future__ import annotations

from types import UnionType
from typing import (
    TYPE_CHECKING,
    Annotated,
    Final,
    TypeAlias,
    TypeVar,
    Union,
    cast,
    get_args,
    get_origin,
)

from fast_agent.errors import RunError, ToolError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

T = TypeVar("T")


class MissingDependencyError(RunError):
    """A tool asks for a value that the program did not pass; ends the turn."""


class _Mark:
    """Marks a hint as one of a dependency."""


_MARK: Final = _Mark()

Deps: TypeAlias = Annotated[T, _MARK]
"""The hint of a parameter the program fills: `def find(db: Deps[Database], name: str)`."""


def as_dependencies(given: object) -> tuple[object, ...]:
    """Return the values of `deps=`: one value, or a list or tuple of several; None is none."""
    if given is None:
        return ()
    if isinstance(given, list | tuple):
        return tuple(cast("Sequence[object]", given))
    return (given,)


def dependency_type(hint: object, parameter: str, function: str) -> tuple[type, bool] | None:
    """Return the class a hint asks the program for, and whether the parameter may go without.

    Args:
        hint: The parameter's hint.
        parameter: The parameter's name, for messages.
        function: The function's name, for messages.

    Returns:
        The class and whether None is accepted; None for a hint that is not a `Deps`.

    Raises:
        ToolError: `Deps` of something that is not a class.
    """
    if get_origin(hint) in (Union, UnionType):
        parts = get_args(hint)
        found = [dependency_type(part, parameter, function) for part in parts]
        kinds = [one for one in found if one is not None]
        return (kinds[0][0], type(None) in parts) if kinds else None
    if get_origin(hint) is not Annotated or _MARK not in get_args(hint)[1:]:
        return None
    kind = get_args(hint)[0]
    origin = get_origin(kind)
    kind = origin if isinstance(origin, type) else kind
    try:
        isinstance(None, kind)
    except TypeError:
        msg = f"`Deps` of `{parameter}` of `{function}` does not name a class"
        raise ToolError(msg, hint="write `Deps[Database]`, with a class of yours") from None
    return kind, False


def resolve(
    wanted: Mapping[str, tuple[type, bool]], given: Iterable[object], function: str
) -> dict[str, object]:
    """Find the value of each parameter that asks for one.

    Args:
        wanted: By parameter, its class and whether it may go without.
        given: The values there are; the first of a class is taken.
        function: The function's name, for messages.

    Returns:
        A value for each parameter.

    Raises:
        MissingDependencyError: There is no value of a class that is needed.
    """
    values = tuple(given)
    found: dict[str, object] = {}
    for name, (kind, may_miss) in wanted.items():
        matches = [value for value in values if isinstance(value, kind)]
        if not matches and not may_miss:
            msg = f"the tool `{function}` needs a `{kind.__name__}`, and the program gave none"
            hint = f"pass one: `fast.run(deps=…)` with a `{kind.__name__}` among the values"
            raise MissingDependencyError(msg, hint=hint)
        found[name] = matches[0] if matches else None
    return found
