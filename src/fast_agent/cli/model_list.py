"""The facts `fast-agent models` prints."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypedDict

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
    """One provider: its name in specs, and whether it can be used."""

    name: str
    label: str
    key: bool
    key_variables: list[str]


class LocalFact(TypedDict):
    """One set of weights."""

    name: str
    present: bool
    about: str


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
    from fast_agent.models.spec import built_in_names
    from fast_agent.models.weights import WEIGHTS, list_local
    from fast_agent.trust.gate import TrustOptions

    settings = FastAgent(cwd=cwd, environ=environ, trust=TrustOptions(passive=True)).settings
    providers: list[ProviderFact] = []
    for name, provider in PROVIDERS.items():
        configured = settings.providers.get(name)
        key = any(environ.get(variable) for variable in provider.key_variables)
        key = key or (configured is not None and configured.api_key is not None)
        providers.append(
            {
                "name": name,
                "label": provider.label,
                "key": key,
                "key_variables": list(provider.key_variables),
            }
        )
    present = {file.name for file in list_local(environ)} | set(settings.local.models)
    names = dict.fromkeys((*WEIGHTS, *sorted(present)))
    return {
        "aliases": {**built_in_names().aliases, **settings.model_aliases},
        "providers": providers,
        "local": [
            {
                "name": name,
                "present": name in present,
                "about": WEIGHTS[name].about if name in WEIGHTS else "a GGUF file of your own",
            }
            for name in names
        ],
        "offline": OFFLINE,
    }


def render_models(facts: ModelFacts) -> str:
    """Lay the facts out for a terminal."""
    lines = ["Local models, no key and no network:"]
    for one in facts["local"]:
        how = "" if one["present"] else f"; fetch it with `fast-agent models pull {one['name']}`"
        lines.append(f"  local.{one['name']:<14} {one['about']}{how}")
    lines.append(f"  {', '.join(facts['offline'])}: for tests and demonstrations")
    lines += ["", "Providers (PROVIDER.MODEL):"]
    for provider in facts["providers"]:
        variables = " or ".join(provider["key_variables"])
        state = "ready" if provider["key"] else f"set {variables}" if variables else "no key needed"
        lines.append(f"  {provider['name']:<14} {provider['label']}: {state}")
    lines += ["", "Short names:"]
    width = max(map(len, facts["aliases"]), default=0)
    lines += [f"  {name:<{width}}  {spec}" for name, spec in facts["aliases"].items()]
    return "\n".join(lines) + "\n"
