"""The terminal's own commands, in addition to those of the table."""

from __future__ import annotations

import locale
import os
import platform
import re
import subprocess
import time
from collections import Counter
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Final

from fast_agent.commands.command import Command, CommandResult, Word, fenced
from fast_agent.commands.completion import complete
from fast_agent.commands.table import COMMANDS, command_help, help_topics
from fast_agent.errors import FastAgentError, RunError, os_reason
from fast_agent.tui.console_programs import details, document, external_editor, transcript
from fast_agent.tui.drawing.rows import shown
from fast_agent.tui.input.attachments import attached_files
from fast_agent.tui.input.keyboard import suspend
from fast_agent.tui.input.keys import key_lines
from fast_agent.tui.programs import copy_command, copy_sequence
from fast_agent.tui.questions import MODES
from fast_agent.tui.rewind import Rewind
from fast_agent.tui.setting_commands import setting_commands
from fast_agent.version import __version__

if TYPE_CHECKING:
    from fast_agent.commands.command import Arguments
    from fast_agent.commands.controller import ConversationController
    from fast_agent.tui.console import Console

_TERMINAL_VARIABLES: Final = ("TERM", "TERM_PROGRAM", "TERM_PROGRAM_VERSION", "COLORTERM", "LANG")
_MAX_LISTED: Final = 20
_CODE: Final = re.compile(r"^(```+|~~~+)[^\n]*\n(.*?)^\1\s*$", re.MULTILINE | re.DOTALL)


def console_commands(console: Console) -> dict[str, Command]:
    """Return the commands of a terminal: those of the table, and its own.

    Args:
        console: The terminal.
    """
    own = _OwnCommands(console)
    further = (
        Command(name="keys", summary="list the keys", act=own.keys, busy="now"),
        Command(
            name="queue",
            summary="list what waits to be sent, or change it",
            busy="now",
            actions=(
                Command(name="list", summary="list what waits", act=own.queue_list, busy="now"),
                Command(
                    name="edit",
                    summary="take a message back into the editor",
                    act=own.queue_edit,
                    words=(Word("N", required=True),),
                    busy="now",
                ),
                Command(
                    name="drop",
                    summary="drop a message",
                    act=own.queue_drop,
                    words=(Word("N", required=True),),
                    busy="now",
                ),
                Command(
                    name="move",
                    summary="move a message to another place",
                    act=own.queue_move,
                    words=(Word("N", required=True), Word("M", required=True)),
                    busy="now",
                ),
                Command(name="clear", summary="drop all", act=own.queue_clear, busy="now"),
            ),
        ),
        Command(
            name="steer",
            summary="send a message into the turn that is running",
            act=own.steer,
            words=(Word("TEXT", required=True, rest=True),),
            busy="now",
        ),
        Command(
            name="watch",
            summary="show what an agent at work says in place of the answer; Esc goes back",
            act=own.watch,
            words=(Word("NAME", "agent"),),
            busy="now",
        ),
        Command(name="stop", summary="stop the turn that is running", act=own.stop, busy="now"),
        Command(
            name="permissions",
            summary="ask before calls, refuse them (`reading`) or allow all (`trusting`); "
            "`list` what is always allowed, `forget` one",
            act=own.permissions,
            words=(Word("ask|reading|trusting|list|forget"), Word("WHICH", rest=True)),
            busy="now",
        ),
        Command(
            name="copy",
            summary="copy the last answer; `code` its last code block, `all` the conversation",
            act=own.copy,
            words=(Word("answer|code|all"),),
            busy="now",
        ),
        Command(
            name="markdown",
            summary="show the last answer as it was written",
            act=own.markdown,
            busy="now",
        ),
        Command(
            name="pull",
            summary="fetch a small model to this machine, and have it answer",
            act=own.pull,
            words=(Word("NAME|FILE"),),
        ),
        Command(
            name="image",
            summary="attach an image: a file, or the one on the clipboard",
            act=own.image,
            words=(Word("FILE", "file"),),
            busy="now",
        ),
        Command(
            name="bug",
            summary="write a report about this terminal to a file; it has no messages or keys",
            act=own.bug,
            busy="now",
        ),
        Command(name="editor", summary="write the message in $EDITOR", act=own.editor, busy="no"),
        Command(
            name="recall",
            summary="take the last queued message, or the last line typed that has TEXT, back",
            act=own.recall,
            words=(Word("TEXT", rest=True),),
            busy="now",
        ),
        Command(
            name="complete",
            summary="list how a line may continue",
            act=own.complete,
            words=(Word("LINE", required=True, rest=True),),
            busy="now",
        ),
        Command(
            name="transcript",
            summary="show the conversation in a pager",
            act=own.transcript,
            busy="now",
        ),
        Command(
            name="details", summary="show the last tool call in full", act=own.details, busy="now"
        ),
        Command(
            name="redraw",
            summary="clear the screen; the scrollback stays",
            act=own.redraw,
            busy="now",
        ),
        Command(name="suspend", summary="suspend the program", act=own.suspend, busy="now"),
    )
    help_command = Command(
        name="help",
        summary=COMMANDS["help"].summary,
        act=own.help,
        words=COMMANDS["help"].words,
        busy="now",
    )
    found = {**COMMANDS, "help": help_command}
    leave = found.pop("exit")
    rewound = Rewind(console).commands(found["history"])
    own_names = {one.name: one for one in (*rewound, *further, *setting_commands(console))}
    return {**found, **own_names, "exit": leave}


