"""`acpx`, a command-line client of the Agent Client Protocol, tried against `fast-agent acp`."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from tests.conformance.suite import MAX_SECONDS, Outcome
from tests.patience import wait_until
from tests.processes import lives_with

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

PACKAGE = "acpx"
VERSION = "0.19.1"
_AGENT = f"{Path(sys.executable).with_name('fast-agent')} acp --model passthrough --shell"
_CALL = "***CALL_TOOL"


class Trial(NamedTuple):
    """A conversation.

    Args:
        name: What is tried.
        calls: The arguments of each call of the client, one after another.
        said: What the last one prints.
        made: The file that is there afterwards, with its text; None where there is none.
    """

    name: str
    calls: tuple[tuple[str, ...], ...]
    said: str
    made: str | None = None


TRIALS = (
    Trial("a prompt", (("exec", "hello there"),), "hello there"),
    Trial("a slash command", (("exec", "/agents"),), "- `agent` (current): agent"),
    Trial(
        "a command in a terminal",
        (("--approve-all", "exec", f'{_CALL} execute {{"command": "echo loud"}}'),),
        "loud\n[exit code 0]",
    ),
    Trial(
        "a command that is not allowed",
        (("--deny-all", "exec", f'{_CALL} execute {{"command": "touch made"}}'),),
        "`execute` was not run: the user does not allow it",
    ),
    Trial(
        "a file that is written",
        (
            (
                "--approve-all",
                "exec",
                f'{_CALL} write_text_file {{"path": "made", "content": "by it"}}',
            ),
        ),
        "wrote 5 characters to ",
        "by it",
    ),
    Trial(
        "a session that another process goes on with",
        (("sessions", "new"), ("first",), ("second",), ("/history",)),
        "- 1 user: first\n- 2 assistant: first\n- 3 user: second\n- 4 assistant: second",
    ),
)


class Acpx:
    """The client's program.

    Args:
        program: Where it is.
        environ: What it runs in.
    """

    def __init__(self, program: Path, environ: Mapping[str, str]) -> None:
        self._program = program
        self._environ = environ

    def trials(self) -> Iterator[Callable[[], list[Outcome]]]:
        """Everything that is tried."""
        for trial in TRIALS:
            yield partial(self._try, trial)

    def _try(self, trial: Trial) -> list[Outcome]:
        with tempfile.TemporaryDirectory() as place:
            said, reported = "", ""
            for call in trial.calls:
                done = self._call(Path(place), call)
                said = done.stdout
                reported += (
                    f"{call} ended with {done.returncode}: {said[-300:]} {done.stderr[-300:]}\n"
                )
            made = Path(place, "made")
            there = made.read_text("utf-8") if made.exists() else None
            # A process of the client holds the session, and writes here until it ends.
            wait_until(lambda: not lives_with(f"HOME={place}/.home"))
        if trial.said not in said:
            return [Outcome(trial.name, 0, (reported,))]
        if there != trial.made:
            return [Outcome(trial.name, 0, (f"the file holds {there!r}",))]
        return [Outcome(trial.name, 1, ())]

    def _call(self, place: Path, arguments: tuple[str, ...]) -> subprocess.CompletedProcess[str]:
        options = ("--cwd", place, "--ttl", "1", "--format", "quiet", "--agent", _AGENT)
        # Options of the client stand before its commands.
        return subprocess.run(
            [self._program, *options, *arguments],
            env={**self._environ, "HOME": f"{place}/.home", "FAST_AGENT_HOME": f"{place}/.home"},
            capture_output=True,
            text=True,
            check=False,
            timeout=MAX_SECONDS,
        )
