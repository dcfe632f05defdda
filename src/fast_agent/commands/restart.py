"""Restart: the program starts again in its process, so that no module keeps old state."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING, NoReturn

if TYPE_CHECKING:
    from collections.abc import Sequence

_NEW = "--session"
_RESUME = "--resume"


def restart(session: str | None = None) -> NoReturn:
    """Start the program again with its arguments; called once all its resources are closed.

    Args:
        session: The session to continue; None if there is none.

    Raises:
        OSError: The interpreter cannot be run; the program keeps running.
    """
    arguments = resuming(sys.orig_argv[1:], session)
    for stream in (sys.stdout, sys.stderr):
        stream.flush()
    os.execv(sys.executable, [sys.executable, *arguments])  # noqa: S606 (no shell is wanted)


def resuming(arguments: Sequence[str], session: str | None) -> list[str]:
    """Return the arguments of a command line, naming the session to continue with.

    Args:
        arguments: The arguments, as the program was started with.
        session: The session; None leaves them as they are.

    Returns:
        The same without `--session` and `--resume [ID]`, and with `--resume` of this session.
    """
    if session is None:
        return list(arguments)
    kept: list[str] = []
    after_resume = False
    for place, argument in enumerate(arguments):
        if argument == "--":
            return [*kept, _RESUME, session, *arguments[place:]]
        if after_resume and not argument.startswith("-"):
            after_resume = False
            continue
        after_resume = argument == _RESUME
        if not after_resume and argument != _NEW and not argument.startswith(f"{_RESUME}="):
            kept.append(argument)
    return [*kept, _RESUME, session]
