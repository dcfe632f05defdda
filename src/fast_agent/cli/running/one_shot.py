"""One run of `fast-agent go`: load, then dump or ask once, then print."""

from __future__ import annotations

import os
import sys
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

import click

from fast_agent.cli import card_options
from fast_agent.cli.card_options import (
    DumpOptions,
    check_dump,
    dump_agents,
    session_store,
    wants_dump,
)
from fast_agent.cli.output import ErrorCollector, prints_apart, report_input, report_note
from fast_agent.cli.process import show_log
from fast_agent.config.providers import split_models
from fast_agent.errors import FastAgentError, HistoryError, RunError, SessionError, TrustError
from fast_agent.steps.steps import NULL_STEPS
from fast_agent.text.frozen import frozen
from fast_agent.version import __version__

if TYPE_CHECKING:
    from collections.abc import Generator
    from contextlib import AbstractAsyncContextManager
    from pathlib import Path

    from fast_agent.agent_app import AgentApp
    from fast_agent.agents.agent import Agent
    from fast_agent.agents.events import Listener
    from fast_agent.agents.output import OutputShape
    from fast_agent.agents.turn_context import TurnResult
    from fast_agent.app import FastAgent
    from fast_agent.cards.agent_config import HistorySource, HistoryTarget
    from fast_agent.cli.running.event_lines import EventLines
    from fast_agent.cli.running.progress import Progress
    from fast_agent.messages.message import Message
    from fast_agent.models.model import Usage
    from fast_agent.recording.replayer import Replayer
    from fast_agent.sessions.session import Session, SetChange
    from fast_agent.sessions.store import SessionStore
    from fast_agent.steps.steps import Steps
    from fast_agent.tools.human import Human
    from fast_agent.trust.gate import TrustOptions
    from fast_agent.tui.input.early_prompt import EarlyPrompt

_MAX_WARNINGS: Final = 5


class _NothingApprovedError(Exception):
    """No agent of a conversation may act, and the user named none."""


