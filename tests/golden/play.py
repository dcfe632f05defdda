"""Play a stage: every exchange with a real process of the program."""

from __future__ import annotations

import json
from contextlib import ExitStack, contextmanager
from functools import cache, partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, Protocol

from tests.golden.command_talk import CommandTalk
from tests.golden.http_talk import HttpTalk
from tests.golden.line_talk import LineTalk
from tests.golden.stage import OPENING, verb_of
from tests.golden.values import Values, loose, trimmed
from tests.golden.world import ServerProcess, make_world, session_ids

if TYPE_CHECKING:
    from collections.abc import Generator

    from tests.golden.stage import Answers, Stage, Step
    from tests.golden.world import Program


class Talk(Protocol):
    """A way to talk to a process of the program."""

    def begin(self) -> None:
        """Begin an exchange."""
        ...

    def play(self, step: Step, values: Values) -> list[Any]:
        """Do a step; returns what came."""
        ...

    def close(self) -> None:
        """End the process."""
        ...


def play(stage: Stage, program: Program) -> Answers:
    """Play every exchange of a stage.

    Returns:
        By exchange, what came in each step, without what differs from run to run.
    """
    answers: Answers = {}
    if stage.each:
        for title, steps in stage.exchanges.items():
            with _started(stage, program) as (talk, values):
                opening = _played(talk, stage.opening, values, OPENING)
                answers.setdefault(OPENING, opening)
                answers[title] = _played(talk, steps, values, title)
    else:
        with _started(stage, program) as (talk, values):
            once = stage.edge != "http"
            if once:
                answers[OPENING] = _played(talk, stage.opening, values, OPENING)
            for title, steps in stage.exchanges.items():
                own = values.fresh()
                talk.begin()
                if not once:
                    opening = _played(talk, stage.opening, own, OPENING)
                    answers.setdefault(OPENING, opening)
                answers[title] = _played(talk, steps, own, title)
    if not stage.opening:
        del answers[OPENING]
    return answers


@contextmanager
def _started(stage: Stage, program: Program) -> Generator[tuple[Talk, Values]]:
    """Start the process of a stage in a world of its own, and end it."""
    with ExitStack() as stack:
        directory = Path(stack.enter_context(TemporaryDirectory()))
        world = make_world(directory, stage.fill, files=stage.files)
        commands = stage.edge == "commands"
        command = program.command_of_commands() if commands else program.command(stage.command)
        server = stack.enter_context(ServerProcess(program, command, world))
        port = server.port() if stage.edge == "http" else None
        values = Values(world, version_of(program), port)
        if stage.files:
            values.know(session_ids())
        talk = _talk(stage, server, port)
        yield talk, values
        talk.close()


def _talk(stage: Stage, server: ServerProcess, port: int | None) -> Talk:
    if stage.edge == "commands":
        return CommandTalk(server)
    return LineTalk(stage, server) if port is None else HttpTalk(stage, server, port)


def _played(talk: Talk, steps: tuple[Step, ...], values: Values, title: str) -> list[list[Any]]:
    answers: list[list[Any]] = []
    for number, step in enumerate(steps, 1):
        try:
            came = talk.play(step, values)
        except AssertionError as error:
            raise AssertionError(f"{title}: step {number} ({verb_of(step)}): {error}") from error
        answers.append(_recorded(step, [values.normal(one) for one in came]))
    return answers


def _recorded(step: Step, came: list[Any]) -> list[Any]:
    """Return what is recorded of a step that says what does not matter of its answer."""
    if step.get("any_order"):
        came = sorted(came, key=partial(json.dumps, sort_keys=True))
    if step.get("loose"):
        came = [loose(one) for one in came]
    return [trimmed(one) for one in came] if step.get("trim") else came


@cache
def version_of(program: Program) -> str:
    """Return the version a program says it has."""
    package = program.tree / "src/fast_agent"
    file = package / "version.py"
    text = (file if file.exists() else package / "__init__.py").read_text("utf-8")
    return text.partition('__version__ = "')[2].partition('"')[0]
