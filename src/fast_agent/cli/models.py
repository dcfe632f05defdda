"""`fast-agent models`."""

from __future__ import annotations

import os

import click

from fast_agent.cli import options
from fast_agent.cli.output import standard_error, standard_output
from fast_agent.text.visible import visible

_MIB = 1024 * 1024


@click.group(invoke_without_command=True)
@click.pass_context
def command(ctx: click.Context) -> None:
    """List models; fetch and remove local ones."""
    if ctx.invoked_subcommand is None:
        ctx.invoke(list_models)


@command.command("list")
@options.output_format("json")
def list_models(output: str = "human") -> None:
    """List short names, providers with their keys, and the weights on this machine."""
    from fast_agent.cli.model_list import model_facts, render_models
    from fast_agent.config.home import working_directory

    facts = model_facts(working_directory(), os.environ)
    if output == "json":
        import json

        standard_output().write_facts(json.dumps(facts, indent=2) + "\n")
    else:
        standard_output().write(render_models(facts))


@command.command()
@click.argument("source", metavar="NAME|PATH|URL")
@click.option(
    "--sha256", metavar="HEX", help="The expected digest of the file; required for a URL."
)
@click.option("--name", metavar="NAME", help="The name of the model, as in `local.NAME`.")
@click.option("--quiet", "-q", is_flag=True, help="Print nothing unless the command fails.")
def pull(source: str, sha256: str | None, name: str | None, quiet: bool) -> None:
    """Download and install model weights: by name (smollm2), or a GGUF file by path or URL."""
    from fast_agent.models.pull import no_progress
    from fast_agent.models.pull import pull as pull_weights

    progress = no_progress if quiet or not standard_error().is_terminal else _show
    pulled = pull_weights(source, os.environ, sha256=sha256, name=name, progress=progress)
    if not quiet:
        state = "is already here" if pulled.already else "is ready"
        standard_output().line(f"{visible(source)} {state}: {visible(str(pulled.path))}")


@command.command()
@click.argument("name")
def remove(name: str) -> None:
    """Delete installed model weights."""
    from fast_agent.models.weights import remove_local

    removed = remove_local(name, os.environ)
    standard_output().line(f"removed {removed.name} ({removed.size // _MIB} MiB)")


def _show(doing: str, done: int, total: int | None) -> None:
    of = f" of {total // _MIB}" if total else ""
    last = total is not None and done >= total
    standard_error().rewrite_line(f"{doing}: {done // _MIB}{of} MiB", last=last)
