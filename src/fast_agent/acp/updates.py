"""Updates: what happens in a turn, as reported to the client.

What the current agent says is streamed. What agents below it do is shown as tool calls:
the call that asked for them, and the calls they make themselves; a part of a workflow has a call of
its own, which holds its answer. What a workflow decides, such as a route or a rating, is a thought;
what a planner plans is a plan.

A tool call is shown by its title, its kind and the files it is about.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Final
from urllib.parse import unquote, urlsplit

from fast_agent.acp.params import block_to_wire, text_block, tool_content
from fast_agent.agents.events import (
    ChildStarted,
    ModelAnswered,
    ModelRequested,
    TextStreamed,
    ThinkingStreamed,
    ToolFinished,
    ToolProgressed,
    ToolStarted,
    TurnFinished,
    TurnStarted,
    Warned,
    WorkflowAdvanced,
    step_title,
    workflow_line,
)
from fast_agent.rpc.message import encode
from fast_agent.text.json_value import is_list
from fast_agent.text.visible import visible

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from fast_agent.agents.events import Event, Origin
    from fast_agent.messages.message import Content, Message, ToolResult
    from fast_agent.rpc.peer import Peer
    from fast_agent.sessions.state import SessionState
    from fast_agent.text.json_value import JsonObject, JsonValue

_MAX_LINE_CHARACTERS: Final = 120
_OWN = {
    "execute": "execute",
    "read_text_file": "read",
    "write_text_file": "edit",
    "read_file": "read",
    "write_file": "edit",
    "edit_file": "edit",
    "list_dir": "read",
    "glob": "search",
    "grep": "search",
    "fetch": "fetch",
}
_WORDS: Final = (
    ("delete", frozenset({"delete", "remove", "rm", "unlink"})),
    ("move", frozenset({"move", "rename", "mv"})),
    ("edit", frozenset({"edit", "write", "create", "update", "replace", "patch", "insert"})),
    ("search", frozenset({"search", "find", "grep", "glob", "query"})),
    ("execute", frozenset({"execute", "exec", "run", "shell", "bash", "terminal"})),
    ("fetch", frozenset({"fetch", "http", "download", "browse", "crawl"})),
    ("read", frozenset({"read", "get", "list", "show", "view", "cat", "open", "describe"})),
    ("think", frozenset({"think", "plan", "reason"})),
)
_PATHS: Final = ("path", "file_path", "filepath", "file", "filename", "uri", "agent_card_path")
_PARTS = re.compile(r"[a-z]+|[A-Z][a-z]*")


def tool_kind(name: str, source: str) -> str:
    """Return the kind of work a tool does, as far as its name reveals it."""
    if source == "agent":
        return "think"
    if source == "runtime" and name in _OWN:
        return _OWN[name]
    words = [part.lower() for part in _PARTS.findall(name.rpartition("__")[2])]
    for word in words:
        for kind, known in _WORDS:
            if word in known:
                return kind
    return "other"


def tool_title(name: str, arguments: JsonObject, *, agent: str | None = None) -> str:
    """Name a call for people.

    Args:
        name: The tool's name.
        arguments: Those of the call.
        agent: The agent that makes it, where it is not the one that is talked to.
    """
    subject = arguments.get({"execute": "command", "fetch": "url"}.get(name, "path"))
    title = name
    if name in _OWN and isinstance(subject, str) and subject.strip():
        said = one_line(subject)
        title = said if name == "execute" else f"{name.partition('_')[0].capitalize()} {said}"
    return f"{agent}: {title}" if agent else title


def locations(arguments: JsonObject, cwd: Path) -> list[JsonValue]:
    """Name the files the arguments of a call are about, absolute."""
    found: list[JsonValue] = []
    for name in _PATHS:
        value = arguments.get(name)
        path = _path(value, cwd) if isinstance(value, str) else None
        if path is None:
            continue
        line = arguments.get("line")
        if isinstance(line, int) and not isinstance(line, bool) and line > 0:
            found.append({"path": path, "line": line})
        else:
            found.append({"path": path})
    return found


def one_line(text: str, longest: int = _MAX_LINE_CHARACTERS) -> str:
    """Return foreign text as one bounded line without invisible characters."""
    line = " ".join(text.split())
    return visible(line if len(line) <= longest else f"{line[: longest - 1]}…")


def _path(value: str, cwd: Path) -> str | None:
    if "://" in value:
        parts = urlsplit(value)
        return unquote(parts.path) if parts.scheme == "file" and parts.path else None
    if not value.strip() or not value.isprintable():
        return None
    return os.path.normpath(cwd / value)


_MAX_THOUGHT: Final = 500
_CHUNK = (
    b'{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":%b,'
    b'"update":{"sessionUpdate":"%b","content":{"type":"text","text":%b}}}}'
)


_STATUS = {"started": "in_progress", "done": "completed"}
_NOT_DONE = {"failed": "failed", "cancelled": "cancelled"}
_THINKING = "reasoning"


class Updates:
    """Notifies a client of what happens in a session.

    Args:
        peer: The client.
        session_id: The session.
        cwd: Where relative paths of calls start.
    """

    def __init__(self, peer: Peer, session_id: str, cwd: Path) -> None:
        self._peer = peer
        self._session_id = session_id
        self._encoded_id = encode(session_id)
        self._cwd = cwd
        self._open: dict[str, str] = {}
        self._hidden: set[str] = set()
        self._held: set[str] = set()
        self._parts: dict[tuple[str | None, str], str] = {}
        self._plan = PlanView()
        self._planner: str | None = None
        self._said = False

    @property
    def has_answered(self) -> bool:
        """Whether the last answer of the turn was sent."""
        return self._said

    def send(self, update: JsonObject) -> None:
        """Send an update."""
        params: JsonObject = {"sessionId": self._session_id, "update": update}
        self._peer.notify("session/update", params)

    def say(self, text: str) -> None:
        """Send a piece of the answer."""
        self._chunk(b"agent_message_chunk", text)

    def think(self, text: str) -> None:
        """Send something that is not part of the answer."""
        self._chunk(b"agent_thought_chunk", text)

    def begin(self) -> None:
        """Start a turn."""
        if self._planner is not None:
            self._plan, self._planner = PlanView(), None
        self._said = False

    def end(self) -> None:
        """End a turn: calls that are open never end."""
        for call_id in self._open:
            self.send({"sessionUpdate": "tool_call_update", "toolCallId": call_id,
                       "status": "failed"})  # fmt: skip
        self._open.clear()
        self._hidden.clear()
        self._held.clear()
        self._parts.clear()

    def hold(self, call_id: str, content: list[JsonValue]) -> None:
        """Show something of a call while it runs, such as a terminal, and keep it there."""
        self._held.add(call_id)
        self.send({"sessionUpdate": "tool_call_update", "toolCallId": call_id,
                   "status": "in_progress", "content": content})  # fmt: skip

    def notify(self, event: Event) -> None:
        """Take an event; the listener of the session's turns."""
        match event:
            case TextStreamed(origin, text) if origin.parent_call_id is None:
                self._said = True
                self.say(text)
            case ThinkingStreamed(origin, text) if origin.parent_call_id is None:
                self.think(text)
            case ModelRequested(origin) if origin.parent_call_id is None:
                self._said = False
            case ModelAnswered(origin, message) if origin.parent_call_id is None:
                if not self._said and message.text:
                    self.say(message.text)
                self._said = True
            case ToolStarted() | ToolProgressed() | ToolFinished():
                self._update_call(event)
            case TurnStarted() | TurnFinished() | ChildStarted():
                self._update_turn(event)
            case WorkflowAdvanced(origin, kind, facts):
                self._update_workflow(origin, kind, facts)
            case Warned(origin, message):
                self.think(f"{origin.agent}: {message}\n")
            case _:
                pass

    def _update_call(self, event: ToolStarted | ToolProgressed | ToolFinished) -> None:
        origin = event.origin
        if origin.parent_call_id in self._hidden:
            if isinstance(event, ToolStarted):
                self._hidden.add(event.call.id)
            return
        match event:
            case ToolStarted(_, call, source):
                agent = None if origin.parent_call_id is None else origin.agent
                self._begin_call(
                    call_id(origin.turn_id, call.id),
                    call.id,
                    tool_title(call.name, call.arguments, agent=agent),
                    tool_kind(call.name, source),
                    {
                        "rawInput": dict(call.arguments),
                        "locations": locations(call.arguments, self._cwd),
                    },
                )
            case ToolProgressed(_, called, progress, total, message):
                self._progressed(call_id(origin.turn_id, called), progress, total, message)
            case ToolFinished(_, call, result):
                shown = call_id(origin.turn_id, call.id)
                if shown not in self._open:  # its tool was not found
                    title = tool_title(call.name, call.arguments)
                    self._begin_call(shown, call.id, title, "other", {})
                self._end_call(shown, result)

    def _begin_call(
        self, shown: str, inner: str, title: str, kind: str, more: dict[str, JsonValue]
    ) -> None:
        self._open[shown] = inner
        update: dict[str, JsonValue] = {
            "sessionUpdate": "tool_call",
            "toolCallId": shown,
            "title": title,
            "kind": kind,
            "status": "in_progress",
        }
        self.send({**update, **more})

    def _progressed(
        self, shown: str, progress: float, total: float | None, message: str | None
    ) -> None:
        if shown not in self._open or shown in self._held:
            return
        counted = "" if total is None else f"{progress:g}/{total:g}"
        said = "\n".join(map(one_line, (message or "").split("\n")))
        text = " ".join(part for part in (counted, said) if part)
        if text:
            content: list[JsonValue] = [{"type": "content", "content": text_block(text)}]
            self.send({"sessionUpdate": "tool_call_update", "toolCallId": shown,
                       "content": content})  # fmt: skip

    def _end_call(self, shown: str, result: ToolResult) -> None:
        self._open.pop(shown, None)
        update: dict[str, JsonValue] = {
            "sessionUpdate": "tool_call_update",
            "toolCallId": shown,
            "status": "failed" if result.is_error else "completed",
        }
        if shown not in self._held or result.is_error:
            update["content"] = tool_content(result.content)
        if result.structured is not None:
            update["rawOutput"] = result.structured
        self.send(update)

    def _update_turn(self, event: TurnStarted | TurnFinished | ChildStarted) -> None:
        origin, parent = event.origin, event.origin.parent_call_id
        if isinstance(event, ChildStarted):
            if event.instance > event.max_display_instances:
                self._hidden.add(event.call_id)
            return
        if parent is None:
            if isinstance(event, TurnFinished) and not self._said and event.message is not None:
                self._send_content(event.message.content)
            return
        if parent in self._hidden:
            self._hidden.add(origin.turn_id)
            return
        if parent in self._open.values():
            return  # the call that asked for it is shown
        if isinstance(event, TurnStarted):
            self._parts[parent, origin.agent] = origin.turn_id
            self._begin_call(origin.turn_id, origin.turn_id, origin.agent, "think", {})
        elif origin.turn_id in self._open:
            self._end_part(event)

    def _end_part(self, event: TurnFinished) -> None:
        """End the call that represents a part of a workflow."""
        shown = event.origin.turn_id
        del self._open[shown]
        content = () if event.message is None else event.message.content
        blocks = tool_content(content)
        if event.error is not None:
            blocks.append({"type": "content", "content": text_block(event.error)})
        status = "completed" if event.message is not None else "failed"
        self.send({"sessionUpdate": "tool_call_update", "toolCallId": shown, "status": status,
                   "content": blocks})  # fmt: skip

    def _send_content(self, content: tuple[Content, ...]) -> None:
        for block in content:
            wire = block_to_wire(block)
            if wire is not None:
                self.send({"sessionUpdate": "agent_message_chunk", "content": wire})

    def _update_workflow(self, origin: Origin, kind: str, facts: JsonObject) -> None:
        if origin.parent_call_id in self._hidden:
            return
        if kind in {"plan", "task"}:
            self._update_plan(origin, kind, facts)
        elif kind == "step":
            self._name_part(origin, facts)
        elif kind != "branch":  # the call of the branch holds its answer
            line = workflow_line(kind, facts)
            if line:
                self.think(f"{origin.agent}: {one_line(line, _MAX_THOUGHT)}\n")

    def _name_part(self, origin: Origin, facts: JsonObject) -> None:
        """Add to the title of a part's call which step of its chain it was."""
        shown = self._parts.pop((origin.turn_id, str(facts.get("agent"))), None)
        if shown is not None:
            self.send({"sessionUpdate": "tool_call_update", "toolCallId": shown,
                       "title": step_title(facts)})  # fmt: skip

    def _update_plan(self, origin: Origin, kind: str, facts: JsonObject) -> None:
        if self._planner not in {None, origin.turn_id}:
            return  # a plan within a plan
        update: JsonObject | None = None
        if kind == "plan":
            self._planner = origin.turn_id
            update = self._plan.planned(facts)
        elif kind == "task":
            update = self._plan.moved(facts)
        if update is not None:
            self.send(update)

    def _chunk(self, kind: bytes, text: str) -> None:
        self._peer.send_raw(_CHUNK % (self._encoded_id, kind, encode(text)))


