"""The environment of shell commands: that of the program, without keys and other secrets."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

_SECRET = re.compile(
    r"(.*_)?(API_?KEY|ACCESS_KEY|SECRET|TOKEN|AUTHORIZATION|CREDENTIALS?)(_.*)?"
    r"|.*PASSW(OR)?D",
    re.IGNORECASE,
)


def shell_environment(environ: Mapping[str, str], secrets: Iterable[str] = ()) -> dict[str, str]:
    """Leave out the variables a command has no business with.

    Args:
        environ: The environment of the program.
        secrets: Further names to leave out, such as those of the providers' keys.

    Returns:
        The variables whose name neither is one of `secrets` nor has the words of a key, token,
        secret or password.
    """
    named = {name.upper() for name in secrets}
    return {
        name: value
        for name, value in environ.items()
        if name.upper() not in named and not _SECRET.fullmatch(name)
    }
