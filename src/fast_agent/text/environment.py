"""Variables in text: `${NAME}` and `${NAME:default}`; `$${` writes a plain `${`."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from fast_agent.errors import FastAgentError

if TYPE_CHECKING:
    from collections.abc import Mapping

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
            hint=f"set {'it' if one else 'them'}, or give a default: `${{{names[0]}:default}}`",
        )
        self.names = names


def expand(text: str, environ: Mapping[str, str]) -> str:
    """Replace the variables in a text, once: a value is not searched for further variables.

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


def has_variable(text: str) -> bool:
    """Whether `expand` would replace anything in a text."""
    return "${" in text and _VARIABLE.search(text) is not None


def escape(text: str) -> str:
    """Write a text so that `expand` gives it back unchanged."""
    return text.replace("${", "$${")
