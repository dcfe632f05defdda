"""`fast-agent check`."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import click

from fast_agent.cli import options
from fast_agent.version import __version__

if TYPE_CHECKING:
    from pathlib import Path


@click.command()
@click.argument("paths", nargs=-1)
@options.MULTI_CARD
@click.option("--fix", is_flag=True, help="Fix problems in place where the fix is unambiguous.")
@options.CONFIG_PATH
@options.output_format("json", "sarif")
def command(
    paths: tuple[str, ...],
    multi_card: bool,
    fix: bool,
    config_path: Path | None,
    output: str,
) -> None:
    """Report every problem in cards. Nothing is run.

    PATHS are files, directories and addresses that are loaded together. For a directory without
    cards, each directory below it is checked as a separate set. The default is the cards that load
    automatically in this directory, or else the directory itself.

    Exit status: 0 no errors, 1 errors, 2 invalid usage.
    """
    from fast_agent.cli.checking import Checking
    from fast_agent.cli.output import standard_error, standard_output
    from fast_agent.diagnostics.render_human import render_cards, render_human, summarize
    from fast_agent.diagnostics.rules import NO_CARDS
    from fast_agent.text.visible import visible

    checking = Checking(paths, multi_card=multi_card, config_path=config_path)
    report = checking.run()
    if fix:
        report = checking.mend(report)
        for path in report.changed:
            standard_error().line(f"mended {visible(str(path))}")
    if output == "json":
        from fast_agent.diagnostics.render_json import render_json

        standard_output().write_facts(render_json(report.cards, report.diagnostics))
    elif output == "sarif":
        from fast_agent.diagnostics.render_sarif import render_sarif

        text = render_sarif(report.cards, report.diagnostics, version=__version__)
        standard_output().write_facts(text)
    else:
        # An empty directory that loads automatically is reported once, below.
        empty = (NO_CARDS.code, "info")
        shown = [one for one in report.diagnostics if (one.code, one.severity) != empty]
        errors = standard_error()
        errors.write_painted(render_human(shown, color=errors.wants_color))
        standard_output().write_facts(render_cards(report.cards))
        if not shown and report.cards:
            errors.line(summarize(()))
        elif not shown:
            errors.line("no cards were found here, so none were checked")
    if any(found.severity == "error" for found in report.diagnostics):
        sys.exit(1)
