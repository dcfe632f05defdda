"""Whole processes: how long one ran, and how much memory it held at most.

The kernel counts the memory of the process that starts another as that other's own until it runs
its program. So the benchmark's own process imports nothing heavy: its size is the least value that
can be seen.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from threading import Timer
from typing import TYPE_CHECKING, Any, cast

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

_TAIL = 800
_RSS_UNIT = 1 if sys.platform == "darwin" else 1024


class BenchError(Exception):
    """Something could not be measured; the message says why."""


@dataclass(frozen=True, slots=True)
class Run:
    """A process that has ended well.

    Args:
        seconds: From its start to its end.
        processor_seconds: What it and the processes it waited for took of processors.
        peak_mib: The most memory it held, in MiB.
        output: What it wrote to standard output.
    """

    seconds: float
    processor_seconds: float
    peak_mib: float
    output: str


def run_process(
    command: Sequence[str | Path],
    *,
    cwd: Path,
    environ: Mapping[str, str],
    expect: str = "",
    timeout: float = 600,
) -> Run:
    """Run a command to its end.

    Args:
        command: The program and its arguments.
        cwd: Where it runs.
        environ: Its whole environment.
        expect: A text that its output must hold.
        timeout: When it is killed, in seconds.

    Raises:
        BenchError: It failed, or its output is another.
    """
    shown = " ".join(map(str, command[:4]))
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        start = time.perf_counter()
        try:
            process = subprocess.Popen(
                command, cwd=cwd, env=environ, stdin=subprocess.DEVNULL, stdout=out, stderr=err
            )
        except OSError as error:
            raise BenchError(f"`{shown}` cannot be run: {error}") from error
        clock = Timer(timeout, process.kill)
        clock.start()
        try:
            _, status, usage = os.wait4(process.pid, 0)
            seconds = time.perf_counter() - start
        finally:
            clock.cancel()
        process.returncode = os.waitstatus_to_exitcode(status)
        texts: list[str] = []
        for file in (out, err):
            file.seek(0)
            texts.append(file.read().decode("utf-8", "replace"))
    output, errors = texts
    if process.returncode != 0:
        raise BenchError(f"`{shown}` failed: {(errors or output).strip()[-_TAIL:]}")
    if expect not in output:
        raise BenchError(f"`{shown}` did not say `{expect}` but: {output.strip()[-_TAIL:]}")
    worked = usage.ru_utime + usage.ru_stime
    return Run(seconds, worked, usage.ru_maxrss * _RSS_UNIT / 2**20, output)


def processor_seconds(pid: int) -> float:
    """Return what all threads of a running process took of processors so far, to the nanosecond.

    Raises:
        BenchError: This system does not report it.
    """
    try:
        threads = [one / "schedstat" for one in Path(f"/proc/{pid}/task").iterdir()]
        return sum(int(one.read_text("ascii").split()[0]) for one in threads) / 1e9
    except (OSError, ValueError) as error:
        msg = f"the processor time of a process cannot be seen here: {error}"
        raise BenchError(msg) from error


def run_json(
    command: Sequence[str | Path], *, cwd: Path, environ: Mapping[str, str], timeout: float = 600
) -> dict[str, Any]:
    """Run a command whose last line is a JSON object, and give the object.

    Raises:
        BenchError: It failed, or its last line is something else.
    """
    run = run_process(command, cwd=cwd, environ=environ, timeout=timeout)
    lines = run.output.strip().splitlines()
    try:
        value: object = json.loads(lines[-1]) if lines else None
    except ValueError:
        value = None
    if not isinstance(value, dict):
        raise BenchError(f"no JSON object came from `{' '.join(map(str, command[:4]))}`")
    return cast("dict[str, Any]", value)
