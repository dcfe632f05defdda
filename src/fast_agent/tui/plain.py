"""Plain mode: the conversation line by line, for screen readers and terminals that cannot draw."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Final

from anyio import sleep, wait_readable

from fast_agent.errors import FastAgentError
from fast_agent.tui.drawing.activity import seconds
from fast_agent.tui.drawing.rows import plain, shown
from fast_agent.tui.drawing.screen import Screen

if TYPE_CHECKING:
    from collections.abc import Sequence

    from anyio.abc import TaskGroup

    from fast_agent.tui.console import Console
    from fast_agent.tui.questions import Question

_PIECE: Final = 1 << 16
_SAY_SECONDS: Final = 10
"""Seconds without a line after which is said what is at work."""


class PlainScreen(Screen):
    """Writes finished lines, and nothing else: no escape, no motion of the cursor."""

    def enter(self) -> None:
        """Do nothing: there are no modes."""

    def leave(self) -> None:
        """Change nothing."""

    def clear(self) -> None:
        """Change nothing."""

    def send(self, sequence: str) -> None:
        """Send nothing; a terminal that shows lines obeys no sequence."""
        del sequence

    def draw(self, rows: Sequence[str], cursor: tuple[int, int], above: Sequence[str] = ()) -> None:
        """Write finished lines; the live area is not drawn."""
        del rows, cursor
        if above:
            self._write("".join(f"{plain(line)}\n" for line in above))


class LineReader:
    """Reads lines of standard input; a wait for one can be cancelled."""

    def __init__(self) -> None:
        self._rest = b""

    async def line(self) -> str | None:
        """Return the next line; None at the end of the input."""
        while b"\n" not in self._rest:
            await wait_readable(0)
            try:
                data = os.read(0, _PIECE)
            except OSError:
                data = b""
            if not data:
                rest, self._rest = self._rest, b""
                return rest.decode("utf-8", "replace") or None
            self._rest += data
        line, _, self._rest = self._rest.partition(b"\n")
        return line.decode("utf-8", "replace")


def answer(question: Question, line: str) -> str | None:
    """Answer a question with a line; returns why it does not fit, or None."""
    text = line.strip()
    if text == "/cancel":
        question.dismiss()
        return None
    if question.choices:
        at = question.selected
        choice = question.choice_of(text) if text or at is None else question.choices[at]
        if choice is None:
            return f"answer with a number from 1 to {len(question.choices)}"
        question.submit(choice.value)
        return None
    try:
        question.submit(text if question.parse is None else question.parse(text))
    except FastAgentError as error:
        return error.message
    return None


class PlainConversation:
    """Reads the lines of a conversation.

    Args:
        console: The terminal.
    """

    def __init__(self, console: Console) -> None:
        self._console = console

    async def run(self, tasks: TaskGroup) -> None:
        """Read lines until their end; what is at work then is finished first."""
        console, lines = self._console, LineReader()
        tasks.start_soon(self._report_activity)
        try:
            while not console.is_leaving:
                line = await lines.line()
                if line is None:
                    break
                self._take(line)
            while not console.is_leaving and (console.queue.is_sending or console.queue.has_ready):
                await console.settled.wait()
            await console.scroll.drained()
        finally:
            console.is_leaving = True
            tasks.cancel_scope.cancel()

    async def _report_activity(self) -> None:
        """Print what is at work, where nothing was printed for a while."""
        console, said = self._console, -1
        while True:
            await sleep(_SAY_SECONDS)
            turn = console.turn
            if turn is not None and said == console.written and console.questions.current is None:
                spent = seconds(int(console.clock() - turn.started))
                what = ", ".join(console.activity.labels()) or shown(turn.agent)
                console.scroll.add_lines([f"at work for {spent}: {what}"], "work")
                await console.scroll.drained()
            said = console.written

    def _take(self, line: str) -> None:
        question = self._console.questions.current
        if question is None:
            if line.strip():
                self._console.submit(line)
            return
        problem = answer(question, line)
        if problem is not None:
            self._console.scroll.add_lines([shown(problem)])
