"""Console keys: what the terminal's own keys do, between turns and while one works."""

from __future__ import annotations

import os
from functools import partial
from typing import TYPE_CHECKING, Final

from anyio.to_thread import run_sync

from fast_agent.commands.completion import complete, complete_from_server
from fast_agent.errors import FastAgentError
from fast_agent.tui.console import SIGNS
from fast_agent.tui.console_programs import details, external_editor, transcript
from fast_agent.tui.drawing.scroll import quoted
from fast_agent.tui.input.attachments import mention, path_being_named
from fast_agent.tui.input.keyboard import suspend
from fast_agent.tui.input.workspace_files import WorkspaceFiles
from fast_agent.tui.questions import MODES

if TYPE_CHECKING:
    from collections.abc import Iterator

    from fast_agent.tui.console import Console
    from fast_agent.tui.questions import Question

_TWICE_SECONDS: Final = 1.5
_ESCAPES_SECONDS: Final = 0.5


class ConsoleKeys:
    """What keys do; see `editor.Actions`.

    Args:
        console: The terminal.
    """

    def __init__(self, console: Console) -> None:
        self._console = console
        self._interrupted = -_TWICE_SECONDS
        self._escaped = -_TWICE_SECONDS
        self._files: WorkspaceFiles | None = None

    def redraw(self) -> None:
        """Draw the live area."""
        self._console.redraw()

    def act(self, action: str) -> bool:
        """Do what a key of the table does; see `Actions.act`."""
        self._console.shown_hint = ""
        question = self._console.questions.current
        if question is not None and self._answers(question, action):
            return True
        handler = getattr(self, f"_key_{action}", None)
        return False if handler is None else bool(handler())

    def typed(self, key: str) -> bool:
        """Take a key before the editor; see `Actions.typed`."""
        self._console.shown_hint = ""
        question = self._console.questions.current
        if question is None or not question.choices:
            return False
        choice = question.choice_of(key) if self._console.questions.armed else None
        self._console.questions.note_key()
        if choice is None:
            return False
        question.submit(choice.value)
        return True

    def completions(self, line: str) -> Iterator[tuple[str, int, str]]:
        """Yield how a line may continue; see `Actions.completions`."""
        if self._console.opened is None:
            return
        found = False
        if line[:1] in SIGNS and "\n" not in line:
            for one in complete(line, self._console.opened, self._console.commands):
                found = True
                yield one.text, one.start, one.about
        named = path_being_named(line)
        if not found and named is not None:
            start, typed = named
            for path in self._file_completions(typed):
                if '"' not in path:  # no message can name it
                    yield mention(path), start, ""

    async def server_completions(self, line: str) -> list[tuple[str, int, str]]:
        """Return how a line may continue as a server says; see `Actions.server_completions`."""
        controller = self._console.opened
        if controller is None or not line.startswith(("/prompts ", "/resources ")):
            return []
        found = await complete_from_server(line, controller)
        return [(one.text, one.start, one.about) for one in found]

    def _file_completions(self, typed: str) -> list[str]:
        """Return how a path behind `@` may continue; the tree is read beside it."""
        if self._files is None:
            self._files = WorkspaceFiles(self._console.controller.workspace, self._console.clock)
        if self._files.is_stale:
            self._console.start(self._read_files, self._files)
        return self._files.completions(typed)

    async def _read_files(self, files: WorkspaceFiles) -> None:
        if not files.is_stale:
            return
        is_first, files.is_reading = not files.is_read, True
        await run_sync(files.read)
        if is_first and self._console.editor.is_naming_file:
            self._console.editor.buffer.start_completion()

    def terminal_size(self) -> tuple[int, int]:
        """Return columns and rows."""
        return self._console.screen.size

    def _answers(self, question: Question, action: str) -> bool:
        """Do what a key does while a question is shown."""
        armed = self._console.questions.armed
        match action:
            case "send" if question.parse is not None:
                self._answer_text(question)
            case "send":
                if armed and question.selected is not None:
                    question.submit(question.choices[question.selected].value)
            case "escape" | "interrupt":
                if armed or question.parse is not None:
                    question.dismiss()
            case "up" | "down" if question.choices:
                step = 1 if action == "down" else -1
                at = -1 if question.selected is None else question.selected
                question.selected = (at + step) % len(question.choices)
            case "complete" if len(self._console.questions.place):
                self._console.questions.next()
            case "page_down" | "page_up":
                question.first_line = max(
                    0, question.first_line + (5 if action == "page_down" else -5)
                )
            case _:
                return False
        return True

    def _answer_text(self, question: Question) -> None:
        text = self._console.editor.text if question.secret else self._console.editor.text.strip()
        if text.strip() == "/cancel":
            self._console.editor.clear()
            question.dismiss()
            return
        try:
            value = question.parse(text) if question.parse is not None else text
        except FastAgentError as error:
            question.problem = error.message
            return
        self._console.editor.clear()
        if not question.secret and text:
            self._console.scroll.add_lines(
                quoted(f"> {text}", self._console.scroll.text_width), "answer"
            )
        question.submit(value)

    def _key_send(self) -> bool:
        if self._console.editor.send_key():
            return True
        text = self._console.editor.take()
        if not text.strip():
            if self._console.queue.is_parked:
                self._console.resume_queue()
            return True
        if text.strip() == "/session" and not self._console.is_busy:
            self._offer("/session resume ")  # a picker: letters search, Tab chooses
            return True
        if self._console.is_busy and self._console.settings.busy_enter == "steer":
            if text[:1] in SIGNS or text.startswith("!"):
                self._console.submit(text)
            else:
                self._console.steer(text)
            return True
        self._console.submit(text)
        return True

    def _key_steer(self) -> bool:
        if not self._console.is_busy:
            return self._key_send()
        text = self._console.editor.take()
        if text.strip():
            self._console.steer(text)
        return True

    def _key_escape(self) -> bool:
        if self._console.editor.close_menu():
            return True
        if self._console.editor.leave_insertion():
            return True
        if self._console.activity.watched is not None:
            self._console.activity.watched = None
            return True
        if self._console.is_busy:
            self._console.stop()
            return True
        now, before = self._console.clock(), self._escaped
        self._escaped = now
        if self._console.editor.is_empty and now - before <= _ESCAPES_SECONDS:
            self._escaped = -_TWICE_SECONDS
            self._console.submit("/history rewind")
        return True

    def _key_interrupt(self) -> bool:
        now = self._console.clock()
        twice = now - self._interrupted <= _TWICE_SECONDS
        self._interrupted = now
        if self._console.editor.close_menu():
            return True
        if self._console.turn is not None:
            if self._console.turn.stopping and twice:
                self._console.leave()
            self._console.stop()
        elif not self._console.editor.is_empty:
            self._console.editor.take()
            self._interrupted = -_TWICE_SECONDS
        elif twice:
            self._console.leave()
        else:
            self._console.hint("Ctrl-C again exits; so does /exit")
        return True

    def _key_end(self) -> bool:
        if not self._console.editor.is_empty:
            return False
        now = self._console.clock()
        if self._console.is_busy and now - self._interrupted > _TWICE_SECONDS:
            self._interrupted = now
            self._console.hint("a turn is running; Ctrl-D again stops it and leaves")
            return True
        self._console.leave()
        return True

    def _key_suspend(self) -> bool:
        if os.name == "posix":
            self._console.programs.run(suspend)
        return True

    def _key_mode(self) -> bool:
        if (
            self._console.editor.buffer.complete_state is not None
            or self._console.permission is None
        ):
            return False
        place = MODES.index(self._console.permission.mode)
        self._console.permission.mode = MODES[(place + 1) % len(MODES)]
        return True

    def _key_up(self) -> bool:
        is_first = self._console.editor.buffer.document.cursor_position_row == 0
        if (
            self._console.queue.lines
            and is_first
            and self._console.editor.is_empty
            and self._console.is_busy
        ):
            self._console.editor.put(self._console.queue.pop())
            return True
        return False

    def _key_clear(self) -> bool:
        self._console.screen.clear()
        return True

    def _key_editor(self) -> bool:
        self._console.programs.run(partial(external_editor, self._console))
        return True

    def _key_transcript(self) -> bool:
        self._console.programs.run(partial(transcript, self._console))
        return True

    def _key_details(self) -> bool:
        if not self._console.editor.expand():
            self._console.programs.run(partial(details, self._console))
        return True

    def _key_image(self) -> bool:
        self._console.programs.attach_image()
        return True

    def _key_copy(self) -> bool:
        self._console.submit("/copy")
        return True

    def _key_copy_code(self) -> bool:
        self._console.submit("/copy code")
        return True

    def _key_model(self) -> bool:
        self._offer("/model ")
        return True

    def _key_agent(self) -> bool:
        self._offer("/agent ")
        return True

    def _key_help(self) -> bool:
        self._console.submit("/keys")
        return True

    def _offer(self, line: str) -> None:
        """Insert the start of a command into the editor, with its completions."""
        if self._console.editor.is_empty:
            self._console.editor.put(line)
            self._console.editor.buffer.start_completion()
