"""What a card's agent is made with: its plan for long conversations, and its instruction."""

from __future__ import annotations

from types import SimpleNamespace
from typing import TYPE_CHECKING, cast

import pytest

from fast_agent.agents.live_agent import LlmAgent
from fast_agent.agents.turn_context import CompactionPlan
from fast_agent.cards.agent_config import AgentConfig, Compaction
from fast_agent.cards.card import Card
from fast_agent.cards.load_set import LoadSet
from fast_agent.config.settings import Settings
from fast_agent.errors import RunError
from fast_agent.prompt.instruction import host_platform, python_version
from fast_agent.runtime.blueprint import compaction_plan
from fast_agent.runtime.runtime import Runtime

if TYPE_CHECKING:
    from fast_agent.runtime.context import RuntimeContext


def plan(card: Compaction | bool | None, configured: Compaction | bool | None) -> CompactionPlan:
    context = SimpleNamespace(
        settings=SimpleNamespace(compaction=configured), cards={"ann": None, "scribe": None}
    )
    config = AgentConfig(name="ann", type="agent", compaction=card)
    return compaction_plan(config, cast("RuntimeContext", context))


@pytest.mark.parametrize(
    ("card", "configured", "expected"),
    [
        (None, None, CompactionPlan(0.85)),
        (True, None, CompactionPlan(0.85)),
        (None, True, CompactionPlan(0.85)),
        (False, None, CompactionPlan(None)),
        (None, False, CompactionPlan(None)),
        (True, False, CompactionPlan(0.85)),
        (False, True, CompactionPlan(None)),
        (Compaction(share=0.5), False, CompactionPlan(0.5)),
        (None, Compaction(share=0.5, native=False), CompactionPlan(0.5, native=False)),
        (Compaction(native=False), Compaction(share=0.5), CompactionPlan(0.85, native=False)),
        (Compaction(agent="ann"), None, CompactionPlan(0.85)),
    ],
)
def test_when_a_conversation_is_summarized(
    card: Compaction | bool | None, configured: Compaction | bool | None, expected: CompactionPlan
) -> None:
    assert plan(card, configured) == expected


def test_another_agent_summarizes_in_words() -> None:
    found = plan(Compaction(agent="scribe"), None)
    assert found.ask is not None
    assert (found.share, found.native) == (0.85, False)
    with pytest.raises(RunError, match="names the agent `nobody`, which does not exist"):
        plan(Compaction(agent="nobody"), None)


@pytest.mark.anyio
async def test_an_instruction_describes_this_machine() -> None:
    text = "{{hostPlatform}} {{pythonVer}}"
    card = Card(AgentConfig(name="ann", type="agent", model="passthrough", instruction=text), "")
    async with Runtime(LoadSet.of([card]), Settings()) as runtime:
        agent = runtime.agent("ann")
        assert isinstance(agent, LlmAgent)
        assert await agent.setup.render() == f"{host_platform()} {python_version()}"
