"""`fast-agent models`."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, TypedDict

import click

from fast_agent.cli import options
from fast_agent.cli.output import standard_error, standard_output
from fast_agent.text.visible import visible

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path


class ModelFacts(TypedDict):
    """What can be used here."""

    aliases: dict[str, str]
    providers: list[ProviderFact]
    local: list[LocalFact]
    offline: list[str]


class ProviderFact(TypedDict):
    """One provider or configured endpoint: its name in specs, and what it needs to be used."""

    name: str
    label: str
    key: bool
    key_variables: list[str]
    address: str | None
    missing: list[str]


class LocalFact(TypedDict):
    """One set of weights."""

    name: str
    present: bool
    about: str
    missing: list[str]


OFFLINE = ["passthrough", "playback", "slow", "scripted"]


def model_facts(cwd: Path, environ: Mapping[str, str]) -> ModelFacts:
    """Gather the facts.

    Args:
        cwd: Where the configuration is searched for.
        environ: The environment.

    Raises:
        ConfigError: The configuration is wrong.
    """
    from fast_agent.app import FastAgent
    from fast_agent.config.providers import PROVIDERS
    from fast_agent.models.check import (
        LOCAL_MODULES,
        LOCAL_REQUIREMENT,
        endpoint_of,
        endpoint_problems,
        installed,
    )
    from fast_agent.models.local.weights import WEIGHTS, list_local
    from fast_agent.models.spec import GENERIC, ModelSpec, built_in_names
    from fast_agent.trust.gate import TrustOptions

    settings = FastAgent(cwd=cwd, environ=environ, trust=TrustOptions(passive=True)).settings
    providers: list[ProviderFact] = []
    specs = [ModelSpec(given=name, provider=name) for name in PROVIDERS]
    specs += [ModelSpec(given=name, provider=GENERIC, endpoint=name) for name in settings.endpoints]
    for spec in specs:
        provider = PROVIDERS[spec.provider]
        endpoint = endpoint_of(spec, settings, environ)
        providers.append(
            {
                "name": endpoint.name,
                "label": "an endpoint of the configuration" if spec.endpoint else provider.label,
                "key": bool(endpoint.api_key),
                "key_variables": [] if spec.endpoint else list(provider.key_variables),
                "address": endpoint.address,
                "missing": [one.hint or one.message for one in endpoint_problems(endpoint)],
            }
        )
    present = {file.name for file in list_local(environ)} | set(settings.local.models)
    names = dict.fromkeys((*WEIGHTS, *sorted(present)))
    unrunnable = [] if installed(LOCAL_MODULES) else [f"run `pip install '{LOCAL_REQUIREMENT}'`"]
    return {
        "aliases": {**built_in_names().aliases, **settings.model_aliases},
        "providers": providers,
        "local": [
            {
                "name": name,
                "present": name in present,
                "about": WEIGHTS[name].about if name in WEIGHTS else "a GGUF file of your own",
                "missing": ([] if name in present else [_fetching(name)]) + unrunnable,
            }
            for name in names
        ],
        "offline": OFFLINE,
    }


def _fetching(name: str) -> str:
    return f"fetch it with `fast-agent models pull {name}`"


def render_models(facts: ModelFacts) -> str:
    """Lay the facts out for a terminal."""
    lines = ["Local models, no key and no network:"]
    for one in facts["local"]:
        about = "; ".join((one["about"], *one["missing"]))
        lines.append(f"  local.{one['name']:<14} {about}")
    lines.append(f"  {', '.join(facts['offline'])}: for tests and demonstrations")
    lines += ["", "Providers (PROVIDER.MODEL):"]
    for provider in facts["providers"]:
        usable = "ready" if provider["key"] else "no key needed"
        where = f", at {provider['address']}" if provider["address"] else ""
        state = "; ".join(provider["missing"]) or f"{usable}{where}"
        lines.append(f"  {provider['name']:<14} {provider['label']}: {state}")
    lines += ["", "Short names:"]
    width = max(map(len, facts["aliases"]), default=0)
    lines += [f"  {name:<{width}}  {spec}" for name, spec in facts["aliases"].items()]
    return "\n".join(lines) + "\n"


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
    from fast_agent.config.home import working_directory

    facts = model_facts(working_directory(), os.environ)
    if output == "json":
        standard_output().write_json(facts)
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
    """Download and install model weights: by name, or a GGUF file by path or URL.

    `fast-agent models list` lists the names.
    """
    from fast_agent.models.local.pull import no_progress
    from fast_agent.models.local.pull import pull as pull_weights

    progress = no_progress if quiet or not standard_error().is_terminal else _show
    pulled = pull_weights(source, os.environ, sha256=sha256, name=name, progress=progress)
    if not quiet:
        state = "is already here" if pulled.already else "is ready"
        standard_output().line(f"{visible(source)} {state}: {visible(str(pulled.path))}")


@command.command()
@click.argument("name")
def remove(name: str) -> None:
    """Delete installed model weights."""
    from fast_agent.models.local.weights import remove_local

    removed = remove_local(name, os.environ)
    standard_output().line(f"removed {removed.name} ({removed.size // _MIB} MiB)")


def _show(doing: str, done: int, total: int | None) -> None:
    of = f" of {total // _MIB}" if total else ""
    last = total is not None and done >= total
    standard_error().rewrite_line(f"{doing}: {done // _MIB}{of} MiB", last=last)
