"""Names that portable hook and function files import for their annotations."""

from __future__ import annotations

from fast_agent.cards.agent_config import RequestParams
from fast_agent.messages.message import Message
from fast_agent.messages.message import Message as PromptMessageExtended

__all__ = ["Message", "PromptMessageExtended", "RequestParams"]
