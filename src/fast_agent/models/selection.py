"""Selection: which model an agent is to use, and who said so."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal

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
"""What people are told when the fallback is used."""


@dataclass(frozen=True, slots=True)
class Selection:
    """A chosen model.

    Args:
        text: The spec, as it was written.
        source: Who chose it.
        directory: Where relative files in the spec start; None forbids it to name files.
    """

    text: str
    source: Literal["flag", "card", "configuration", "environment", "fallback"]
    directory: Path | None

    @property
    def notice(self) -> str | None:
        """One line people are to be told, or None."""
        return FALLBACK_NOTICE if self.source == "fallback" else None


def select_model(
    config: AgentConfig | None,
    settings: Settings,
    environ: Mapping[str, str],
    *,
    cwd: Path,
    flag: str | None = None,
) -> Selection:
    """Choose the model of an agent: `--model`, its card, the configuration, the environment.

    Args:
        config: The agent, or None for no particular one.
        settings: The configuration.
        environ: The environment.
        cwd: The working directory; relative files of specs outside cards start there.
        flag: What `--model` says, or None.

    Returns:
        The model; `local` where nobody chose one.
    """
    if flag:
        return Selection(flag, "flag", cwd)
    if config is not None and config.model:
        # A card from the network must not read files of this machine.
        own = None if config.remote is not None else config.directory or cwd
        return Selection(config.model, "card", own)
    if settings.default_model:
        return Selection(settings.default_model, "configuration", cwd)
    named = environ.get(MODEL_VARIABLE, "").strip()
    if named:
        return Selection(named, "environment", cwd)
    return Selection("local", "fallback", cwd)
