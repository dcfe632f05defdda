"""The environment of shell commands: that of the program, without keys and other secrets."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fast_agent.text.redaction import is_secret_name, is_secret_value

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping


def shell_environment(environ: Mapping[str, str], given: Collection[str] = ()) -> dict[str, str]:
    """Return the variables that commands may see.

    Args:
        environ: The environment of the program.
        given: Names that commands get although they look like secrets.

    Returns:
        The variables in `given`, and those that look like a secret neither by their name nor by
        their value.
    """
    return {
        name: value
        for name, value in environ.items()
        if name in given or not (is_secret_name(name) or is_secret_value(value))
    }
