"""Selection: which model an agent is to use, and who said so."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Literal

from fast_agent.config.providers import PROVIDERS
from fast_agent.text.frozen import frozen

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from fast_agent.cards.agent_config import AgentConfig
    from fast_agent.config.settings import Settings

MODEL_VARIABLE: Final = "FAST_AGENT_MODEL"
"""Environment variable that names the model of agents nothing else names one for."""

FALLBACK_NOTICE: Final = (
    "no model is configured, so a small local model answers; choose another with `--model`, "
    f"`default_model` in `fastagent.config.yaml`, or `{MODEL_VARIABLE}`"
)
"""What users see when the fallback is used."""


@frozen
class Selection:
    """A chosen model.

    Args:
        text: The spec, as it was written; several with commas between, where others answer if the
            first fails.
        source: Who chose it.
        directory: Where relative files in the spec start; None forbids it to name files.
        notice: One line for the user, or None.
    """

    text: str
    source: Literal["flag", "card", "configuration", "environment", "key", "fallback"]
    directory: Path | None
    notice: str | None = None


def select_model(
    config: AgentConfig | None,
    settings: Settings,
    environ: Mapping[str, str],
    *,
    cwd: Path,
    flag: str | None = None,
) -> Selection:
    """Choose the model of an agent: `--model`, its card, the configuration, the environment.

    Where none of these names one, the default model of the first provider the person has a key for
    answers.

    Args:
        config: The agent, or None for no particular one.
        settings: The configuration.
        environ: The environment.
        cwd: The working directory; relative files of specs outside cards start there.
        flag: What `--model` says, or None.

    Returns:
        The model; `local` if none was chosen and no key is set.
    """
    if flag:
        return Selection(flag, "flag", cwd)
    if config is not None and config.model_text:
        # A card from the network must not read files of this machine.
        own = None if config.remote is not None else config.directory or cwd
        return Selection(config.model_text, "card", own)
    if settings.default_model:
        return Selection(settings.default_model, "configuration", cwd)
    named = environ.get(MODEL_VARIABLE, "").strip()
    if named:
        return Selection(named, "environment", cwd)
    return _unchosen(settings, environ, cwd)


def _unchosen(settings: Settings, environ: Mapping[str, str], cwd: Path) -> Selection:
    """Choose a model by the keys there are."""
    from fast_agent.models.access import installed

    notice = FALLBACK_NOTICE
    for provider in PROVIDERS.values():
        if provider.default_model is None:
            continue
        key = next((name for name in provider.key_variables if environ.get(name)), None)
        if key is None and not settings.provider(provider.name).api_key:
            continue
        if not installed(provider.modules):
            notice += (
                f"; a key for {provider.label} is set, and `pip install '{provider.requirement}'`"
                " is what is missing to use it"
            )
            continue
        model, why = provider.default_model, key or provider.api_key_setting
        said = f"`{model}` of {provider.label} answers, since `{why}` is set"
        return Selection(model, "key", cwd, f"{said}; choose another with `--model`")
    return Selection("local", "fallback", cwd, notice)
