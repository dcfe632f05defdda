"""Attaching: agents become tools of the one that is talked to, through its `agents`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fast_agent.commands.told import listed

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from fast_agent.commands.controller import ConversationController


async def attach(controller: ConversationController, names: Sequence[str]) -> str:
    """Attach others to the current agent as tools, permanently: a reload keeps them.

    Args:
        controller: The conversation.
        names: The agents, which are loaded.

    Returns:
        What came of each, for a person.

    Raises:
        FastAgentError: They cannot be its tools; nothing is changed.
    """

    def give() -> Sequence[str]:
        controller.program.attach(controller.agent, names)
        return names

    return await attached(controller, give)


async def attached(controller: ConversationController, give: Callable[[], Iterable[str]]) -> str:
    """Attach tools to the current agent, and report the result of each.

    Args:
        controller: The conversation.
        give: Changes the cards, and returns the agents that should become tools. It runs in a
            worker thread.

    Raises:
        FastAgentError: They cannot be its tools; nothing is changed.
    """
    from anyio.to_thread import run_sync

    receiver = controller.agent
    before = frozenset(controller.app.load_set.cards[receiver].config.agents)
    names = await run_sync(lambda: tuple(dict.fromkeys(give())))
    await controller.refresh()
    lines = [_outcome(name, receiver, before) for name in names]
    return listed(lines) if len(lines) > 1 else "".join(lines)


def _outcome(name: str, receiver: str, before: frozenset[str]) -> str:
    if name == receiver:
        return f"`{name}` is the agent that is talked to, and no tool of its own"
    if name in before:
        return f"`{name}` was a tool of `{receiver}` already"
    return f"`{name}` is a tool of `{receiver}` now"
