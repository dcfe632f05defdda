"""`fast-agent fmt`."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from fast_agent.cli import options


@click.command()
@click.argument("paths", nargs=-1, type=options.PATH, metavar="[PATH]...")
@click.option("--check", is_flag=True, help="Write nothing; status 1 where a file would change.")
def command(paths: tuple[Path, ...], check: bool) -> None:
    """Sort the fields of cards into the order of the reference.

    PATHS are files, and directories whose cards are formatted; without any it is
    `.fast-agent/agent-cards`, or else this directory. Comments and instructions stay as they are. A
    file that holds several cards, or is not read without a problem, stays as it is.

    Exit status: 0 done, 1 a file could not be formatted, or would change, 2 wrong usage.
    """
    from fast_agent.cards.layout import formatted
    from fast_agent.cards.load import load_cards
    from fast_agent.cli.card_paths import AGENT_CARDS
    from fast_agent.cli.output import standard_error, standard_output
    from fast_agent.text.atomic_file import write_atomic
    from fast_agent.text.environment import VariableNames

    named = paths or ((AGENT_CARDS if AGENT_CARDS.is_dir() else Path()),)
    load = load_cards(named, environ=VariableNames({}), multi_card=True)
    load_problems = [one for one in load.diagnostics if one.code in {"FA131", "FA134", "FA137"}]
    if load_problems:
        from fast_agent.cli.report import report_diagnostics

        report_diagnostics(load_problems)
        sys.exit(1)
    failed = False
    for path in dict.fromkeys(card.path for card in load.cards):
        old = Path(path).read_bytes()
        new = formatted(path, old.decode("utf-8-sig"))
        if new is None:
            failed = True
            standard_error().line(f"{path} stays as it is: `fast-agent check` says what is wrong")
        elif new.encode() != old:
            failed = failed or check
            if not check:
                write_atomic(Path(path), new.encode())
            standard_output().line(f"{'would format' if check else 'formatted'} {path}")
    if failed:
        sys.exit(1)
