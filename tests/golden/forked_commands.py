"""Run commands of `fast-agent`, each in a fork of this process: what they share is imported once.

It reads a command as a line of JSON: directory, arguments, environment, standard input. It writes a
line with the exit status and what went to standard output and standard error.
"""

from __future__ import annotations

import gc
import json
import os
import runpy
import sys
import tempfile
import traceback
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from typing import IO, NoReturn, TypeAlias

from fast_agent.cli.main import main

Command: TypeAlias = "tuple[str, list[str], dict[str, str], str]"
"""Directory, arguments, environment, standard input."""

WATCH = "FORKED_WATCH"
"""The variable of a command with a file that is run first, to record what the command does."""

_FIRST = ["go", "--model", "passthrough", "--message", "hi", "--session", "--quiet"]


def import_shared() -> None:
    """Import what a command imports, as a first one in a directory of its own shows."""
    with tempfile.TemporaryDirectory() as directory:
        if os.fork() == 0:
            os.environ.update(HOME=directory, FAST_AGENT_HOME=directory)
            with Path(directory, "out").open("wb") as out, suppress(BaseException):
                os.dup2(out.fileno(), 1)
                os.dup2(out.fileno(), 2)
                os.chdir(directory)
                main(_FIRST)
            Path(directory, "modules").write_text("\n".join(sys.modules))
            os._exit(0)
        os.wait()
        for name in Path(directory, "modules").read_text().splitlines():
            with suppress(ImportError):
                import_module(name)


def run(command: Command, given: IO[bytes], out: IO[bytes], err: IO[bytes]) -> NoReturn:
    """Be one command."""
    directory, arguments, environ, _ = command
    os.environ.clear()
    os.environ.update(environ)
    os.chdir(directory)
    for here, descriptor in ((given, 0), (out, 1), (err, 2)):
        os.dup2(here.fileno(), descriptor)
    if WATCH in environ:
        runpy.run_path(environ[WATCH])
    status = 0
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
    gc.freeze()  # what is shared stays shared: no fork searches it for garbage
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
                run(command, given, out, err)
            _, ended = os.waitpid(child, 0)
            texts: list[str] = []
            for file in (out, err):
                file.seek(0)
                texts.append(file.read().decode("utf-8", "replace"))
        print(json.dumps([os.waitstatus_to_exitcode(ended), *texts]), flush=True)


if __name__ == "__main__":
    import_shared()
    serve()
