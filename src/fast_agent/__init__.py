"""fast-agent: agents written as text."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from fast_agent.agent_app import AgentApp
    from fast_agent.app import FastAgent
    from fast_agent.cards.agent_config import ChildHistory
    from fast_agent.cards.agents_as_tools import AgentsAsToolsOptions

__version__ = "0.1.0"

__all__ = ["AgentApp", "AgentsAsToolsOptions", "ChildHistory", "FastAgent", "__version__"]

_HOMES = {
    "AgentApp": "fast_agent.agent_app",
    "AgentsAsToolsOptions": "fast_agent.cards.agents_as_tools",
    "ChildHistory": "fast_agent.cards.agent_config",
    "FastAgent": "fast_agent.app",
}


def __getattr__(name: str) -> object:
    """Import what a program uses when it first does, so that `--help` need not wait for it."""
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(_HOMES[name]), name)