@frozen(kw_only=True)
class GoCommand(DumpOptions):
    """The options of `fast-agent go`, and what it does with them."""

    agent: str | None
    message: str | None
    prompt_file: Path | None
    session: bool
    no_session: bool
    resume: str | None
    results: Path | None
    json_schema: Path | None
    urls: tuple[str, ...]
    commands: tuple[str, ...]
    child_history_source: HistorySource | None
    child_history_merge_target: HistoryTarget | None
    output: str
    models: str | None = None
    watch: bool = False
    reload: bool = False
    plain: bool = False
    record: Path | None = None
    replay: Path | None = None
    allow: tuple[str, ...] = ()
    early: EarlyPrompt | None = None
    engine: str = "embedded"
    temporal_address: str | None = None

    def run(self) -> None:
        """Do it.

        Raises:
            FastAgentError: Something was wrong; nothing was run, or the turn failed.
            click.UsageError: The options do not go together.
        """
        self._check_usage()
        if self._compared:
            self = replace(self, model=self._compared[0])  # noqa: PLW0642 (all are checked below)
        show_log(quiet=self.quiet)
        with ErrorCollector() as faults:
            try:
                program = self.program(faults)
            except _NothingApprovedError:
                report_note("without the agents of this project; the plain assistant answers")
                program = replace(self, no_found=True).program(faults)
            for model in self._compared[1:]:
                with faults.collect():
                    card_options.check_model(program, model)
            with faults.collect():
                card_options.allowing(self.allow)
            with faults.collect():
                self._check_results()
            shape = messages = None
            with faults.collect():
                shape = self._shape()
            with faults.collect():
                messages = self._messages()
        if self.engine == "temporal" and not self._dumps:
            from fast_agent.cli.running.temporal import carry_turns

            carry_turns(program, self, self.temporal_address)
        if self._dumps:
            dump_agents(program, self)
        elif self._is_conversation:
            self._talk(program)
        elif messages is not None:
            from fast_agent.cli import process as event_loop
            from fast_agent.cli.running.progress import Progress

            streams = self.output == "human" and shape is None and not self._compared
            progress = Progress(quiet=self.quiet, stream=streams)
            lines = self._event_lines()
            # Standard output is for the answer; what tools print goes where progress does.
            with prints_apart():
                if self._compared:
                    event_loop.run(self._compare, program, messages, shape, progress)
                else:
                    event_loop.run(self._ask, program, messages, shape, progress, lines)

    @property
    def _compared(self) -> tuple[str, ...]:
        """The models of `--models`; empty without it."""
        return () if self.models is None else tuple(split_models(self.models))

    @property
    def _dumps(self) -> bool:
        return wants_dump(self)

    def _check_usage(self) -> None:
        check_dump(self)
        if self._dumps and (self.message is not None or self.prompt_file):
            raise click.UsageError("a dump sends no message; leave out --message and --prompt-file")
        if self.record is not None and self.replay is not None:
            raise click.UsageError("a run is either recorded or replayed; leave out one of the two")
        if self._dumps and (self.record is not None or self.replay is not None):
            raise click.UsageError("a dump runs nothing to record; leave out --record and --replay")
        self._check_engine()
        self._check_comparison()
        if self.session and self.resume is not None:
            raise click.UsageError("--session starts a session, --resume continues one")
        if self.session and self.no_session:
            raise click.UsageError("--session keeps a session, --no-session keeps none")
        if self._is_conversation:
            self._check_conversation()
        elif self.watch or self.reload:
            raise click.UsageError("--watch and --reload apply only to conversations at a terminal")
        elif not self._dumps and self.message is None and self.prompt_file is None:
            raise click.UsageError(
                "nothing to send; pass --message TEXT, --message - or --prompt-file FILE"
            )

    def receiver(self) -> str | None:
        """Return the agent that is asked."""
        return self.agent

    def trust_options(self) -> TrustOptions:
        """Return how found agents are treated: a replay starts nothing of theirs."""
        return replace(DumpOptions.trust_options(self), replays=self.replay is not None)

    def reaching(self) -> tuple[str, ...]:
        """Return `--stdio` and `--url`, with the names their servers get."""
        if not self.commands and not self.urls:
            return ()
        from fast_agent.mcp.server import derived_name

        lines = [("--stdio", line) for line in self.commands if line.strip()]
        return tuple(
            f"{option} {derived_name(text)}"
            for option, text in (*lines, *(("--url", url) for url in self.urls))
        )

    @property
    def _is_conversation(self) -> bool:
        """Whether a user talks at the terminal, as nothing else is to be done."""
        if self._dumps or self.message is not None or self.prompt_file is not None:
            return False
        return sys.stdin is not None and sys.stdin.isatty()

    def _check_engine(self) -> None:
        if self.engine != "temporal":
            return
        for option, value in (("--record", self.record), ("--replay", self.replay)):
            if value is not None:
                raise click.UsageError(f"{option} applies only to runs in this process")
        if self.allow:
            raise click.UsageError("--allow has no effect on the workers of Temporal")

    def _check_comparison(self) -> None:
        if not self._compared:
            return
        if not all(self._compared):
            raise click.UsageError("--models has an empty name")
        for option, value in (
            ("--model", self.model),
            ("--record", self.record),
            ("--replay", self.replay),
            ("--resume", self.resume),
            ("--results", self.results),
            ("--session", self.session or None),
            ("--format events", "events" if self.output == "events" else None),
        ):
            if value is not None:
                raise click.UsageError(f"--models compares single runs; leave out {option}")
        if self._dumps or self._is_conversation:
            raise click.UsageError("--models needs a message; pass --message TEXT")

    def _check_conversation(self) -> None:
        for option, value in (
            ("--results", self.results),
            ("--json-schema", self.json_schema),
            ("--record", self.record),
            ("--replay", self.replay),
        ):
            if value is not None:
                raise click.UsageError(f"{option} needs a message; pass --message TEXT")
        if self.allow:
            raise click.UsageError(
                "--allow applies only to runs with a message; a conversation at a terminal asks"
                " you, and `/permissions` changes what it asks about"
            )
        if self.output != "human":
            raise click.UsageError("--format needs a message; pass --message TEXT")

    def _talk(self, program: FastAgent) -> None:
        """Open the terminal."""
        from fast_agent.cli import process as event_loop
        from fast_agent.commands.session_commands import interruption
        from fast_agent.tui.plain_reason import plain_reason
        from fast_agent.tui.terminal import TerminalOptions, run_terminal

        store = None if self.no_session else card_options.session_store(program)
        session = None
        if self.resume is not None:
            if store is None:
                raise click.UsageError("--resume continues a session, --no-session saves none")
            session = resumed(program, store, self.resume)
            note = interruption(session)
            if note is not None:
                report_note(note)
        options = TerminalOptions(
            agent=self.agent,
            model=self.model,
            shell=self.shell,
            files=self.files,
            fetch=self.fetch,
            trust_cards=self.trust,
            child_history=card_options.child_history(
                self.child_history_source, self.child_history_merge_target
            ),
            watch=self.watch,
            sessions=store,
            plain=plain_reason(
                flag=self.plain, environ=os.environ, setting=program.settings.tui.plain
            ),
            session=session,
            early=self.early,
        )
        left = event_loop.run(run_terminal, program, options)
        if left.restarts:
            from fast_agent.commands.controller import restart

            restart(left.session)

    def most_warnings(self) -> int | None:
        """Return how many warnings are printed; a conversation should not start with a page."""
        return _MAX_WARNINGS if self._is_conversation else None

    def load(self, program: FastAgent) -> None:
        """Load the cards, for the agent that is asked, with the servers named by address."""
        added = self._add_servers(program)
        self.load_cards(program, receiver=self.agent, added=added)
        try:
            program.admission.require(self.agent)
        except TrustError as error:
            if self.cards or self.agent or not self._is_conversation:
                raise
            raise _NothingApprovedError from error

    def _check_results(self) -> None:
        """Check that the conversation can be written, before it is paid for."""
        directory = None if self.results is None else self.results.absolute().parent
        if directory is not None and not directory.is_dir():
            raise HistoryError(
                f"history `{self.results}` cannot be written: there is no directory `{directory}`",
                hint="make it, or correct --results",
            )

    def _shape(self) -> OutputShape | None:
        if self.json_schema is None:
            return None
        from fast_agent.cli.running.structured import read_schema

        return read_schema(self.json_schema)

    def _add_servers(self, program: FastAgent) -> list[str]:
        if not self.commands and not self.urls:
            return []
        from fast_agent.mcp.server import from_command_line, from_url

        taken = list(program.settings.mcp.servers)
        added: list[str] = []
        for line in self.commands:
            spec = from_command_line(line, directory=program.workspace, taken=taken + added)
            program.add_server(spec)
            added.append(spec.name)
        for url in self.urls:
            spec = from_url(url, taken=taken + added)
            program.add_server(spec)
            added.append(spec.name)
        return added

    def _messages(self) -> tuple[tuple[Message, ...], Message] | None:
        """Return what the conversation starts with, and the message to send; None for a dump."""
        if self._dumps or self._is_conversation:
            return None
        from fast_agent.messages.message import Message

        earlier: tuple[Message, ...] = ()
        if self.prompt_file is not None:
            from fast_agent.messages.file import read_history

            transcript = read_history(self.prompt_file)
            earlier = transcript.messages
            if transcript.system is not None:
                report_note(f"the `---SYSTEM` section of {self.prompt_file} is not used; put it "
                            "in the instruction of a card")  # fmt: skip
        if self.message is not None:
            text = self.message
            if text == "-":
                report_input("the message is read from the terminal until Ctrl-D")
                # The end of the last line belongs to the shell, not to the message.
                text = sys.stdin.read().removesuffix("\n")
            if not text.strip():
                raise click.UsageError("the message is empty")
            return earlier, Message.user(text)
        if not earlier or earlier[-1].role != "user":
            raise click.UsageError(
                f"`{self.prompt_file}` does not end with a user message; pass --message TEXT too"
            )
        return earlier[:-1], earlier[-1]

    async def _ask(
        self,
        program: FastAgent,
        messages: tuple[tuple[Message, ...], Message],
        shape: OutputShape | None,
        progress: Progress,
        lines: EventLines | None,
    ) -> None:
        earlier, message = messages
        with (
            recorded_run(program, self.record, self.replay) as steps,
            open_session(program, new=self.session, resume=self.resume) as session,
            nullcontext() if lines is None else lines.until_closed(),
        ):
            if lines is not None and session is not None:
                lines.write("session.opened", {"session": session.id})
            async with self._running(
                program,
                progress,
                progress.listener if lines is None else lines.listener,
                steps=steps,
                journal=None if session is None else session.journal,
            ) as app:
                agent = app[receiver(app, session, self.agent)]
                if earlier:
                    agent.load_history((*agent.history, *earlier))
                result = await agent.generate(message, output=shape)
                steps.check()
                self._print(app, agent, result, progress, lines)
                if session is not None:
                    progress.note(f"kept as session `{session.id}`; `--resume` continues it")

    def _running(
        self, program: FastAgent, progress: Progress, listener: Listener | None, **more: Any
    ) -> AbstractAsyncContextManager[AgentApp]:
        """Return the running program, as the options want it."""
        options: dict[str, Any] = {"model": self.model, **more}
        return program.run(
            shell=self.shell,
            files=self.files,
            fetch=self.fetch,
            trust_cards=self.trust,
            child_history=card_options.child_history(
                self.child_history_source, self.child_history_merge_target
            ),
            human=self._human(program),
            listener=listener,
            notify=progress.note,
            adjust=card_options.allowing(self.allow),
            partial_set=self.agent is not None,
            **options,
        )

    async def _compare(
        self,
        program: FastAgent,
        messages: tuple[tuple[Message, ...], Message],
        shape: OutputShape | None,
        progress: Progress,
    ) -> None:
        from fast_agent.cli.running.model_comparison import compare_models

        earlier, message = messages

        async def ask(model: str) -> tuple[str, TurnResult, Usage]:
            async with self._running(program, progress, progress.listener, model=model) as app:
                agent = app[receiver(app, None, self.agent)]
                if earlier:
                    agent.load_history((*agent.history, *earlier))
                result = await agent.generate(message, output=shape)
                return agent.name, result, app.usage

        if not await compare_models(self._compared, ask, progress, as_json=self.output == "json"):
            raise SystemExit(1)

    def _event_lines(self) -> EventLines | None:
        if self.output != "events":
            return None
        from fast_agent.cli.running.event_lines import EventLines

        return EventLines(text=not self.quiet)

    def _human(self, program: FastAgent) -> Human | None:
        """Return the user at the terminal, if an agent or a server might ask one."""
        configs = [card.config for card in program.load_set.cards.values()]
        asking = any(
            one.human_input or one.servers or one.mcp_connect or one.confirm for one in configs
        )
        if self.quiet or not asking:
            return None
        from fast_agent.tools.terminal_human import TerminalHuman

        return TerminalHuman.find(program)

    def _print(
        self,
        app: AgentApp,
        agent: Agent,
        result: TurnResult,
        progress: Progress,
        lines: EventLines | None,
    ) -> None:
        if self.results is not None:
            from fast_agent.messages.file import HistoryDocument, write_history

            kept = tuple(agent.history) or result.messages
            write_history(self.results, HistoryDocument(None, kept))
        if self.output != "human":
            from fast_agent.cli.running.structured import answer_facts

            facts = answer_facts(agent.name, result, app.usage)
            if lines is None:
                progress.print_facts(facts)
            else:
                lines.write("result", facts)
        else:
            progress.print_answer(result.text)
        if (shortcoming := result.shortcoming) is not None:
            progress.note(shortcoming)


