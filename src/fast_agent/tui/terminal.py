"""Terminal: opens a conversation at the terminal of this process, and closes what it holds."""

from __future__ import annotations

import asyncio
import gc
import io
import locale
import logging
import os
import sys
from contextlib import ExitStack, contextmanager, redirect_stderr, redirect_stdout, suppress
from contextvars import copy_context
from dataclasses import replace
from functools import partial
from threading import Lock
from typing import TYPE_CHECKING, Final, TextIO, TypeGuard, cast

from anyio.to_thread import run_sync

from fast_agent.acp.remembered import PERMISSIONS_FILE, RememberedPermissions
from fast_agent.commands.controller import ConversationController
from fast_agent.config.home import home_directory
from fast_agent.diagnostics.rules import WRONG_CONFIG_VALUE
from fast_agent.errors import ConfigError, FastAgentError, RunError, SessionError
from fast_agent.models.check import FALLBACK_NOTICE
from fast_agent.runtime.protected_files import ProtectedFiles
from fast_agent.text.frozen import frozen
from fast_agent.text.wording import plural
from fast_agent.tools.files.file_history import DIRECTORY as FILE_HISTORY
from fast_agent.tools.files.file_history import FileHistory
from fast_agent.tools.files.workspace import Workspace
from fast_agent.tui.console import Console, ConsoleParts
from fast_agent.tui.console_commands import console_commands
from fast_agent.tui.console_keys import ConsoleKeys
from fast_agent.tui.console_programs import OtherPrograms
from fast_agent.tui.drawing.rows import shown
from fast_agent.tui.drawing.screen import Screen, terminal_size
from fast_agent.tui.drawing.scroll import quoted
from fast_agent.tui.drawing.theme import Theme
from fast_agent.tui.first_run import settle_model
from fast_agent.tui.input.draft import DIRECTORY as DRAFTS
from fast_agent.tui.input.draft import Draft
from fast_agent.tui.input.keyboard import Focus, terminal_input
from fast_agent.tui.input.prompt_history import FILE as HISTORY_FILE
from fast_agent.tui.input.prompt_history import PromptHistory
from fast_agent.tui.live_area import LiveArea
from fast_agent.tui.plain import PlainConversation, PlainScreen
from fast_agent.tui.plain_reason import plain_reason
from fast_agent.tui.questions import TerminalPermission, TerminalUser
from fast_agent.version import __version__

if TYPE_CHECKING:
    from collections.abc import Callable, Generator
    from pathlib import Path

    from fast_agent.agent_app import AgentApp
    from fast_agent.agents.runtime_options import RuntimeOptions
    from fast_agent.cards.agent_config import ChildHistory, FileAccess
    from fast_agent.diagnostics.diagnostic import Diagnostic
    from fast_agent.program.program import Program
    from fast_agent.registry.reload import Reload
    from fast_agent.registry.watch import CardWatch
    from fast_agent.sessions.session import Session
    from fast_agent.sessions.store import SessionStore
    from fast_agent.tui.input.early_prompt import EarlyPrompt

_SHOWN_TURNS: Final = 3
_IMPORTING: Final = Lock()
_SWITCH_SECONDS: Final = 0.0005
"""A worker thread that parses or highlights hands the interpreter over this soon.

A key needs the interpreter three times until its echo is written; with the default of 5 ms, each
may wait for a worker that long.
"""


@frozen(kw_only=True)
class TerminalOptions:
    """How a conversation at the terminal is opened.

    Args:
        agent: The agent to talk to first; None is the default one, or the one of the session.
        model: The model of every agent; None leaves it to cards and configuration.
        shell: Whether every agent may run commands.
        files: What every agent may do with files of the workspace; None leaves it to the cards.
        fetch: Whether every agent may fetch web pages.
        trust_cards: Whether cards that a smart agent reaches may run code.
        child_history: What called agents start with and where their messages go, over the cards.
        watch: Whether cards are reloaded when their files change.
        sessions: Where conversations are kept; None keeps none.
        plain: Why lines are read and written, and nothing is drawn; None draws.
        session: The session to continue, open; the terminal closes it. None starts a new one.
        early: The prompt that is shown until the terminal is open; None where there is none.
    """

    agent: str | None = None
    model: str | None = None
    shell: bool = False
    files: FileAccess | None = None
    fetch: bool = False
    trust_cards: bool = False
    child_history: ChildHistory | None = None
    watch: bool = False
    sessions: SessionStore | None = None
    plain: str | None = None
    session: Session | None = None
    early: EarlyPrompt | None = None


