"""Completion by MCP servers: prompts and their arguments, resources and what templates make."""

from __future__ import annotations

import re
import shlex
from typing import TYPE_CHECKING, Final, TypeVar

import anyio

from fast_agent.commands.arguments import next_token
from fast_agent.commands.completion import Completion
from fast_agent.commands.told import short
from fast_agent.errors import FastAgentError

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from fast_agent.commands.arguments import Token
    from fast_agent.commands.controller import ConversationController
    from fast_agent.mcp.offers import ServerOffers, ServerResources

S = TypeVar("S", bound="ServerOffers")
ANSWER_SECONDS: Final = 0.3
_MAX_WAYS: Final = 100
_MAX_VALUE: Final = 500
_VARIABLE: Final = re.compile(r"\{([^{}]*)\}")
_OPERATORS: Final = "+#./;?&"


async def complete_from_server(
    line: str, controller: ConversationController, *, seconds: float = ANSWER_SECONDS
) -> tuple[Completion, ...]:
    """Return the ways a line continues that only a server knows; asks no server that is not open.

    Args:
        line: The line up to the cursor.
        controller: The conversation.
        seconds: Maximum wait for the server.

    Returns:
        The ways, at most 100; none where the server does not answer in time.
    """
    name, _, _ = line[1:].partition(" ")
    if line[:1] != "/" or name not in {"prompts", "resources"}:
        return ()
    words = _words(line, len(name) + 1)
    if len(words) < 2:
        return ()
    found: Sequence[Completion] = ()
    with anyio.move_on_after(seconds):
        try:
            if name == "prompts":
                found = await _of_prompts(words, line, controller)
            elif len(words) == 2:
                found = await _of_resources(words, controller)
        except FastAgentError:
            return ()
    return tuple(found[:_MAX_WAYS])


def _words(line: str, at: int) -> list[tuple[str, int]]:
    """Read the words with their places; the last one is being typed and may be empty."""
    words: list[tuple[str, int]] = []
    token: Token | None = None
    while (token := next_token(line, at)) is not None:
        words.append((token.text, token.start))
        at = token.end
    if line[-1:].isspace():
        words.append(("", len(line)))
    return words


async def _of_prompts(
    words: list[tuple[str, int]], line: str, controller: ConversationController
) -> list[Completion]:
    server = _open(controller.app.runtime.server_prompts(controller.agent), words[0][0], controller)
    if server is None:
        return []
    prompts = {one.name: one for one in await server.prompts()}
    begun, start = words[-1]
    if len(words) == 2:
        ways = [(name, prompts[name].description) for name in prompts if name.startswith(begun)]
        return _ways(ways, start)
    prompt = prompts.get(words[1][0])
    if prompt is None or any(quote in line[start:] for quote in "'\""):
        return []
    given = dict(word.split("=", 1) for word, _ in words[2:-1] if "=" in word)
    name, equals, value = begun.partition("=")
    if not equals:
        named = [(f"{one.name}=", one.description) for one in prompt.arguments]
        return _ways((one for one in named if one[0].startswith(begun)), start)
    values = await server.complete(prompt.name, (name, value), given, agent_name=controller.agent)
    return _ways(((f"{name}={shlex.quote(one)}", "") for one in _safe(values)), start)


async def _of_resources(
    words: list[tuple[str, int]], controller: ConversationController
) -> list[Completion]:
    server = _open(
        controller.app.runtime.server_resources(controller.agent), words[0][0], controller
    )
    if server is None:
        return []
    begun, start = words[1]
    listed = [(one.uri, one.description) for one in await server.resources()]
    found = [one for one in listed if one[0].startswith(begun)]
    for template in await server.templates():
        found += await _of_template(server, template.uri_template, begun, controller)
    return _ways(found, start)


async def _of_template(
    server: ServerResources, template: str, begun: str, controller: ConversationController
) -> list[tuple[str, str]]:
    """Complete the variable of a template that a URI has got to."""
    pieces = _VARIABLE.split(template)  # text, variable, text, variable, text
    at = 0
    given: dict[str, str] = {}
    for number in range(0, len(pieces) - 1, 2):
        text, variable, behind = pieces[number : number + 3]
        if not begun.startswith(text, at):
            whole = begun[:at] + text
            return [(whole, template)] if text.startswith(begun[at:]) else []
        at += len(text)
        end = begun.find(behind, at) if behind else -1
        name = variable.lstrip(_OPERATORS)
        if end < 0:
            values = await server.complete(
                template, (name, begun[at:]), given, agent_name=controller.agent
            )
            return [(f"{begun[:at]}{one}{behind}", template) for one in _safe(values)]
        given[name] = begun[at:end]
        at = end
    return []


def _open(servers: Iterable[S], name: str, controller: ConversationController) -> S | None:
    """Return a server of the agent that is connected; completion starts none."""
    states = {one.name: one.state for one in controller.app.runtime.server_reports()}
    named = (one for one in servers if one.server_name == name)
    return next((one for one in named if states.get(name) == "connected"), None)


def _safe(values: Iterable[str]) -> list[str]:
    """Leave out values that would not stand in a line as they are."""
    return [one for one in values if one and one.isprintable() and len(one) <= _MAX_VALUE]


def _ways(found: Iterable[tuple[str, str | None]], start: int) -> list[Completion]:
    return [
        Completion(text, start, short(about or "")) for text, about in found if text.isprintable()
    ]
