"""Sizes of what a model is given, in tokens, where no model has counted them.

Four characters count as a token, which is 3 to 15 % more than English text takes. It decides when
room is made, and says of what a context is made up; what is reported as used is the model's own
count.
"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Final

from fast_agent.messages.long_results import size_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from fast_agent.messages.history import History
    from fast_agent.messages.message import Message
    from fast_agent.models.model import ToolSpec
    from fast_agent.models.usage import ContextUse

_CHARACTERS: Final = 4  # a token
_LARGEST: Final = 5
_SKILLS: Final = re.compile(r"<available_skills>.*?</available_skills>", re.DOTALL)


def size_of_text(text: str) -> int:
    """Return about how many tokens a text takes."""
    return (len(text) + _CHARACTERS - 1) // _CHARACTERS


def size_of_tools(specs: Iterable[ToolSpec]) -> int:
    """Return about how many tokens the descriptions of tools take."""
    return sum(
        size_of_text(f"{one.name}{one.description}{json.dumps(one.input_schema, default=dict)}")
        for one in specs
    )


def size_of_results(message: Message) -> int:
    """Return about how many tokens the texts of a message's tool results take."""
    return sum(map(size_of, message.tool_results)) // _CHARACTERS


def size_of_message(message: Message) -> int:
    """Return about how many tokens a message takes, tool results included."""
    size = size_of_text(message.text) + size_of_results(message)
    for call in message.tool_calls:
        size += size_of_text(call.name + json.dumps(call.arguments, default=dict))
    return size


def size_of_view(view: History) -> int:
    """Return about how many tokens all messages take."""
    return sum(map(size_of_message, view))


def size_since_answer(view: History) -> int:
    """Return about how many tokens the messages after the last answer take."""
    size = 0
    for message in reversed(view):
        if message.role == "assistant":
            break
        size += size_of_message(message)
    return size


def filling(use: ContextUse) -> str:
    """Say how full a context window is."""
    if use.window is None:
        return f"{use.used:,} tokens in a context window of unknown size"
    return f"{use.used:,} of {use.window:,} tokens of the context window ({use.share or 0:.0%})"


def share_of_start(system: str, tools: Sequence[ToolSpec]) -> str:
    """Say what the system prompt and the tools take, the largest servers first."""
    sizes = {"the system prompt": size_of_text(system)}
    for tool in tools:
        server, mark, _ = tool.name.partition("__")
        name = f"tools of server `{server}`" if mark else "other tools"
        sizes[name] = sizes.get(name, 0) + size_of_tools((tool,))
    largest = sorted(sizes.items(), key=lambda item: -item[1])[:_LARGEST]
    return ", ".join(f"{name} about {size:,} tokens" for name, size in largest)


def parts_of(system: str, tools: Iterable[ToolSpec], view: History) -> dict[str, int]:
    """Return about how many tokens each part of what a model is given takes.

    Args:
        system: The system prompt, with the list of skills in it.
        tools: The tools offered.
        view: The messages.
    """
    skills = sum(map(len, _SKILLS.findall(system))) // _CHARACTERS
    results = sum(map(size_of_results, view))
    return {
        "system": size_of_text(system) - skills,
        "skills": skills,
        "tools": size_of_tools(tools),
        "history": size_of_view(view) - results,
        "results": results,
    }
