"""`fast-agent usage`: what sessions used."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import click

from fast_agent.cli import options
from fast_agent.cli.output import standard_output

if TYPE_CHECKING:
    from collections.abc import Sequence

    from fast_agent.sessions.store import SessionStore

_DAY_SECONDS = 86_400


@click.command()
@click.argument("session_ids", metavar="[ID]…", nargs=-1)
@click.option(
    "--days",
    type=click.IntRange(min=1),
    default=30,
    show_default=True,
    help="Without ID: count the sessions that changed in the last days.",
)
@options.output_format("json", help_text="The output format.")
@options.STORE
def command(session_ids: tuple[str, ...], days: int, output: str) -> None:
    """Show what sessions used: tokens, requests, tool calls and cost.

    Of one session it shows each agent, model and turn; of several, each agent, model and session.
    ID is the id of a session or a unique prefix of it. The counts are those of the sessions' logs.
    """
    import json

    from fast_agent.cli.commands.session import session_store
    from fast_agent.commands.session_commands import SessionUsage, usage_json, usage_lines

    store = session_store()
    chosen = session_ids or _recent(store, days)
    sessions = {summary.id: SessionUsage.of(state) for summary, state in map(store.read, chosen)}
    one = next(iter(sessions.values())) if len(session_ids) == 1 else None
    usage, turns = (one, "turn") if one else (SessionUsage.together(sessions), "session")
    if output == "json":
        facts = json.dumps(usage_json(usage, turns=f"{turns}s"), indent=2)
    elif sessions:
        facts = "\n".join(usage_lines(usage, turns=turns))
    else:
        facts = f"no session changed in the last {days} days"
    standard_output().write_facts(f"{facts}\n")


def _recent(store: SessionStore, days: int) -> Sequence[str]:
    """Return the sound sessions that changed in the last days, the oldest first."""
    since = time.time() - days * _DAY_SECONDS
    found = [one for one in store.list() if one.changed >= since and one.problem is None]
    return [one.id for one in sorted(found, key=lambda one: one.changed)]