def call_id(turn_id: str, call: str) -> str:
    """Name a call of a turn; ids of calls are unique within one turn's history only."""
    return f"{turn_id}:{call}"


class PlanView:
    """The entries of the plans of one turn, in order.

    A plan that follows another replaces what the previous plan left undone.
    """

    def __init__(self) -> None:
        self._entries: dict[tuple[int, str, str, int], dict[str, JsonValue]] = {}

    def planned(self, facts: JsonObject) -> JsonObject | None:
        """Record a plan; return the update to send, or None if nothing changed."""
        self._entries = {
            key: entry for key, entry in self._entries.items() if entry["status"] != "pending"
        }
        number, steps = facts.get("number"), facts.get("steps")
        if not isinstance(number, int) or not is_list(steps):
            return None
        for step in steps:
            tasks = step.get("tasks") if isinstance(step, Mapping) else None
            for task in tasks if is_list(tasks) else ():
                if isinstance(task, Mapping):
                    self._add(number, task)
        return self._update()

    def moved(self, facts: JsonObject) -> JsonObject | None:
        """Record the state of a task; return the update to send, or None."""
        number, status = facts.get("plan"), str(facts.get("status"))
        if not isinstance(number, int):
            return None
        name = (number, str(facts.get("agent")), str(facts.get("description")))
        wanted = "pending" if status == "started" else "in_progress"
        for key, entry in self._entries.items():
            if key[:3] == name and entry["status"] == wanted:
                entry["status"] = _STATUS.get(status, "completed")
                if status in _NOT_DONE:
                    entry["content"] = f"{entry['content']} ({_NOT_DONE[status]})"
                return self._update()
        return None

    def _add(self, number: int, task: JsonObject) -> None:
        agent, description = str(task.get("agent")), str(task.get("description"))
        same = sum(key[:3] == (number, agent, description) for key in self._entries)
        self._entries[number, agent, description, same] = {
            "content": f"{agent}: {description}",
            "priority": "medium",
            "status": "pending",
        }

    def _update(self) -> JsonObject:
        entries: list[JsonValue] = [dict(entry) for entry in self._entries.values()]
        return {"sessionUpdate": "plan", "entries": entries}


