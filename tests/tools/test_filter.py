from __future__ import annotations

import pytest

from fast_agent.cards.agent_config import AgentConfig
from fast_agent.tools.toolbox import ServerFilter, allows


@pytest.mark.spec("CARD-63", "CARD-64")
@pytest.mark.parametrize(
    ("patterns", "name", "allowed"),
    [
        (None, "read", True),
        ({}, "read", True),
        ({"other": ("write",)}, "read", True),
        ({"files": ()}, "read", False),
        ({"files": ("read",)}, "read", True),
        ({"files": ("read",)}, "read_all", False),
        ({"files": ("write", "read*")}, "read_all", True),
        ({"files": ("READ",)}, "read", False),
        ({"files": ("re?d",)}, "read", True),
        ({"files": ("[rw]*",)}, "write", True),
        ({"files": ("file:///a/*",)}, "file:///a/b/c.txt", True),
        ({"files": ("*",)}, "two\nlines", True),
    ],
)
def test_patterns(patterns: dict[str, tuple[str, ...]] | None, name: str, allowed: bool) -> None:
    assert allows(patterns, "files", name) is allowed


def test_a_card_filters_tools_resources_and_prompts_apart() -> None:
    config = AgentConfig(
        name="a",
        tools={"s": ("read_*",)},
        resources={"s": ()},
        prompts={"s": ("greet",), "t": ()},
    )
    rules = ServerFilter.of(config)
    assert rules.allows_tool("s", "read_file")
    assert not rules.allows_tool("s", "write_file")
    assert rules.allows_tool("t", "write_file")
    assert not rules.allows_resource("s", "file:///a")
    assert rules.allows_prompt("s", "greet")
    assert not rules.allows_prompt("t", "greet")
