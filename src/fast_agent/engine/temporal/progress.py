"""Progress: what a turn shows its client before it ends, beside the history of its workflow.

Two ways lead to the client, and neither writes into the history. Events of the turn are kept by
its workflow, which makes them again when its code runs again, and are read by a query. Text and
progress of a step that is under way are the details of its heartbeats, which the server keeps with
the step. Both work across machines and are encrypted like everything else the server is given. A
client that misses some of it gets the messages of the turn at its end.
"""

from __future__ import annotations

from dataclasses import fields
from typing import TYPE_CHECKING, Any, Final, cast, get_args

from fast_agent.agents.events import (
    Event,
    ModelAnswered,
    Origin,
    TextStreamed,
    ThinkingStreamed,
    ToolFinished,
    ToolProgressed,
    TurnFinished,
    TurnStarted,
)
from fast_agent.messages.json_message import message_from_wire, message_to_wire
from fast_agent.messages.message import Message, ToolCall, ToolResult
from fast_agent.models.model import ContextUse, TextDelta, Usage
from fast_agent.models.step_model import usage_from_json, usage_to_json
from fast_agent.telemetry import traced_elsewhere
from fast_agent.text.frozen import replaced

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from fast_agent.agents.turn_life import TurnLife
    from fast_agent.models.model import Delta
    from fast_agent.text.json_value import JsonObject, JsonValue

SHOW_SECONDS: Final = 0.25
"""How often a step shows more of itself, and a client looks."""

_MAX_SHOWN: Final = 64_000
"""How many characters of an answer are shown before it ends."""

_EVENTS: Final[Mapping[str, type[Event]]] = {kind.__name__: kind for kind in get_args(Event)}

_READERS: Final[Mapping[str, Callable[[Any], object]]] = {
    "Message": message_from_wire,
    "ToolCall": lambda value: message_from_wire(value).tool_calls[0],
    "ToolResult": lambda value: message_from_wire(value).tool_results[0],
    "Usage": usage_from_json,
    "ContextUse": lambda value: ContextUse(*value),
}


def event_to_json(event: Event) -> JsonObject:
    """Write an event."""
    origin = event.origin
    return {
        "event": type(event).__name__,
        **{one.name: _written(getattr(event, one.name)) for one in fields(event)},
        "origin": [origin.agent, origin.turn_id, origin.parent_call_id],
    }


def event_from_json(value: JsonObject) -> Event:
    """Read an event that `event_to_json` wrote."""
    kind: Any = _EVENTS[str(value["event"])]
    found: dict[str, object] = {}
    for one in fields(kind):
        written = value[one.name]
        read = _READERS.get(str(one.type).removesuffix(" | None"))
        found[one.name] = written if read is None or written is None else read(written)
    found["origin"] = Origin(*cast("Sequence[Any]", value["origin"]))
    return cast("Event", kind(**found))


def _written(value: object) -> JsonValue:
    match value:
        case Message():
            return message_to_wire(value)
        case ToolCall():  # calls and results have a wire form only within a message
            return message_to_wire(Message("assistant", tool_calls=(value,)))
        case ToolResult():
            return message_to_wire(Message("user", tool_results=(value,)))
        case Usage():
            return usage_to_json(value)
        case ContextUse():
            return [value.used, value.window]
        case Origin():
            return None
        case _:
            return cast("JsonValue", value)


class StepProgress:
    """What a step shows while it is executed: the details of its heartbeats.

    Args:
        agent: The agent it belongs to.
        turn_id: The agent's turn.
        call_id: The call, of a tool.

    Attributes:
        is_new: Whether there is more to show than `details` returned last.
        redact: Hides secrets in a text.
    """

    def __init__(self, agent: str, turn_id: str, call_id: str) -> None:
        self._place: JsonObject = {"agent": agent, "turn_id": turn_id, "call_id": call_id}
        self._text: list[str] = []
        self._thinking: list[str] = []
        self._progress: list[JsonValue] | None = None
        self._size = 0
        self.is_new = False
        self.redact: Callable[[str], str] = str

    def on_delta(self, delta: Delta) -> None:
        """Take a piece of an answer."""
        if self._size < _MAX_SHOWN:
            pieces = self._text if isinstance(delta, TextDelta) else self._thinking
            pieces.append(delta.text)
            self._size += len(delta.text)
            self.is_new = True

    def on_progress(self, progress: float, total: float | None, message: str | None) -> None:
        """Take a report of a tool."""
        text = None if message is None else self.redact(message)[:_MAX_SHOWN]
        self._progress = [progress, total, text]
        self.is_new = True

    def details(self) -> JsonObject:
        """Return all that is to be shown."""
        self.is_new = False
        return {
            **self._place,
            "text": self.redact("".join(self._text)),
            "thinking": self.redact("".join(self._thinking)),
            "progress": self._progress,
        }


