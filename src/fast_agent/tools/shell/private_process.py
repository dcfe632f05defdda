"""Keeping other programs of the same user out of this process, where its keys are."""

from __future__ import annotations

import logging
import os
import sys
from functools import cache

_PR_SET_DUMPABLE = 4

log = logging.getLogger(__name__)


@cache
def make_private() -> None:
    """Keep programs that are started from now on from reading the memory of this process.

    On Linux, `/proc/PID/environ` and the memory of a process are open to every process of its user,
    so a command could read the keys its own environment lacks. A process that is not dumpable
    belongs to root there. Programs it starts are dumpable again. What it costs: no core dumps, and
    debuggers and profilers need root to attach.
    """
    if sys.platform != "linux":
        return
    import ctypes

    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(_PR_SET_DUMPABLE, 0, 0, 0, 0) != 0:
        reason = os.strerror(ctypes.get_errno())
        log.warning("commands can read the environment of this program: %s", reason)


@cache
def warn_under_root() -> None:
    """Log, once in a process, that nothing can be kept from commands that root runs."""
    if hasattr(os, "geteuid") and os.geteuid() == 0:
        log.warning("running as root: commands can read everything, the keys of this program too")
