"""A hook that stands around every tool call of the clerk."""

from __future__ import annotations

from typing import Any


async def no_secrets(ctx: Any, args: dict[str, Any], call_next: Any) -> Any:
    """Refuse to hand a tool anything that looks like a password."""
    if any("password" in str(value).lower() for value in args.values()):
        return f"{ctx.tool_name} was not called: the text holds a password"
    return await call_next(args)
