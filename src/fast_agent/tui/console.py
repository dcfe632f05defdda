"""Console: the conversation at a terminal, from the first prompt to the last.

Keys draw at once; what streams is drawn by `Scroll` at its own pace. Lines wait in a queue, and one
task sends them, turn after turn.
"""

from __future__ import annotations

import os
import time
from contextlib import contextmanager, suppress
from dataclasses import replace
from logging import getLogger
from typing import TYPE_CHECKING, Final, NamedTuple

import anyio
from anyio.to_thread import run_sync

from fast_agent.agents.events import (
    ModelAnswered,
    ModelRequested,
    Steered,
    TextStreamed,
    ThinkingStreamed,
    ToolFinished,
    TurnStarted,
)
from fast_agent.commands.command import CommandResult
from fast_agent.commands.table import COMMANDS, is_command, named_command, run_command
from fast_agent.config.settings import NO_TUI
from fast_agent.errors import CardError, FastAgentError, RunError
from fast_agent.tui.background import BackgroundTasks, ModelImport
from fast_agent.tui.drawing.activity import Activity, one_line
from fast_agent.tui.drawing.images import ImageRoom, Images, PixelSize
from fast_agent.tui.drawing.rows import clip, shown, wrap
from fast_agent.tui.drawing.scroll import Scroll
from fast_agent.tui.drawing.turn_lines import TurnLines, TurnState
from fast_agent.tui.input.attachments import attached_files, with_attachments
from fast_agent.tui.input.editor import Editor
from fast_agent.tui.input.keyboard import Focus
from fast_agent.tui.input.keys import bound_keys
from fast_agent.tui.input.line_queue import LineQueue
from fast_agent.tui.programs import Programs, notification
from fast_agent.tui.questions import Questions, question_lines
from fast_agent.tui.status_command import StatusCommand

if TYPE_CHECKING:
    from collections.abc import (
        Awaitable,
        Callable,
        Generator,
        Mapping,
        Sequence,
    )

    from anyio.abc import TaskGroup
    from prompt_toolkit.input import Input

    from fast_agent.agents.events import Event
    from fast_agent.commands.command import Command
    from fast_agent.commands.controller import ConversationController
    from fast_agent.config.settings import TuiSettings
    from fast_agent.messages.message import Message
    from fast_agent.models.model import ContextUse
    from fast_agent.registry.reload import Reload
    from fast_agent.resources.skill_client.entry import SkillCall
    from fast_agent.sessions.session import Session
    from fast_agent.text.json_value import JsonObject
    from fast_agent.tools.files.file_history import FileHistory
    from fast_agent.tui.drawing.screen import Screen
    from fast_agent.tui.drawing.theme import Theme
    from fast_agent.tui.input.draft import Draft
    from fast_agent.tui.input.early_prompt import EarlyPrompt
    from fast_agent.tui.input.editor import Actions
    from fast_agent.tui.input.prompt_history import PromptHistory
    from fast_agent.tui.questions import Question, TerminalPermission


log = getLogger(__name__)

SIGNS: Final = frozenset({"/", "@", "#"})
"""What a line starts with that may be a command."""
_TICK_SECONDS: Final = 0.25


class ConsoleParts(NamedTuple):
    """What works on a console, and is made with it.

    Args:
        keys: What its keys do.
        rows: Draws the live area: its rows, and row and column of the caret.
        facts: Gives the fields of the status row as values.
        programs: Gives the terminal to other programs.
        read_lines: Reads the conversation line by line, in a group of tasks that ends with it.
    """

    keys: Actions
    rows: Callable[[], tuple[list[str], tuple[int, int]]]
    facts: Callable[[], JsonObject]
    programs: Programs
    read_lines: Callable[[TaskGroup], Awaitable[None]]


