"""Heap state: what the objects of a served process take, as it reports when it is asked.

What the system says of its memory also counts what the allocator keeps for later, which comes and
goes by megabytes; this does not.
"""

from __future__ import annotations

import json
import os
import signal
import time
from pathlib import Path
from typing import NamedTuple

INSIDE = Path(__file__).with_name("inside")
"""What a process must have in `PYTHONPATH` to be asked."""

PLACE = "SOAK_HEAP"
"""The variable of its environment that names the file it answers in."""

_ANSWERS_IN = 120.0
_LOOKS_EVERY = 0.05


class HeapState(NamedTuple):
    """What the objects of a process take.

    Args:
        blocks: How many pieces of memory Python's objects are.
        allocated: What the C library has given out in KiB, with the large ones of those.
    """

    blocks: int
    allocated: float


def heap_state(pid: int, place: Path) -> HeapState:
    """Ask a process, which looks for garbage first.

    Args:
        pid: The process.
        place: The file it answers in.

    Raises:
        TimeoutError: It does not answer.
        OSError: There is no such process.
    """
    place.unlink(missing_ok=True)
    os.kill(pid, signal.SIGUSR1)
    end = time.monotonic() + _ANSWERS_IN
    while not place.exists():
        if time.monotonic() > end:
            raise TimeoutError("a server does not report what its objects take")
        time.sleep(_LOOKS_EVERY)
    reported = json.loads(place.read_text("utf-8"))
    return HeapState(reported["blocks"], reported["bytes"] / 1024)