@frozen
class ConversationEnd:
    """How a conversation was left.

    Args:
        session: The session it is kept in, or None.
        restarts: Whether the program should restart.
    """

    session: str | None
    restarts: bool


def is_terminal() -> bool:
    """Return whether standard input and standard output are terminals."""
    return sys.stdin is not None and sys.stdin.isatty() and os.isatty(1)


async def run_terminal(program: Program, options: TerminalOptions) -> ConversationEnd:
    """Talk with the agents of a program until the user leaves.

    Args:
        program: The program, with its cards loaded.
        options: How.

    Raises:
        FastAgentError: The agents cannot be made live.
    """
    console = _new_console(
        program, asks=True, is_plain=options.plain is not None, early=options.early
    )

    def with_edges(given: RuntimeOptions) -> RuntimeOptions:
        return replace(
            given,
            permission=console.permission,
            approval=console.permission,
            tool_transform=console.file_history.tools,
        )

    console.model_import.through = _import_uncollected
    with _printing_above(console, program.redact), _switching_soon():
        async with program.run(
            model=options.model,
            shell=options.shell,
            files=options.files,
            fetch=options.fetch,
            trust_cards=options.trust_cards,
            child_history=options.child_history,
            human=TerminalUser(console.questions, program),
            notify=partial(_notify, console),
            grows=True,
            adjust=with_edges,
        ) as app:
            return await _talk(console, program, app, options)


def _import_uncollected(work: Callable[[], None]) -> None:
    """Import without the garbage collector, and leave what was imported out of later collections.

    A full collection during the import of a provider holds the interpreter for 30 to 120 ms, and no
    key is echoed while it does.
    """
    with _IMPORTING:  # one at a time: the end of one import must not collect within another
        gc.disable()
        try:
            work()
        finally:
            gc.freeze()
            gc.enable()


@contextmanager
def _switching_soon() -> Generator[None]:
    before = sys.getswitchinterval()
    sys.setswitchinterval(_SWITCH_SECONDS)
    try:
        yield
    finally:
        sys.setswitchinterval(before)


def _notify(console: Console, text: str) -> None:
    if text != FALLBACK_NOTICE:  # the first steps say it at length
        console.note(text)


async def talk(program: Program, app: AgentApp, agent: str | None = None) -> None:
    """Talk with the live agents of a program until the user leaves; see `AgentApp.interactive`.

    Args:
        program: The program.
        app: Its live agents.
        agent: The agent to talk to first; None is the default one.

    Raises:
        RunError: There is no terminal, or no such agent.
    """
    plain = plain_reason(flag=False, environ=os.environ, setting=program.settings.tui.plain)
    if not is_terminal():
        raise RunError(
            "there is no terminal to talk at",
            hint="run the program at a terminal, or send messages with `await app(TEXT)`",
        )
    console = _new_console(program, asks=False, is_plain=plain is not None)
    with _printing_above(console, program.redact):
        left = await _talk(console, program, app, TerminalOptions(agent=agent, plain=plain))
    if left.restarts:
        raise RunError("only `fast-agent go` can start again", hint="run the program again")


