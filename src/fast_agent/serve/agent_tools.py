"""Agents as tools and prompts of a server: how clients see them, ask them, and get answers."""

from __future__ import annotations

import json
import logging
import re
from typing import TYPE_CHECKING, NamedTuple, cast

from fast_agent.agents.delegation.agent_tool import MESSAGE_SCHEMA, describe
from fast_agent.errors import FastAgentError, RunError
from fast_agent.messages.json_message import content_to_wire
from fast_agent.resources.provider import ToolAnswer
from fast_agent.rpc.message import encode

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Mapping

    from fast_agent.agents.output import JsonSchema
    from fast_agent.agents.turn_context import TurnResult
    from fast_agent.cards.agent_config import AgentConfig
    from fast_agent.cards.load_set import LoadSet
    from fast_agent.messages.message import Message
    from fast_agent.models.model import Usage
    from fast_agent.text.json_value import JsonObject, JsonValue

HISTORY = "_history"
"""What the prompt with an agent's history is called, after the agent's name."""

log = logging.getLogger(__name__)

_PATH = re.compile(r"(?<![\w:/.~])(?:/[^\s/`'\"<>:]+)+/([^\s/`'\"<>:]+)")
_COUNTS: JsonObject = {"type": "integer"}
OUTPUT_SCHEMA: JsonObject = {
    "type": "object",
    "properties": {
        "text": {"type": "string"},
        "stop_reason": {"type": "string"},
        "usage": {
            "type": "object",
            "properties": {
                "input_tokens": _COUNTS,
                "output_tokens": _COUNTS,
                "requests": _COUNTS,
                "tool_calls": _COUNTS,
                "cost": {"type": ["number", "null"]},
            },
        },
        "context": {"type": "object"},
        "workflow": {"type": "object"},
    },
    "required": ["text", "stop_reason", "usage"],
}
"""JSON Schema of the structured content of an agent's answer."""


class ExposedAgent(NamedTuple):
    """An agent as a client may ask it.

    Args:
        tool: Its tool with MCP's field names, as JSON.
        prompt: Its prompt with MCP's field names, as JSON.
        schema: The form its arguments have; None where there is one `message`.
    """

    tool: bytes
    prompt: bytes
    schema: JsonSchema | None

    def message(self, name: str, arguments: JsonObject) -> str:
        """Turn the arguments of a call into the message for the agent.

        Args:
            name: The agent's name, for what is said of wrong arguments.
            arguments: The arguments.

        Raises:
            RunError: They do not match its schema.
        """
        message = arguments.get("message")
        alone = isinstance(message, str) and len(arguments) == 1
        if self.schema is not None:
            problems = self.schema.problems(arguments)
            if problems is not None:
                raise RunError(f"the arguments of `{name}` do not match its schema: {problems}")
        elif not alone:
            raise RunError(f"the one argument of `{name}` is `message`, a string")
        return str(message) if alone else json.dumps(arguments, ensure_ascii=False)


class ExposedAgents:
    """The agents of a load-set that clients may ask, by name.

    Args:
        load_set: The cards.
        taken: Names of other tools of the server; an agent of such a name is not offered.
        redact: Hides secrets in what is said of agents; None hides none.
    """

    def __init__(
        self,
        load_set: LoadSet,
        taken: Collection[str] = (),
        redact: Callable[[str], str] | None = None,
    ) -> None:
        self.load_set = load_set
        self.agents: dict[str, ExposedAgent] = {}
        for name, card in load_set.cards.items():
            if card.config.tool_only:
                continue
            if name in taken:
                log.warning("agent `%s` is not offered: a tool of the server has its name", name)
                continue
            self.agents[name] = _expose(card.config, redact)

    def __getitem__(self, name: str) -> ExposedAgent:
        return self.agents[name]

    def __contains__(self, name: object) -> bool:
        return name in self.agents

    def names(self) -> list[str]:
        """Name the agents, sorted."""
        return sorted(self.agents)

    def of_prompt(self, name: str) -> str | None:
        """Return the agent whose history a prompt returns; None if there is no such prompt."""
        agent = name.removesuffix(HISTORY)
        return agent if agent != name and agent in self.agents else None


def _expose(config: AgentConfig, redact: Callable[[str], str] | None) -> ExposedAgent:
    schema: JsonObject = MESSAGE_SCHEMA
    form: JsonSchema | None = None
    if config.tool_input_schema is not None:
        from fast_agent.agents.output import JsonSchema

        schema = {"type": "object", **config.tool_input_schema}
        form = JsonSchema(schema, f"`tool_input_schema` of agent `{config.name}`")
    tool: JsonObject = {
        "name": config.name,
        "description": describe(config) if redact is None else redact(describe(config)),
        "inputSchema": schema,
        "outputSchema": OUTPUT_SCHEMA,
    }
    about = f"What was said to the agent `{config.name}` and what it answered."
    prompt: JsonObject = {"name": f"{config.name}{HISTORY}", "description": about}
    return ExposedAgent(encode(tool), encode(prompt), form)


def answer_of(turn: TurnResult) -> ToolAnswer:
    """Turn what a turn gave into a tool's answer."""
    structured: dict[str, JsonValue] = {
        "text": turn.text,
        "stop_reason": turn.stop_reason,
        "usage": usage_json(turn.tree_usage),
    }
    if turn.context is not None:
        structured["context"] = turn.context.to_json()
    if turn.workflow is not None:
        structured["workflow"] = turn.workflow
    content = _blocks(turn.message)
    return ToolAnswer(content or ({"type": "text", "text": ""},), structured=structured)


def usage_json(usage: Usage) -> JsonObject:
    """Return usage as JSON."""
    return {
        "input_tokens": usage.input_tokens,
        "output_tokens": usage.output_tokens,
        "requests": usage.requests,
        "tool_calls": usage.tool_calls,
        "cost": usage.cost,
    }


def answer_of_problem(problem: FastAgentError) -> ToolAnswer:
    """Report to a client's model what failed and what to do, without the paths of this machine."""
    lines = [problem.message]
    if problem.hint:
        lines.append(f"hint: {problem.hint}")
    for one in problem.diagnostics:
        if one.severity == "error" and one.message not in problem.message:
            place = f"{one.path}: " if one.path else ""
            lines.append(f"{place}{one.message}")
    return ToolAnswer.of_text(without_paths("\n".join(lines)), is_error=True)


def without_paths(text: str) -> str:
    """Keep only the last part of every absolute path in a text; web addresses stay."""
    return _PATH.sub(r"…/\1", text)


def prompt_messages(history: Iterable[Message]) -> list[JsonObject]:
    """Return a history as the messages of a prompt, each with one block of content."""
    return [
        {"role": message.role, "content": block}
        for message in history
        for block in (*_blocks(message), *_notes(message))
    ]


def _blocks(message: Message) -> tuple[JsonObject, ...]:
    return tuple(cast("JsonObject", content_to_wire(block)) for block in message.content)


def _notes(message: Message) -> Iterable[Mapping[str, JsonValue]]:
    """Describe in words what prompts have no blocks for: tool calls and their results."""
    for call in message.tool_calls:
        arguments = json.dumps(dict(call.arguments), ensure_ascii=False)
        yield {"type": "text", "text": f"[calls `{call.name}` with {arguments}]"}
    for result in message.tool_results:
        state = "an error" if result.is_error else "this"
        yield {"type": "text", "text": f"[the tool gave {state}: {result.text}]"}
