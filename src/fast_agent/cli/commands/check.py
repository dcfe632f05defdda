"""`fast-agent check`."""

from __future__ import annotations

import os
import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from fast_agent.app import FastAgent
from fast_agent.cards.load_set import card_facts, check_set, default_choice
from fast_agent.cli import options
from fast_agent.cli.card_options import AGENT_CARDS, TOOL_CARDS, found_cards
from fast_agent.cli.output import hide_in_errors, standard_error, standard_output
from fast_agent.config.home import is_foreign_place, working_directory
from fast_agent.config.load import CONFIG_NAMES
from fast_agent.errors import ConfigError
from fast_agent.text.environment import VariableNames
from fast_agent.text.frozen import frozen
from fast_agent.trust.gate import TrustOptions
from fast_agent.trust.grant import Grant
from fast_agent.trust.origin import root_of
from fast_agent.version import __version__

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from fast_agent.diagnostics.diagnostic import CardFact, Diagnostic

_PASSES = 5
"""Fixes may uncover what other fixes solve; this many rounds suffice for any real card."""

_HIDDEN_BUT_OURS = ".fast-agent"
_MAX_DEPTH = 12
LINKED: Final = "stays as it is: it is a link out of its directory; name the file to change it"


@frozen
class CheckReport:
    """What a check found.

    Args:
        cards: The cards, in load order.
        diagnostics: The problems.
        changed: Files that were fixed.
        linked: Files that were not, since they are links out of their directory.
        sets: Directories that were checked as a set each, in place of the one that was named.
    """

    cards: tuple[CardFact, ...]
    diagnostics: tuple[Diagnostic, ...]
    sets: tuple[str, ...] = ()
    changed: tuple[str, ...] = ()
    linked: tuple[str, ...] = ()


class CardCheck:
    """A check of some paths.

    Args:
        paths: What the user named; empty for automatically loaded cards, or this directory.
        multi_card: Whether a file may hold several cards.
        config_path: The configuration file, or None to search for one: for a named path, as
            `go --card` does, from the working directory upwards; for a set found below a
            directory, as if the command ran there.
    """

    def __init__(self, paths: Iterable[str], *, multi_card: bool, config_path: Path | None) -> None:
        self._paths = tuple(paths)
        self._multi_card = multi_card
        self._config_path = None if config_path is None else config_path.absolute()

    def run(self) -> CheckReport:
        """Check every set the paths denote."""
        cards: list[CardFact] = []
        diagnostics: dict[Diagnostic, None] = {}
        sets = tuple(self._sets())
        for paths, is_given, home in sets:
            report = self._check(paths, () if is_given else paths, home)
            cards.extend(report.cards)
            # A wrong configuration is reported once, however many sets it serves.
            diagnostics.update(dict.fromkeys(report.diagnostics))
        below = tuple(paths[0] for paths, _, _ in sets)
        is_other = len(self._paths) == 1 and [*map(Path, below)] != [*map(Path, self._paths)]
        return CheckReport(tuple(cards), tuple(diagnostics), below if is_other else ())

    def apply_fixes(self, report: CheckReport) -> CheckReport:
        """Write fixes into the files until none is left, and check again.

        Raises:
            CardError: A file cannot be written.
        """
        from fast_agent.cards.fix import apply_fixes

        changed: dict[str, None] = {}
        linked: tuple[str, ...] = ()
        for _ in range(_PASSES):
            done = apply_fixes(report.diagnostics, named=self._paths)
            linked = done.linked
            if not done.changed:
                break
            changed.update(dict.fromkeys(done.changed))
            report = self.run()
        return replace(report, changed=tuple(changed), linked=linked)

    def _sets(self) -> Iterator[tuple[tuple[str, ...], bool, Path]]:
        """Yield the paths of each set, whether they must hold cards, and where it would run."""
        cwd = working_directory()
        if not self._paths:
            found = found_cards(self._program(cwd), (), ())[2]
            if found:
                yield tuple(map(str, found)), False, cwd
                return
        paths = self._paths or (".",)
        below: list[tuple[str, ...]] = []
        if len(paths) == 1 and "://" not in paths[0] and Path(paths[0]).is_dir():
            below = list(_sets_below(Path(paths[0]), 0))
        for one in below:
            yield one, False, cwd if one == paths else home_of(one[0])
        if not below:
            yield paths, bool(self._paths), _project_of(paths[0]) or cwd

    def _check(self, paths: tuple[str, ...], optional: tuple[str, ...], home: Path) -> CheckReport:
        from fast_agent.cards.load import load_cards

        # Found files are checked as text: no variable gets a value.
        strange = not self._paths
        program = self._program(home)
        is_foreign = any(is_foreign_place(str(Path(one).absolute())) for one in paths)
        load = load_cards(
            paths,
            environ=VariableNames(os.environ) if strange else None,
            multi_card=self._multi_card,
            optional=optional,
            grant=Grant(root_of(Path(paths[0]).absolute())) if strange else None,
            foreign=program.configuration.agents_in_place() if is_foreign else None,
        )
        program.known_secrets.hide_values_of(load.cards)
        hide_in_errors(program.redact)
        problems: list[Diagnostic] = []
        servers = None
        try:
            servers = program.server_names
            problems.extend(program.settings.warnings)
        except ConfigError as error:
            problems.extend(error.diagnostics)
        problems.extend(load.diagnostics)
        problems.extend(
            check_set(load.cards, servers=servers, probes=program.probes(), unread=load.unread)
        )
        choice = default_choice(load.cards)
        if choice is not None and not any(one.severity == "error" for one in problems):
            problems.append(choice)
        return CheckReport(card_facts(load.cards), tuple(problems))

    def _program(self, home: Path) -> FastAgent:
        """Return the program that a set in this directory would run in; nothing of it acts."""
        return FastAgent(config_path=self._config_path, cwd=home, trust=TrustOptions(passive=True))


