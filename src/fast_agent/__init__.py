"""fast-agent: agents written as text.

Public names are imported from here, wherever their modules stand: `from fast_agent import tool`.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from fast_agent.version import __version__

if TYPE_CHECKING:
    from collections.abc import Sequence
    from importlib.machinery import ModuleSpec
    from types import ModuleType

    from fast_agent.agent_app import AgentApp
    from fast_agent.agents.agent import Agent
    from fast_agent.agents.conversation import Conversation
    from fast_agent.agents.events import (
        ChildFinished,
        ChildStarted,
        Event,
        Listener,
        ModelAnswered,
        ModelRequested,
        Origin,
        Steered,
        TextStreamed,
        ThinkingStreamed,
        ToolFinished,
        ToolProgressed,
        ToolStarted,
        TurnFinished,
        TurnStarted,
        Warned,
        WorkflowAdvanced,
    )
    from fast_agent.agents.turn_context import TurnResult
    from fast_agent.app import FastAgent
    from fast_agent.cards.agent_config import (
        AgentsAsToolsOptions,
        ChildHistory,
        RequestParams,
        UsageLimits,
    )
    from fast_agent.commands.completion import complete
    from fast_agent.commands.controller import ConversationController
    from fast_agent.commands.table import is_command, run_command
    from fast_agent.errors import (
        CardError,
        ConfigError,
        ContextError,
        FastAgentError,
        HistoryError,
        LimitError,
        ModelError,
        ResourceError,
        RunError,
        SessionError,
        SessionInUseError,
        ToolError,
        ToolRetry,
        TrustError,
    )
    from fast_agent.mcp.pool import ServerPool
    from fast_agent.mcp.server import from_command_line
    from fast_agent.messages.message import Media, Message, ToolCall, ToolResult
    from fast_agent.messages.prompt import Prompt
    from fast_agent.models.model import Usage
    from fast_agent.recording.cassette import Recorder, read_cassette
    from fast_agent.recording.replayer import Replayer
    from fast_agent.resources.catalog import Catalog
    from fast_agent.resources.internal.provider import InternalProvider
    from fast_agent.resources.service import ResourceService, ServerInfo
    from fast_agent.serve.agent_serving import ServeOptions, open_server
    from fast_agent.serve.http_access import HttpSettings
    from fast_agent.sessions.store import SessionStore
    from fast_agent.text.safe_file import write_atomic
    from fast_agent.tools.functions.function import ToolOptions, tool
    from fast_agent.tools.human import Human, HumanAnswer, HumanRequest
    from fast_agent.tools.tool import Deps, ToolContext
    from fast_agent.tools.toolbox import ServerFilter
    from fast_agent.trust.gate import TrustOptions
    from fast_agent.workflows.maker.race import Ballot, Sample, vote_at_once

__all__ = [
    "Agent",
    "AgentApp",
    "AgentsAsToolsOptions",
    "Ballot",
    "CardError",
    "Catalog",
    "ChildFinished",
    "ChildHistory",
    "ChildStarted",
    "ConfigError",
    "ContextError",
    "Conversation",
    "ConversationController",
    "Deps",
    "Event",
    "FastAgent",
    "FastAgentError",
    "HistoryError",
    "HttpSettings",
    "Human",
    "HumanAnswer",
    "HumanRequest",
    "InternalProvider",
    "LimitError",
    "Listener",
    "Media",
    "Message",
    "ModelAnswered",
    "ModelError",
    "ModelRequested",
    "Origin",
    "Prompt",
    "Recorder",
    "Replayer",
    "RequestParams",
    "ResourceError",
    "ResourceService",
    "RunError",
    "Sample",
    "ServeOptions",
    "ServerFilter",
    "ServerInfo",
    "ServerPool",
    "SessionError",
    "SessionInUseError",
    "SessionStore",
    "Steered",
    "TextStreamed",
    "ThinkingStreamed",
    "ToolCall",
    "ToolContext",
    "ToolError",
    "ToolFinished",
    "ToolOptions",
    "ToolProgressed",
    "ToolResult",
    "ToolRetry",
    "ToolStarted",
    "TrustError",
    "TrustOptions",
    "TurnFinished",
    "TurnResult",
    "TurnStarted",
    "Usage",
    "UsageLimits",
    "Warned",
    "WorkflowAdvanced",
    "__version__",
    "complete",
    "from_command_line",
    "is_command",
    "open_server",
    "read_cassette",
    "run_command",
    "tool",
    "vote_at_once",
    "write_atomic",
]

_HOMES = {
    "Agent": "fast_agent.agents.agent",
    "AgentApp": "fast_agent.agent_app",
    "AgentsAsToolsOptions": "fast_agent.cards.agent_config",
    "Ballot": "fast_agent.workflows.maker.race",
    "CardError": "fast_agent.errors",
    "Catalog": "fast_agent.resources.catalog",
    "ChildFinished": "fast_agent.agents.events",
    "ChildHistory": "fast_agent.cards.agent_config",
    "ChildStarted": "fast_agent.agents.events",
    "ConfigError": "fast_agent.errors",
    "ContextError": "fast_agent.errors",
    "Conversation": "fast_agent.agents.conversation",
    "ConversationController": "fast_agent.commands.controller",
    "Deps": "fast_agent.tools.tool",
    "Event": "fast_agent.agents.events",
    "FastAgent": "fast_agent.app",
    "FastAgentError": "fast_agent.errors",
    "HistoryError": "fast_agent.errors",
    "HttpSettings": "fast_agent.serve.http_access",
    "Human": "fast_agent.tools.human",
    "HumanAnswer": "fast_agent.tools.human",
    "HumanRequest": "fast_agent.tools.human",
    "InternalProvider": "fast_agent.resources.internal.provider",
    "LimitError": "fast_agent.errors",
    "Listener": "fast_agent.agents.events",
    "Media": "fast_agent.messages.message",
    "Message": "fast_agent.messages.message",
    "ModelAnswered": "fast_agent.agents.events",
    "ModelError": "fast_agent.errors",
    "ModelRequested": "fast_agent.agents.events",
    "Origin": "fast_agent.agents.events",
    "Prompt": "fast_agent.messages.prompt",
    "Recorder": "fast_agent.recording.cassette",
    "Replayer": "fast_agent.recording.replayer",
    "RequestParams": "fast_agent.cards.agent_config",
    "ResourceError": "fast_agent.errors",
    "ResourceService": "fast_agent.resources.service",
    "RunError": "fast_agent.errors",
    "Sample": "fast_agent.workflows.maker.race",
    "ServeOptions": "fast_agent.serve.agent_serving",
    "ServerFilter": "fast_agent.tools.toolbox",
    "ServerInfo": "fast_agent.resources.service",
    "ServerPool": "fast_agent.mcp.pool",
    "SessionError": "fast_agent.errors",
    "SessionInUseError": "fast_agent.errors",
    "SessionStore": "fast_agent.sessions.store",
    "Steered": "fast_agent.agents.events",
    "TextStreamed": "fast_agent.agents.events",
    "ThinkingStreamed": "fast_agent.agents.events",
    "ToolCall": "fast_agent.messages.message",
    "ToolContext": "fast_agent.tools.tool",
    "ToolError": "fast_agent.errors",
    "ToolFinished": "fast_agent.agents.events",
    "ToolOptions": "fast_agent.tools.functions.function",
    "ToolProgressed": "fast_agent.agents.events",
    "ToolResult": "fast_agent.messages.message",
    "ToolRetry": "fast_agent.errors",
    "ToolStarted": "fast_agent.agents.events",
    "TrustError": "fast_agent.errors",
    "TrustOptions": "fast_agent.trust.gate",
    "TurnFinished": "fast_agent.agents.events",
    "TurnResult": "fast_agent.agents.turn_context",
    "TurnStarted": "fast_agent.agents.events",
    "Usage": "fast_agent.models.model",
    "UsageLimits": "fast_agent.cards.agent_config",
    "Warned": "fast_agent.agents.events",
    "WorkflowAdvanced": "fast_agent.agents.events",
    "complete": "fast_agent.commands.completion",
    "from_command_line": "fast_agent.mcp.server",
    "is_command": "fast_agent.commands.table",
    "open_server": "fast_agent.serve.agent_serving",
    "read_cassette": "fast_agent.recording.cassette",
    "run_command": "fast_agent.commands.table",
    "tool": "fast_agent.tools.functions.function",
    "vote_at_once": "fast_agent.workflows.maker.race",
    "write_atomic": "fast_agent.text.safe_file",
}
"""The table of public names: where each is defined."""


def __getattr__(name: str) -> object:
    """Import what a program uses when it first does, so that `--help` need not wait for it."""
    if name not in _HOMES:
        from fast_agent.former import renamed

        return renamed(name)
    from importlib import import_module

    return getattr(import_module(_HOMES[name]), name)


class _FormerModules:
    """Finds modules of the release before; asked for modules that are nowhere else."""

    @staticmethod
    def find_spec(
        path: str, _: Sequence[str] | None = None, __: ModuleType | None = None, /
    ) -> ModuleSpec | None:
        """Return how to import a former module; None for every other."""
        if not path.startswith("fast_agent."):
            return None
        from fast_agent.former import spec_of

        return spec_of(path)


sys.meta_path.append(_FormerModules())


def __dir__() -> list[str]:
    """Name the public names, those that no program has used yet among them."""
    return list(__all__)
