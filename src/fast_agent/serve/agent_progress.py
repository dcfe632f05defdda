"""Progress: what a client receives while an agent works."""

from __future__ import annotations

from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

import anyio

from fast_agent.agents.events import (
    ChildFinished,
    ChildStarted,
    ModelRequested,
    ToolFinished,
    ToolProgressed,
    ToolStarted,
    Warned,
    WorkflowAdvanced,
)
from fast_agent.workflows.workflow_line import workflow_line

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Awaitable, Callable

    from fast_agent.agents.events import Event, Listener

    Report = Callable[[float, str], Awaitable[None]]

LONGEST = 200
"""Most characters of one message."""


class Progress:
    """Steps of a turn on their way to one client.

    A slow client receives only the newest step, so it delays no other and costs no memory.
    """

    def __init__(self) -> None:
        self._steps = 0
        self._message = ""
        self._told = 0
        self._moved = anyio.Event()
        self._ended = False

    def hear(self, event: Event) -> None:
        """Take an event of the turn or of one below it."""
        message = step_of(event)
        if message is not None:
            self._steps += 1
            self._message = message[:LONGEST]
            self._moved.set()

    def end(self) -> None:
        """Let `tell` end when the newest step was sent."""
        self._ended = True
        self._moved.set()

    async def tell(self, report: Report) -> None:
        """Report every step that was not overtaken by another, until `end`."""
        while True:
            if self._steps > self._told:
                self._told = self._steps
                await report(self._told, self._message)
            elif self._ended:
                return
            else:
                self._moved = anyio.Event()
                await self._moved.wait()


@asynccontextmanager
async def reported(report: Report | None) -> AsyncGenerator[Listener | None]:
    """Report the events that the listener given here hears.

    Args:
        report: Tells the client: (steps so far, message); None where it does not want to know.
    """
    if report is None:
        yield None
        return
    progress = Progress()
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(progress.tell, report)
        try:
            yield progress.hear
        finally:
            progress.end()


def step_of(event: Event) -> str | None:
    """Describe a step of a turn in one line; None for anything that is not a separate step."""
    agent = event.origin.agent
    match event:
        case ModelRequested(model=model):
            return f"{agent}: asks {model}"
        case ToolStarted(call=call):
            return f"{agent}: calls {call.name}"
        case ToolFinished(call=call, result=result):
            return f"{agent}: {call.name} {'failed' if result.is_error else 'is done'}"
        case ToolProgressed(progress=progress, total=total, message=message):
            share = f"{progress:g}" if total is None else f"{progress:g} of {total:g}"
            last = (message or "").rpartition("\n")[2]
            return f"{agent}: {share} {last}".rstrip()
        case ChildStarted(child=child):
            return f"{agent}: {child} begins"
        case ChildFinished(child=child, error=error):
            return f"{agent}: {child} {'is done' if error is None else 'failed'}"
        case WorkflowAdvanced(kind=kind, facts=facts):
            line = " ".join(workflow_line(kind, facts).split())
            return f"{agent}: {line}" if line else None
        case Warned(message=message):
            return f"{agent}: {message}"
        case _:
            return None
