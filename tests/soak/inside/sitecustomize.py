"""What a served process of a soak reports of its own memory when it gets SIGUSR1.

Python runs this before the program, since the directory stands in `PYTHONPATH`. What a process
holds from outside is also what its allocator keeps for later; from inside it is known to the block.
"""

from __future__ import annotations

import ctypes
import gc
import json
import os
import signal
import sys
from pathlib import Path

_FIELDS = (
    *("arena", "ordblks", "smblks", "hblks", "hblkhd"),
    *("usmblks", "fsmblks", "uordblks", "fordblks", "keepcost"),
)


class _Allocated(ctypes.Structure):
    """What `mallinfo2` gives."""

    _fields_ = tuple((name, ctypes.c_size_t) for name in _FIELDS)


def _tell(number: int, frame: object) -> None:
    del number, frame
    gc.collect()
    library = ctypes.CDLL(None)
    library.mallinfo2.restype = _Allocated
    allocated = library.mallinfo2()
    reported = {"blocks": sys.getallocatedblocks(), "bytes": allocated.uordblks + allocated.hblkhd}
    place = Path(os.environ["SOAK_HEAP"])
    beside = place.with_suffix(".new")
    beside.write_text(json.dumps(reported), "utf-8")
    beside.replace(place)


if "SOAK_HEAP" in os.environ:
    signal.signal(signal.SIGUSR1, _tell)
