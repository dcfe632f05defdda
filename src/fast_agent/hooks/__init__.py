"""Names that portable hook files import for their annotations: `from fast_agent.hooks import …`."""

from __future__ import annotations

from fast_agent.tools.hooks import ToolHookContext
from fast_agent.tools.hooks import TurnHookContext as HookContext

__all__ = ["HookContext", "ToolHookContext"]
