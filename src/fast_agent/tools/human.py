"""Asking a person: the seam between tools or MCP servers that ask and the shell that can."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, Protocol

if TYPE_CHECKING:
    from fast_agent.text.json_value import JsonObject


@dataclass(frozen=True, slots=True, kw_only=True)
class HumanRequest:
    """A question.

    Args:
        message: The question, as it is to be shown; untrusted when `server_name` is set.
        agent_name: The agent that asks or for which a server asks.
        server_name: The MCP server that asks, or None when the agent itself does.
        schema: JSON Schema (flat object) of the answer, or None for free text.
        url: An address to open instead of a form, or None.
    """

    message: str
    agent_name: str
    server_name: str | None = None
    schema: JsonObject | None = None
    url: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class HumanAnswer:
    """An answer; `content` is set only on `accept` (free text under the key `text`)."""

    action: Literal["accept", "decline", "cancel"]
    content: JsonObject | None = None


class Human(Protocol):
    """A way to reach a person. Where there is none, callers hold None instead."""

    async def ask(self, request: HumanRequest) -> HumanAnswer:
        """Ask and wait for the answer."""
        ...
