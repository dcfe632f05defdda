"""Live area: the rows at the bottom, from the tail of an answer to the status row."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Final

from fast_agent.errors import FastAgentError
from fast_agent.tui.activity import MAX_ROWS as MAX_WORK_ROWS
from fast_agent.tui.activity import one_line, seconds, tokens
from fast_agent.tui.editor import MAX_ROWS as MAX_EDITOR_ROWS
from fast_agent.tui.rows import clip, shown, width

if TYPE_CHECKING:
    from fast_agent.tui.console import Console

_MIN_COLUMNS: Final = 20
_MIN_ROWS: Final = 6
_QUEUE_ROWS: Final = 3


class LiveArea:
    """Draws the rows at the bottom.

    Args:
        console: The terminal.
    """

    def __init__(self, console: Console) -> None:
        self._console = console

    def rows(self) -> tuple[list[str], tuple[int, int]]:
        """Draw the live area; returns its rows, and row and column of the caret."""
        columns, most = self._console.screen.size
        question = self._console.questions.current
        half = max(2, most // 2)
        room = max(2, most - 1) if question is not None else half
        editor, caret, menu = self._console.editor.rows(
            columns, min(MAX_EDITOR_ROWS, max(1, room - 2))
        )
        if question is not None and question.secret:
            editor, caret = (
                [self._console.theme.you("> ") + "*" * len(self._console.editor.draft)],
                (0, 2 + len(self._console.editor.draft)),
            )
        if columns < _MIN_COLUMNS or most < _MIN_ROWS:
            return editor[:1], (0, caret[1])
        status = [self._status(columns)]
        menu = menu[: max(0, most - len(editor) - 2)]
        left = max(0, room - len(editor) - len(status) - len(menu))
        above: list[str] = []
        if question is not None:
            above = question.rows(
                columns,
                max(4, left),
                self._console.theme,
                armed=self._console.questions.armed,
                place=self._console.questions.place,
            )
            left = max(0, left - len(above))
        waiting = self._waiting_rows(columns)[: max(0, left)]
        work = self._work_rows(columns, max(0, min(MAX_WORK_ROWS, left - len(waiting))))
        tail = self._console.scroll.tail(columns, max(0, left - len(waiting) - len(work)))
        before = [*tail, *work, *waiting, *above]
        return [*before, *editor, *menu, *status], (len(before) + caret[0], caret[1])

    def _work_rows(self, columns: int, most: int) -> list[str]:
        turn = self._console.turn
        if turn is None or most <= 0:
            return []
        if turn.thinking:
            words = one_line(turn.thinking[-columns:])
            line = f" thinking {tokens(len(turn.thinking) // 4)}  {words}"
            return [self._console.theme.dim(clip(line, columns))]
        return self._console.activity.rows(columns, most)

    def _waiting_rows(self, columns: int) -> list[str]:
        theme = self._console.theme
        rows: list[str] = []
        if self._console.turn is not None:
            sign = theme.sign("step")
            rows += [
                theme.dim(clip(f" {sign} into this turn: {one_line(one.message.text)}", columns))
                for one in self._console.turn.steering
                if not one.taken
            ]
        label = "parked" if self._console.parked else "queued"
        for number, text in enumerate(self._console.queue[:_QUEUE_ROWS], 1):
            line = f" {theme.sign('queue')} {label} {number}: {one_line(text)}"
            rows.append(theme.dim(clip(line, columns)))
        more = len(self._console.queue) - _QUEUE_ROWS
        if more > 0:
            rows.append(theme.dim(f"   {more} more: /queue"))
        return rows

    def _status(self, columns: int) -> str:
        theme = self._console.theme
        if self._console.shown_hint:
            return clip(f"  {theme.warning(shown(self._console.shown_hint))}", columns)
        desk = self._console.desk
        mode = "" if self._console.permission is None else self._console.permission.mode
        drawn_mode = theme.danger(mode) if mode == "trusting" else mode
        agent, model = shown(desk.agent), self._model()
        context = tokens(self._console.context) if self._console.context else ""
        dot = f" {theme.sign('dot')} "
        for hint in (*self._hints(), ""):
            for fields in ((agent, model, context), (agent, context), (agent,)):
                parts = (*fields, drawn_mode, theme.dim(hint))
                row = "  " + dot.join(part for part in parts if part)
                if width(row) <= columns:
                    return row
        return clip(f"  {agent}", columns)

    def _model(self) -> str:
        with suppress(FastAgentError, KeyError):
            return shown(self._console.desk.app.runtime.model_of(self._console.desk.agent).text)
        return ""

    def _hints(self) -> tuple[str, ...]:
        """Say what keys do now, the longest first."""
        turn, theme = self._console.turn, self._console.theme
        if turn is None:
            parked = "Enter sends what is parked"
            return (parked if self._console.parked else "/help, ? for keys",)
        if turn.stopping:
            return (f"stopping{theme.sign('more')}",)
        spent = seconds(int(self._console.clock() - turn.started))
        stop = f"{theme.sign('stop')} stop"
        if self._console.editor.is_empty:
            return f"{spent} {stop}", stop
        return f"{spent} {theme.sign('queue')} queue, Ctrl-S steer, {stop}", stop