class TurnView:
    """What the listener of a client is shown of a turn that workers run.

    Args:
        life: The turn of the client.

    Attributes:
        count: How many of its events were shown.
    """

    def __init__(self, life: TurnLife) -> None:
        self._life = life
        self._remote: str | None = None
        self._seen: dict[tuple[str, str], str] = {}
        self._progress: dict[str, JsonValue] = {}
        self._finished: set[str] = set()
        self._answered = 0
        self._is_whole = False
        self._held: ModelAnswered | None = None
        self.count = 0

    def show_step(self, details: JsonObject) -> None:
        """Show what a step that is under way has shown so far."""
        origin = self._origin(str(details["agent"]), str(details["turn_id"]), None)
        self._grow(TextStreamed, origin, str(details["text"]))
        self._grow(ThinkingStreamed, origin, str(details["thinking"]))
        call_id, progress = str(details["call_id"]), details["progress"]
        if progress is not None and self._progress.get(call_id) != progress:
            self._progress[call_id] = progress
            self._show(ToolProgressed(origin, call_id, *cast("Sequence[Any]", progress)))

    def show_events(self, events: Iterable[JsonObject]) -> None:
        """Show the next events of the turn."""
        for value in events:
            self.count += 1
            self._show_event(event_from_json(value))

    def _show_event(self, event: Event) -> None:
        origin, is_top = event.origin, event.origin.parent_call_id is None
        if is_top:
            self._remote = origin.turn_id
        shown = replaced(
            event, origin=self._origin(origin.agent, origin.turn_id, origin.parent_call_id)
        )
        match shown:
            case TurnStarted() | TurnFinished() if is_top:
                # Those of the client's own turn are shown.
                self._is_whole = isinstance(shown, TurnFinished)
                return
            case TextStreamed(text=text):
                self._grow(TextStreamed, shown.origin, text)
                return
            case ModelAnswered():
                self._seen.pop((TextStreamed.__name__, shown.origin.turn_id), None)
                self._seen.pop((ThinkingStreamed.__name__, shown.origin.turn_id), None)
                if is_top:
                    self._release()
                    self._answered += 1
                    self._held = shown
                    return
            case ToolFinished(call=call) if is_top:
                self._finished.add(call.id)
            case _:
                pass
        if is_top:
            self._release()
        self._show(shown)

    def show_end(self, messages: Sequence[Message]) -> None:
        """Show what the listener did not see of the messages of the turn, which is over.

        Its last answer is shown once the end of the turn is recorded.
        """
        if not self._is_whole:
            self._show_missed(messages)
        if self._held is not None:
            self._life.notify_at_end(self._held)

    def _show_missed(self, messages: Sequence[Message]) -> None:
        iteration = 0
        calls: dict[str, ToolCall] = {}
        for message in messages:
            for result in message.tool_results:
                if result.id in calls and result.id not in self._finished:
                    self._release()
                    self._life.notify(ToolFinished, calls[result.id], result)
            if message.role != "assistant":
                continue
            iteration += 1
            calls |= {call.id: call for call in message.tool_calls}
            if iteration > self._answered:
                self._release()
                if self._seen:
                    self._grow(TextStreamed, self._life.origin, message.text)
                self._held = ModelAnswered(self._life.origin, message, Usage(), iteration)

    def _release(self) -> None:
        """Show an answer that was not the last one."""
        held, self._held = self._held, None
        if held is not None:
            self._show(held)

    def _grow(self, kind: type[TextStreamed | ThinkingStreamed], origin: Origin, text: str) -> None:
        """Show what is new of a text, of which the start may have been shown."""
        key = kind.__name__, origin.turn_id
        seen = self._seen.get(key, "")
        if seen.startswith(text):  # an attempt of the step that began later
            return
        self._seen[key] = text
        if origin.turn_id == self._life.origin.turn_id:
            self._release()
        more = text.removeprefix(seen) if text.startswith(seen) else f"\n\n{text}"
        self._show(kind(origin, more))

    def _origin(self, agent: str, turn_id: str, parent: str | None) -> Origin:
        own = self._life.origin
        if turn_id == self._remote:
            return own
        return Origin(agent, turn_id, own.turn_id if parent == self._remote else parent)

    def _show(self, event: Event) -> None:
        with traced_elsewhere():
            self._life.context.listener(event)
