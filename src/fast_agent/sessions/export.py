"""Export: a session as a file a user reads, or as a history an agent can start from."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING

from fast_agent.errors import SessionError
from fast_agent.messages.history import HistoryDocument
from fast_agent.messages.json_message import write_json_history
from fast_agent.messages.message import TextContent
from fast_agent.text.wording import closest, did_you_mean, local_minute

if TYPE_CHECKING:
    from collections.abc import Iterator

    from fast_agent.messages.message import Content, Message, ToolResult
    from fast_agent.sessions.state import SessionState
    from fast_agent.sessions.store import SessionSummary

_TICKS = re.compile("`+")


def agent_of(state: SessionState, agent: str | None = None) -> str:
    """Choose the agent whose history is exported.

    Args:
        state: The session.
        agent: The agent asked for; None is the one that was talked to last.

    Raises:
        SessionError: The session holds no history of it, or of any agent.
    """
    if agent is None:
        turns = state.turns
        if turns:
            return turns[-1].agent
        raise SessionError("the session has no turns yet")
    if agent in state.agents:
        return agent
    near = closest(agent, state.agents)
    listed = ", ".join(f"`{name}`" for name in state.agents) or "none"
    hint = did_you_mean(near, f"it holds those of {listed}")
    raise SessionError(f"the session holds no history of agent `{agent}`", hint=hint)


def export_json(state: SessionState, agent: str | None = None) -> str:
    """Write what an agent remembers as a JSON history, which `read_history` reads.

    Args:
        state: The session.
        agent: The agent; None is the one that was talked to last.

    Raises:
        SessionError: The session holds no history of it, or a message is damaged.
    """
    messages = state.history(agent_of(state, agent)) or []
    return write_json_history(HistoryDocument(None, tuple(messages)))


def export_markdown(summary: SessionSummary, state: SessionState) -> str:
    """Write everything said in a session as Markdown, for people.

    Args:
        summary: What is known of it.
        state: What it amounts to.

    Raises:
        SessionError: A message is damaged.
    """
    began = local_minute(summary.created)
    lines = [
        f"# {_line(summary.title) or 'Session'}",
        "",
        f"Session `{summary.id}`, begun {began}.",
    ]
    numbers = {turn.turn_id: number for number, turn in enumerate(state.turns, 1)}
    for entry in state.entries():
        number = numbers.get(entry.turn_id)
        heading = f"## Turn {number}: " if number else "### Called: "
        lines += ["", f"{heading}{_line(entry.agent)}"]
        for message in entry.messages:
            lines += _message(message)
    return "\n".join(lines) + "\n"


def _message(message: Message) -> Iterator[str]:
    if message.content:
        yield from ("", f"**{message.role.capitalize()}**")
        for block in message.content:
            yield from ("", _block(block))
    for call in message.tool_calls:
        arguments = json.dumps(dict(call.arguments), ensure_ascii=False, indent=2, default=str)
        yield from ("", f"**Calls `{_line(call.name)}`**", "", _fenced(arguments, "json"))
    for result in message.tool_results:
        yield from (
            "",
            f"**{'Error' if result.is_error else 'Result'}**",
            "",
            _fenced(_result_text(result)),
        )


def _result_text(result: ToolResult) -> str:
    return "\n".join(
        block.text if isinstance(block, TextContent) else _block(block) for block in result.content
    )


def _block(block: Content) -> str:
    if isinstance(block, TextContent):
        return block.text
    return f"[{type(block).__name__.removesuffix('Content').lower()}]"


def _fenced(text: str, language: str = "") -> str:
    """Wrap a string in a code block whose fence is longer than any in it."""
    longest = max((len(found) for found in _TICKS.findall(text)), default=0)
    fence = "`" * max(3, longest + 1)
    return f"{fence}{language}\n{text}\n{fence}"


def _line(text: str) -> str:
    return " ".join(text.split())