def report(console: Console, controller: ConversationController) -> str:
    """Return facts about the program and its terminal, as Markdown.

    Only kinds and counts: no message, no name of an agent, file or server, no value of a setting
    that a user wrote freely, no variable but those that name the terminal.
    """
    columns, rows = console.screen.size
    kinds = Counter(card.config.type for card in controller.app.load_set.cards.values())
    model = ""
    with suppress(FastAgentError, KeyError):
        model = (
            controller.app.runtime.model_of(controller.agent)
            .text.partition(".")[0]
            .partition("?")[0]
        )
    facts = {
        "fast-agent": __version__,
        "Python": platform.python_version(),
        "system": f"{platform.system()} {platform.release()} {platform.machine()}",
        "terminal": ", ".join(
            f"{name}={shown(os.environ.get(name, ''))}" for name in _TERMINAL_VARIABLES
        ),
        "size": f"{columns} x {rows}",
        "encoding": locale.getencoding(),
        "theme": console.theme.name,
        "slow": "yes" if console.screen.slow else "no",
        "provider": shown(model) or "unknown",
        "agents": ", ".join(f"{count} {kind}" for kind, count in sorted(kinds.items())),
        "kept as a session": "no" if controller.session is None else "yes",
        "a turn runs": "yes" if console.is_busy else "no",
        "queued": str(len(console.queue.lines)),
    }
    lines = [f"- {name}: {value}" for name, value in facts.items()]
    return "\n".join(["# fast-agent report", "", *lines, "", "What happened:", "", ""])


