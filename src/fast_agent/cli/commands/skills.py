"""`fast-agent skills`."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

import click

from fast_agent.cli import options

if TYPE_CHECKING:
    from collections.abc import Iterable

    from fast_agent.resources.skill.install import SkillFolder

_PROJECT = Path(".agents/skills")
_USER = click.option("--user", is_flag=True, help="In your home, for all projects.")
_FORMAT = options.output_format("json", help_text="The output format.")
_FORCE = click.option("--force", is_flag=True, help="Replace what is there.")


@click.group()
def command() -> None:
    """Find, add, update and remove skills.

    Skills go into `.agents/skills` of this directory, or with `--user` of your home, where agents
    find them. They are copied from directories, Git checkouts and archives; none of them is run.
    """


@command.command("search")
@click.argument("source", type=options.PATH)
@click.argument("words", nargs=-1)
@_FORMAT
def search(source: Path, words: tuple[str, ...], output: str) -> None:
    """List the skills of SOURCE, a directory or a Git checkout, that have all WORDS in them."""
    from fast_agent.cli.output import report_diagnostics, report_note, standard_output
    from fast_agent.errors import ResourceError
    from fast_agent.resources.skill.install import skills_below
    from fast_agent.text.visible import visible

    if not source.is_dir():
        raise ResourceError(f"`{source}` is not a directory")
    skills, problems = skills_below(source, str(source))
    if problems:
        report_diagnostics(problems)
    found = {name: skill.description for name, skill in sorted(skills.items())}
    fitting = [name for name, about in found.items() if _has_all(f"{name} {about}", words)]
    if output == "json":
        facts = [{"name": name, "description": found[name]} for name in fitting]
        standard_output().write_json(facts)
        return
    for name in fitting:
        standard_output().line(f"{name}  {visible(found[name])}")
    if not fitting:
        report_note(f"none of the {len(found)} skills of `{source}` matches")


def _has_all(text: str, words: Iterable[str]) -> bool:
    return all(word.casefold() in text.casefold() for word in words)


@command.command("list")
@_USER
@_FORMAT
def list_installed(user: bool, output: str) -> None:
    """List the skills that were added, and where each is from."""
    from fast_agent.cli.output import report_note, standard_output

    folder = _folder(user)
    installed = folder.installed()
    if output == "json":
        facts = [
            {"name": name, "source": one.source, "digest": one.digest}
            for name, one in sorted(installed.items())
        ]
        standard_output().write_json(facts)
        return
    for name, one in sorted(installed.items()):
        standard_output().line(f"{name}  {one.source}  {one.digest}")
    if not installed:
        report_note(f"no skill was added to `{folder.place}`")


@command.command("add")
@click.argument("source", type=options.PATH)
@click.argument("names", nargs=-1)
@click.option("--digest", metavar="sha256:…", help="The digest an archive must have.")
@_USER
@_FORCE
def add(source: Path, names: tuple[str, ...], digest: str | None, user: bool, force: bool) -> None:
    """Copy skills NAMES, or all, of SOURCE: a directory, a Git checkout or an archive."""
    from fast_agent.cli.output import report_diagnostics, standard_output

    folder = _folder(user)
    added = folder.add(source, names, digest=digest, force=force, report=report_diagnostics)
    for name in added:
        standard_output().line(f"added {folder.place / name}")


@command.command("update")
@click.argument("names", nargs=-1)
@_USER
@_FORCE
def update(names: tuple[str, ...], user: bool, force: bool) -> None:
    """Copy skills NAMES, or all that were added, again where their sources changed."""
    from fast_agent.cli.output import standard_output
    from fast_agent.errors import ResourceError

    folder = _folder(user)
    installed = folder.installed()
    for name in names or sorted(installed):
        if name not in installed:
            raise ResourceError(f"the skill `{name}` was not installed into `{folder.place}`")
        changed = folder.update(name, installed[name], force=force)
        standard_output().line(f"{'updated' if changed else 'unchanged'} {folder.place / name}")


@command.command("remove")
@click.argument("names", nargs=-1, required=True)
@_USER
def remove(names: tuple[str, ...], user: bool) -> None:
    """Delete skills NAMES that were added."""
    from fast_agent.cli.output import standard_output

    folder = _folder(user)
    for name in names:
        folder.remove(name)
        standard_output().line(f"removed {folder.place / name}")


def _folder(user: bool) -> SkillFolder:
    from fast_agent.config.home import inside_working_directory, user_home
    from fast_agent.resources.skill.install import SkillFolder

    if user:
        return SkillFolder(user_home(os.environ) / _PROJECT)
    return SkillFolder(inside_working_directory(_PROJECT, hint="remove the link, or use `--user`"))
