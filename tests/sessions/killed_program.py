"""A program that is killed: run once for every point of its log, each time in a process of its own.

`python -m tests.sessions.killed_program HOME` prints a line of JSON for each: where it was killed,
the session, and what it had shown before. Killed after it wrote, it has waited for the disk at the
end of every turn; killed before, at the first one only. Then once more, with nobody listening: all
that is shown is the answers.
"""

from __future__ import annotations

import json
import math
import os
import signal
import sys
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

import anyio
from tests.sessions.live_world import live, world_of
from tests.sessions.wrapped_journal import WrappedJournal

from fast_agent.agents.events import ModelAnswered, ToolFinished, TurnFinished, TurnStarted
from fast_agent.sessions.store import SessionStore

if TYPE_CHECKING:
    from fast_agent.agents.events import Event
    from fast_agent.sessions.event import SessionEvent
    from fast_agent.sessions.journal import SessionJournal


class Deadly(WrappedJournal):
    """A journal that kills its process before or after it writes for the `last`th time."""

    def __init__(self, inner: SessionJournal, last: int, *, after: bool) -> None:
        super().__init__(inner)
        self._left = last
        self._after = after

    def record(self, *events: SessionEvent) -> None:
        self._die(after=False)
        self._inner.record(*events)
        self._die(after=True)

    def record_durably(self, *events: SessionEvent) -> None:
        self._die(after=False)
        self._inner.record_durably(*events)
        self._die(after=True)

    def _die(self, *, after: bool) -> None:
        if after == self._after:
            self._left -= 1
            if self._left == 0:
                os.kill(os.getpid(), signal.SIGKILL)


def run(home: Path, out: int, last: int, *, after: bool, quiet: bool) -> None:
    """Run turns of all kinds, telling what is shown, until the process is killed or done."""
    store = SessionStore(home, disk_seconds=0.0 if after else math.inf)

    def show(event: Event) -> None:
        match event:
            case TurnStarted() | ModelAnswered():
                shown = event.message.text or [call.name for call in event.message.tool_calls]
            case ToolFinished():
                shown = event.result.text
            case TurnFinished():
                shown = event.message.text if event.message else None
            case _:
                return
        line = [type(event).__name__, event.origin.agent, shown]
        os.write(out, json.dumps(line).encode() + b"\n")

    async def turns() -> None:
        with store.create() as session:
            os.write(out, json.dumps(session.id).encode() + b"\n")
            journal = Deadly(session.journal, last, after=after)
            async with live(world_of(), journal, listener=None if quiet else show) as runtime:

                async def ask(agent: str, text: str) -> None:
                    answer = await runtime.agent(agent).send(text)
                    os.write(out, json.dumps(["Answer", agent, answer]).encode() + b"\n")

                await ask("kid", "alone")
                await ask("lead", "go far")
                runtime.agent("kid").clear()
                await ask("flow", "through")

    anyio.run(turns)


def killed(home: Path, last: int, *, after: bool, quiet: bool) -> bool:
    """Run it in a process of its own, and print what came of it; returns whether it was killed."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reading)
        run(home, writing, last, after=after, quiet=quiet)
        os._exit(0)
    os.close(writing)
    with os.fdopen(reading) as pipe:
        session, *shown = [json.loads(line) for line in pipe]
    status = os.waitpid(child, 0)[1]
    died = os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGKILL
    if not died and status != 0:
        raise SystemExit(f"the program failed with status {status}")
    print(json.dumps([last, after, quiet, died, session, shown]), flush=True)
    return died


LATE = (
    "anyio._backends._asyncio",
    "fast_agent.agents.history.journal",
    "fast_agent.sessions.state",
    "fast_agent.workflows.chain",
)
"""What a run imports only when it needs it; imported before, so that each process has it."""

if __name__ == "__main__":
    for name in LATE:
        import_module(name)
    for after, quiet in ((False, False), (True, False), (False, True)):
        number = 1
        while killed(Path(sys.argv[1]), number, after=after, quiet=quiet):
            number += 1
