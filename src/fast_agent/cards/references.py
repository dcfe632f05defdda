"""Which other agents an agent refers to, and in which fields."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from fast_agent.cards.agent_config import Compaction

if TYPE_CHECKING:
    from fast_agent.cards.agent_config import AgentConfig


class Reference(NamedTuple):
    """One mention of another agent.

    Args:
        name: The agent referred to.
        field: The field it stands in.
        at: Its index in the field's list, from 0; None if the field is not a list.
    """

    name: str
    field: str
    at: int | None


def referred_names(config: AgentConfig) -> tuple[str, ...]:
    """List the names of the agents an agent refers to, in the order of `references`."""
    names = config.agents + config.sequence + config.fan_out
    single = config.fan_in, config.generator, config.evaluator, config.worker, _summarizer(config)
    if single == (None, None, None, None, None):
        return names
    return names + tuple(name for name in single if name is not None)


def references(config: AgentConfig) -> list[Reference]:
    """List the agents an agent refers to, in the order of its fields; repeats stay.

    Args:
        config: The agent.

    Returns:
        Every mention.
    """
    found: list[Reference] = []
    for field in ("agents", "sequence", "fan_out"):
        names: tuple[str, ...] = getattr(config, field)
        if names:
            found.extend([Reference(name, field, index) for index, name in enumerate(names)])
    for field in ("fan_in", "generator", "evaluator", "worker"):
        name: str | None = getattr(config, field)
        if name is not None:
            found.append(Reference(name, field, None))
    summarizer = _summarizer(config)
    if summarizer is not None:
        found.append(Reference(summarizer, "compaction", None))
    return found


def _summarizer(config: AgentConfig) -> str | None:
    return config.compaction.agent if isinstance(config.compaction, Compaction) else None