_SHOWN_LINES = 12

NEWEST = ""
"""What `--resume` holds where no id is given: the session of this directory that changed last."""


@contextmanager
def open_session(program: FastAgent, *, new: bool, resume: str | None) -> Generator[Session | None]:
    """Open the session a run is kept in; None where it is kept in none.

    Args:
        program: What is run.
        new: Start a session.
        resume: Go on with this one; `NEWEST` or an id.

    Raises:
        SessionError: It cannot be made or opened.
        TrustError: Its agents may do more than when it was saved, and no user agreed.
    """
    if not new and resume is None:
        yield None
        return
    store, cwd = session_store(program), program.workspace
    session = store.create(cwd=cwd) if resume is None else resumed(program, store, resume)
    with session:
        yield session


def resumed(program: FastAgent, store: SessionStore, resume: str) -> Session:
    """Open a session to continue it, asking the user where it needs their approval.

    Args:
        program: What is run.
        store: Where sessions are kept.
        resume: `NEWEST` or an id.

    Raises:
        SessionError: It cannot be opened.
        TrustError: Its agents may do more than when it was saved, and no user agreed.
    """
    wanted = newest(store, program.workspace) if resume == NEWEST else resume
    if program.gate.policy.everything:  # `--trust` holds for this run, and is not remembered
        return store.open_unasked(wanted)
    try:
        return store.open(wanted, agree=lambda change: _user_agrees(program, change))
    except SessionError as error:
        copy = _copied(program, store, wanted, error)
        if copy is None:
            raise
        return copy


