"""User shell: the commands a user types behind `!`, each in the directory the last one left."""

from __future__ import annotations

import os
import shlex
import subprocess
import tempfile
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Final

from fast_agent.tools.shell.process_group import ProcessGroup
from fast_agent.tui.programs import CommandOutput, in_shell

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Mapping, Sequence

_MAX_STATE: Final = 4 << 20
_GRACE_SECONDS: Final = 2.0
_KEEP: Final = "trap '{{ pwd -P; env -0; }} >{file}' EXIT\n"
"""What a shell does at its end: the directory and the variables it had go to a file."""
_NAMES: Final = (
    "bash bpython btop dialog emacs emacsclient fish fzf gdb helix htop hx ipython joe less lldb "
    "man mc micro mongosh more most mosh mutt mysql nano ncdu nnn nvim passwd pdb psql ranger "
    "screen sftp ssh su sudo telnet tig tmux top vi view vim vimdiff visudo w3m watch zsh"
)
INTERACTIVE: Final = frozenset(_NAMES.split())
"""Programs that need the terminal, whatever their arguments."""
_WITHOUT_ARGUMENTS: Final = frozenset({"node", "python", "python3", "R", "sqlite3"})
"""Programs that read lines from the terminal unless an argument says what to run."""


class UserShell:
    """Runs commands, and keeps where they went and what they exported.

    Args:
        directory: Where the first one runs.
        environ: What the first one sees.

    Attributes:
        directory: Where the next command runs.
    """

    def __init__(self, directory: Path, environ: Mapping[str, str]) -> None:
        self._start = directory
        self.directory = directory
        self._environ = dict(environ)

    async def run(self, command: str, show: Callable[[Sequence[str]], None]) -> str:
        """Run a command, and show its output as it comes.

        Args:
            command: The command line.
            show: Takes lines of its output.

        Returns:
            The head and the tail of its output, and its status where that is not 0.
        """
        with self._with_saved_state() as before:
            output = CommandOutput(show)
            group = await ProcessGroup.start(
                in_shell(f"{before}{command}"),
                cwd=self.directory,
                env=self._environ,
                grace_seconds=_GRACE_SECONDS,
            )
            try:
                if group.process.stdout is not None:
                    async for piece in group.process.stdout:
                        output.take(piece.decode("utf-8", "replace"))
                status = await group.process.wait()
            except BaseException:
                await group.close(interrupt=True)
                raise
            finally:
                output.finish()
            await group.leave()
        if status:
            show([f"exit status {status}"])
        return output.text + (f"\nexit status {status}" if status else "")

    def run_at_terminal(self, command: str) -> int:
        """Run a command that has the terminal until it ends; returns its status."""
        with self._with_saved_state() as before:
            done = subprocess.run(
                in_shell(f"{before}{command}"),
                cwd=self.directory,
                env=self._environ,
                check=False,
            )
        return done.returncode

    @contextmanager
    def _with_saved_state(self) -> Generator[str]:
        """Yield what has a shell write its state to a file; the file is read after that."""
        if not self.directory.is_dir():
            self.directory = self._start
        with tempfile.NamedTemporaryFile(prefix="fast-agent-") as state:
            is_posix = os.name == "posix"
            # The quotes of the trap's own text end around those of the file.
            file = shlex.quote(state.name).replace("'", "'\\''")
            yield _KEEP.format(file=file) if is_posix else ""
            self._take(state.read(_MAX_STATE))

    def _take(self, state: bytes) -> None:
        place, newline, variables = state.partition(b"\n")
        if newline and place:
            self.directory = Path(os.fsdecode(place))
        pairs = [one.partition(b"=") for one in variables.split(b"\0") if b"=" in one]
        if pairs and variables.endswith(b"\0"):
            self._environ = {os.fsdecode(name): os.fsdecode(value) for name, _, value in pairs}


def needs_terminal(command: str) -> bool:
    """Whether a command line ends in a program that needs the terminal, such as `vim`."""
    try:
        lexer = shlex.shlex(command, posix=True, punctuation_chars=True)
        lexer.whitespace_split = True
        words = list(lexer)
    except ValueError:
        return False
    starts = [number + 1 for number, word in enumerate(words) if set(word) <= set("|&;()")]
    last = words[max([0, *starts]) :]
    while last and ("=" in last[0] or last[0] in {"exec", "command", "env", "nohup", "time"}):
        last = last[1:]
    if not last or any(set(word) <= set("<>&") for word in last):
        return False
    name = Path(last[0]).name
    return name in INTERACTIVE or (name in _WITHOUT_ARGUMENTS and len(last) == 1)
