"""Other programs at the terminal: the user's editor, pager and shell, and the clipboard."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from anyio import CancelScope
from anyio.to_thread import run_sync

from fast_agent.config.home import home_directory
from fast_agent.errors import os_reason
from fast_agent.tui.drawing.rows import shown
from fast_agent.tui.drawing.turn_lines import TurnState
from fast_agent.tui.input.attachments import with_shell_output
from fast_agent.tui.input.keyboard import cooked_terminal, interrupts_passed, suspend
from fast_agent.tui.programs import (
    call_text,
    clipboard_image,
    document_text,
    edited,
    page,
    transcript_text,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from fast_agent.messages.message import Message
    from fast_agent.tui.console import Console
    from fast_agent.tui.user_shell import UserShell


def external_editor(console: Console) -> None:
    """Edit the typed text in the user's editor."""
    console.editor.put(edited(console.editor.text))


def transcript(console: Console) -> None:
    """Show what the agent remembers in the pager."""
    agent = console.controller.instance()
    columns = console.screen.size[0]
    page(transcript_text(agent.name, agent.history, columns, console.theme))


def document(console: Console, source: str) -> None:
    """Show a document of the program in the pager."""
    page(document_text(source, console.screen.size[0], console.theme), at_end=False)


def details(console: Console) -> None:
    """Show the last tool call whole in the pager."""
    detail = console.activity.last
    if detail is None:
        console.note("no tool was called yet")
    else:
        page(call_text(detail.call, detail.result, console.theme, detail.output))


class OtherPrograms:
    """Gives the terminal to other programs, and takes it back; runs the user's commands.

    Args:
        console: The terminal.

    Attributes:
        is_away: Whether another program has the terminal.
    """

    def __init__(self, console: Console) -> None:
        self._console = console
        self._held: list[str] = []
        self._user_shell: UserShell | None = None
        self._output = ""
        self.is_away = False

    def hold(self, lines: Sequence[str]) -> bool:
        """Keep lines until the terminal is back; returns whether it is away."""
        if self.is_away:
            self._held += lines
        return self.is_away

    def run(self, work: Callable[[], None]) -> None:
        """Give the terminal to a program until it ends.

        Args:
            work: Runs the program; `suspend` stops this one until the shell continues it.
        """
        if not self.is_away:
            self._console.start(self._leave_terminal, work)

    async def _leave_terminal(self, work: Callable[[], None]) -> None:
        console = self._console
        console.screen.leave()
        self.is_away = True
        try:
            with console.editor.application.input.detach(), cooked_terminal(), interrupts_passed():
                if work is suspend:
                    work()  # the whole process stops, so no thread is needed
                else:
                    await run_sync(work)
        except OSError as error:
            console.note(f"the program could not be run: {os_reason(error)}")
        finally:
            self.is_away = False
            console.screen.forget()
            console.screen.enter()
            if work is suspend:
                console.screen.send("\r\x1b[K")  # keys typed before `fg` continued were echoed
            held, self._held = self._held, []
            console.commit(held)

    async def shell(self, line: str) -> None:
        """Run what a user typed behind `!`; its output goes to the agent, that of `!!` does not."""
        from fast_agent.tui.user_shell import UserShell, needs_terminal

        console = self._console
        is_shared = not line.startswith("!!")
        command = line.lstrip("!").strip()
        if not command:
            return
        console.scroll.add_lines([console.theme.you("! ") + shown(command)], "command")
        shell = self._user_shell or UserShell(console.controller.workspace, os.environ)
        self._user_shell, before = shell, shell.directory
        if needs_terminal(command) and not console.theme.is_spoken:
            statuses: list[int] = []
            await self._leave_terminal(lambda: statuses.append(shell.run_at_terminal(command)))
            if any(statuses):
                console.note(f"exit status {statuses[0]}")
            return
        scope = CancelScope()
        console.turn = TurnState(console.controller.agent, console.clock(), scope)
        output = ""
        with scope:
            try:
                output = await shell.run(command, self._show_output)
            finally:
                console.turn = None
        if shell.directory != before:
            console.note(f"`!` runs in {shell.directory} from now on")
        if scope.cancelled_caught:
            console.scroll.add_lines([console.theme.warning("stopped")])
        elif is_shared:
            self._output += f"$ {command}\n{output}\n"
            console.note("the next message includes this; `!!` does not")

    def _show_output(self, lines: Iterable[str]) -> None:
        self._console.scroll.add_lines([shown(line) for line in lines], "output")

    def with_output(self, message: Message) -> Message:
        """Insert the output of the user's commands before the next message."""
        output, self._output = self._output, ""
        return with_shell_output(message, output) if output else message

    def attach_image(self) -> None:
        """Attach the image on the clipboard to the message."""
        self._console.start(self._attach_image)

    async def _attach_image(self) -> None:
        directory = home_directory(os.environ) / "clipboard"
        path = await run_sync(clipboard_image, os.environ, directory)
        if path is None:
            self._console.hint("there is no image on the clipboard; `@FILE` attaches a file")
            return
        self._console.editor.buffer.insert_text(f'@"{path}" ')
        self._console.redraw()
