"""`fast-agent resources` and its commands."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any, TypeVar

import click

from fast_agent.cli import options
from fast_agent.cli.resource_options import ROOTS, SERVE, roots_of

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from fast_agent.cli.resource_options import Option
    from fast_agent.resources.roots import OpenRoots

_Function = TypeVar("_Function", bound="Callable[..., Any]")

_FORMAT = options.output_format("json")


def _with(options: Sequence[Option]) -> Callable[[_Function], _Function]:
    """Add the options of a table to a command."""

    def add(function: _Function) -> _Function:
        for one in reversed(options):
            if one.switch:
                decorate = click.option(one.flag, is_flag=True, help=one.about)
            else:
                decorate = click.option(
                    one.flag,
                    type=click.Choice(one.choices) if one.choices else str,
                    metavar=one.metavar,
                    multiple=one.many,
                    default=() if one.many else one.default,
                    show_default=one.default is not None,
                    help=one.about,
                )
            function = decorate(function)
        return function

    return add


@click.group()
def command() -> None:
    """Serve, list, read, search and check resources: skills, guides, packaged documents.

    Without --skills, --guide and --internal it is the skills of this directory, the guide that the
    configuration names or else that of this directory, and the packaged documents.
    """


@command.command()
@_with(SERVE)
def serve(**values: Any) -> None:
    """Serve resources to MCP clients.

    Over stdio, the client starts this command and stops it. Over HTTP the address is
    http://ADDRESS:PORT/mcp; other machines can connect only if --host allows it.
    """
    if values["transport"] == "stdio":
        from fast_agent.cli.resources_fast import serve_values

        serve_values(values)
    else:
        from fast_agent.cli.resources_http import serve_over_http

        serve_over_http(values)


@command.command("list")
@_with(ROOTS)
@_FORMAT
def list_(output: str, **values: Any) -> None:
    """List the resources, and the templates of those that are not listed."""
    from fast_agent.cli.output import standard_output
    from fast_agent.cli.resource_output import listing_json, listing_text

    catalog = _open(values).catalog
    if output == "json":
        standard_output().line(listing_json(catalog))
    else:
        standard_output().write(listing_text(catalog))


@command.command()
@click.argument("uri")
@_with(ROOTS)
@click.option(
    "--format",
    "output",
    type=click.Choice(["raw", "json"]),
    default="raw",
    show_default=True,
    help="The bytes as they are, or what an MCP client gets.",
)
def read(uri: str, output: str, **values: Any) -> None:
    """Write what a URI reads to standard output."""
    from fast_agent.cli.output import standard_output
    from fast_agent.cli.resource_output import contents_json

    contents = _open(values).catalog.read(uri)
    if output == "json":
        standard_output().line(contents_json(contents))
        return
    for content in contents:
        standard_output().write_bytes(content.bytes)


@command.command()
@click.argument("query", nargs=-1, required=True)
@_with(ROOTS)
@click.option("--limit", type=click.IntRange(1, 100), default=10, show_default=True)
@_FORMAT
def search(query: tuple[str, ...], limit: int, output: str, **values: Any) -> None:
    """Find sections of documents by words.

    Exit status: 0 something was found, 1 nothing was.
    """
    from fast_agent.cli.output import standard_output
    from fast_agent.cli.resource_output import hits_json, hits_text
    from fast_agent.resources.search import SearchIndex

    index = SearchIndex(_open(values).catalog)
    try:
        hits = index.search(" ".join(query), limit)
    finally:
        index.close()
    if output == "json":
        standard_output().line(hits_json(hits))
    else:
        standard_output().write(hits_text(hits))
    if not hits:
        sys.exit(1)


@command.command()
@click.argument("template")
@click.argument("argument")
@click.argument("value", default="")
@_with(ROOTS)
@click.option(
    "--given", multiple=True, metavar="NAME=VALUE", help="Another argument, already chosen."
)
@_FORMAT
def complete(
    template: str,
    argument: str,
    value: str,
    given: tuple[str, ...],
    output: str,
    **values: Any,
) -> None:
    """Complete an ARGUMENT of a TEMPLATE, of which VALUE is written so far."""
    from fast_agent.cli.output import standard_output
    from fast_agent.cli.resource_output import completion_json, completion_text

    chosen: dict[str, str] = {}
    for one in given:
        name, equals, text = one.partition("=")
        if not equals or not name:
            raise click.UsageError(f"`--given {one}` is not of the form NAME=VALUE")
        chosen[name] = text
    found = _open(values).catalog.complete(template, argument, value, chosen)
    if output == "json":
        standard_output().line(completion_json(found))
    else:
        standard_output().write(completion_text(found))


@command.command()
@click.argument("paths", nargs=-1, metavar="[PATH]...")
@_with(ROOTS)
@click.option("--fix", is_flag=True, help="Fix problems in place where the fix is unambiguous.")
@options.output_format("json", "sarif")
def check(paths: tuple[str, ...], fix: bool, output: str, **values: Any) -> None:
    """Report errors and warnings in skills and guides.

    Each PATH is a directory of skills, a skill, a guide's file, or a directory that has one.

    Exit status: 0 no errors, 1 errors, 2 invalid usage.
    """
    from fast_agent.cli.resource_checking import check_roots, split_paths
    from fast_agent.cli.resource_output import write_diagnostics

    skills, guides = split_paths(paths)
    values["skills"] = (*values["skills"], *skills)
    if paths and not values["skills"] and values["guide"] is None:
        values["guide"], guides = guides[0], guides[1:]
    found = check_roots(roots_of(values, with_own=False), guides)
    if fix and any(one.fix is not None for one in found):
        from fast_agent.cards.fix import apply_fixes
        from fast_agent.cli.report import report_note

        done = apply_fixes(found)
        for path in done.changed:
            report_note(f"fixed: {path}")
        found = check_roots(roots_of(values, with_own=False), guides)
    write_diagnostics(found, output)
    if any(one.severity == "error" for one in found):
        sys.exit(1)


def _open(values: dict[str, Any]) -> OpenRoots:
    from fast_agent.cli.report import report_note

    return roots_of(values).open(
        report=lambda found: report_note(f"{found.severity}: {found.path}: {found.message}")
    )
