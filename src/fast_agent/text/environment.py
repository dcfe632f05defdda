"""Variables in text: `${NAME}` and `${NAME:default}`; `$${` writes a plain `${`."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING

from fast_agent.errors import FastAgentError

if TYPE_CHECKING:
    from collections.abc import Iterator


class VariableNames(Mapping[str, str]):
    """An environment of which only the names are known: each variable stays `${NAME}`.

    What a user has not approved is read with it, so that no value gets into it.

    Args:
        environ: The environment.
    """

    def __init__(self, environ: Mapping[str, str]) -> None:
        self._environ = environ

    def __getitem__(self, name: str) -> str:
        """Return the variable as it is written."""
        if name not in self._environ:
            raise KeyError(name)
        return f"${{{name}}}"

    def __iter__(self) -> Iterator[str]:
        """Iterate over the names."""
        return iter(self._environ)

    def __len__(self) -> int:
        """Return the number of variables."""
        return len(self._environ)


_VARIABLE = re.compile(r"\$\$\{|\$\{([A-Za-z_][A-Za-z0-9_]*)(?::([^{}]*))?\}")


class UnsetVariableError(FastAgentError):
    """A variable without a default is not set.

    Args:
        names: The unset variables, in order, each once.
    """

    def __init__(self, names: tuple[str, ...]) -> None:
        listed = ", ".join(f"`{name}`" for name in names)
        one = len(names) == 1
        super().__init__(
            f"environment variable{'' if one else 's'} {listed} {'is' if one else 'are'} not set",
            hint=f"set {'it' if one else 'them'}, or set a default: `${{{names[0]}:default}}`",
        )
        self.names = names


def expand(text: str, environ: Mapping[str, str]) -> str:
    """Replace the variables in a string once: a value is not searched for further variables.

    Args:
        text: Text with `${NAME}` or `${NAME:default}`; other `$` and braces stay.
        environ: The variables.

    Returns:
        The text with values in place.

    Raises:
        UnsetVariableError: Variables without default are not set.
    """
    if "${" not in text:
        return text
    unset: dict[str, None] = {}

    def value(match: re.Match[str]) -> str:
        if match.lastindex is None:
            return "${"
        name: str = match[1]
        default: str | None = match[2]
        found = environ.get(name, default)
        if found is None:
            unset[name] = None
            return ""
        return found

    result = _VARIABLE.sub(value, text)
    if unset:
        raise UnsetVariableError(tuple(unset))
    return result


def variable_names(text: str) -> set[str]:
    """Return the names of the variables that `expand` would replace in a string."""
    if "${" not in text:
        return set()
    return {match[1] for match in _VARIABLE.finditer(text) if match[1] is not None}


def has_variable(text: str) -> bool:
    """Whether `expand` would replace anything in a string."""
    return "${" in text and _VARIABLE.search(text) is not None


def variables_in(text: str) -> tuple[str, ...]:
    """Return the names of the variables `expand` would replace in a string, each once."""
    if "${" not in text:
        return ()
    names = (match[1] for match in _VARIABLE.finditer(text) if match.lastindex is not None)
    return tuple(dict.fromkeys(names))


def escape(text: str) -> str:
    """Escape a string so that `expand` returns it unchanged."""
    return text.replace("${", "$${")


def with_defaults(text: str) -> str:
    """Replace each variable that has a default by it; the others stay as they are written.

    The expanded string if none of these variables is set.
    """
    if "${" not in text:
        return text

    def default(match: re.Match[str]) -> str:
        if match.lastindex is None:
            return "${"
        given: str | None = match[2]
        return match[0] if given is None else given

    return _VARIABLE.sub(default, text)
