"""`fast-agent session`."""

from __future__ import annotations

import os
import time
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

import click

from fast_agent.cli import options
from fast_agent.cli.output import report_left_out, report_note, standard_output
from fast_agent.cli.session_listing import (
    render_sessions,
    render_turns,
    sessions_json,
    turns_json,
)
from fast_agent.text.wording import plural

if TYPE_CHECKING:
    from fast_agent.sessions.store import SessionStore

_FORMAT = options.output_format("json", help_text="The output format.")
_ID = options.together(click.argument("session_id", metavar="ID"), options.STORE)


@click.group(invoke_without_command=True)
@options.STORE
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
@options.STORE
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
        raise click.UsageError("--agent requires --format json")
    summary, state = session_store().read(session_id)
    if output == "json":
        text = export_json(state, agent_of(state, agent))
    else:
        text = export_markdown(summary, state)
    if file is None:
        standard_output().write_bytes(text.encode(errors="replace"))
        return
    from fast_agent.text.safe_file import write_atomic

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
@options.STORE
def delete(session_ids: tuple[str, ...]) -> None:
    """Delete sessions, including damaged ones."""
    store = session_store()
    for found in [store.find(session_id) for session_id in session_ids]:
        store.delete(found)


@command.command()
@options.AGE
@options.STORE
def prune(older_than: float) -> None:
    """Delete sessions in which nothing happened for so long; those in use stay."""
    from fast_agent.errors import SessionError

    store, deleted = session_store(), 0
    for one in store.list():
        if one.changed < time.time() - older_than:
            with suppress(SessionError):
                store.delete(one.id)
                deleted += 1
    standard_output().line(f"{plural(deleted, 'session')} deleted")


def session_store() -> SessionStore:
    """Return the store of the sessions of this home, or of the configured database.

    The configuration is the file of `--config-path`, else the one that is found. A database that
    a found project names is used once that is approved.
    """
    from fast_agent.app import FastAgent
    from fast_agent.cli.card_options import expect_cards
    from fast_agent.config.home import home_directory
    from fast_agent.sessions.store import SessionStore
    from fast_agent.trust.gate import TrustOptions

    program = FastAgent(
        config_path=click.get_current_context().meta.get(options.STORE_CONFIG),
        trust=TrustOptions(),
    )
    expect_cards(program, cards=())
    settings = program.settings.sessions
    for line in program.admission.decisions.lines():
        if line.startswith("setting `sessions"):
            report_left_out(line)
    return SessionStore(
        settings.url or home_directory(os.environ), lease_seconds=settings.lease_seconds
    )