class _OwnCommands:
    """What the commands do."""

    def __init__(self, console: Console) -> None:
        self._console = console

    async def help(self, arguments: Arguments, controller: ConversationController) -> CommandResult:
        del controller
        commands = console_commands(self._console)
        wanted = arguments.word()
        result = command_help(wanted, commands)
        if self._console.theme.is_spoken or wanted not in help_topics(commands):
            return result
        self._console.programs.run(partial(document, self._console, result.text))
        return CommandResult()

    async def keys(self, arguments: Arguments, controller: ConversationController) -> CommandResult:
        del arguments, controller
        return CommandResult(text="\n".join(key_lines(self._console.keys)))

    async def queue_list(
        self, arguments: Arguments, controller: ConversationController
    ) -> CommandResult:
        del arguments, controller
        console = self._console
        if not console.queue.lines:
            return CommandResult(text="nothing is queued")
        lines = [f"{number} {text}" for number, text in enumerate(console.queue.lines, 1)]
        behind = "\nEnter on an empty line sends them" if console.queue.is_parked else ""
        return CommandResult(text=fenced("\n".join(lines)) + behind)

    async def queue_edit(
        self, arguments: Arguments, controller: ConversationController
    ) -> CommandResult:
        del controller
        place = self._place(arguments.words[0])
        if not self._console.editor.is_empty:
            raise RunError("the editor is not empty", hint="send or clear its text first")
        self._console.editor.put(self._console.queue.pop(place))
        return CommandResult()

    async def queue_drop(
        self, arguments: Arguments, controller: ConversationController
    ) -> CommandResult:
        del controller
        self._console.queue.pop(self._place(arguments.words[0]))
        return CommandResult(text="dropped")

    async def queue_move(
        self, arguments: Arguments, controller: ConversationController
    ) -> CommandResult:
        del controller
        here, there = (self._place(word) for word in arguments.words[:2])
        self._console.queue.move(here, there)
        return CommandResult(text="moved")

    async def queue_clear(
        self, arguments: Arguments, controller: ConversationController
    ) -> CommandResult:
        del arguments, controller
        count = len(self._console.queue.lines)
        self._console.queue.clear()
        return CommandResult(text=f"dropped {count}")

    def _place(self, word: str) -> int:
        queue = self._console.queue.lines
        if word.isdecimal() and 1 <= int(word) <= len(queue):
            return int(word) - 1
        if not queue:
            raise RunError("nothing is queued")
        raise RunError(f"nothing is queued at `{word}`", hint=f"the places are 1 to {len(queue)}")

    async def steer(
        self, arguments: Arguments, controller: ConversationController
    ) -> CommandResult:
        del controller
        if not self._console.is_busy:
            raise RunError("no turn is running", hint="send the message with Enter")
        self._console.steer(arguments.words[0])
        return CommandResult()

    async def watch(
        self, arguments: Arguments, controller: ConversationController
    ) -> CommandResult:
        del controller
        activity, name = self._console.activity, arguments.word()
        names = activity.agents()
        if name is None and names:
            return CommandResult(text="\n".join(f"- `{one}`" for one in names))
        if not names:
            raise RunError("no other agent is at work")
        if name is None or not activity.watch(name):
            at_work = ", ".join(f"`{one}`" for one in names)
            raise RunError(f"no agent `{name}` is at work", hint=f"at work: {at_work}")
        return CommandResult()

    async def stop(self, arguments: Arguments, controller: ConversationController) -> CommandResult:
        del arguments, controller
        if not self._console.is_busy:
            raise RunError("no turn is running")
        self._console.stop()
        return CommandResult()

    async def permissions(
        self, arguments: Arguments, controller: ConversationController
    ) -> CommandResult:
        permission = self._console.permission
        if permission is None:
            raise RunError("only calls that cards mark are asked about here")
        word = arguments.word()
        for mode in MODES:
            if word == mode:
                permission.mode = mode
                return CommandResult(text=f"permission mode: `{mode}`")
        match word:
            case None | "list":
                return CommandResult(text=permission.listed())
            case "forget":
                which = arguments.words[1] if len(arguments.words) > 1 else ""
                return CommandResult(text=permission.forget(which))
            case _:
                del controller
                modes = ", ".join(f"`{mode}`" for mode in MODES)
                raise RunError(f"there is no mode `{word}`", hint=f"the modes are {modes}")

    async def copy(self, arguments: Arguments, controller: ConversationController) -> CommandResult:
        text = self._copied(arguments.word() or "answer", controller)
        if not text:
            raise RunError("there is nothing to copy yet")
        command = copy_command()
        if command is not None:
            from anyio import run_process

            await run_process(
                list(command), input=text.encode("utf-8", "replace"),
                stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False,
            )  # fmt: skip
            return CommandResult(text=f"copied {len(text):,} characters with `{command[0]}`")
        sequence = copy_sequence(text)
        if sequence is None:
            raise RunError("the text is too long for the clipboard of a terminal")
        self._console.screen.send(sequence)
        return CommandResult(text=f"gave {len(text):,} characters to the terminal's clipboard")

    def _copied(self, what: str, controller: ConversationController) -> str:
        answer = self._console.last_answer
        match what:
            case "answer":
                return answer
            case "code":
                blocks = _CODE.findall(answer)
                return str(blocks[-1][1]) if blocks else ""
            case "all":
                messages = controller.instance().history
                return "\n\n".join(
                    f"## {message.role}\n\n{message.text}" for message in messages if message.text
                )
            case _:
                raise RunError(f"`{what}` cannot be copied", hint="write `answer`, `code` or `all`")

    async def markdown(
        self, arguments: Arguments, controller: ConversationController
    ) -> CommandResult:
        del arguments, controller
        if not self._console.last_answer:
            raise RunError("there is no answer yet")
        return CommandResult(text=fenced(self._console.last_answer, "markdown"))

    async def pull(self, arguments: Arguments, controller: ConversationController) -> CommandResult:
        from anyio import from_thread
        from anyio.to_thread import run_sync

        from fast_agent.models.local.weights import DEFAULT
        from fast_agent.tui.first_run import fetch, take_local

        source = arguments.word() or DEFAULT

        def progress(text: str) -> None:
            from_thread.run_sync(self._console.hint, text)

        spec = await run_sync(partial(fetch, source, os.environ, progress), abandon_on_cancel=True)
        self._console.hint("")
        if source == DEFAULT:
            await take_local(controller)
            return CommandResult(text=f"`{spec}` is on this machine, and answers from now on")
        return CommandResult(text=f"`{spec}` is on this machine; `/model {spec}` has it answer")

    async def image(
        self, arguments: Arguments, controller: ConversationController
    ) -> CommandResult:
        name = arguments.word()
        if name is None:
            self._console.programs.attach_image()
            return CommandResult()
        if not attached_files(f'@"{name}"', controller.workspace):
            raise RunError(f"there is no file `{name}`")
        self._console.editor.buffer.insert_text(f'@"{name}" ')
        return CommandResult()

    async def bug(self, arguments: Arguments, controller: ConversationController) -> CommandResult:
        del arguments
        from anyio.to_thread import run_sync

        from fast_agent.text.safe_file import write_atomic

        path = controller.workspace / f"fast-agent-report-{int(time.time())}.md"
        try:
            await run_sync(write_atomic, path, report(self._console, controller).encode())
        except OSError as error:
            raise RunError(f"`{path}` cannot be written: {os_reason(error)}") from error
        return CommandResult(
            text=f"wrote `{path.name}`: read it, then attach it to an issue; nothing was sent"
        )

    async def recall(
        self, arguments: Arguments, controller: ConversationController
    ) -> CommandResult:
        del controller
        console, text = self._console, arguments.word()
        if not console.editor.is_empty:
            raise RunError("the editor is not empty", hint="send or clear its text first")
        if text is None and console.queue.lines and console.is_busy:
            console.editor.put(console.queue.pop())
            return CommandResult()
        found = console.editor.typed_before(text or "", but="/recall")
        if found is None:
            raise RunError("no such line was typed in this directory")
        console.editor.put(found)
        return CommandResult()

    async def complete(
        self, arguments: Arguments, controller: ConversationController
    ) -> CommandResult:
        line = arguments.words[0]
        found = complete(line, controller, self._console.commands)[:_MAX_LISTED]
        if not found:
            raise RunError("nothing completes this line")
        rows = [f"{line[: one.start]}{one.text}  {one.about}".rstrip() for one in found]
        return CommandResult(text=fenced("\n".join(rows)))

    async def transcript(
        self, arguments: Arguments, controller: ConversationController
    ) -> CommandResult:
        del arguments, controller
        self._console.programs.run(partial(transcript, self._console))
        return CommandResult()

    async def details(
        self, arguments: Arguments, controller: ConversationController
    ) -> CommandResult:
        del arguments, controller
        self._console.programs.run(partial(details, self._console))
        return CommandResult()

    async def redraw(
        self, arguments: Arguments, controller: ConversationController
    ) -> CommandResult:
        del arguments, controller
        await self._console.scroll.drained()  # the line of the command itself
        self._console.screen.clear()
        self._console.redraw()
        return CommandResult()

    async def suspend(
        self, arguments: Arguments, controller: ConversationController
    ) -> CommandResult:
        del arguments, controller
        if os.name != "posix":
            raise RunError("this system cannot suspend a program")
        self._console.programs.run(suspend)
        return CommandResult()

    async def editor(
        self, arguments: Arguments, controller: ConversationController
    ) -> CommandResult:
        del arguments, controller
        self._console.programs.run(partial(external_editor, self._console))
        return CommandResult()
