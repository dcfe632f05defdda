"""`fast-agent export`."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, cast

import click

from fast_agent.cli import options
from fast_agent.cli.card_options import AGENT_CARDS

if TYPE_CHECKING:
    from fast_agent.formats.export import Target

_TARGETS = ("claude", "copilot", "opencode", "gemini", "codex", "docker-agent", "crewai")


@click.command()
@click.argument("paths", nargs=-1, metavar="[PATH]...")
@click.option("--to", "target", required=True, type=click.Choice(_TARGETS), help="The target tool.")
@click.option(
    "--output",
    type=options.PATH,
    metavar="DIR",
    help="The directory to write to; default: where the tool finds its agents.",
)
@click.option(
    "--report", type=click.Choice(["json", "md"]), help="Print what was written and what is lost."
)
@click.option("--dry-run", is_flag=True, help="Write nothing.")
@click.option("--force", is_flag=True, help="Overwrite existing files.")
def command(
    paths: tuple[str, ...],
    target: str,
    output: Path | None,
    report: str | None,
    dry_run: bool,
    force: bool,
) -> None:
    """Convert cards to agents of another tool.

    PATHS are files and directories of cards; without them `.fast-agent/agent-cards`. Every field
    that the other tool has nothing for is reported.

    Exit status: 0 written, 1 the cards have errors, 2 invalid usage.
    """
    from fast_agent.cards.directory_writer import write_directory
    from fast_agent.cards.load import load_cards
    from fast_agent.cards.load_set import check_set
    from fast_agent.cli.output import report_diagnostics, standard_output
    from fast_agent.config.home import inside_working_directory
    from fast_agent.errors import CardError
    from fast_agent.formats.export import DIRECTORIES, export_cards
    from fast_agent.text.environment import VariableNames

    load = load_cards(paths or [AGENT_CARDS], environ=VariableNames(os.environ))
    problems = [*load.diagnostics, *check_set(load.cards, unread=load.unread)]
    errors = [one for one in problems if one.severity == "error"]
    if errors:
        report_diagnostics(errors)
        sys.exit(1)
    kind = cast("Target", target)
    files, found = export_cards(load.cards, kind)
    directory = output or inside_working_directory(
        Path(DIRECTORIES[kind]), hint="name the directory with `--output DIR`"
    )
    if report is None:
        report_diagnostics(found)
    there = [directory / name for name in files if os.path.lexists(directory / name)]
    if there and not (force or dry_run):
        raise CardError(
            f"`{there[0]}` already exists, so nothing was written",
            hint="`--force` overwrites them; `--output DIR` names another directory",
        )
    texts = {name: text.encode() for name, text in files.items()}
    written = [directory / name for name in files] if dry_run else []
    if texts and not dry_run:
        written = write_directory(directory, texts)
    if report is not None:
        from fast_agent.formats.report import export_report_json, export_report_markdown

        render = export_report_json if report == "json" else export_report_markdown
        standard_output().write_facts(render(target, written, found, dry_run=dry_run))
        return
    for path in written:
        standard_output().line(f"{'would write' if dry_run else 'wrote'} {path}")
