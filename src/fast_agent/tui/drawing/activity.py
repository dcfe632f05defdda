"""Activity: what is at work in a turn, as a tree of live rows, and lines of what has finished."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from fast_agent.agents.events import (
    ChildFinished,
    ChildStarted,
    ModelAnswered,
    TextStreamed,
    ToolFinished,
    ToolProgressed,
    ToolStarted,
    TurnFinished,
    TurnStarted,
    Warned,
    WorkflowAdvanced,
    workflow_line,
)
from fast_agent.tools.permission import WRITES_FILES
from fast_agent.tui.drawing.rows import clip, shown, width, wrap
from fast_agent.tui.drawing.theme import ASCII_SPINNER, SPINNER

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from fast_agent.agents.events import Event, Origin
    from fast_agent.messages.message import ToolCall, ToolResult
    from fast_agent.text.json_value import JsonObject, JsonValue
    from fast_agent.tui.drawing.theme import Theme

MAX_ROWS: Final = 8
_ARGUMENTS: Final = 60
_ANSWER: Final = 24
_SAID: Final = 8_000
"""Most characters kept of what an agent says, for who watches it."""
_ERROR_LINES: Final = 3
_SPINNER_SECONDS: Final = 0.25
MAX_DIFF_LINES: Final = 20


@dataclass(slots=True, eq=False)
class _Work:
    """A tool call, or a member of a workflow, that is at work."""

    label: str
    subject: str
    started: float
    above: _Work | None
    hidden: bool = False
    is_command: bool = False
    note: str = ""
    output: tuple[str, ...] = ()
    lines: int = 0
    tokens: int = 0
    changed: float = 0.0
    is_agent: bool = False
    said: str = ""

    @property
    def depth(self) -> int:
        return 0 if self.above is None else self.above.depth + 1


@dataclass(slots=True)
class _Counts:
    tools: int = 0
    agents: int = 0
    done: int = 0
    failed: int = 0


@dataclass(slots=True)
class _Task:
    """A task of a plan."""

    plan: int
    agent: str
    description: str
    status: str = "open"

    def row(self, theme: Theme) -> str:
        """Draw it."""
        signs = {
            "done": theme.good(theme.sign("done")),
            "failed": theme.error(theme.sign("failed")),
            "cancelled": theme.error(theme.sign("failed")),
            "started": theme.strong(theme.sign("working")),
        }
        sign = signs.get(self.status) or theme.dim(theme.sign("open"))
        return f"{sign} {theme.strong(self.agent)} {self.description}"


class _Checklist:
    """The tasks of a planner, over all of its plans."""

    def __init__(self) -> None:
        self._tasks: list[_Task] = []

    def take(self, kind: str, facts: JsonObject) -> None:
        """Take an event; a new plan takes the place of what was not begun of those before."""
        number = facts.get("plan", facts.get("number"))
        plan = number if isinstance(number, int) else 0
        if kind == "plan":
            self._tasks = [one for one in self._tasks if one.status != "open"]
            for step in _mappings(facts.get("steps")):
                for task in _mappings(step.get("tasks")):
                    self._tasks.append(_Task(plan, *_named_task(task)))
            return
        status = str(facts.get("status", "done"))
        before = "open" if status == "started" else "started"
        wanted = _Task(plan, *_named_task(facts), before)
        if wanted in self._tasks:
            self._tasks[self._tasks.index(wanted)].status = status

    def rows(self, theme: Theme, most: int | None = None) -> list[str]:
        """Draw the tasks; where there is not room for all, those that ended are counted."""
        tasks = self._tasks
        if most is None or len(tasks) <= most:
            return [task.row(theme) for task in tasks]
        ended = [one for one in tasks if one.status not in {"open", "started"}]
        left = [one for one in tasks if one not in ended]
        counted = f"{theme.sign('more')} {len(ended)} ended, {len(left)} to do"
        return [theme.dim(counted), *(task.row(theme) for task in left)][:most]


class _Votes:
    """The votes of MAKER."""

    def __init__(self) -> None:
        self._votes: dict[str, int] = {}
        self._flagged = 0
        self._ahead = ""

    def take(self, kind: str, facts: JsonObject) -> None:
        """Take a draw."""
        if kind == "flag":
            self._flagged += 1
            return
        votes, margin = facts.get("votes"), facts.get("margin")
        self._votes[one_line(str(facts.get("answer")))] = votes if isinstance(votes, int) else 1
        self._ahead = f"ahead by {margin} of {facts.get('k')}"

    def rows(self, theme: Theme, most: int | None = None) -> list[str]:
        """Draw them on one row, the answer with the most votes first."""
        del most
        ranked = sorted(self._votes.items(), key=lambda pair: -pair[1])
        parts = [f"{clip(answer, _ANSWER)} {theme.strong(str(votes))}" for answer, votes in ranked]
        parts += [theme.warning(f"flagged {self._flagged}")] if self._flagged else []
        parts += [self._ahead] if self._ahead else []
        return [f" {theme.sign('dot')} ".join(parts)]


@dataclass(slots=True)
class Detail:
    """The last call, for the viewer.

    Args:
        call: The call.
        result: Its result, or None while it runs.
        output: The last lines of its output while it runs.
    """

    call: ToolCall
    result: ToolResult | None = None
    output: tuple[str, ...] = ()


class Activity:
    """What is at work in a turn.

    Args:
        theme: The styles.
        clock: A clock that only goes forward, in seconds.
        columns: Gives the columns of the terminal.
        motion: Returns whether the spinner is animated.

    Attributes:
        last: The last call.
        watched: The agent at work whose answer is shown in place of that of the turn, or None.
    """

    def __init__(
        self,
        theme: Theme,
        clock: Callable[[], float],
        columns: Callable[[], int],
        *,
        motion: Callable[[], bool] = lambda: True,
    ) -> None:
        self._boards: dict[str, _Checklist | _Votes] = {}
        self._theme = theme
        self._clock = clock
        self._columns = columns
        self._motion = motion
        self.last: Detail | None = None
        self.watched: _Work | None = None
        self._calls: dict[tuple[str, str], _Work] = {}
        self._by_call: dict[str, _Work] = {}
        self._turns: dict[str, _Work | None] = {}
        self._counts = _Counts()

    @property
    def counts(self) -> tuple[int, int]:
        """How many tools and agents the turn has called."""
        return self._counts.tools, self._counts.agents

    @property
    def is_empty(self) -> bool:
        """Whether nothing is at work."""
        return not self._calls and not self._boards and not any(self._turns.values())

    def restart(self) -> None:
        """Forget the turn before."""
        self._calls.clear()
        self._by_call.clear()
        self._turns.clear()
        self._boards.clear()
        self.watched = None
        self._counts = _Counts()

    def take(self, event: Event) -> list[str]:
        """Take an event; returns the lines that are to be kept."""
        match event:
            case TurnStarted(origin=origin):
                self._turn_started(origin)
            case ToolStarted(origin=origin, call=call):
                self._tool_started(origin, call)
            case ToolProgressed(origin=origin, call_id=call_id):
                self._progressed(origin, call_id, event)
            case ToolFinished(origin=origin, call=call, result=result):
                return self._tool_finished(origin, call, result)
            case TextStreamed(origin=origin, text=text):
                said = self._turns.get(origin.turn_id)
                if said is not None:
                    said.said = (said.said + text)[-_SAID:]
            case ModelAnswered(origin=origin, usage=usage):
                work = self._turns.get(origin.turn_id)
                if work is not None:
                    work.tokens += usage.total_tokens
            case _:
                return self._draw_other(event)
        return []

    def _draw_other(self, event: Event) -> list[str]:
        theme = self._theme
        match event:
            case ChildStarted(origin=origin, call_id=call_id, child=child, instance=number):
                self._counts.agents += 1
                work = self._calls.get((origin.turn_id, call_id))
                if work is not None:
                    work.label = child if number == 1 else f"{child}[{number}]"
                    work.hidden = work.hidden or number > event.max_display_instances
            case ChildFinished():
                pass  # the result of its call says the same
            case WorkflowAdvanced():
                return self._advanced(event)
            case Warned(origin=origin, message=message):
                return [theme.warning("warning: ") + shown(f"{origin.agent}: {message}")]
            case TurnFinished(origin=origin):
                return self._turn_finished(origin, event)
            case _:
                pass
        return []

    def labels(self) -> list[str]:
        """Return what is at work below the turn, by name."""
        return [work.label for work in self._tree()]

    def agents(self) -> list[str]:
        """Return the agents that are at work below the turn, as its rows name them."""
        return [work.label for work in self._tree() if work.is_agent]

    def watch(self, name: str) -> bool:
        """Show what an agent at work says; returns whether there is one of this name."""
        found = [work for work in self._tree() if work.is_agent and work.label == name]
        self.watched = max(found, key=lambda work: work.changed, default=None)
        return bool(found)

    def watched_rows(self, columns: int, most: int) -> list[str]:
        """Draw the end of what the watched agent says, below its name."""
        work, theme = self.watched, self._theme
        if work is None or most <= 0:
            return []
        head = f"watching {theme.strong(work.label)}{theme.dim(', Esc goes back')}"
        room, most = max(1, columns - 2), most - 1
        lines = work.said.strip("\n").split("\n")[-most:] if most else []
        rows = [row for line in lines for row in wrap(shown(line), room)]
        mark = theme.dim(f"{theme.sign('live')} ")
        return [mark + row for row in (clip(head, room), *rows[max(0, len(rows) - most) :])]

    def rows(self, columns: int, most: int = MAX_ROWS) -> list[str]:
        """Draw what is at work, those that changed last where there is not room for all."""
        boards = [board.rows(self._theme, max(1, most - 2)) for board in self._boards.values()]
        rows = [clip(f" {row}", columns) for board in boards for row in board][:most]
        most -= len(rows)
        works = list(self._tree()) if most > 0 else []
        shown_works = works
        if len(works) > most:
            newest = sorted(works, key=lambda work: work.changed, reverse=True)[: max(1, most - 1)]
            shown_works = [work for work in works if work in newest]
        more = len(works) - len(shown_works)
        room = most - len(shown_works) - bool(more)
        for work in shown_works:
            output = self._output_rows(work, columns, room)
            room -= len(output)
            rows += [clip(self._row(work, columns), columns), *output]
        if more:
            counts = self._counts
            failed = f", {counts.failed} failed" if counts.failed else ""
            rows.append(self._theme.dim(f" +{more} at work, {counts.done} done{failed}"))
        return rows

    def _tree(self) -> Iterator[_Work]:
        works = [*self._calls.values(), *(one for one in self._turns.values() if one is not None)]
        unique = list(dict.fromkeys(works))
        below: dict[_Work | None, list[_Work]] = {}
        for work in unique:
            above = work.above if work.above in unique else None
            below.setdefault(above, []).append(work)

        def walk(work: _Work | None) -> Iterator[_Work]:
            for one in below.get(work, ()):
                yield one
                yield from walk(one)

        return walk(None)

    def _row(self, work: _Work, columns: int) -> str:
        theme, now = self._theme, self._clock()
        frames = ASCII_SPINNER if theme.ascii_only else SPINNER
        frame = frames[int(now / _SPINNER_SECONDS) % len(frames) if self._motion() else 0]
        branch = theme.dim(f"{theme.sign('branch')} ") if work.depth else ""
        head = f" {'  ' * max(0, work.depth - 1)}{branch}{theme.strong(frame)} {work.label}"
        facts = [seconds(now - work.started)]
        if work.note:
            facts.append(work.note)
        if work.tokens:
            facts.append(tokens(work.tokens))
        tail = theme.dim("   " + "  ".join(facts))
        room = columns - width(head) - width(tail) - 2
        subject = f"  {clip(work.subject, room)}" if work.subject and room > 4 else ""
        return head + theme.dim(subject) + tail

    def _output_rows(self, work: _Work, columns: int, most: int) -> list[str]:
        """Draw the last lines of a command's output, and how many there were."""
        theme = self._theme
        indent = " " * (3 + 2 * work.depth)
        lines = [f"{theme.sign('bar')} {line}" for line in work.output if line]
        if work.lines > len(lines):
            lines.append(f"{theme.sign('more')} {work.lines:,} lines, Ctrl-O")
        return [
            clip(indent + theme.dim(line), columns) for line in lines[max(0, len(lines) - most) :]
        ]

    def _turn_started(self, origin: Origin) -> None:
        parent = origin.parent_call_id
        if parent is None:
            self._turns[origin.turn_id] = None
        elif parent in self._by_call:
            work = self._turns[origin.turn_id] = self._by_call[parent]
            work.is_agent = True
        else:
            self._counts.agents += 1
            now = self._clock()
            above = self._turns.get(parent)
            hidden = above is not None and above.hidden
            self._turns[origin.turn_id] = _Work(
                shown(origin.agent), "", now, above, hidden, changed=now, is_agent=True
            )

    def _advanced(self, event: WorkflowAdvanced) -> list[str]:
        origin, theme = event.origin, self._theme
        if self._is_hidden(origin):
            return []
        # Nothing is drawn again where it is read aloud, so each step of a plan or vote is a line.
        board = None if theme.is_spoken else _BOARDS.get(event.kind)
        if board is not None:
            self._boards.setdefault(origin.turn_id, board()).take(event.kind, event.facts)
            return []
        line = workflow_line(event.kind, event.facts)
        if not line:
            return []
        head = f"{self._indent(origin)}{theme.dim(theme.sign('step'))} "
        row = head + one_line(line)
        if event.kind in {"step", "branch"}:  # it ends with an answer, which may be of any length
            return [clip(row, self._columns(), theme.sign("more"))]
        return wrap(row, self._columns(), " " * width(head))

    def _turn_finished(self, origin: Origin, event: TurnFinished) -> list[str]:
        indent, board = self._indent(origin), self._boards.pop(origin.turn_id, None)
        room = max(10, self._columns() - len(indent))
        rows = [] if board is None else board.rows(self._theme)
        return [indent + clip(row, room) for row in rows] + self._ended(origin, event)

    def _ended(self, origin: Origin, event: TurnFinished) -> list[str]:
        work = self._turns.pop(origin.turn_id, None)
        self._unwatch(work)
        if work is None or work in self._calls.values():
            return []
        failed = event.error
        self._count(failed=failed is not None)
        if work.hidden and failed is None:
            return []
        return self._finished(work, "" if failed is None else failed, failed=failed is not None)

    def _unwatch(self, work: _Work | None) -> None:
        if work is not None and work is self.watched:
            self.watched = None

    def _tool_started(self, origin: Origin, call: ToolCall) -> None:
        now = self._clock()
        above = self._turns.get(origin.turn_id)
        work = _Work(
            shown(call.name),
            arguments_of(call),
            now,
            above,
            hidden=above is not None and above.hidden,
            is_command=call.name == "execute",
            changed=now,
        )
        self.last = Detail(call)
        self._counts.tools += 1
        self._calls[origin.turn_id, call.id] = self._by_call[call.id] = work

    def _progressed(self, origin: Origin, call_id: str, event: ToolProgressed) -> None:
        work = self._calls.get((origin.turn_id, call_id))
        if work is None:
            return
        work.changed = self._clock()
        if work.is_command:
            work.output = tuple(shown(line) for line in (event.message or "").split("\n"))
            work.lines = int(event.progress)
            if self.last is not None and self.last.call.id == call_id:
                self.last.output = work.output
            return
        done = f"{event.progress:g}"
        if event.total is not None:
            done += f"/{event.total:g}"
        work.note = " ".join([done, one_line(event.message)] if event.message else [done])

    def _tool_finished(self, origin: Origin, call: ToolCall, result: ToolResult) -> list[str]:
        self.last = Detail(call, result)
        now = self._clock()
        work = self._calls.pop((origin.turn_id, call.id), None)
        self._by_call.pop(call.id, None)
        for turn_id in [turn for turn, one in self._turns.items() if work and one is work]:
            del self._turns[turn_id]
        if work is None:  # its tool was not found
            work = _Work(shown(call.name), arguments_of(call), now, self._turns.get(origin.turn_id))
        self._count(failed=result.is_error)
        if work.hidden and not result.is_error:
            return []
        lines = self._finished(work, result.text, failed=result.is_error)
        if call.name in WRITES_FILES and not result.is_error:
            lines += self._changed_lines(work, result.text)
        return lines

    def _changed_lines(self, work: _Work, text: str) -> list[str]:
        """Draw the difference that a write made, if its result has one."""
        if not text.startswith("--- "):
            return []
        indent = "  " * work.depth
        lines = text.split("\n")[2:]
        room = max(10, self._columns() - len(indent) - 4)
        rows = [
            f"   {indent}{clip(row, room)}"
            for row in diff_rows(lines[:MAX_DIFF_LINES], self._theme)
        ]
        if len(lines) > MAX_DIFF_LINES:
            more = f"{self._theme.sign('more')} {len(lines) - MAX_DIFF_LINES} more lines, Ctrl-O"
            rows.append(f"   {indent}{self._theme.dim(more)}")
        return rows

    def _count(self, *, failed: bool) -> None:
        if failed:
            self._counts.failed += 1
        else:
            self._counts.done += 1

    def _finished(self, work: _Work, text: str, *, failed: bool) -> list[str]:
        theme = self._theme
        sign = theme.error(theme.sign("failed")) if failed else theme.good(theme.sign("done"))
        if theme.is_spoken:
            sign = f"{'agent' if work.is_agent else 'tool'}{' failed' if failed else ''}:"
        lines = [line for line in text.split("\n") if line.strip()]
        if not failed and text.startswith("--- "):
            lines = [change_counts(lines)]
        indent = "  " * work.depth
        head = f" {indent}{sign} {theme.strong(work.label)}"
        if work.subject:
            head += " " + theme.dim(clip(work.subject, _ARGUMENTS))
        spent = theme.dim(f"  {seconds(self._clock() - work.started)}")
        if work.tokens:
            spent += theme.dim(f"  {tokens(work.tokens)}")
        if failed:
            more = [f"   {indent}{theme.error(one_line(line))}" for line in lines[:_ERROR_LINES]]
            return [head + spent, *more]
        more = f" {theme.sign('more')} +{len(lines) - 1} lines" if len(lines) > 1 else ""
        room = self._columns() - width(head + spent + more) - 2
        first = clip(one_line(lines[0]), room) if lines and room > 0 else ""
        return [head + (f"  {first}{more}" if first else "") + spent]

    def _is_hidden(self, origin: Origin) -> bool:
        work = self._turns.get(origin.turn_id)
        return work is not None and work.hidden

    def _indent(self, origin: Origin) -> str:
        work = self._turns.get(origin.turn_id)
        return " " + "  " * (0 if work is None else work.depth + 1)