def _copied(
    program: FastAgent, store: SessionStore, session_id: str, error: SessionError
) -> Session | None:
    """Show the last turns of a session that another process has open, and offer a copy."""
    from fast_agent.trust.question import at_terminal

    if "is in use by" not in error.message or not program.gate.policy.may_ask:
        return None
    asker = at_terminal(program.approvals)
    if asker is None:
        return None
    from fast_agent.cli.session_listing import render_turns

    lines = render_turns(*store.read(session_id)).splitlines()
    text = "\n".join([f"{error.message}; its last turns:", *lines[-_SHOWN_LINES:]])
    if not asker.confirm(text, "Continue in a copy of it?  y yes   n no (default)"):
        return None
    return store.fork(session_id)


def _user_agrees(program: FastAgent, change: SetChange) -> bool:
    """Ask the user at the terminal whether a session continues with other agents than before."""
    from fast_agent.trust.question import at_terminal

    asker = at_terminal(program.approvals)
    if asker is None or not program.gate.policy.may_ask:
        return False
    return asker.confirm(change.text, "Go on with it?  y yes   n no (default)")


def receiver(app: AgentApp, session: Session | None, agent: str | None) -> str:
    """Select the receiver: the given agent, the last one talked to, or the default one.

    After a chain it is the agent the chain hands on to; see `AgentApp.goes_on_with`.

    Raises:
        RunError: The one talked to last is not loaded, or there is none to talk to.
    """
    last = None if session is None or agent is not None else session.last_agent
    if last is None:
        return agent or app.default_name
    if last in app:
        return app.goes_on_with(last)
    raise RunError(
        f"the session was with agent `{last}`, which is not loaded",
        hint="load its card with --card, or name another agent with --agent",
    )