async def _talk(
    console: Console, program: Program, app: AgentApp, options: TerminalOptions
) -> ConversationEnd:
    with ExitStack() as stack:
        watch = None
        if options.watch:
            watch = stack.enter_context(program.watch(_notifier_in_loop(console)))
        controller = _open_desk(console, program, app, options, watch)
        try:
            if options.plain is not None:
                console.scroll.add_lines([f"[plain mode: on, {options.plain}]"])
            first_steps = await settle_model(controller, can_hide_keys=options.plain is None)
            _print_header(console, controller)
            if first_steps is not None:
                console.say(first_steps)
            _report_keys(console, program)
            if options.session is not None:
                _show_turns(console, options.session)
                _offer_draft(console)
                console.take_queue()
            await console.run()
        finally:
            await controller.aclose()
    return ConversationEnd(
        None if controller.session is None else controller.session.id, console.restarts
    )


def _open_desk(
    console: Console,
    program: Program,
    app: AgentApp,
    options: TerminalOptions,
    watch: CardWatch | None,
) -> ConversationController:
    session, store = options.session, options.sessions
    last = None if session is None else session.last_agent
    user = TerminalUser(console.questions, program)
    controller = ConversationController(
        program,
        app,
        agent=options.agent or (last if last in app.agent_names() else None),
        sessions=store,
        session=session,
        watch=watch,
        listener=console.on_event,
        human=user,
        confirm=user.confirm,
        notify=console.note,
    )
    if session is not None:
        console.file_history.open(session.id)
    if store is not None and session is None:
        console.new_session = partial(
            _new_session, store, controller.workspace, console.file_history
        )
    console.model_import.work = controller.import_packages
    console.open(controller, console_commands(console))
    return controller


async def _new_session(store: SessionStore, directory: Path, file_history: FileHistory) -> Session:
    await run_sync(file_history.prune, partial(_is_kept, store))
    return await run_sync(partial(store.create, cwd=directory))


def _is_kept(store: SessionStore, session_id: str) -> bool:
    try:
        return store.find(session_id) == session_id
    except SessionError:
        return False


def _new_console(
    program: Program, *, asks: bool, is_plain: bool, early: EarlyPrompt | None = None
) -> Console:
    settings = program.settings.tui
    encoding = locale.getencoding()
    theme = Theme.of_environment(os.environ, encoding=encoding, name=settings.theme)
    if is_plain:
        theme = Theme(styled=False, ascii_only=True, is_spoken=True)
    home = home_directory(os.environ)
    history = PromptHistory(home / HISTORY_FILE, str(program.workspace))
    screen = (PlainScreen if is_plain else Screen)(1, terminal_size)
    focus = Focus()
    console = Console(
        screen,
        theme,
        history,
        terminal_input(early, focus),
        parts=_parts,
        settings=settings,
        early=early,
        focus=focus,
        file_history=FileHistory(
            Workspace(program.workspace), home / FILE_HISTORY if asks else None
        ),
    )
    if asks and not is_plain:
        console.draft = Draft(home / DRAFTS, str(program.workspace), os.getpid())
    if asks:
        remembered = RememberedPermissions(home / PERMISSIONS_FILE)
        protected = ProtectedFiles(program, home, program.workspace)
        console.permission = TerminalPermission(
            console.questions, program, remembered, protected, program.workspace
        )
    return console


def _parts(console: Console) -> ConsoleParts:
    live = LiveArea(console)
    return ConsoleParts(
        ConsoleKeys(console),
        live.rows,
        live.facts,
        OtherPrograms(console),
        PlainConversation(console).run,
    )


def _print_header(console: Console, controller: ConversationController) -> None:
    """Print the header: what this is, and how to continue."""
    theme = console.theme
    count = len(controller.app.load_set.cards)
    dot = f" {theme.sign('dot')} "
    facts = [f"fast-agent {__version__}", plural(count, "agent")]
    with suppress(FastAgentError, KeyError):
        facts.append(controller.app.runtime.model_of(controller.agent).text)
    lines = [theme.strong(facts[0]) + theme.dim(dot + shown(dot.join(facts[1:])))]
    lines.append(theme.dim("/help, ? for keys"))
    console.scroll.add_lines(lines, "header")


