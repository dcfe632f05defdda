"""`fast-agent version`."""

from __future__ import annotations

import platform

import click

from fast_agent.cli import options
from fast_agent.cli.output import standard_output
from fast_agent.version import __version__


@click.command()
@options.output_format("json")
def command(output: str) -> None:
    """Print the version."""
    if output == "json":
        import json

        facts = {"fast_agent": __version__, "python": platform.python_version()}
        standard_output().line(json.dumps(facts))
    else:
        standard_output().line(f"fast-agent {__version__} (Python {platform.python_version()})")
