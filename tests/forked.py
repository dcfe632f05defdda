"""Run commands of `fast-agent` to their end, in forks of a process that imported what they need.

A command then costs a tenth of a process of its own. Tests of what starting does, and of commands
that are killed or talked to, start one of their own.
"""

from __future__ import annotations

import atexit
import json
import subprocess
import sys
from contextlib import suppress
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


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
    asked = [str(cwd), [*arguments], dict(environ), stdin]
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


def import_providers() -> None:
    """Import what a command imports when it first asks a model of each provider."""
    from fast_agent.models.providers.classes import ADAPTERS

    import_module("fast_agent.models.providers.link")
    for adapter in ADAPTERS.values():
        for name in (adapter.model, adapter.provider):
            with suppress(ImportError):  # not every SDK is installed
                import_module(f"pydantic_ai.{name.partition(':')[0]}")


if __name__ == "__main__":
    from tests.golden.forked_commands import import_shared, serve

    import_shared()
    import_providers()
    serve()
