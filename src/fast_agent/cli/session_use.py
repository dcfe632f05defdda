"""The session a run of `fast-agent go` is kept in."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

from fast_agent.errors import RunError, SessionError

if TYPE_CHECKING:
    from collections.abc import Generator
    from pathlib import Path

    from fast_agent.agent_app import AgentApp
    from fast_agent.app import FastAgent
    from fast_agent.sessions.session import Session, SetChange
    from fast_agent.sessions.store import SessionStore

NEWEST = ""
"""What `--resume` holds where no id is given: the session of this directory that changed last."""


@contextmanager
def kept(program: FastAgent, *, new: bool, resume: str | None) -> Generator[Session | None]:
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
    from fast_agent.cli.wanted import session_store

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
    return store.open(wanted, agree=lambda change: _agreed(program, change))


def _agreed(program: FastAgent, change: SetChange) -> bool:
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
