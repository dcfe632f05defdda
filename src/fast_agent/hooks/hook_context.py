"""`HookContext` where hook files of the nearest peer import it from."""

from __future__ import annotations

from fast_agent.hooks import HookContext

__all__ = ["HookContext"]