_BOARDS: Final[Mapping[str, type[_Checklist | _Votes]]] = {
    "plan": _Checklist,
    "task": _Checklist,
    "vote": _Votes,
    "flag": _Votes,
}
"""What is drawn again in place, by the kind of step that changes it."""


def _named_task(facts: JsonObject) -> tuple[str, str]:
    return shown(str(facts.get("agent"))), one_line(str(facts.get("description")))


def _mappings(value: JsonValue) -> Iterator[JsonObject]:
    if isinstance(value, Sequence) and not isinstance(value, str):
        yield from (one for one in value if isinstance(one, Mapping))


def diff_rows(lines: Iterable[str], theme: Theme) -> list[str]:
    """Return the lines of a unified diff, coloured; their signs stay, so colour is not alone."""
    rows: list[str] = []
    for line in lines:
        text = shown(line.expandtabs(4))
        if line.startswith("+"):
            text = theme.good(text)
        elif line.startswith("-"):
            text = theme.error(text)
        elif line.startswith("@@"):
            text = theme.dim(text)
        rows.append(text)
    return rows


def change_counts(lines: Iterable[str]) -> str:
    """Return how many lines a unified diff adds and removes, such as `+3 -1`."""
    changed = [line[:1] for line in list(lines)[2:]]
    return f"+{changed.count('+')} -{changed.count('-')}"


def arguments_of(call: ToolCall) -> str:
    """Return the arguments of a call on one line; a command as it is run."""
    command, path = call.arguments.get("command"), call.arguments.get("path")
    if call.name in WRITES_FILES and isinstance(path, str):
        return one_line(path)
    if call.name == "execute" and isinstance(command, str):
        return one_line(command)
    message = call.arguments.get("message")
    if len(call.arguments) == 1 and isinstance(message, str):
        return one_line(message)
    return one_line(json.dumps(dict(call.arguments), ensure_ascii=False)) if call.arguments else ""


def one_line(text: str) -> str:
    """Return text on one visible line."""
    return shown(" ".join(text.split()))


def seconds(spent: float) -> str:
    """Return a time for people; one of whole seconds has no tenths."""
    if spent < 10 and not isinstance(spent, int):
        return f"{spent:.1f} s"
    whole = int(spent)
    return f"{whole} s" if whole < 60 else f"{whole // 60} min {whole % 60} s"


def tokens(count: int) -> str:
    """Return a number of tokens for people."""
    if count < 1_000:
        return str(count)
    return f"{count / 1_000:.1f}k" if count < 1_000_000 else f"{count / 1_000_000:.1f}M"
