"""Plain mode: the conversation line by line, for screen readers and terminals that cannot draw."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Final

from anyio import wait_readable

from fast_agent.errors import FastAgentError
from fast_agent.tui.rows import plain
from fast_agent.tui.screen import Screen

if TYPE_CHECKING:
    from collections.abc import Sequence

    from fast_agent.tui.questions import Question

_PIECE: Final = 1 << 16


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


def question_lines(question: Question) -> list[str]:
    """Return a question as lines, its choices numbered."""
    lines = [f"{question.kind}: {question.title}", *question.lines]
    lines += [f"{number}. {choice.label}" for number, choice in enumerate(question.choices, 1)]
    if question.choices:
        at = question.selected
        empty = "" if at is None else f", empty for {question.choices[at].label}"
        lines.append(f"answer with a number from 1 to {len(question.choices)}{empty}, or /cancel")
    return lines


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
        question.settle(choice.value)
        return None
    try:
        question.settle(text if question.parse is None else question.parse(text))
    except FastAgentError as error:
        return error.message
    return None
