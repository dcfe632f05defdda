"""Model choice: which model an agent asks, and who said so."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from fast_agent.runtime.surroundings import FALLBACK_MODEL

if TYPE_CHECKING:
    from pathlib import Path

    from fast_agent.cards.agent_config import AgentConfig
    from fast_agent.config.settings import Settings
    from fast_agent.models.create import ModelFactory
    from fast_agent.models.model import Model


@dataclass(frozen=True, slots=True)
class ModelChoice:
    """A model spec and where it comes from.

    Args:
        spec: The spec as written there.
        origin: `override` is the command line or the caller, `fallback` is nobody.
        directory: Where relative files of the spec start; None is the workspace.
    """

    spec: str
    origin: Literal["override", "card", "configuration", "fallback"]
    directory: Path | None = None


def choose_model(config: AgentConfig, settings: Settings, override: str | None) -> ModelChoice:
    """Choose the model of an agent.

    Args:
        config: Its card.
        settings: The configuration.
        override: What goes before both, or None.
    """
    if override is not None:
        return ModelChoice(override, "override")
    if config.model is not None:
        return ModelChoice(config.model, "card", config.directory)
    if settings.default_model is not None:
        return ModelChoice(settings.default_model, "configuration")
    return ModelChoice(FALLBACK_MODEL, "fallback")


def make_model(
    models: ModelFactory, config: AgentConfig, choice: ModelChoice, workspace: Path
) -> Model:
    """Make the model of an agent.

    Args:
        models: Makes models.
        config: The agent's card.
        choice: What was chosen for it.
        workspace: The directory the program works in.

    Raises:
        ModelError: The spec is wrong, or a file it needs is missing or wrong.
    """
    return models.create(
        choice.spec,
        agent=config.name,
        api_key=config.api_key,
        directory=choice.directory or workspace,
    )
