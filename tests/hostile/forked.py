"""Run commands of `fast-agent`, each watched and in a fork of this process.

It reads a command as a line of JSON: directory, arguments, environment, standard input. It writes a
line with the exit status and what went to standard output and standard error. What commands import
is imported once, which makes one of them cost a tenth of a process of its own.
"""

from __future__ import annotations

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

from tests.golden.forked_commands import import_shared

from fast_agent.cli.main import main
from fast_agent.models.providers.classes import ADAPTERS

Command: TypeAlias = "tuple[str, list[str], dict[str, str], str]"
"""Directory, arguments, environment, standard input."""

WATCH = Path(__file__).parent / "watch" / "sitecustomize.py"


def be(command: Command, given: IO[bytes], out: IO[bytes], err: IO[bytes]) -> NoReturn:
    """Be one command."""
    directory, arguments, environ, _ = command
    os.environ.clear()
    os.environ.update(environ)
    os.chdir(directory)
    for here, descriptor in ((given, 0), (out, 1), (err, 2)):
        os.dup2(here.fileno(), descriptor)
    status = 0
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
    import_module("fast_agent.models.providers.link")
    for adapter in ADAPTERS.values():
        for name in (adapter.model, adapter.provider):
            with suppress(ImportError):  # not every SDK is installed
                import_module(f"pydantic_ai.{name.partition(':')[0]}")


if __name__ == "__main__":
    import_shared()
    import_providers()
    serve()
