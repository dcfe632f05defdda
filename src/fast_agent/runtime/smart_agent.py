"""The agent of type `smart`: it has tools to write, check and run cards, and to read documents."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Final

from fast_agent.runtime.agent_tool import Crew
from fast_agent.runtime.blueprint import LlmBlueprint
from fast_agent.runtime.card_reach import CardReach
from fast_agent.runtime.card_writer import CardWriter
from fast_agent.runtime.smart_tools import SmartTools

if TYPE_CHECKING:
    from fast_agent.cards.card import Card
    from fast_agent.runtime.blueprint import Blueprint, Workshop

_PROMPT = Path(__file__).with_name("smart_prompt.md")
_INDEX: Final = "{{agentInternalResources}}"
_AGENTS: Final = "{{agents}}"


def smart_blueprint(card: Card, workshop: Workshop) -> Blueprint:
    """Make the blueprint of a card of type `smart`.

    Args:
        card: The card.
        workshop: What it is made with.

    Raises:
        FastAgentError: As for a card of type `agent`.
    """
    config = card.config
    reach = CardReach(workshop.settings, workshop.surroundings, workshop.inner)
    crew = Crew(config, reach.max_depth)
    return LlmBlueprint(
        replace(card, config=replace(config, resource_tools=True)),
        workshop,
        tools=(*SmartTools(reach, crew).tools, CardWriter(reach, config.grant)),
        instruction=smart_instruction(config.instruction or ""),
    )


def smart_instruction(own: str) -> str:
    """Put a card's own instruction below the packaged one.

    Args:
        own: The card's. What it places itself, the packaged one leaves out.

    Returns:
        The whole, with its placeholders.
    """
    packaged = _packaged()
    for placeholder in (_INDEX, _AGENTS):
        if placeholder in own:
            packaged = packaged.replace(placeholder, "")
    return f"{packaged.strip()}\n\n{own.strip()}\n"


@cache
def _packaged() -> str:
    return _PROMPT.read_text(encoding="utf-8")
