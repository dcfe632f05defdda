"""`fast-agent version`."""

from __future__ import annotations

import platform

import click

from fast_agent import __version__
from fast_agent.cli import options


@click.command()
@options.output_format("json")
def command(output: str) -> None:
    """Print the version."""
    if output == "json":
        import json

        facts = {"fast_agent": __version__, "python": platform.python_version()}
        click.echo(json.dumps(facts))
    else:
        click.echo(f"fast-agent {__version__} (Python {platform.python_version()})")
