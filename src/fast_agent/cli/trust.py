"""`fast-agent trust`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from fast_agent.cli.output import standard_output

if TYPE_CHECKING:
    from fast_agent.app import FastAgent


@click.command()
@click.argument("paths", metavar="[PATH…]", nargs=-1)
@click.option("--list", "listing", is_flag=True, help="List approvals, and how each stands.")
@click.option("--revoke", is_flag=True, help="Take approvals back.")
def command(paths: tuple[str, ...], listing: bool, revoke: bool) -> None:
    """Approve the code that found cards bring, as it is now.

    Cards in .fast-agent/agent-cards/ and .fast-agent/tool-cards/ load by themselves. What they
    bring (functions, hooks, a shell, a server they start) runs only once it was approved: read the
    cards and the files they run first. When one of them changes, it has to be approved again.
    Without PATH, all cards that load by themselves are meant.
    """
    from fast_agent.app import FastAgent
    from fast_agent.cli.card_paths import AGENT_CARDS, TOOL_CARDS, auto_loaded
    from fast_agent.text.visible import visible

    if listing and (revoke or paths):
        raise click.UsageError("--list stands alone")
    program = FastAgent(ignore_config=True)
    here = program.workspace
    if listing:
        from fast_agent.cli.trust_list import render_approvals

        standard_output().write(render_approvals(program))
    elif revoke:
        places = paths or (str(AGENT_CARDS), str(TOOL_CARDS))
        meant = [str((here / place).parent.resolve() / Path(place).name) for place in places]
        known = program.approvals.all()
        gone = [path for path in known if path in meant or str(Path(path).parent) in meant]
        for path in program.approvals.revoke(gone):
            standard_output().line(visible(f"revoked {path}"))
        if not gone:
            from fast_agent.cli.report import report_note

            report_note("no card there is approved, so there is nothing to revoke")
    else:
        found = (*auto_loaded(AGENT_CARDS, here), *auto_loaded(TOOL_CARDS, here))
        _approve(program, paths or tuple(map(str, found)))


def _approve(program: FastAgent, paths: tuple[str, ...]) -> None:
    from fast_agent.cli.report import report_note
    from fast_agent.cli.trust_list import described

    codes = program.code_in(*paths, multi_card=True)
    if not codes:
        report_note("no card there brings code, so there is nothing to approve")
        return
    program.approvals.approve(codes)
    for code in codes:
        standard_output().line(f"approved {described(code, 'approved')}")
