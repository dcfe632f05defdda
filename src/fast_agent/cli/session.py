"""`fast-agent session`."""

from __future__ import annotations

import json
import os
import time
from contextlib import suppress
from dataclasses import asdict
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

import click

from fast_agent.cli import options
from fast_agent.cli.output import standard_output
from fast_agent.text.visible import visible

if TYPE_CHECKING:
    from collections.abc import Sequence

    from fast_agent.sessions.facts import SessionSummary
    from fast_agent.sessions.state import SessionState
    from fast_agent.sessions.store import SessionStore

_LONGEST = 70


def render_sessions(sessions: Sequence[SessionSummary]) -> str:
    """Write sessions as lines for people."""
    if not sessions:
        return "there are no sessions; `fast-agent go --session` begins one\n"
    lines = [
        f"{one.id}  {_when(one.changed)}  {_count(one)}  {visible(one.problem or one.title)}"
        for one in sessions
    ]
    return "".join(f"{line.rstrip()}\n" for line in lines)


def sessions_json(sessions: Sequence[SessionSummary]) -> str:
    """Write sessions as JSON."""
    return json.dumps([_facts(one) for one in sessions], indent=2) + "\n"


def render_turns(summary: SessionSummary, state: SessionState) -> str:
    """Write the turns of a session as lines for people."""
    lines = [f"{summary.id}  {visible(summary.title)}".rstrip()]
    if summary.cwd:
        lines.append(f"directory: {visible(summary.cwd)}")
    if summary.parent:
        lines.append(f"forked from: {summary.parent}")
    for turn in _turns(state):
        asked, answer = (visible(_short(turn[key])) for key in ("message", "answer"))
        lines.append(f"{turn['turn']:>4}  {turn['agent']}: {asked}")
        lines.append(f"      {answer or turn['stop_reason']}")
    return "\n".join(lines) + "\n"


def turns_json(summary: SessionSummary, state: SessionState) -> str:
    """Write a session and its turns as JSON."""
    facts = {**_facts(summary), "usage": _usage(state), "turns": _turns(state)}
    return json.dumps(facts, indent=2) + "\n"


def _usage(state: SessionState) -> dict[str, int]:
    from fast_agent.models.usage import Usage

    return asdict(Usage(*state.used))


def _turns(state: SessionState) -> list[dict[str, str]]:
    found: list[dict[str, str]] = []
    for number, turn in enumerate(state.turns, 1):
        messages = turn.closed() if turn.ended is None else turn.messages()
        last = messages[-1]
        found.append(
            {
                "turn": str(number),
                "id": turn.turn_id,
                "agent": turn.agent,
                "message": messages[0].text,
                "answer": last.text if last.role == "assistant" else "",
                "stop_reason": turn.stop_reason or "cancelled",
            }
        )
    return found


def _facts(one: SessionSummary) -> dict[str, str | int | None]:
    return {
        "id": one.id,
        "title": one.title,
        "created": _iso(one.created),
        "changed": _iso(one.changed),
        "directory": one.cwd or None,
        "forked_from": one.parent,
        "turns": one.turns,
        "problem": one.problem,
    }


