"""What `fast-agent resources` prints: resources, contents, hits and problems."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from fast_agent.text.visible import visible

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from fast_agent.diagnostics.diagnostic import Diagnostic
    from fast_agent.resources.catalog import Catalog
    from fast_agent.resources.resource import Resource, ResourceContent, ResourceTemplate
    from fast_agent.resources.search import Hit

_MOST_COMPLETIONS = 100


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
            "values": values[:_MOST_COMPLETIONS],
            "total": len(values),
            "hasMore": len(values) > _MOST_COMPLETIONS,
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
        from fast_agent.diagnostics.render_sarif import render_sarif
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