def _project_of(path: str) -> Path | None:
    """Return the project whose `.fast-agent` a path is in; None where it is in none."""
    place = Path(path).absolute()
    inside = next((one for one in place.parents if one.name == _HIDDEN_BUT_OURS), None)
    return None if inside is None or "://" in path else inside.parent


def home_of(path: str) -> Path:
    """Return the directory a set would run in: where its configuration is searched for."""
    if "://" in path:
        return working_directory()
    directory = Path(path).absolute()
    directory = directory if directory.is_dir() else directory.parent
    here = working_directory()
    for one in (directory, *directory.parents):
        # The parent of `.fast-agent` is the project that owns it.
        if one.name == _HIDDEN_BUT_OURS:
            return one.parent
        if one == here or any((one / name).is_file() for name in CONFIG_NAMES):
            return one
    return directory


def _sets_below(directory: Path, depth: int) -> Iterator[tuple[str, ...]]:
    if is_foreign_place(str(directory.absolute())):
        yield (str(directory),)
        return
    own = (directory / AGENT_CARDS.name, directory / TOOL_CARDS.name)
    if directory.name == _HIDDEN_BUT_OURS:
        found = tuple(str(one) for one in own if one.is_dir() and _holds_cards(one))
        if found:
            yield found
        return
    try:
        entries = sorted(directory.iterdir())
    except FileNotFoundError:  # deleted since it was listed
        return
    below = [
        entry
        for entry in entries
        if entry.is_dir()
        and not entry.is_symlink()
        and (not entry.name.startswith(".") or entry.name == _HIDDEN_BUT_OURS)
    ]
    if _holds_cards(directory):
        yield (str(directory),)
    if depth < _MAX_DEPTH:
        for entry in below:
            yield from _sets_below(entry, depth + 1)


def _holds_cards(directory: Path) -> bool:
    from fast_agent.cards.load import load_cards

    load = load_cards([directory], multi_card=True, optional=[directory])
    return bool(load.cards or load.failed)


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

    PATHS are files, directories and addresses that are loaded together. The directories below one
    directory are checked as well, each as a separate set. The default is the cards that load
    automatically in this directory, or else the directory itself.

    Exit status: 0 no errors, 1 errors, 2 invalid usage.
    """
    from fast_agent.diagnostics.render_human import render_cards, render_human, summarize
    from fast_agent.diagnostics.rules import NO_CARDS
    from fast_agent.text.visible import visible

    checking = CardCheck(paths, multi_card=multi_card, config_path=config_path)
    report = checking.run()
    if fix:
        report = checking.apply_fixes(report)
        for path in report.changed:
            standard_error().line(f"fixed {visible(str(path))}")
        for path in report.linked:
            standard_error().line(f"{visible(path)} {LINKED}")
    if output == "json":
        from fast_agent.diagnostics.render_json import render_json

        standard_output().write_facts(render_json(report.cards, report.diagnostics))
    elif output == "sarif":
        from fast_agent.diagnostics.render_json import render_sarif

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
        if report.sets:
            listed = ", ".join(f"`{visible(one)}`" for one in report.sets)
            errors.line(f"each directory is a separate set, as for `go --card`: {listed}")
    if any(found.severity == "error" for found in report.diagnostics):
        sys.exit(1)
