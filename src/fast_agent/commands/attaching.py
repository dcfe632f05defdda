"""Attaching: agents become tools of the one that is talked to, through its `agents`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fast_agent.commands.told import listed
from fast_agent.errors import FastAgentError
from fast_agent.runtime.agent import LlmAgent
from fast_agent.tools.tool_name import agent_tool_name

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from fast_agent.commands.desk import Desk


async def attach(desk: Desk, names: Sequence[str]) -> str:
    """Give the agent that is talked to others as tools, for good: a reload keeps them.

    Args:
        desk: The conversation.
        names: The agents, which are loaded.

    Returns:
        What came of each, for a person.

    Raises:
        FastAgentError: They cannot be its tools; nothing is changed.
    """
    return await attached(desk, lambda: _given(desk, names))


def _given(desk: Desk, names: Sequence[str]) -> Sequence[str]:
    desk.program.attach(desk.agent, names)
    return names


async def attached(desk: Desk, give: Callable[[], Iterable[str]]) -> str:
    """Give the agent that is talked to tools, and tell what came of each.

    Args:
        desk: The conversation.
        give: Changes the cards, and names the agents that were to become tools. It is run in a
            worker thread.

    Raises:
        FastAgentError: They cannot be its tools; nothing is changed.
    """
    from anyio.to_thread import run_sync

    receiver = desk.agent
    before = set(desk.app.load_set.cards[receiver].config.agents)
    names = await run_sync(lambda: tuple(give()))
    await desk.refresh()
    taken = await _taken(desk, receiver)
    lines: list[str] = []
    for name in dict.fromkeys(names):
        if name == receiver:
            lines.append(f"`{name}` is the agent that is talked to, and no tool of its own")
        elif name in before:
            lines.append(f"`{name}` was a tool of `{receiver}` already")
        elif name in taken:
            lines.append(
                f"`{name}` is no tool: `{receiver}` has another tool `{agent_tool_name(name)}`,"
                f" of {taken[name]}"
            )
        else:
            lines.append(f"`{name}` is a tool of `{receiver}` now")
    return listed(lines) if len(lines) > 1 else "".join(lines)


async def _taken(desk: Desk, receiver: str) -> dict[str, str]:
    """Name the agents whose tool names others have, with who has them."""
    try:
        agent = desk.instance(receiver)
        if not isinstance(agent, LlmAgent):
            return {}
        table = await agent.setup.tools.table()
    except FastAgentError as error:
        desk.notify(f"the tools of `{receiver}` cannot be looked at now: {error.message}")
        return {}
    taken: dict[str, str] = {}
    for name in agent.config.agents:
        tool = table.get(agent_tool_name(name))
        if tool is not None and tool.source != "agent":
            taken[name] = f"server `{tool.server_name}`" if tool.server_name else "a function"
    return taken
