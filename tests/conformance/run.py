"""Run other people's programs against this one: `python -m tests.conformance.run`.

They are the official conformance scenarios, the command line of the MCP Inspector, and `acpx`, a
client of the Agent Client Protocol. All are packages of Node; Node too is installed where it is
missing or too old. Everything goes below `.venvs`.

Exit status: 0 all is well, or nothing can be installed here, which one line says; 1 otherwise.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from tests.conformance import acpx, inspector, suite
from tests.conformance.agent_scenes import write_scenes
from tests.conformance.node import MissingError, find_node

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterable

    from tests.conformance.suite import Outcome

PLACE = Path(__file__).parents[2] / ".venvs"
HERE = Path(__file__).parent
SKILLS = HERE / "skills"
CARDS = HERE / "cards"
AT_ONCE = 2


@contextmanager
def running_server(*command: str | Path) -> Generator[str]:
    """Run a program that serves, and give its address."""
    process = subprocess.Popen([sys.executable, *command], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    try:
        url = process.stdout.readline().strip()
        if not url:
            raise SystemExit(f"`{command[0]}` does not serve")
        yield url
    finally:
        process.terminate()
        process.communicate()


class Report:
    """What was tried so far.

    Args:
        workers: Try several things at once.
    """

    def __init__(self, workers: ThreadPoolExecutor) -> None:
        self._workers = workers
        self.tried = 0
        self.failed = 0

    def add(self, title: str, trials: Iterable[Callable[[], list[Outcome]]]) -> None:
        """Try things, and print how each went.

        Some scenarios wait for less than a second; what fails next to others is tried again alone.
        """
        print(title)
        trials = list(trials)
        again: list[Callable[[], list[Outcome]]] = []
        for trial, outcomes in zip(trials, self._workers.map(_try, trials), strict=True):
            if outcomes is None or any(one.failed for one in outcomes):
                again.append(trial)
            else:
                self._tell(outcomes)
        for trial in again:
            self._tell(trial())

    def _tell(self, outcomes: Iterable[Outcome]) -> None:
        for outcome in outcomes:
            state = "FAILED" if outcome.failed else "ok"
            print(f"{state:6} {outcome.name}: {outcome.passed} checks passed", flush=True)
            for failure in outcome.failed:
                print(f"       {failure}")
            self.tried += 1
            self.failed += bool(outcome.failed)


def _try(trial: Callable[[], list[Outcome]]) -> list[Outcome] | None:
    """Try something; return None where a program or a file failed it."""
    try:
        return trial()
    except (OSError, subprocess.SubprocessError):
        return None


def main() -> int:
    """Try everything and print how it went."""
    try:
        node = find_node(PLACE)
        program = node.program(suite.PACKAGE, suite.VERSION, "conformance")
        command_line = node.program(inspector.PACKAGE, inspector.VERSION, "mcp-inspector")
        editor = acpx.Acpx(node.program(acpx.PACKAGE, acpx.VERSION, "acpx"), node.environ)
    except MissingError as missing:
        print(f"skipped: conformance scenarios and MCP Inspector: {missing}")
        return 0
    scenarios = suite.Suite(program, node.environ)
    inspected = inspector.Inspector(command_line, node.environ, SKILLS)
    with ThreadPoolExecutor(AT_ONCE) as workers:
        report = Report(workers)
        with running_server(HERE / "server.py", "http", SKILLS) as url:
            report.add(
                "the server over HTTP",
                scenarios.server_trials(url, suite.OF_RESOURCES, suite.SERVER),
            )
        with running_server(HERE / "bridge.py", SKILLS) as url:
            report.add(
                "the server over stdio",
                scenarios.server_trials(url, suite.OF_RESOURCES, suite.OVER_STDIO),
            )
        report.add("the client", scenarios.client_trials())
        report.add("the Inspector over stdio", inspected.trials(None))
        with inspected.serving() as url:
            report.add("the Inspector over HTTP", inspected.trials(url))
        agents = inspector.AgentInspector(command_line, node.environ, CARDS)
        report.add("the Inspector and agents over stdio", agents.trials(None))
        with tempfile.TemporaryDirectory() as folder:
            write_scenes(Path(folder))
            scenes = inspector.AgentInspector(command_line, node.environ, Path(folder))
            with scenes.serving() as url:
                report.add("the Inspector and agents over HTTP", scenes.trials(url))
                report.add(
                    "agents over HTTP",
                    scenarios.server_trials(url, suite.OF_AGENTS, suite.AGENTS),
                )
        report.add("acpx, an editor without a screen", editor.trials())
    print(f"{report.tried - report.failed} of {report.tried} pass")
    return 1 if report.failed else 0


if __name__ == "__main__":
    sys.exit(main())