class Console:
    """The conversation at a terminal.

    Args:
        screen: The writer of the terminal.
        theme: The styles.
        history: What was typed before.
        keyboard: Where keys come from.
        parts: Makes what works on it.
        questions: Questions that wait for the user.
        permission: Asks the user before calls; None where nothing is asked about.
        clock: A clock that only goes forward, in seconds.
        settings: How the terminal looks and which keys it takes.
        early: The prompt that is shown so far; None where there is none.
        file_history: Records what files held before file tools wrote them.
        focus: Whether the terminal has the focus; None where that is not known.

    Attributes:
        settings: How the terminal looks; may change.
        keys: The terminal's own keys, with those of the settings.
        key_problems: What is wrong with a key of the settings.
        queue: What waits to be sent.
        last_answer: The text of the last answer.
        restarts: Whether the program should restart.
        model_import: Imports what the model needs, once the user starts to type.
        start: Requests a task; keys are handled outside of any task, where none can be started.
        file_history: What files held before file tools wrote them.
        programs: Gives the terminal to other programs.
        is_leaving: Whether the conversation ends.
        written: How many lines were written.
        settled: Set when nothing waits to be sent any more.
        status: What the user's command for the status row wrote last.
        draft: Where what is typed is kept in case of a crash; None keeps it nowhere.
        new_session: Opens the session of the conversation at its first message; None keeps none.
    """

    def __init__(
        self,
        screen: Screen,
        theme: Theme,
        history: PromptHistory,
        keyboard: Input,
        *,
        parts: Callable[[Console], ConsoleParts],
        questions: Questions | None = None,
        permission: TerminalPermission | None = None,
        clock: Callable[[], float] = time.monotonic,
        settings: TuiSettings = NO_TUI,
        early: EarlyPrompt | None = None,
        file_history: FileHistory,
        focus: Focus | None = None,
    ) -> None:
        self._focus = focus or Focus()
        self._early = early
        self.file_history = file_history
        self.screen = screen
        self.theme = theme
        self.clock = clock
        self.questions = questions or Questions(self.redraw, clock)
        self.permission = permission
        self.settings = settings
        self.scroll = Scroll(
            theme, lambda: screen.size[0], self.commit, lambda: screen.slow, lambda: self.settings
        )
        self.activity = Activity(
            theme,
            clock,
            lambda: screen.size[0],
            motion=lambda: self.settings.motion,
        )
        self._parts = made = parts(self)
        self.programs = made.programs
        self.keys, self.key_problems = bound_keys(settings.bind)
        vi = settings.keys == "vi"
        self.editor = Editor(made.keys, history, theme, keyboard, vi=vi, keys=self.keys)
        self.queue = LineQueue()
        self.last_answer = ""
        self.restarts = False
        self.model_import = ModelImport()
        self._settles = False
        self.written = 0
        self.new_session: Callable[[], Awaitable[Session]] | None = None
        self._plain_scope: anyio.CancelScope | None = None
        self._announced: Question | None = None
        self.shown_hint = ""
        self.status = StatusCommand(clock, self.redraw, self.note)
        self.turn: TurnState | None = None
        self._background = BackgroundTasks(self.fail)
        self.start = self._background.start
        self.opened: ConversationController | None = None
        self.commands: Mapping[str, Command] = COMMANDS
        images = Images(theme, lambda: self.settings.images, self._image_room, os.environ)
        self._lines = TurnLines(
            self.scroll, theme, self.activity, clock, lambda: self.settings, images
        )
        self.draft: Draft | None = None
        self.is_leaving = False
        self._stopped = anyio.Event()
        self.settled = anyio.Event()

    # What the shell around it uses.

    @property
    def controller(self) -> ConversationController:
        """The conversation."""
        if self.opened is None:
            raise RunError("the terminal is not open yet")
        return self.opened

    @property
    def is_busy(self) -> bool:
        """Whether a turn works."""
        return self.turn is not None

    def open(self, controller: ConversationController, commands: Mapping[str, Command]) -> None:
        """Take the conversation, and the commands of the terminal."""
        self.opened = controller
        self.commands = commands

    async def run(self) -> None:
        """Talk until the user leaves."""
        if self._early is not None:
            self._early.finish()
        if self.theme.is_spoken:
            async with anyio.create_task_group() as tasks:
                self._plain_scope = tasks.cancel_scope
                self._start_work(tasks)
                await self._parts.read_lines(tasks)
            return
        keyboard = self.editor.application.input
        # Raw before the first prompt is drawn: else the terminal would change an early Enter.
        with keyboard.raw_mode():
            async with anyio.create_task_group() as tasks:
                self.screen.enter()
                try:
                    self._start_work(tasks)
                    tasks.start_soon(run_sync, self.model_import.through, self.scroll.draw_sample)
                    tasks.start_soon(self._tick)
                    with suppress(EOFError):  # the terminal was closed
                        await self.editor.application.run_async(
                            pre_run=self._take_early_keys,
                            handle_sigint=False,
                            set_exception_handler=False,
                        )
                finally:
                    self.is_leaving = True
                    tasks.cancel_scope.cancel()
                    self.screen.leave()
                    if self.draft is not None:
                        # A message sent just before the end is not a draft any more.
                        self.draft.keep(self._draft_text())

    def _start_work(self, tasks: TaskGroup) -> None:
        tasks.start_soon(self.scroll.run)
        tasks.start_soon(self._work)
        tasks.start_soon(self._background.run, tasks)

    @property
    def has_early_keys(self) -> bool:
        """Whether keys typed before the editor was there wait for it."""
        return self._early is not None and self._early.has_keys

    def _take_early_keys(self) -> None:
        if self.has_early_keys:
            self.editor.read_keys()

    def note(self, text: str) -> None:
        """Print a note that is not part of the conversation."""
        rows = self._wrapped([shown(line) for line in text.split("\n")])
        self.scroll.add_lines([self.theme.dim(row) for row in rows])

    def say(self, text: str) -> None:
        """Print text as Markdown."""
        self.scroll.add_markdown(text)

    def reloaded(self, done: Reload) -> None:
        """Report the result of a reload; the agents change before the next turn."""
        if done.line is not None:
            self.note(done.line)
            self._end_trusting()
        if done.problems:
            self.fail(CardError(done.problems[0].message, diagnostics=done.problems))
        self.start(self._refresh)

    def fail(self, error: FastAgentError) -> None:
        """Report an error, and what to do."""
        if error.diagnostics:
            from fast_agent.diagnostics.render_human import render_human

            many = len(error.diagnostics) > 1
            lines = render_human(error.diagnostics, summary=many).rstrip("\n").split("\n")
            self.scroll.add_lines([shown(line) for line in lines])
            return
        head, *more = error.message.split("\n")
        lines = [self.theme.error("error: ") + shown(head), *map(shown, more)]
        if error.hint:
            lines.append(self.theme.dim("hint: ") + shown(error.hint))
        self.scroll.add_lines(self._wrapped(lines))

    def _wrapped(self, lines: list[str]) -> list[str]:
        if self.theme.is_spoken:
            return lines
        return [row for line in lines for row in wrap(line, self.scroll.text_width)]

    def hint(self, text: str) -> None:
        """Show something in the status row until the next key."""
        self.shown_hint = text
        self.redraw()

    def on_event(self, event: Event) -> None:
        """Take an event of a turn."""
        turn = self.turn
        is_top = event.origin.parent_call_id is None
        match event:
            case TextStreamed(text=text) if is_top and turn is not None:
                self._lines.end_thought(turn)
                turn.streamed = True
                self.scroll.add_text(text)
            case ThinkingStreamed(text=text) if is_top and turn is not None:
                turn.thinking_since = turn.thinking_since or self.clock()
                turn.thinking += text
                turn.thoughts += text
            case TurnStarted(origin=origin) if is_top:
                self.queue.sending = None  # the session has the message now
                self._save_queue()
                self.file_history.turn_ids.append(origin.turn_id)
            case ModelRequested() if is_top and turn is not None:
                turn.streamed = False
            case ModelAnswered() if is_top and turn is not None:
                self._lines.answered(event, turn)
            case Steered(message=message):
                self._lines.user(message.text, "you, into this turn")
            case _:
                pass
        if self.turn is not None:
            self.scroll.add_lines(self.activity.take(event), "work")
            if isinstance(event, ToolFinished) and is_top:
                self._lines.images(event.result.content)

    def _image_room(self) -> ImageRoom:
        """Return the room of an image: that of text, and half of the screen's rows."""
        cell = PixelSize(*self.screen.cell)
        return ImageRoom(self.scroll.text_width, self.screen.size[1] // 2, cell)

    @property
    def context_use(self) -> ContextUse | None:
        """How full the context of the current agent was at its last answer."""
        controller = self.controller
        if controller.agent not in controller.conversation.live:
            return None
        return controller.conversation.agent(controller.agent).conversation.use

    # Lines.

    def submit(self, text: str) -> None:
        """Take a line: send it, queue it while a turn works, or run its command at once."""
        command, action = named_command(text, self.commands)
        if self.is_busy and action is not None and action.busy == "now":
            self.start(self._command, text)
        elif self.is_busy and command is not None and command.busy == "no":
            self.hint(f"/{command.name} has to wait for the turn; Esc stops it")
            self.editor.put(text)
            return
        else:
            self.queue.add(text)
        self.redraw()

    def steer(self, text: str) -> None:
        """Send a message into the turn that is running."""
        turn = self.turn
        if turn is None:
            self.submit(text)
            return
        try:
            message = with_attachments(text, self.controller.workspace)
            turn.steering.append(self.controller.instance(turn.agent).steer(message))
        except FastAgentError as error:
            self.fail(error)
            self.queue.add(text)
        self.redraw()

    def stop(self) -> None:
        """Stop the turn that is running; the queue is parked."""
        turn = self.turn
        if turn is not None and not turn.stopping:
            turn.stopping = True
            self.queue.park()
            turn.scope.cancel()
            self.redraw()

    def leave(self) -> None:
        """End the conversation."""
        if not self.is_leaving:
            self.is_leaving = True
            if self.turn is not None:
                self.turn.stopping = True
                self.turn.scope.cancel()
            self.start(self._exit)

    def restart(self) -> None:
        """End the conversation, so that the program restarts."""
        self.restarts = True
        self.leave()

    def resume_queue(self) -> None:
        """Send what is parked."""
        self.queue.resume()
        self.redraw()

    async def _exit(self) -> None:
        with anyio.move_on_after(1.0):
            if self.turn is not None:
                await self._stopped.wait()
            await self.scroll.drained()
        if self._plain_scope is not None:
            self._plain_scope.cancel()
        elif self.editor.application.is_running:
            self.editor.application.exit()

    async def _work(self) -> None:
        """Send what waits, one after another."""
        while True:
            await self.queue.wait()
            while line := self._take_line():
                try:
                    await self._send(line)
                except FastAgentError as error:
                    self.fail(error)
                except Exception as error:  # a task boundary: the next line may do better
                    log.exception("`%s` failed", one_line(line))
                    self.fail(RunError(f"it failed: {type(error).__name__}: {error}"))
                self.queue.sending = None
                if self.is_leaving:
                    self._stopped.set()
                await self.scroll.drained()
                self.redraw()
            self.settled.set()
            self.settled = anyio.Event()

    def _take_line(self) -> str | None:
        return None if self.is_leaving else self.queue.take()

    async def _send(self, text: str) -> None:
        if text.startswith("!"):
            await self.programs.shell(text)
            return
        if text[:1] in SIGNS and not text.startswith("//") and self._is_command(text):
            await self._command(text)
            return
        literal = text[1:] if text.startswith(("//", " ")) else text
        try:
            await self._open_session()
        except FastAgentError:
            self.editor.put(text)
            raise
        await self._ask(literal)

    def take_queue(self) -> None:
        """Queue what waited when the session was closed or killed, until the user sends it."""
        if left := self.queue.take_from(self.controller.session):
            many = "message waits" if left == 1 else "messages wait"
            self.note(f"{left} {many} from before; Enter on an empty line sends, /queue lists")

    def _save_queue(self) -> None:
        steering = [] if self.turn is None else self.turn.steering
        waiting = [one.message.text for one in steering if not one.taken]
        try:
            self.queue.keep(None if self.opened is None else self.opened.session, waiting)
        except FastAgentError as error:
            self.fail(error)

    async def _open_file_history(self) -> None:
        session = self.controller.session
        await run_sync(self.file_history.open, None if session is None else session.id)

    def _is_command(self, text: str) -> bool:
        return is_command(text, self.controller, self.commands)

    async def _open_session(self) -> None:
        if self.new_session is not None:
            opening, self.new_session = self.new_session, None
            try:
                await self.controller.change_session(await opening())
                self._save_queue()  # the new session holds the message before its turn starts
                await self._open_file_history()
            except FastAgentError:
                self.new_session = opening  # the next message may do better
                raise

    async def _command(self, line: str) -> None:
        await self._refresh()
        said = clip(one_line(line), self.scroll.text_width)
        self.scroll.add_lines([self.theme.you("> ") + said], "command")
        command, _ = named_command(line, self.commands)
        if self.is_busy or (command is not None and command.busy == "now"):
            await self._follow(await run_command(line, self.controller, self.commands))
            return
        if command is None or command.name != "session":  # else it would resume its own
            await self._open_session()
        self.activity.restart()
        scope = anyio.CancelScope()
        turn = self.turn = TurnState(self.controller.agent, self.clock(), scope)
        result = CommandResult()
        with scope, self._queue_moved(command):
            try:
                result = await run_command(line, self.controller, self.commands)
            finally:
                self.turn = None
                self._lines.ended(turn)
        if scope.cancelled_caught:
            self._note_stopped()
        if turn.streamed and command is not None and command.name == "call" and not result.failed:
            result = replace(result, text="")  # the answer stands there already
        await self._follow(result)

    @contextmanager
    def _queue_moved(self, command: Command | None) -> Generator[None]:
        """Move what waits to the session that a command changes to, with what waits there."""
        if command is None or command.name != "session":
            yield
            return
        session, held = self.controller.session, self.queue.lines.copy()
        is_parked = self.queue.is_parked
        self.queue.clear()
        self._save_queue()
        try:
            yield
        finally:
            self.queue.put_back(held, parked=is_parked)
            if self.controller.session is not session:
                self.take_queue()

    def _note_stopped(self) -> None:
        dash = "--" if self.theme.ascii_only else "—"
        self.scroll.add_lines([self.theme.warning(f"{dash} stopped")])

    async def _follow(self, result: CommandResult) -> None:
        if result.failed and not result.text.startswith("```"):
            self.fail(_as_error(result.text))
        elif result.text:
            self.say(result.text)
        if result.session_changed or result.agents_changed:
            self._end_trusting()
        if result.session_changed:
            self.last_answer = ""
            if self.controller.session is not None:
                self.new_session = None
            await self._open_file_history()
        if result.restart:
            self.restart()
        if result.leave:
            self.leave()
        if result.ask is not None:
            await self._open_session()
            ask = result.ask
            await self._ask(ask.text, agent=ask.agent, message=ask.message, skill=ask.skill)

    def _end_trusting(self) -> None:
        """Ask again before calls: what was trusted may be something else now."""
        if self.permission is not None and self.permission.mode == "trusting":
            self.permission.mode = "ask"
            self.note("permission mode: ask; calls are asked about again")

    async def _refresh(self) -> None:
        """Take the cards there are now."""
        if self.is_busy:
            return
        controller, before = self.controller, self.controller.agent
        try:
            if await controller.refresh():
                self.note(f"agent `{before}` is gone; talking to `{controller.agent}`")
        except FastAgentError as error:
            self.fail(error)

    async def _ask(
        self,
        text: str,
        *,
        agent: str | None = None,
        message: Message | None = None,
        skill: SkillCall | None = None,
    ) -> None:
        await self._refresh()
        controller = self.controller
        name = agent or controller.agent
        try:
            message = message or with_attachments(text, controller.workspace)
            instance = controller.instance(name)
        except FastAgentError:
            self.editor.put(text)
            raise
        self._lines.user(text, "you")
        files = attached_files(text, controller.workspace)
        message = self.programs.with_output(message)
        if files:
            self.scroll.add_lines([self.theme.dim(f"+ {shown(str(one))}") for one in files], "user")
        self._lines.agent(name, controller.app.agent_names())
        self.activity.restart()
        scope = anyio.CancelScope()
        turn = self.turn = TurnState(name, self.clock(), scope)
        with scope:
            try:
                await self.model_import.run()
                result = await instance.generate(message, skill=skill)
                self._lines.finished(turn, result)
                self.last_answer = result.text
                if agent is None and self.controller.follow(name):
                    self.note(f"talking to `{self.controller.agent}`")
            except FastAgentError as error:
                self._lines.ended(turn)
                self.fail(error)
            finally:
                self._notify(turn, "the turn ended")
                self.turn = None
                left = [one.message.text for one in turn.steering if not one.taken]
                self.queue.put_back(left, parked=self.queue.is_parked)
        if scope.cancelled_caught:
            self._lines.ended(turn)
            self._note_stopped()
        self.redraw()

    def _notify(self, turn: TurnState, text: str) -> None:
        """Notify a user who went to another window while a long turn worked."""
        how = self.settings.notify
        is_long = self.clock() - turn.started >= self.settings.notify_seconds
        if how != "off" and is_long and self._focus.is_lost and not self.programs.is_away:
            with suppress(OSError):
                self.screen.send(notification(text, os.environ, bell=how == "bell"))

    # The live area.

    def redraw(self) -> None:
        """Draw the live area."""
        if self.model_import.is_due and not self.editor.is_empty:
            self.start(self.model_import.begin, self.editor, self.controller)
        question = self.questions.current
        if question is not self._announced:
            self._announced = question
            if question is not None and self.turn is not None:
                self._notify(self.turn, "a question waits")
            if question is not None and self.theme.is_spoken:
                self.scroll.add_lines(question_lines(question), "question")
        self.commit(())

    def commit(self, lines: Sequence[str]) -> None:
        """Draw the live area, below lines that are finished."""
        self.written += len(lines)
        self._save_queue()  # what is shown as queued outlives a crash
        if self.programs.hold(lines):
            return
        rows, cursor = self._parts.rows()
        with suppress(OSError):  # the terminal may be gone; reading from it says so
            self.screen.draw(rows, cursor, lines)

    async def _tick(self) -> None:
        """Draw what changes over time: clocks, the spinner, a question that accepts keys now."""
        while True:
            await anyio.sleep(_TICK_SECONDS)
            settles = self.screen.is_settling
            if settles or self._settles or self.turn is not None or self.questions.current:
                self.redraw()
            self._settles = settles
            self._draw_status()
            await self._save_draft()

    def _draw_status(self) -> None:
        """Run the user's command for the status row, if there is one and it is due."""
        command = self.settings.status_command
        if not command or self.opened is None or self.programs.is_away or self.is_leaving:
            return
        facts = self._parts.facts()
        if self.status.is_due(command, facts):
            self.start(self.status.run, command, facts, self.controller.workspace)

    def _draft_text(self) -> str:
        question = self.questions.current
        is_secret = question is not None and question.secret
        return "" if is_secret else self.editor.text

    async def _save_draft(self) -> None:
        text = self._draft_text()
        if self.draft is not None and not self.draft.is_kept(text):
            await run_sync(self.draft.keep, text)


def _as_error(text: str) -> RunError:
    """Read what `failure` of the commands wrote."""
    message, _, hint = text.partition("\nhint: ")
    return RunError(message.removeprefix("error: "), hint=hint or None)
