"""A process that forks batches which kill or cancel themselves at a boundary of their steps.

What a batch imports is imported once, after the first one. Each line of standard input is a batch:
a JSON object with `at`, the number of the boundary to be killed at, or null, `words`, the command
line, `cwd`, `cancels`, whether its runs are cancelled there instead, as by a user, and `skew`, by
how many seconds its clock is wrong. Each line of standard output is how it ended: its status, and
the boundaries it reached.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import time
import traceback
from contextlib import suppress
from importlib import import_module
from typing import TYPE_CHECKING, Any

import fast_agent.engine.batch
from fast_agent.cli.main import main

if TYPE_CHECKING:
    from fast_agent.steps.steps import Key

_IMPORTED = "imported"
_ADAPTER = "ModelMessagesTypeAdapter"


class Fault:
    """Writes down each boundary that is reached, and kills the process at one of them.

    Args:
        at: The number of the boundary, from 1; None for none.
        pipe: Where the boundaries are written.
        cancels: Whether the runs are cancelled, and the process lives.

    Attributes:
        batch: The batch.
    """

    def __init__(self, at: int | None, pipe: int, *, cancels: bool) -> None:
        self._at = at
        self._pipe = pipe
        self._cancels = cancels
        self._count = 0
        self.batch: Any = None

    def __call__(self, boundary: str, key: Key) -> None:
        """Reach a boundary."""
        self._count += 1
        os.write(self._pipe, f"{boundary} {key.kind} {key.agent}\n".encode())
        if self._count == self._at and self._cancels:
            for steps in self.batch._open.values():
                steps.cancel()
        elif self._count == self._at:
            os.kill(os.getpid(), signal.SIGKILL)


def run(
    at: int | None, words: list[str], cwd: str, *, cancels: bool, skew: float
) -> dict[str, Any]:
    """Run a batch in a fork."""
    receiver, sender = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(receiver)
        os.chdir(cwd)
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        os.dup2(2, 1)
        batch, fault = fast_agent.engine.batch.Batch, Fault(at, sender, cancels=cancels)
        right = time.time
        time.time = lambda: right() + skew

        def faulty(*arguments: Any, **options: Any) -> fast_agent.engine.batch.Batch:
            fault.batch = batch(*arguments, **options, fault=fault)
            return fault.batch

        fast_agent.engine.batch.Batch = faulty
        status = 0
        try:
            main(words)
        except SystemExit as error:
            status = error.code if isinstance(error.code, int) else 0
        except BaseException:  # noqa: BLE001 (the boundary of the process)
            traceback.print_exc()
            status = 99
        os.write(sender, f"{_IMPORTED} {' '.join(sys.modules)}\n".encode())
        os._exit(status)
    os.close(sender)
    with os.fdopen(receiver) as lines:
        reached = lines.read().splitlines()
    if reached and reached[-1].startswith(_IMPORTED):
        for name in reached.pop().split()[1:]:
            with suppress(Exception):
                import_module(name)
        if adapter := getattr(sys.modules.get("pydantic_ai.messages"), _ADAPTER, None):
            adapter.rebuild()  # every fork would do it on its first request
    _, status = os.waitpid(child, 0)
    return {"status": os.waitstatus_to_exitcode(status), "reached": reached}


if __name__ == "__main__":
    for line in sys.stdin:
        asked = json.loads(line)
        print(json.dumps(run(**asked)), flush=True)
