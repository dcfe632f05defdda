"""Events: what happens in a turn, as sent to listeners.

A listener is a plain function called in the middle of a turn. It must be quick and must not raise.
Without a listener only warnings are built, for the log, and models are not asked to stream.

What a user sees of the progress of a workflow is one line a step.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from logging import getLogger
from typing import TYPE_CHECKING, TypeAlias

from fast_agent.text.frozen import frozen
from fast_agent.text.json_value import as_list

if TYPE_CHECKING:
    from fast_agent.messages.message import Message, ToolCall, ToolResult
    from fast_agent.models.model import ContextUse, Usage
    from fast_agent.text.json_value import JsonObject, JsonValue
    from fast_agent.tools.tool import ToolSource

log = getLogger(__name__)


@frozen
class Origin:
    """The turn an event belongs to.

    Args:
        agent: Name of the agent whose turn it is.
        turn_id: The turn.
        parent_call_id: The tool call of another agent this turn answers, or the turn of the
            workflow it is a part of; None at the top.
    """

    agent: str
    turn_id: str
    parent_call_id: str | None


@frozen
class TurnStarted:
    """A turn began with this message."""

    origin: Origin
    message: Message


@frozen
class Steered:
    """A turn took a message that a user sent into it."""

    origin: Origin
    message: Message


@frozen
class ModelRequested:
    """A request went to the model.

    Args:
        model: The model's spec.
        iteration: Which request of the turn, from 1.
    """

    origin: Origin
    model: str
    iteration: int


@frozen
class TextStreamed:
    """A piece of the answer's text arrived."""

    origin: Origin
    text: str


@frozen
class ThinkingStreamed:
    """A piece of the model's reasoning arrived."""

    origin: Origin
    text: str


@frozen
class ModelAnswered:
    """The model answered.

    Args:
        message: The whole answer, tool calls included.
        usage: What this one request used.
        iteration: Which request of the turn, from 1.
        context: How full the context window is with it.
    """

    origin: Origin
    message: Message
    usage: Usage
    iteration: int
    context: ContextUse | None = None


@frozen
class ToolStarted:
    """A tool call began.

    Args:
        call: The call.
        source: Where the tool comes from.
        server_name: The MCP server it belongs to, or None.
    """

    origin: Origin
    call: ToolCall
    source: ToolSource
    server_name: str | None


@frozen
class ToolProgressed:
    """A tool reported its progress.

    Args:
        call_id: The call.
        progress: How much is done, in the tool's own unit.
        total: How much there is to do, or None.
        message: What it is doing, or None; of a command, the last lines of its output.
    """

    origin: Origin
    call_id: str
    progress: float
    total: float | None
    message: str | None


@frozen
class ToolFinished:
    """A tool call ended; every call of a response has one, whether its tool was found or not."""

    origin: Origin
    call: ToolCall
    result: ToolResult


@frozen
class ChildStarted:
    """A child agent began to work on a call of this turn.

    Args:
        call_id: The call; the child's own events carry it as `parent_call_id`.
        child: The child's name.
        instance: Number of the clone among the parent's, from 1.
        max_display_instances: How many clones the card wants shown in full.
    """

    origin: Origin
    call_id: str
    child: str
    instance: int
    max_display_instances: int


@frozen
class ChildFinished:
    """A child agent ended, whatever the outcome.

    Args:
        call_id: The call.
        child: The child's name.
        instance: Number of the clone among the parent's, from 1.
        error: Why it failed; None when it answered.
    """

    origin: Origin
    call_id: str
    child: str
    instance: int
    error: str | None


@frozen
class WorkflowAdvanced:
    """A step of a workflow became visible.

    Args:
        kind: What it is: `step` (chain), `branch` (parallel), `route` (router), `plan` and `task`
            (planners), `rating` (evaluator_optimizer), `vote` and `flag` (MAKER).
        facts: What there is to know of it.
    """

    origin: Origin
    kind: str
    facts: JsonObject


@frozen
class Warned:
    """Something a user should know that did not stop the turn."""

    origin: Origin
    message: str


@frozen
class TurnFinished:
    """A turn ended, whatever the outcome.

    Args:
        stop_reason: Why; `error` and `cancelled` come without a message.
        message: The answer, or None.
        usage: What the agent itself used in the turn.
        tree_usage: The same with everything the turn started.
        error: What went wrong, or None.
    """

    origin: Origin
    stop_reason: str
    message: Message | None
    usage: Usage
    tree_usage: Usage
    error: str | None = None


