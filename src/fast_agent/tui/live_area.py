"""Live area: the rows at the bottom, from the tail of an answer to the status row."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Final

from fast_agent.errors import FastAgentError
from fast_agent.tui.drawing.activity import MAX_ROWS as MAX_WORK_ROWS
from fast_agent.tui.drawing.activity import one_line, seconds, tokens
from fast_agent.tui.drawing.rows import clip, shown, width
from fast_agent.tui.input.attachments import attachment_notes
from fast_agent.tui.input.editor import MAX_ROWS as MAX_EDITOR_ROWS

if TYPE_CHECKING:
    from fast_agent.text.json_value import JsonObject
    from fast_agent.tui.console import Console

_MIN_COLUMNS: Final = 20
_MIN_ROWS: Final = 6
_QUEUE_ROWS: Final = 3
_LAST_FIELDS: Final = frozenset({"agent", "mode", "hint"})
"""Fields that are not left out as the terminal narrows."""
_MUCH_SHARE, _FULL_SHARE = 0.7, 0.9


class LiveArea:
    """Draws the rows at the bottom.

    Args:
        console: The terminal.
    """

    def __init__(self, console: Console) -> None:
        self._console = console
        self._noted: tuple[str, list[str]] = "", []

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
        menu = (menu or self._attachments(columns))[: max(0, most - len(editor) - 2)]
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
        rest = max(0, left - len(waiting) - len(work))
        activity = self._console.activity
        if activity.watched is None:
            tail = self._console.scroll.tail(columns, rest)
        else:
            tail = activity.watched_rows(columns, rest)
        before = [*tail, *work, *waiting, *above]
        return [*before, *editor, *menu, *status], (len(before) + caret[0], caret[1])

    def _attachments(self, columns: int) -> list[str]:
        """Draw the files that are sent with what is typed."""
        text, opened = self._console.editor.draft, self._console.opened
        if opened is not None and text != self._noted[0]:
            notes: list[str] = []
            if "@" in text and text[:1] not in {"/", "!"}:
                with suppress(OSError):  # a file may be gone by now
                    notes = attachment_notes(text, opened.workspace)
            row = "  ".join(f"+ {shown(note)}" for note in notes)
            self._noted = text, [row] if row else []
        return [self._console.theme.dim(clip(f"  {row}", columns)) for row in self._noted[1]]

    def _work_rows(self, columns: int, most: int) -> list[str]:
        turn = self._console.turn
        if turn is None or most <= 0:
            return []
        if turn.thinking and self._console.settings.thinking != "hide":
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
        waiting = self._console.queue.shown
        for number, (text, is_parked) in enumerate(waiting[:_QUEUE_ROWS], 1):
            label = "parked" if is_parked else "queued"
            line = f" {theme.sign('queue')} {label} {number}: {one_line(text)}"
            rows.append(theme.dim(clip(line, columns)))
        more = len(waiting) - _QUEUE_ROWS
        if more > 0:
            rows.append(theme.dim(f"   {more} more: /queue"))
        return rows

    def _status(self, columns: int) -> str:
        theme = self._console.theme
        if self._console.shown_hint:
            return clip(f"  {theme.warning(shown(self._console.shown_hint))}", columns)
        drawn = self._console.status.row
        if drawn is not None and self._console.settings.status_command:
            mode = f"{theme.danger('trusting')} " if self._mode() == "trusting" else ""
            return clip(f"  {mode}{drawn}", columns)
        values = self._status_values()
        wanted: list[str] = [name for name in self._console.settings.status if values.get(name)]
        if "mode" not in wanted and self._mode() == "trusting":
            wanted.append("mode")  # what allows everything is never hidden
        dot = f" {theme.sign('dot')} "
        for hint in (*self._hints(), "") if "hint" in wanted else ("",):
            values["hint"] = theme.dim(hint)
            fields = list(wanted)
            while fields:
                row = "  " + dot.join(values[name] for name in fields if values[name])
                if width(row) <= columns:
                    return row
                less = [name for name in fields if name not in _LAST_FIELDS]
                if not less:
                    break
                fields.remove(less[-1])
        return clip(f"  {values['agent']}", columns)

    def _status_values(self) -> dict[str, str]:
        console, theme = self._console, self._console.theme
        mode = self._mode()
        session = console.controller.session
        agent = shown(console.controller.agent)
        if session is not None and session.facts.parent is not None:
            agent = f"{theme.sign('fork')} {agent}"
        return {
            "agent": agent,
            "model": self._model(),
            "context": self._context(),
            "cost": self._cost(),
            "mode": theme.danger(mode) if mode == "trusting" else mode,
            "session": "" if session is None else shown(session.id),
            "hint": " ",
        }

    def facts(self) -> JsonObject:
        """Return the fields of the status row as values, for a command that draws it."""
        console = self._console
        controller, use = console.controller, console.context_use
        return {
            "agent": controller.agent,
            "model": self._model() or None,
            "context": None if use is None else use.to_json(),
            "cost": controller.conversation.usage.cost,
            "mode": None if console.permission is None else console.permission.mode,
            "session": None if controller.session is None else controller.session.id,
            "directory": str(controller.workspace),
            "columns": console.screen.size[0],
            "busy": console.is_busy,
            "queued": len(console.queue.lines),
        }

    def _mode(self) -> str:
        return "" if self._console.permission is None else self._console.permission.mode

    def _context(self) -> str:
        """Draw how full the context of the agent talked to was at its last answer."""
        theme, use = self._console.theme, self._console.context_use
        if use is None:
            return ""
        if use.window is None or use.share is None:
            return tokens(use.used)
        text = f"{tokens(use.used)}/{tokens(use.window)} {use.share:.0%}"
        if use.share >= _FULL_SHARE:
            return theme.error(f"{text} !! /compact")
        return theme.warning(f"{text} !") if use.share >= _MUCH_SHARE else text

    def _cost(self) -> str:
        usage = self._console.controller.conversation.usage
        return f"${usage.nanodollars / 1e9:.2f}" if usage.priced else ""

    def _model(self) -> str:
        with suppress(FastAgentError, KeyError):
            return shown(
                self._console.controller.app.runtime.model_of(self._console.controller.agent).text
            )
        return ""

    def _hints(self) -> tuple[str, ...]:
        """Return what keys do now, the longest first."""
        turn, theme = self._console.turn, self._console.theme
        if turn is None:
            parked = "Enter sends what is parked"
            return (parked if self._console.queue.is_parked else "/help, ? for keys",)
        if turn.stopping:
            return (f"stopping{theme.sign('more')}",)
        spent = seconds(int(self._console.clock() - turn.started))
        question = self._console.questions.current
        if question is not None:
            enter = f"{theme.sign('queue')} answer, " if question.parse is not None else ""
            dismiss = f"{theme.sign('stop')} dismiss"
            return f"{spent} {enter}{dismiss}", dismiss
        stop = f"{theme.sign('stop')} stop"
        if self._console.editor.is_empty:
            return f"{spent} {stop}", stop
        enter = self._console.settings.busy_enter
        other = ", Ctrl-S steer" if enter == "queue" else ""
        return f"{spent} {theme.sign('queue')} {enter}{other}, {stop}", stop
