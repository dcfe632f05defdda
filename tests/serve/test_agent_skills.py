"""Skills of MCP servers that served agents use: each client answers for what it had loaded."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import mcp_types as types
import pytest
from tests.serve.agent_world import AgentWorld, ask, connected

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

pytestmark = pytest.mark.anyio
SKILLS = Path(__file__).parents[1] / "mcp" / "servers" / "skills.py"
LOAD = '***CALL_TOOL load_skill {"name": "refunds"}'


def answering(asked: list[str], word: str) -> Callable[..., Awaitable[types.ElicitResult]]:
    """A person who remembers every question and answers it alike."""

    async def answer(_context: object, params: Any) -> types.ElicitResult:
        asked.append(params.message)
        wanted: Any = dict.fromkeys(params.requested_schema["properties"], word)
        return types.ElicitResult(action="accept", content=wanted)

    return answer


@pytest.mark.parametrize("era", ["legacy", "2026-07-28"])
async def test_the_client_that_calls_is_asked_and_no_other(tmp_path: Path, era: str) -> None:
    command = f"{sys.executable} {SKILLS} --home {tmp_path} --lie dynamic"
    connect = json.dumps([{"target": command, "name": "web"}])
    world = AgentWorld(tmp_path / "cards")
    world.card("ann", shell="true", mcp_connect=connect)
    yes: list[str] = []
    no: list[str] = []
    async with (
        world.serving(scope="connection") as server,
        connected(server, era, elicitation_callback=answering(yes, "yes")) as one,
        connected(server, era, elicitation_callback=answering(no, "no")) as two,
        connected(server, era) as mute,
    ):
        assert "the user does not allow the skill" in await ask(two, "ann", LOAD)
        assert "# Refunds" in await ask(one, "ann", LOAD)
        assert (len(yes), len(no)) == (1, 1)
        for client in (two, mute):
            answer = await ask(client, "ann", '***CALL_TOOL execute {"command": "echo ran"}')
            assert "ran" in answer, answer
        assert (len(yes), len(no)) == (1, 1)