Event: TypeAlias = (
    TurnStarted
    | Steered
    | ModelRequested
    | TextStreamed
    | ThinkingStreamed
    | ModelAnswered
    | ToolStarted
    | ToolProgressed
    | ToolFinished
    | ChildStarted
    | ChildFinished
    | WorkflowAdvanced
    | Warned
    | TurnFinished
)
Listener: TypeAlias = Callable[[Event], None]


def log_warnings(event: Event) -> None:
    """Log warnings; the listener where a program has none."""
    if isinstance(event, Warned):
        log.warning("agent `%s`: %s", event.origin.agent, event.message)


def fan_out(*listeners: Listener) -> Listener:
    """Join listeners into one that calls each in order."""
    present = tuple(listener for listener in listeners if listener is not log_warnings)
    if len(present) < 2:
        return present[0] if present else log_warnings

    def notify_all(event: Event) -> None:
        for listener in present:
            listener(event)

    return notify_all


def workflow_line(kind: str, facts: JsonObject) -> str:
    """Describe a `WorkflowAdvanced` event.

    Args:
        kind: Its kind.
        facts: Its facts.

    Returns:
        One line; empty where there is nothing worth a line.
    """
    if _is_shown_elsewhere(kind, facts):
        return ""
    match kind:
        case "step":
            return f"{_number(facts)} `{facts.get('agent')}` answered: {facts.get('text')}"
        case "branch":
            return f"`{facts.get('agent')}` answered: {facts.get('text')}"
        case "route":
            return f"goes to `{facts.get('agent')}`{_confidence_text(facts)}"
        case "plan":
            return f"plan {facts.get('number')}: {_format_steps(as_list(facts.get('steps')))}"
        case "task":
            about = f"`{facts.get('agent')}`: {facts.get('description')}"
            return f"task {facts.get('status', 'done')}: {about}"
        case "rating":
            feedback = facts.get("feedback")
            return f"round {facts.get('round')} is {facts.get('rating')}: {feedback}"
        case "vote":
            return f"draw {facts.get('draw')} says {_standing(facts)}"
        case "flag":
            reason = facts.get("error") or str(facts.get("reason")).replace("_", " ")
            return f"draw {facts.get('draw')} is discarded: {reason}"
        case _:
            parts = ", ".join([f"{name} {value}" for name, value in facts.items()])
            return f"{kind}: {parts}"


def step_title(facts: JsonObject) -> str:
    """Name a step of a chain, by the facts of its event."""
    return f"{_number(facts)} {facts.get('agent')}"


def _is_shown_elsewhere(kind: str, facts: JsonObject) -> bool:
    """A failed branch is a warning or its turn's error; a started task is reported when it ends."""
    failed = kind == "branch" and "error" in facts
    return failed or (kind == "task" and facts.get("status") == "started")


def _confidence_text(facts: JsonObject) -> str:
    reason = facts.get("reasoning")
    return f" ({facts.get('confidence')} confidence): {reason}" if reason else ""


def _number(facts: JsonObject) -> str:
    index = facts.get("index")
    at = index + 1 if isinstance(index, int) else index
    return f"step {at} of {facts.get('of')}:"


def _standing(facts: JsonObject) -> str:
    votes, margin = facts.get("votes"), facts.get("margin")
    has = f"`{facts.get('answer')}`, which has {votes} {'vote' if votes == 1 else 'votes'}"
    if not margin:
        return f"{has}; no answer is ahead"
    return f"{has} and is {margin} ahead" if facts.get("leads") else f"{has}; another is ahead"


def _format_steps(steps: Sequence[JsonValue]) -> str:
    agents = [
        str(_value_of(task, "agent"))
        for step in steps
        for task in as_list(_value_of(step, "tasks"))
    ]
    if not agents:
        return "nothing more to do"
    names = ", ".join([f"`{name}`" for name in dict.fromkeys(agents)])
    many = f"{len(agents)} tasks" if len(agents) > 1 else "a task"
    return f"{many} for {names}" + (f" in {len(steps)} steps" if len(steps) > 1 else "")


def _value_of(value: JsonValue, name: str) -> JsonValue:
    return value.get(name) if isinstance(value, Mapping) else None
