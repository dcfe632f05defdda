"""The command `fast-agent`.

A server of resources over stdio is started by a host at every launch, so that one command is begun
without the library that reads command lines; all others go through `cli.command_table`.
"""

from __future__ import annotations

import os
import sys

from fast_agent.cli.end_signals import ended_by_signals
from fast_agent.errors import FastAgentError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from click import Group as _Group


def __getattr__(name: str) -> _Group:
    """Return `cli`, the whole command, to code that inspects it."""
    if name == "cli":
        from fast_agent.cli.command_table import cli

        return cli
    raise AttributeError(f"module `{__name__}` has no attribute `{name}`")


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line; exit status 0, 1 (it failed), 2 (wrong usage) or 3 (not approved).

    An interrupt ends it with status 130; SIGTERM and SIGHUP end it alike, with 143 and 129.
    """
    given = sys.argv[1:] if arguments is None else list(arguments)
    try:
        with ended_by_signals():
            _run(given)
    except SystemExit as error:
        if arguments is None and isinstance(error.code, int | None):
            _leave(error.code or 0)
        raise


def _leave(status: int) -> None:
    """End the process at once if threads of Temporal's library could crash its ordinary end.

    They take the interpreter's lock while it is torn down, and end about one command in a hundred
    with a segmentation fault after everything was done.
    """
    if "temporalio.bridge.temporal_sdk_bridge" in sys.modules:
        from contextlib import suppress

        for stream in (sys.stdout, sys.stderr):
            with suppress(OSError, ValueError, AttributeError):  # closed, broken or missing
                stream.flush()
        os._exit(status)


def _run(given: list[str]) -> None:
    serves = given[:2] == ["resources", "serve"]
    # A server of resources over stdio writes next to nothing, and must start fast.
    if not serves or os.isatty(1) or os.isatty(2):
        from fast_agent.cli.output import guard_streams

        guard_streams()
    try:
        if serves:
            from fast_agent.cli.resources_fast import serve_plainly

            if serve_plainly(given[2:]):
                return
        from fast_agent.cli.command_table import cli

        cli.main(args=given or ["--help"], prog_name="fast-agent")
    except FastAgentError as error:
        from fast_agent.cli.report import report_error

        report_error(error)
        sys.exit(error.status)
    except OSError as error:
        from fast_agent.cli.report import report_system_error

        report_system_error(error)
        sys.exit(1)