def _short(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= _LONGEST else f"{line[: _LONGEST - 1].rstrip()}…"


def _count(one: SessionSummary) -> str:
    if one.problem is not None:
        return " damaged"
    return f"{one.turns:>2} turn{'' if one.turns == 1 else 's'}".ljust(8)


def _when(seconds: float) -> str:
    return datetime.fromtimestamp(seconds).astimezone().isoformat(" ", "minutes")[:16]


def _iso(seconds: float) -> str:
    return datetime.fromtimestamp(seconds).astimezone().isoformat(timespec="seconds")


_FORMAT = options.output_format("json", help_text="The output format.")
_ID = click.argument("session_id", metavar="ID")


@click.group(invoke_without_command=True)
@click.pass_context
def command(ctx: click.Context) -> None:
    """List, show, export, fork, salvage, rename, rewind and delete conversations.

    ID is the id of a session or a unique prefix of it. `fast-agent go --resume ID` continues a
    session.
    """
    if ctx.invoked_subcommand is None:
        ctx.invoke(list_sessions)


@command.command("list")
@_FORMAT
def list_sessions(output: str = "human") -> None:
    """List sessions, the most recently changed first, and mark damaged ones."""
    sessions = session_store().list(check=True)
    text = sessions_json(sessions) if output == "json" else render_sessions(sessions)
    standard_output().write_facts(text)


@command.command()
@_ID
@_FORMAT
def show(session_id: str, output: str) -> None:
    """Show the turns of a session with their numbers."""
    summary, state = session_store().read(session_id)
    text = turns_json(summary, state) if output == "json" else render_turns(summary, state)
    standard_output().write_facts(text)


@command.command()
@_ID
@click.option(
    "--format",
    "output",
    type=click.Choice(["markdown", "json"]),
    default="markdown",
    show_default=True,
    help="The whole transcript as Markdown, or the history of one agent as a file that can be "
    "loaded.",
)
@click.option(
    "--agent",
    metavar="NAME",
    help="The agent whose history to export; default: the agent addressed last.",
)
@click.option(
    "--output",
    "-o",
    "file",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Write to a file instead of standard output.",
)
def export(session_id: str, output: str, agent: str | None, file: Path | None) -> None:
    """Write a session as Markdown, or the history of an agent as JSON."""
    from fast_agent.sessions.export import agent_of, export_json, export_markdown

    if agent is not None and output == "markdown":
        raise click.UsageError("--agent goes with --format json")
    summary, state = session_store().read(session_id)
    if output == "json":
        text = export_json(state, agent_of(state, agent))
    else:
        text = export_markdown(summary, state)
    if file is None:
        standard_output().write_bytes(text.encode(errors="replace"))
        return
    from fast_agent.text.atomic_file import write_atomic

    write_atomic(file, text.encode(errors="replace"))


@command.command()
@_ID
@click.option("--at", metavar="TURN", help="The last turn to copy; default: all turns.")
@click.option("--title", metavar="TEXT", help="The title of the new session.")
def fork(session_id: str, at: str | None, title: str | None) -> None:
    """Start a new session from a turn of another one, and print its id."""
    with session_store().fork(session_id, at, title=title) as session:
        standard_output().line(session.id)


@command.command()
@_ID
def salvage(session_id: str) -> None:
    """Start a new session from the intact events of a damaged one, and print its id."""
    from fast_agent.cli.report import report_note

    session, lost = session_store().salvage(session_id)
    with session:
        standard_output().line(session.id)
    if not lost.damage.events:
        report_note("no event is damaged; the new session has all of them")
        return
    turns = "no turn was" if not lost.turns else "1 turn was" if lost.turns == 1 else None
    report_note(f"{lost.damage}; {turns or f'{lost.turns} turns were'} left out")


@command.command()
@_ID
@click.argument("title")
def rename(session_id: str, title: str) -> None:
    """Set the title of a session."""
    session_store().rename(session_id, title)


@command.command()
@_ID
@click.argument("turn")
def rewind(session_id: str, turn: str) -> None:
    """Return to the end of TURN; 0 is the start of the session. Nothing is deleted."""
    with session_store().open(session_id) as session:
        session.rewind(turn)


@command.command()
@click.argument("session_ids", metavar="ID…", nargs=-1, required=True)
def delete(session_ids: tuple[str, ...]) -> None:
    """Delete sessions, including damaged ones."""
    store = session_store()
    for found in [store.find(session_id) for session_id in session_ids]:
        store.delete(found)


@command.command()
@options.AGE
def prune(older_than: float) -> None:
    """Delete sessions in which nothing happened for so long; those in use stay."""
    from fast_agent.errors import SessionError

    store, deleted = session_store(), 0
    for one in store.list():
        if one.changed < time.time() - older_than:
            with suppress(SessionError):
                store.delete(one.id)
                deleted += 1
    standard_output().line(f"{deleted:,} session{'' if deleted == 1 else 's'} deleted")


def session_store() -> SessionStore:
    """Return the store of the sessions of this home, or of the configured database.

    A database that a found project names is used once that is approved.
    """
    from fast_agent.app import FastAgent
    from fast_agent.cli.loading import expect_cards
    from fast_agent.cli.report import report_left_out
    from fast_agent.config.home import home_directory
    from fast_agent.sessions.store import SessionStore
    from fast_agent.trust.gate import TrustOptions

    program = FastAgent(trust=TrustOptions())
    expect_cards(program, cards=())
    settings = program.settings.sessions
    for line in program.admission.decisions.lines():
        if line.startswith("setting `sessions"):
            report_left_out(line)
    return SessionStore(
        settings.url or home_directory(os.environ), lease_seconds=settings.lease_seconds
    )
