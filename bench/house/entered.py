"""Entered: the files that one plain `tools/call` runs through, and those that `go` loads.

Run as a program, this serves with a profiler: SIGUSR1 begins to note files, SIGUSR2 writes them.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from inspect import CO_OPTIMIZED
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from types import FrameType

WAIT_SECONDS = 60.0
ROUNDS = 9
_PACKAGE = f"{os.sep}fast_agent{os.sep}"
_GO = ("go", "--model", "passthrough", "--message", "hi")
_LOADED = """\
import atexit, sys
from fast_agent.cli.main import main
atexit.register(lambda: print(sum(n.partition(".")[0] == "fast_agent" for n in sys.modules)))
main(sys.argv[1:])
"""


def files_entered(source: Path) -> list[str]:
    """Return the files of which a function is called for the first call of an agent.

    The call is plain: over stdio, without progress, of a client that cannot be asked anything. The
    conversation is kept, as it is by default.

    Args:
        source: The directory with the package.
    """
    with TemporaryDirectory() as directory:
        work = Path(directory)
        (work / "echo.md").write_text("---\nname: echo\nmodel: passthrough\n---\nRepeat.\n")
        serve = ("serve", "--card", "echo.md", "--transport", "stdio")
        process = subprocess.Popen(
            [sys.executable, "-P", __file__, *serve],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            cwd=work,
            env=_environ(source, work),
        )
        try:
            _ask(process, "initialize", _HELLO)
            process.send_signal(signal.SIGUSR1)
            _wait_for(work / "noting")
            _ask(process, "tools/call", _CALL)
            process.send_signal(signal.SIGUSR2)
            _wait_for(work / "entered.json")
            found: list[str] = json.loads((work / "entered.json").read_text())
        finally:
            process.communicate()
    return found


def modules_loaded(source: Path) -> int:
    """Count our modules that are loaded when `go` has answered one message."""
    return int(_go(source, ("-c", _LOADED, *_GO)).split()[-1])


def seconds_of_go(source: Path) -> float:
    """Measure the whole process of `go` with one message: the median, in seconds."""
    taken: list[float] = []
    for _ in range(ROUNDS):
        start = time.perf_counter()
        _go(source, ("-c", "from fast_agent.cli.main import main; main()", *_GO))
        taken.append(time.perf_counter() - start)
    return median(taken)


_HELLO = {
    "protocolVersion": "2025-11-25",
    "capabilities": {},
    "clientInfo": {"name": "house", "version": "1"},
}
_CALL = {"name": "echo", "arguments": {"message": "hi"}}


def _go(source: Path, arguments: tuple[str, ...]) -> str:
    with TemporaryDirectory() as directory:
        work = Path(directory)
        done = subprocess.run(
            [sys.executable, "-P", *arguments],
            cwd=work,
            env=_environ(source, work),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=True,
        )
    return done.stdout


def _environ(source: Path, work: Path) -> dict[str, str]:
    home = str(work / "home")
    environ = {**os.environ, "PYTHONPATH": str(source), "HOME": home, "FAST_AGENT_HOME": home}
    # As users have it: without, each process compiles every changed file again.
    environ.pop("PYTHONDONTWRITEBYTECODE", None)
    return environ


def _ask(process: subprocess.Popen[bytes], method: str, params: dict[str, Any]) -> None:
    assert process.stdin is not None
    assert process.stdout is not None
    request = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
    process.stdin.write(json.dumps(request).encode() + b"\n")
    process.stdin.flush()
    answer = json.loads(process.stdout.readline())
    assert "result" in answer, answer


def _wait_for(path: Path) -> None:
    end = time.monotonic() + WAIT_SECONDS
    while not path.exists():
        assert time.monotonic() < end, f"`{path.name}` was not written"
        time.sleep(0.005)


def _serve(arguments: list[str]) -> None:
    """Serve, and note the files in which functions are called."""
    from fast_agent.cli.main import main

    entered: set[str] | None = None

    def note(frame: FrameType, event: str, argument: object) -> None:  # noqa: ARG001
        if entered is not None and event == "call":
            code = frame.f_code
            if code.co_flags & CO_OPTIMIZED:  # a function, not the body of a module or a class
                entered.add(code.co_filename)

    def begin(number: int, frame: FrameType | None) -> None:  # noqa: ARG001
        nonlocal entered
        entered = set()
        Path("noting").touch()

    def write(number: int, frame: FrameType | None) -> None:  # noqa: ARG001
        ours = sorted(
            one.rpartition(_PACKAGE)[2] for one in tuple(entered or ()) if _PACKAGE in one
        )
        Path("entered.part").write_text(json.dumps(ours))
        Path("entered.part").rename("entered.json")

    signal.signal(signal.SIGUSR1, begin)
    signal.signal(signal.SIGUSR2, write)
    threading.setprofile(note)
    sys.setprofile(note)
    main(arguments)


if __name__ == "__main__":
    _serve(sys.argv[1:])