def replayed(state: SessionState, cwd: Path) -> Iterator[JsonObject]:
    """Yield the updates of every turn a user started, in order.

    Args:
        state: The session.
        cwd: Where relative paths of calls start.

    Raises:
        SessionError: A message is damaged.
    """
    for turn in state.turns:
        messages = turn.closed() if turn.ended is None else turn.messages()
        for message in messages:
            yield from _updates(turn.turn_id, message, cwd)


def _updates(turn_id: str, message: Message, cwd: Path) -> Iterator[JsonObject]:
    user = message.role == "user"
    for block in message.channels.get(_THINKING, ()):
        wire = block_to_wire(block)
        if wire is not None and not user:
            yield {"sessionUpdate": "agent_thought_chunk", "content": wire}
    kind = "user_message_chunk" if user else "agent_message_chunk"
    for block in message.content:
        wire = block_to_wire(block)
        if wire is not None:
            yield {"sessionUpdate": kind, "content": wire}
    for call in message.tool_calls:
        yield {
            "sessionUpdate": "tool_call",
            "toolCallId": call_id(turn_id, call.id),
            "title": tool_title(call.name, call.arguments),
            "kind": tool_kind(call.name, "runtime"),
            "status": "pending",
            "rawInput": dict(call.arguments),
            "locations": locations(call.arguments, cwd),
        }
    for result in message.tool_results:
        yield {
            "sessionUpdate": "tool_call_update",
            "toolCallId": call_id(turn_id, result.id),
            "status": "failed" if result.is_error else "completed",
            "content": tool_content(result.content),
        }
