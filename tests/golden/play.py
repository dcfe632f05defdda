"""Play a stage: every exchange with a real process of the program."""

from __future__ import annotations

import json
from contextlib import ExitStack, contextmanager
from functools import cache, partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from tests.golden.http_talk import HttpTalk
from tests.golden.line_talk import LineTalk
from tests.golden.stage import OPENING, verb_of
from tests.golden.values import Values, loose, trimmed
from tests.golden.world import ServerProcess, make_world

if TYPE_CHECKING:
    from collections.abc import Generator

    from tests.golden.stage import Answers, Stage, Step
    from tests.golden.world import Program


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
            once = stage.edge == "lines"
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
def _started(stage: Stage, program: Program) -> Generator[tuple[LineTalk | HttpTalk, Values]]:
    """Start the process of a stage in a world of its own, and end it."""
    with ExitStack() as stack:
        world = make_world(Path(stack.enter_context(TemporaryDirectory())), stage.fill)
        arguments = [one.replace("${dir}", str(world)) for one in stage.command]
        server = stack.enter_context(ServerProcess(program, arguments, world))
        version = version_of(program)
        if stage.edge == "lines":
            talk: LineTalk | HttpTalk = LineTalk(stage, server)
            values = Values(world, version)
        else:
            port = server.port()
            talk, values = HttpTalk(stage, server, port), Values(world, version, port)
        yield talk, values
        talk.close()


def _played(
    talk: LineTalk | HttpTalk, steps: tuple[Step, ...], values: Values, title: str
) -> list[list[Any]]:
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
    init = (program.tree / "src/fast_agent/__init__.py").read_text("utf-8")
    return init.partition('__version__ = "')[2].partition('"')[0]
