"""`fast-agent resources` and its commands: checks of skills and guides, and serving them."""

from __future__ import annotations

import json
import sys
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, cast

import click

from fast_agent.cli import options
from fast_agent.cli.resource_options import ROOTS, SERVE, SERVER_NAME, http_option, roots_of
from fast_agent.config.home import GUIDE_FILE
from fast_agent.errors import ConfigError
from fast_agent.text.visible import visible

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from fast_agent.cli.resource_options import Option
    from fast_agent.diagnostics.diagnostic import Diagnostic
    from fast_agent.resources.catalog import Catalog
    from fast_agent.resources.resource import Resource, ResourceContent, ResourceTemplate
    from fast_agent.resources.roots import OpenRoots, ResourceRoots
    from fast_agent.resources.search import Hit


_MAX_COMPLETIONS = 100


def listing_json(catalog: Catalog) -> str:
    """Return the lists with MCP's field names."""
    listing = catalog.listing()
    return _json(
        {
            "resources": [one.data for one in listing.entries(listing.uris)],
            "resourceTemplates": [one.data for one in catalog.templates()],
        }
    )


def listing_text(catalog: Catalog) -> str:
    """Return one line for each resource and template, then its description."""
    listing, templates = catalog.listing(), catalog.templates()
    lines = [_entry(one.uri.text, one) for one in listing.entries(listing.uris)]
    if templates:
        lines += ["", "templates:"] if lines else ["templates:"]
        lines += [_entry(one.template, one) for one in templates]
    return "".join(f"{line}\n" for line in lines)


def contents_json(contents: Iterable[ResourceContent]) -> str:
    """Return contents in the form of `resources/read` answers."""
    return _json({"contents": [one.data for one in contents]})


def hits_json(hits: Iterable[Hit]) -> str:
    """Return the search hits, the best first."""
    return _json(
        {
            "hits": [
                {
                    "uri": hit.uri,
                    "title": hit.title,
                    "heading": hit.heading,
                    "snippet": hit.snippet,
                    "tokens": hit.tokens,
                    "score": round(hit.score, 4),
                }
                for hit in hits
            ]
        }
    )


def hits_text(hits: Iterable[Hit]) -> str:
    """Return the search hits: the URI and section, and the words around."""
    lines: list[str] = []
    for hit in hits:
        section = f"  § {visible(hit.heading)}" if hit.heading else ""
        lines += [f"{visible(hit.uri)}{section}", f"    {visible(hit.snippet)}"]
    return "".join(f"{line}\n" for line in lines)


def completion_json(values: Sequence[str]) -> str:
    """Return values in the form of `completion/complete` answers."""
    return _json(
        {
            "values": values[:_MAX_COMPLETIONS],
            "total": len(values),
            "hasMore": len(values) > _MAX_COMPLETIONS,
        }
    )


def completion_text(values: Iterable[str]) -> str:
    """Return values, one per line."""
    return "".join(f"{visible(value)}\n" for value in values)


def write_diagnostics(found: Sequence[Diagnostic], output: str) -> None:
    """Print problems: for people on standard error, for programs on standard output.

    Args:
        found: The problems.
        output: `human`, `json` or `sarif`.
    """
    from fast_agent.cli.output import standard_error, standard_output

    if output == "json":
        from fast_agent.diagnostics.render_json import render_json

        standard_output().write(render_json((), found))
    elif output == "sarif":
        from fast_agent.diagnostics.render_json import render_sarif
        from fast_agent.version import __version__

        standard_output().write(render_sarif((), found, version=__version__))
    else:
        from fast_agent.diagnostics.render_human import render_human, summarize

        shown = [one for one in found if one.severity != "info"]
        out = standard_error()
        text = render_human(shown, color=out.wants_color)
        out.write_painted(text or f"{summarize(shown)}\n")


def _entry(name: str, one: Resource | ResourceTemplate) -> str:
    about = one.description or one.title
    return visible(name) + (f"  {visible(' '.join(about.split()))}" if about else "")


def _json(value: object) -> str:
    # ASCII escapes keep lone surrogates and bidirectional controls out of a terminal.
    return json.dumps(value, indent=2)


_Function = TypeVar("_Function", bound="Callable[..., Any]")

_FORMAT = options.output_format("json")


def _with_options(options: Sequence[Option]) -> Callable[[_Function], _Function]:
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
@_with_options(SERVE)
def serve(**values: Any) -> None:
    """Serve resources to MCP clients.

    Over stdio, the client starts this command and stops it. Over HTTP the address is
    http://ADDRESS:PORT/mcp; other machines can connect only if --host allows it.
    """
    if values["transport"] == "stdio":
        from fast_agent.cli.main import serve_resources

        if option := http_option(values):
            raise click.UsageError(f"{option} applies only to --transport http")

        serve_resources(values)
    else:
        _serve_over_http(values)


@command.command("list")
@_with_options(ROOTS)
@_FORMAT
def list_(output: str, **values: Any) -> None:
    """List the resources, and the templates of those that are not listed."""
    from fast_agent.cli.output import standard_output

    catalog = _open(values).catalog
    if output == "json":
        standard_output().line(listing_json(catalog))
    else:
        standard_output().write(listing_text(catalog))


@command.command()
@click.argument("uri")
@_with_options(ROOTS)
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

    contents = _open(values).catalog.read(uri)
    if output == "json":
        standard_output().line(contents_json(contents))
        return
    for content in contents:
        standard_output().write_bytes(content.bytes)


