"""Process state: what a process holds of the machine, as Linux reports it."""

from __future__ import annotations

import os
from pathlib import Path
from typing import NamedTuple

_PAGE_KIB = os.sysconf("SC_PAGE_SIZE") / 1024


class ProcessState(NamedTuple):
    """What a process holds.

    Args:
        memory: Resident memory in KiB.
        descriptors: Open files, sockets and pipes.
        threads: Threads.
        children: Processes it started that have not been waited for.
        cpu_seconds: Processor time it used.
    """

    memory: float
    descriptors: int
    threads: int
    children: int
    cpu_seconds: float


def process_state(pid: int) -> ProcessState:
    """Look at a process.

    Raises:
        OSError: There is none.
    """
    place = Path("/proc") / str(pid)
    stat = (place / "stat").read_text().rpartition(")")[2].split()
    ticks = os.sysconf("SC_CLK_TCK")
    return ProcessState(
        memory=int((place / "statm").read_text().split()[1]) * _PAGE_KIB,
        descriptors=len(os.listdir(place / "fd")),  # noqa: PTH208 - names only
        threads=int(stat[17]),
        children=len(children_of(pid)),
        cpu_seconds=(int(stat[11]) + int(stat[12])) / ticks,
    )


def children_of(pid: int) -> list[int]:
    """Return the processes a process started."""
    found: list[int] = []
    for place in Path("/proc").glob("[0-9]*"):
        try:
            stat = (place / "stat").read_text().rpartition(")")[2].split()
        except OSError:
            continue  # it has ended
        if int(stat[1]) == pid:
            found.append(int(place.name))
    return found