def newest(store: SessionStore, cwd: Path) -> str:
    """Return the id of the session of a directory that changed last.

    Raises:
        SessionError: None began there.
    """
    found = store.latest(cwd)
    if found is None:
        hint = "`fast-agent session list` lists those of other directories"
        raise SessionError("no session of this project began in this directory", hint=hint)
    return found


_MAX_LEFT = 5


@contextmanager
def recorded_run(program: FastAgent, record: Path | None, replay: Path | None) -> Generator[Steps]:
    """Return the steps a run goes through: a recording, a replay, or neither.

    Args:
        program: What is run.
        record: The file to record to, or None.
        replay: The recording to replay, or None.

    Raises:
        RunError: The file cannot be written or read, or the run was not the recorded one.
    """
    if record is None and replay is None:
        yield NULL_STEPS
        return
    from fast_agent.steps.parts import StepRedactor

    redactor = StepRedactor(program.secrets(), str(program.workspace))
    if replay is not None:
        from fast_agent.recording.cassette import read_cassette
        from fast_agent.recording.replayer import Replayer

        replayer = Replayer(read_cassette(replay), redactor)
        try:
            yield replayer
        finally:
            replayer.check()
        report_unused(replayer, replay)
    elif record is not None:
        from fast_agent.recording.cassette import Recorder

        recorder = Recorder(record, redactor, {"program": f"fast-agent {__version__}"})
        complete = False
        try:
            yield recorder
            complete = True
        except FastAgentError:
            complete = True  # a run that fails is over too
            raise
        finally:
            recorder.close(complete=complete)


def report_unused(replayer: Replayer, shown: Path) -> None:
    """Report the recorded answers that were not asked for."""
    left = replayer.left()
    if left:
        names = [f"{key.kind} {key.name}".strip() + f" of `{key.agent}`" for key in left]
        more = f", and {len(left) - _MAX_LEFT} more" if len(left) > _MAX_LEFT else ""
        report_note(
            f"{len(left)} answers of the recording {shown} were not asked for: "
            + ", ".join(names[:_MAX_LEFT])
            + more
        )
