"""Talk by commands: each is run to its end."""

from __future__ import annotations

import json
import shlex
from typing import TYPE_CHECKING, Any

from tests.golden.stage import verb_of
from tests.golden.world import change_file

if TYPE_CHECKING:
    from tests.golden.stage import Step
    from tests.golden.values import Values
    from tests.golden.world import ServerProcess


class CommandTalk:
    """A user who types commands.

    Args:
        server: A process of `forked_commands.py`.
    """

    def __init__(self, server: ServerProcess) -> None:
        self._server = server

    def begin(self) -> None:
        """Begin an exchange."""

    def play(self, step: Step, values: Values) -> list[Any]:
        """Run a command or read a file; returns what it printed or holds."""
        verb = verb_of(step)
        argument = values.filled(step[verb])
        came: list[Any] = []
        if verb == "run":
            status, out, err = self.run(shlex.split(argument), step.get("at", "."))
            came = [{"exit": status, "out": _plain(out)}]
            if step.get("errors"):
                came[0]["err"] = err
        elif verb == "read":
            came = [_plain((self._server.world / argument).read_text("utf-8"))]
        else:
            change_file(self._server.world, verb, argument)
        values.keep(step.get("keep", {}), came[-1] if came else None)
        return came

    def run(self, arguments: list[str], directory: str = ".") -> tuple[int, str, str]:
        """Run a command in a directory of the world; returns its status, output and errors."""
        process = self._server.process
        assert process.stdin is not None
        assert process.stdout is not None
        asked = [directory, arguments, self._server.environ, ""]
        process.stdin.write(json.dumps(asked).encode() + b"\n")
        process.stdin.flush()
        line = process.stdout.readline()
        assert line, f"the commands ended: {self._server.log}"
        status, out, err = json.loads(line)
        return status, out, err

    def close(self) -> None:
        """End the process."""
        assert self._server.process.stdin is not None
        self._server.process.stdin.close()
        self._server.exit_status()


def _plain(text: str) -> Any:
    """Return a text as JSON, where it is that."""
    try:
        return json.loads(text)
    except ValueError:
        return text