def _report_keys(console: Console, program: Program) -> None:
    """Report invalid keys of the settings; the keys are as they would be without them."""
    problems: list[Diagnostic] = []
    for key, message in console.key_problems.items():
        place = program.settings.place_of("tui", "bind", key, key=True)
        if place is not None:
            problems.append(place.problem(WRONG_CONFIG_VALUE, message, "`/keys` lists the keys"))
    if problems:
        console.fail(ConfigError(problems[0].message, diagnostics=tuple(problems)))


def _show_turns(console: Console, session: Session) -> None:
    """Print the last turns of a resumed session."""
    try:
        turns = session.state.turns
    except SessionError as error:
        console.fail(error)
        return
    if not turns:
        return
    count = plural(len(turns), "turn")
    console.note(f"session `{session.id}` continues; {count} so far, Ctrl-T shows them")
    for turn in turns[-_SHOWN_TURNS:]:
        said = turn.closed()
        asked = next((one for one in said if one.role == "user"), None)
        answers = [one.text for one in said if one.role == "assistant" and one.text]
        if asked is not None:
            console.scroll.add_lines([console.theme.you("you")], "rule")
            console.scroll.add_lines(quoted(asked.text, console.scroll.text_width), "user")
        console.scroll.add_lines([console.theme.strong(shown(turn.agent))], "rule")
        for text in answers[-1:]:
            console.scroll.add_markdown(text, "text")


def _offer_draft(console: Console) -> None:
    """Restore the text that was in the editor of a conversation that was cut off."""
    left = "" if console.draft is None else console.draft.take_left()
    if left and console.has_early_keys:  # what is typed now must not be sent together with it
        console.editor.remember(left)
        console.note("what was typed before the crash is in the history: Up")
    elif left:
        console.editor.put(left)
        console.note("what was typed before is in the editor again")


def _notifier_in_loop(console: Console) -> Callable[[Reload], None]:
    """Return a listener that passes reloads from the watcher's thread to the terminal."""
    loop, context = asyncio.get_running_loop(), copy_context()

    def on_reload(done: Reload) -> None:
        with suppress(RuntimeError):  # the loop may be closed by then
            loop.call_soon_threadsafe(console.reloaded, done, context=context)

    return on_reload


class _PrintedLines(io.TextIOBase):
    """What functions, hooks and libraries print, line by line above the live area."""

    def __init__(self, post: Callable[[list[str]], None], redact: Callable[[str], str]) -> None:
        super().__init__()
        self._post = post
        self._redact = redact
        self._rest = ""

    @property
    def encoding(self) -> str:  # type: ignore[override]
        return "utf-8"

    def write(self, text: str, /) -> int:
        *lines, self._rest = (self._rest + text).split("\n")
        if lines:
            self._post([shown(self._redact(line)) for line in lines])
        return len(text)

    def writable(self) -> bool:
        return True

    def whole(self) -> TextIO:
        return cast("TextIO", _PrintedLines(self._post, str))


def _is_at_terminal(
    handler: logging.Handler,
) -> TypeGuard[logging.StreamHandler[TextIO]]:
    is_file = isinstance(handler, logging.FileHandler)
    return isinstance(handler, logging.StreamHandler) and not is_file


@contextmanager
def _printing_above(console: Console, redact: Callable[[str], str]) -> Generator[None]:
    """Send what is printed and logged above the live area."""
    loop, context = asyncio.get_running_loop(), copy_context()

    def post(lines: list[str]) -> None:
        with suppress(RuntimeError):
            loop.call_soon_threadsafe(console.scroll.add_lines, lines, "output", context=context)

    printed = _PrintedLines(post, redact)
    root = logging.getLogger()
    moved = [
        (one, one.setStream(cast("TextIO", printed)))
        for one in root.handlers
        if _is_at_terminal(one)
    ]
    try:
        with redirect_stdout(printed), redirect_stderr(printed):
            yield
    finally:
        for handler, before in moved:
            if before is not None:
                handler.setStream(before)
