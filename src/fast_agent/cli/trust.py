"""`fast-agent trust`."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

import click

from fast_agent.cli import options
from fast_agent.cli.output import standard_error, standard_output
from fast_agent.trust.origin import address_of_root, remote_root

if TYPE_CHECKING:
    from collections.abc import Sequence

    from fast_agent.cli.found import FoundHere
    from fast_agent.trust.approvals import Approval, Approvals
    from fast_agent.trust.found_set import FoundSet


@click.command()
@click.argument("paths", metavar="[PATH…]", nargs=-1)
@click.option("--yes", is_flag=True, help="Approve without asking.")
@click.option("--view", is_flag=True, help="Print the files, or the changes to approved files.")
@click.option(
    "--format", "form", type=click.Choice(["text", "json"]), default="text", show_default=True,
    help="The output format; json includes every effect and the digest.",
)  # fmt: skip
@click.option("--text", "prose", is_flag=True, help="Also approve later changes to text only.")
@click.option("--own", is_flag=True, help="Treat everything in PATH as yours, and stop asking.")
@click.option("--list", "listing", is_flag=True, help="List approvals and their state.")
@click.option("--revoke", is_flag=True, help="Revoke the approval of PATH.")
@click.option(
    "--card", "cards", multiple=True, metavar="PATH|URL",
    help="Include what the project does in a run with your card; may be repeated.",
)  # fmt: skip
@click.option(
    "--card-tool", "tools", multiple=True, metavar="PATH|URL",
    help="The same for a card whose agents become tools; may be repeated.",
)  # fmt: skip
@options.servers("Include what the project does in a run with these MCP servers.")
@options.shell("Include what the project does in a run whose agents have a shell.")
def command(
    paths: tuple[str, ...],
    *,
    cards: tuple[str, ...],
    tools: tuple[str, ...],
    servers: tuple[str, ...],
    shell: bool,
    yes: bool,
    view: bool,
    form: str,
    prose: bool,
    own: bool,
    listing: bool,
    revoke: bool,
) -> None:
    """Review and approve what found projects do on this machine.

    The effects of cards, configuration and skills that load automatically need your approval: the
    programs they run, the addresses they connect to, the keys they send, the files they read and
    write. PATH is a project; the default is the one that contains the working directory. Every
    change asks again. With --card and the other options of a run, the effects are those of that
    run: what your agents would use of the project, or it of them.
    """
    if listing and (paths or revoke or own or yes or prose or view):
        raise click.UsageError("--list stands alone")
    if sum((revoke, own, view)) > 1 or ((revoke or own or view) and (yes or prose)):
        raise click.UsageError("--revoke, --own and --view each stand alone")
    if (listing or revoke or own) and (cards or tools or servers or shell):
        raise click.UsageError("--list, --revoke and --own take no options of a run")
    from fast_agent.cli.found import FoundHere
    from fast_agent.registry.expected import shared_options

    here = FoundHere(cards=cards, tools=tools, servers=servers, shared=shared_options(shell=shell))
    if listing:
        _list(here)
    elif revoke:
        _revoke(here, paths)
    elif own:
        _own(here, paths)
    elif view:
        _view(here, paths)
    elif form == "json":
        _print_json(here, paths)
    else:
        _approve(here, paths, yes=yes, prose=prose)


def _approve(here: FoundHere, paths: Sequence[str], *, yes: bool, prose: bool) -> None:
    from fast_agent.cli.report import report_note
    from fast_agent.trust.question import at_terminal, refusal, render_question, shown_root

    approvals = here.approvals
    # Agents without effects act unasked, but their turns are bounded until a user approves them.
    sets = [one for one in here.sets(*paths) if one.effects or one.is_strange or one.agents]
    if not sets:
        report_note("nothing there acts on this machine, so there is nothing to approve")
    ask = at_terminal(approvals)
    for found in sets:
        standing = approvals.standing(found)
        root = shown_root(found.root)
        if standing.state == "approved" and not prose:
            standard_output().line(f"{root} is approved already")
            continue
        if not found.effects and not found.is_strange and not yes and ask is None:
            report_note(
                f"nothing in {root} acts on this machine, so there is nothing to approve;"
                " `--yes` lets its turns make more than 50 model requests"
            )
            continue
        if not yes and ask is None:
            raise refusal(found, standing.added or found.effects, agent=None)
        if ask is not None and not yes:
            reply = ask(found, standing)
            if reply == "no":
                approvals.decline(found)
                standard_output().line(f"declined {root}")
                continue
        else:
            standard_error().write_whole(render_question(found, standing))
        approvals.approve(found, prose=prose)
        standard_output().line(f"approved {root} as it is now, {found.digest}")


def _view(here: FoundHere, paths: Sequence[str]) -> None:
    from fast_agent.trust.question import file_lines

    for found in here.sets(*paths):
        for line in file_lines(found, here.approvals):
            standard_output().line(line)


def _print_json(here: FoundHere, paths: Sequence[str]) -> None:
    import json

    from fast_agent.trust.question import as_json

    approvals = here.approvals
    whole = [as_json(one, approvals.standing(one)) for one in here.sets(*paths)]
    standard_output().line(json.dumps(whole, indent=2, ensure_ascii=False))


def _list(here: FoundHere) -> None:
    from fast_agent.text.visible import visible

    approvals = here.approvals
    lines = [(one.root, _state(here, approvals, one), one) for one in approvals.all()]
    for root, state, one in sorted(lines, key=lambda line: line[0]):
        effects = f"{len(one.effects)} effects in {len(one.files)} files"
        shown = visible(address_of_root(root) or root)
        standard_output().line(f"{state:<9} {shown}   {effects}, {one.on.isoformat()}")
    owned = [str(one) for one in here.policy.home.own]
    for own in owned:
        standard_output().line(f"{'own':<9} {visible(own)}")
    for path in here.earlier:
        standard_output().line(f"{'earlier':<9} {visible(path)}")
    if not lines and not owned and not here.earlier:
        standard_output().line("nothing is approved")


def _state(here: FoundHere, approvals: Approvals, approval: Approval) -> str:
    from fast_agent.errors import FastAgentError

    if address_of_root(approval.root) is not None:
        return approval.answer  # listing fetches nothing
    if not Path(approval.root).is_dir():
        return "gone"
    try:
        found = {str(one.root): one for one in here.sets(approval.root)}
    except FastAgentError:
        return "changed"
    now: FoundSet | None = found.get(approval.root)
    if now is None:
        return "gone"
    state = approvals.standing(now).state
    return "changed" if state == "new" else state


def _revoke(here: FoundHere, paths: Sequence[str]) -> None:
    from fast_agent.cli.report import report_note
    from fast_agent.text.visible import visible

    given = [remote_root(path) if "://" in path else here.workspace / path for path in paths]
    meant = [os.path.realpath(path) for path in given or [here.workspace]]
    roots = [one.root for one in here.approvals.all()]
    # A file or directory of a set means its root.
    chosen = [root for root in roots if any(Path(path).is_relative_to(root) for path in meant)]
    for root in here.revoke(chosen, meant):
        standard_output().line(visible(f"revoked {address_of_root(root) or root}"))
    if not chosen:
        report_note("nothing there is approved, so there is nothing to revoke")


def _own(here: FoundHere, paths: Sequence[str]) -> None:
    from fast_agent.text.visible import visible

    for path in paths or (".",):
        place = Path(os.path.realpath(here.workspace / path))
        if not place.is_dir():
            raise click.UsageError(f"`{path}` is not a directory")
        file = here.add_own(place)
        standard_output().line(
            visible(f"what {place} holds counts as yours from now on, by `trust.own` of {file}")
        )
