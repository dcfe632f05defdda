"""Run commands of `fast-agent` to their end, in forks of a process that imported what they need.

A command then costs a tenth of a process of its own. Tests of what starting does, and of commands
that are killed or talked to, start one of their own.

The process reads a command as a line of JSON: directory, arguments, environment, standard input. It
writes a line with the exit status and what went to standard output and standard error.
"""

from __future__ import annotations

import atexit
import json
import os
import runpy
import subprocess
import sys
import tempfile
import traceback
from contextlib import suppress
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import IO, TYPE_CHECKING, NoReturn, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

Command: TypeAlias = "tuple[str, list[str], dict[str, str], str]"
"""Directory, arguments, environment, standard input."""

WATCH = Path(__file__).parent / "hostile" / "watch" / "sitecustomize.py"
"""Records what a command does, where its environment asks for that."""


def run_forked(
    arguments: Sequence[str], cwd: Path, environ: Mapping[str, str], stdin: str = ""
) -> subprocess.CompletedProcess[str]:
    """Run a command.

    Args:
        arguments: What follows `fast-agent`.
        cwd: The directory it runs in.
        environ: Its whole environment.
        stdin: What it reads on standard input.
    """
    process = _process()
    assert process.stdin is not None
    assert process.stdout is not None
    asked: Command = str(cwd), [*arguments], dict(environ), stdin
    process.stdin.write(f"{json.dumps(asked)}\n")
    process.stdin.flush()
    status, out, err = json.loads(process.stdout.readline())
    return subprocess.CompletedProcess([*arguments], status, out, err)


@cache
def _process() -> subprocess.Popen[str]:
    """Return the one of this process of tests; it ends with its standard input."""
    process = subprocess.Popen(
        [sys.executable, "-m", "tests.forked"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        cwd=Path(__file__).parents[1],
    )
    atexit.register(_end, process)
    return process


def _end(process: subprocess.Popen[str]) -> None:
    process.kill()
    process.communicate()


def be(command: Command, given: IO[bytes], out: IO[bytes], err: IO[bytes]) -> NoReturn:
    """Be one command."""
    directory, arguments, environ, _ = command
    os.environ.clear()
    os.environ.update(environ)
    os.chdir(directory)
    for here, descriptor in ((given, 0), (out, 1), (err, 2)):
        os.dup2(here.fileno(), descriptor)
    from fast_agent.cli.main import main

    status = 0
    if "HOSTILE_LOG" in environ:
        runpy.run_path(str(WATCH))
    try:
        main(arguments)
    except SystemExit as end:
        status = end.code if isinstance(end.code, int) else int(end.code is not None)
    except BaseException:  # noqa: BLE001 - the interpreter would do the same
        traceback.print_exc()
        status = 1
    with suppress(ValueError, OSError):
        sys.stdout.flush()
        sys.stderr.flush()
    os._exit(status)


def serve() -> None:
    """Run commands until standard input ends."""
    for line in sys.stdin:
        command: Command = json.loads(line)
        with (
            tempfile.TemporaryFile() as given,
            tempfile.TemporaryFile() as out,
            tempfile.TemporaryFile() as err,
        ):
            given.write(command[3].encode())
            given.seek(0)
            child = os.fork()
            if child == 0:
                be(command, given, out, err)
            _, ended = os.waitpid(child, 0)
            texts: list[str] = []
            for file in (out, err):
                file.seek(0)
                texts.append(file.read().decode("utf-8", "replace"))
        print(json.dumps([os.waitstatus_to_exitcode(ended), *texts]), flush=True)


def import_providers() -> None:
    """Import what a command imports when it first asks a model of each provider."""
    from fast_agent.models.providers.classes import ADAPTERS

    import_module("fast_agent.models.providers.link")
    for adapter in ADAPTERS.values():
        for name in (adapter.model, adapter.provider):
            with suppress(ImportError):  # not every SDK is installed
                import_module(f"pydantic_ai.{name.partition(':')[0]}")


if __name__ == "__main__":
    from tests.golden.forked_commands import import_shared

    import_shared()
    import_providers()
    serve()
