"""Group guard: ends process groups whose program died without ending them, as by SIGKILL.

A small shell in a separate process group holds the reading end of a pipe and the numbers of the
groups that run. When the program dies, however it dies, the pipe ends; the shell then asks the
groups to end, and kills them two seconds later. A parent-death signal would reach the first process
of a group only, not what a command started in turn, and belongs to the thread that started it.

A process that made a separate session has left its group and is not reached.
"""

from __future__ import annotations

import os
import sys
from contextlib import suppress
from functools import cache
from threading import Lock
from typing import Final

NAME: Final = "fast-agent-guard"
"""The last word of the guard's command line, for readers of the list of processes."""

_SHELL: Final = "/bin/sh"
_SCRIPT: Final = """
trap '' HUP INT TERM
groups=
while read -r what group; do
  case $what in
    start) groups="$groups $group" ;;
    end)
      left=
      for one in $groups; do [ "$one" = "$group" ] || left="$left $one"; done
      groups=$left ;;
  esac
done
[ -n "$groups" ] || exit 0
for one in $groups; do kill -s TERM -- "-$one"; done
sleep 2
for one in $groups; do kill -s KILL -- "-$one"; done
"""

_STARTING: Final = Lock()


def guard_group(group: int) -> None:
    """Guard a process group: it is ended if this program dies before `release_group`.

    Where there is no shell to do so, nothing happens: a missing guard is not a reason to fail.

    Args:
        group: The number of the group, which is that of its first process.
    """
    _notify_guard("start", group)


def release_group(group: int) -> None:
    """Stop guarding a process group that has ended."""
    _notify_guard("end", group)


def _notify_guard(what: str, group: int) -> None:
    with _STARTING:
        pipe = _guard(os.getpid())
    if pipe is not None:
        # The guard may have been killed, or be too slow: neither is a reason to fail or to wait.
        with suppress(OSError):
            os.write(pipe, f"{what} {group}\n".encode())


@cache
def _guard(_process: int) -> int | None:
    """Start the guard of this process, and return the pipe that leads to it.

    A process that was forked starts its own.
    """
    if sys.platform == "win32":
        return None
    reading, writing = os.pipe()
    os.set_blocking(writing, False)
    try:
        os.posix_spawn(
            _SHELL,
            ["sh", "-c", _SCRIPT, NAME],
            {"PATH": "/usr/bin:/bin"},
            file_actions=[
                (os.POSIX_SPAWN_DUP2, reading, 0),
                (os.POSIX_SPAWN_OPEN, 1, os.devnull, os.O_WRONLY, 0),
                (os.POSIX_SPAWN_OPEN, 2, os.devnull, os.O_WRONLY, 0),
            ],
            setpgroup=0,  # what is sent to the group of the program does not reach it
        )
    except OSError:
        os.close(writing)
        return None
    finally:
        os.close(reading)
    return writing
