"""What the tests of tools share."""

from __future__ import annotations

import pytest

from fast_agent.tools.tool import ToolContext


@pytest.fixture
def context() -> ToolContext:
    return ToolContext(agent_name="writer", turn_id="t1", call_id="c1", correlation_id="r1")