@command.command()
@click.argument("query", nargs=-1, required=True)
@_with_options(ROOTS)
@click.option("--limit", type=click.IntRange(1, 100), default=10, show_default=True)
@_FORMAT
def search(query: tuple[str, ...], limit: int, output: str, **values: Any) -> None:
    """Find sections of documents by words.

    Exit status: 0 something was found, 1 nothing was.
    """
    from fast_agent.cli.output import standard_output
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
@_with_options(ROOTS)
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
@_with_options(ROOTS)
@click.option("--fix", is_flag=True, help="Fix problems in place where the fix is unambiguous.")
@options.output_format("json", "sarif")
def check(paths: tuple[str, ...], fix: bool, output: str, **values: Any) -> None:
    """Report errors and warnings in skills and guides.

    Each PATH is a directory of skills, a skill, a guide's file, or a directory that has one.

    Exit status: 0 no errors, 1 errors, 2 invalid usage.
    """
    skills, guides = split_paths(paths)
    values["skills"] = (*values["skills"], *skills)
    if paths and not values["skills"] and values["guide"] is None:
        values["guide"], guides = guides[0], guides[1:]
    found = check_roots(roots_of(values, with_own=False), guides)
    if fix and any(one.fix is not None for one in found):
        from fast_agent.cards.fix import apply_fixes
        from fast_agent.cli.commands.check import LINKED
        from fast_agent.cli.output import report_note

        done = apply_fixes(found, named=paths)
        for path in done.changed:
            report_note(f"fixed: {path}")
        for path in done.linked:
            report_note(f"{path} {LINKED}")
        found = check_roots(roots_of(values, with_own=False), guides)
    write_diagnostics(found, output)
    if any(one.severity == "error" for one in found):
        sys.exit(1)


def _open(values: dict[str, Any]) -> OpenRoots:
    from fast_agent.cli.output import report_note

    return roots_of(values).open(
        report=lambda found: report_note(f"{found.severity}: {found.path}: {found.message}")
    )


def split_paths(paths: Iterable[str]) -> tuple[list[str], list[str]]:
    """Separate directories of skills from guides.

    Args:
        paths: What the user named.

    Returns:
        The directories of skills, and the guides.
    """
    skills: list[str] = []
    guides: list[str] = []
    for path in paths:
        found = Path(path)
        is_guide = found.is_file() or (found / GUIDE_FILE).is_file()
        (guides if is_guide else skills).append(path)
    return skills, guides


def check_roots(roots: ResourceRoots, more_guides: Sequence[str] = ()) -> list[Diagnostic]:
    """Check skills and guides.

    Args:
        roots: What to check; the internal documents have their own tests.
        more_guides: Further guides.

    Returns:
        Every problem, those of skills first, in the order of their files.
    """
    found: list[Diagnostic] = []
    if roots.skills:
        opened = roots._replace(guide=None, configured=None, internal=False).open(
            report=found.append
        )
        if opened.skill is not None:
            from fast_agent.resources.skill.check import check_provider

            found = check_provider(opened.skill)
    own = roots.guide is not None or roots.configured is not None
    for guide in [*([roots.guide] if own else ()), *more_guides]:
        found += _guide_problems(roots, guide)
    return list(dict.fromkeys(found))


def _guide_problems(roots: ResourceRoots, guide: str | None) -> list[Diagnostic]:
    """Check a guide; None is the configured one."""
    try:
        opened = roots._replace(skills=(), guide=guide, internal=False).open()
    except ConfigError as error:
        if not error.diagnostics:
            raise
        return list(error.diagnostics)
    return [] if opened.guide is None else list(opened.guide.diagnostics())


_MAX_PORT = 65535


def _serve_over_http(values: Mapping[str, object]) -> None:
    """Serve over HTTP what the values of the command name, until it is interrupted."""
    from fast_agent.cli import process as event_loop
    from fast_agent.cli.output import standard_error
    from fast_agent.serve.connections import raise_descriptor_limit
    from fast_agent.serve.http import MCP_PATH, open_socket, read_token, serve_http
    from fast_agent.serve.http_access import HttpSettings
    from fast_agent.serve.resource_server import ResourceServer
    from fast_agent.version import __version__

    token_file = cast("str | None", values["token_file"])
    settings = HttpSettings(
        host=str(values["host"]),
        port=_port(str(values["port"])),
        token=None if token_file is None else read_token(token_file),
        allow_hosts=cast("tuple[str, ...]", values["allow_host"]),
        allow_origins=cast("tuple[str, ...]", values["allow_origin"]),
        trusted_proxies=cast("tuple[str, ...]", values["trusted_proxy"]),
    )
    settings.check()
    raise_descriptor_limit()
    service = roots_of(values).open().service(SERVER_NAME, __version__)
    listening = open_socket(settings)
    host = f"[{settings.host}]" if ":" in settings.host else settings.host
    standard_error().line(f"serving at http://{host}:{listening.getsockname()[1]}{MCP_PATH}")
    event_loop.run(partial(serve_http, ResourceServer(service), settings, listening))


def _port(text: str) -> int:
    if text.isascii() and text.isdigit() and int(text) <= _MAX_PORT:
        return int(text)
    raise click.UsageError(f"`--port {text}` is not a number from 0 to {_MAX_PORT}")
