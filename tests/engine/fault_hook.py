"""Run in the process of a batch before it begins: kills or cancels it at a boundary of its steps.

The variable `FAULT` is a JSON object with `at`, the number of the boundary, from 1, or null,
`cancels`, whether the runs of the batch are cancelled there instead, as by a user, `skew`, by how
many seconds the clock is wrong, and `reached`, the file to which each boundary that is reached adds
a line.
"""

from __future__ import annotations

import json
import os
import signal
import time
from typing import TYPE_CHECKING, Any

import fast_agent.engine.batch

if TYPE_CHECKING:
    from fast_agent.steps.steps import Key

_right = time.time
_batch = fast_agent.engine.batch.Batch


class Fault:
    """Writes down each boundary that is reached, and kills the process at one of them.

    Args:
        at: The number of the boundary; None for none.
        cancels: Whether the runs are cancelled, and the process lives.
        skew: By how many seconds the clock is wrong.
        reached: Where the boundaries are written.

    Attributes:
        batch: The batch.
    """

    def __init__(self, at: int | None, *, cancels: bool, skew: float, reached: str) -> None:
        self._at = at
        self._cancels = cancels
        self._reached = os.open(reached, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        self._count = 0
        self.skew = skew
        self.batch: Any = None

    def __call__(self, boundary: str, key: Key) -> None:
        """Reach a boundary."""
        self._count += 1
        os.write(self._reached, f"{boundary} {key.kind} {key.agent}\n".encode())
        if self._count == self._at and self._cancels:
            for steps in self.batch._open.values():
                steps.cancel()
        elif self._count == self._at:
            os.kill(os.getpid(), signal.SIGKILL)


_fault = Fault(**json.loads(os.environ.pop("FAULT")))


def _faulty(*arguments: Any, **options: Any) -> fast_agent.engine.batch.Batch:
    _fault.batch = _batch(*arguments, **options, fault=_fault)
    return _fault.batch


time.time = lambda: _right() + _fault.skew
fast_agent.engine.batch.Batch = _faulty
