from __future__ import annotations

import pytest

from fast_agent.cards.agent_config import AgentConfig
from fast_agent.cards.card import Card
from fast_agent.cards.load_set import LoadSet
from fast_agent.runtime.blueprint import with_granted

CARDS = LoadSet.of(
    Card(config)
    for config in (
        AgentConfig(name="desk", servers=("time",)),
        AgentConfig(name="tool", tool_only=True),
        AgentConfig(name="barred"),
        AgentConfig(name="line", type="chain", sequence=("desk",)),
        AgentConfig(name="router", type="router", agents=("desk",)),
    )
)


@pytest.mark.parametrize(
    ("name", "servers"),
    [
        ("desk", ("time", "news")),
        ("tool", ()),
        ("barred", ()),
        ("line", ()),
        ("router", ("news", "time")),
    ],
)
def test_servers_are_added_to_agents_that_use_some(name: str, servers: tuple[str, ...]) -> None:
    granted = with_granted(CARDS, ["news", "time"], barred={"barred"})
    assert granted.cards[name].config.servers == servers


def test_without_servers_the_set_is_the_same() -> None:
    assert with_granted(CARDS, []) is CARDS
