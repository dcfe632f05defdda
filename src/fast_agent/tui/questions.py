"""Questions to the user: permissions, forms and questions of agents and servers."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Final, Literal, TypeAlias

import anyio
from anyio.to_thread import run_sync

from fast_agent.acp.permission import (
    Subject,
    Subjects,
    command_patterns,
    remembered_verdict,
)
from fast_agent.errors import RunError, ToolError
from fast_agent.messages.message import TextContent
from fast_agent.tools.human import HumanAnswer, HumanRequest, asker, form_fields, named
from fast_agent.tui.drawing.activity import diff_rows
from fast_agent.tui.drawing.rows import clip, shown, wrap

if TYPE_CHECKING:
    from collections.abc import Callable

    from fast_agent.acp.remembered import RememberedPermissions
    from fast_agent.mcp.client_side import SamplingRequest
    from fast_agent.messages.message import Message
    from fast_agent.runtime.protected_files import ProtectedFiles
    from fast_agent.text.json_value import JsonValue
    from fast_agent.tools.human import FormField, Origins
    from fast_agent.tools.permission import PermissionRequest
    from fast_agent.tui.drawing.theme import Theme

Mode: TypeAlias = Literal["ask", "reading", "trusting"]
MODES: Final[tuple[Mode, ...]] = ("ask", "reading", "trusting")
QUIET_SECONDS: Final = 0.4
"""Keys count as an answer only this long after the question was shown and after the last key."""
_MAX_LINES: Final = 60


@dataclass(slots=True)
class Choice:
    """One of the answers of a question.

    Args:
        key: The letter that selects it, in addition to its number; may be empty.
        label: What it says.
        value: What it means.
    """

    key: str
    label: str
    value: JsonValue


@dataclass(slots=True, eq=False)
class Question:
    """A question that waits for its answer.

    Args:
        title: Who asks, and what.
        lines: What it is about, whole.
        choices: The answers; none where it is answered by text.
        parse: Parses a text; raises ToolError if it is invalid. None where there are choices.
        secret: Whether the text is not shown and not kept.
        is_diff: Whether the lines are a unified diff.
        selected: The place of the choice that Enter takes; None before one was chosen.
        kind: What it is called where it is read aloud.

    Attributes:
        answer: The answer, once `done` is set; None where it was dismissed.
        problem: Why the last text did not fit.
    """

    title: str
    lines: list[str]
    choices: list[Choice] = field(default_factory=list["Choice"])
    parse: Callable[[str], JsonValue] | None = None
    secret: bool = False
    is_diff: bool = False
    problem: str = ""
    shown_at: float | None = None
    first_line: int = 0
    selected: int | None = None
    kind: str = "question"
    answer: JsonValue = None
    dismissed: bool = False
    done: anyio.Event = field(default_factory=anyio.Event)

    def submit(self, answer: JsonValue) -> None:
        """Answer it."""
        self.answer = answer
        self.done.set()

    def dismiss(self) -> None:
        """End it without an answer."""
        self.dismissed = True
        self.done.set()

    def choice_of(self, key: str) -> Choice | None:
        """Return the choice a key takes."""
        for number, choice in enumerate(self.choices, 1):
            if key == str(number) or (choice.key and key.lower() == choice.key):
                return choice
        return None

    def rows(self, columns: int, most: int, theme: Theme, *, armed: bool, place: str) -> list[str]:
        """Draw it.

        Args:
            columns: The width.
            most: The most rows.
            theme: The styles.
            armed: Whether keys are its answer.
            place: Such as `1 of 3`; empty where it is alone.
        """
        title = theme.warning("? ") + theme.strong.over(self.title)
        head = wrap(f"{title} {theme.dim(place)}" if place else title, columns)
        lines = diff_rows(self.lines, theme) if self.is_diff else self.lines
        body = [row for line in lines for row in wrap(line, max(1, columns - 2))]
        choices = self._choice_rows(columns, theme, armed=armed)
        if self.problem:
            choices.insert(0, theme.error(clip(f"  {shown(self.problem)}", columns)))
        room = max(1, most - len(head) - len(choices) - 1)
        if len(body) > room:
            self.first_line = max(0, min(self.first_line, len(body) - room))
            left = len(body) - self.first_line - room
            seen = body[self.first_line : self.first_line + room]
            seen[-1] = theme.dim(f"({left + 1} more lines: PageDown)") if left else seen[-1]
            body = seen
        bar = theme.dim(theme.sign("bar"))
        return [*head, *(f"{bar} {row}" for row in body), *choices]

    def _choice_rows(self, columns: int, theme: Theme, *, armed: bool) -> list[str]:
        rows: list[str] = []
        for number, choice in enumerate(self.choices, 1):
            letter = f" ({choice.key})" if choice.key else ""
            text = clip(f"  {number}{letter} {choice.label}", columns)
            chosen = self.selected == number - 1
            rows.append(theme.chosen(text) if chosen else text if armed else theme.dim(text))
        if self.choices:
            keys = f"answer with 1-{len(self.choices)}" if armed else "wait"
            marked = ", Enter takes the marked one" if self.selected is not None else ""
            rows.append(theme.dim(clip(f"  {keys}{marked}, Esc dismisses", columns)))
        return rows


class Questions:
    """The questions that wait, one of which is shown.

    Args:
        changed: Called when the live area is to be drawn again.
        clock: A clock that only goes forward, in seconds.
    """

    def __init__(self, changed: Callable[[], None], clock: Callable[[], float]) -> None:
        self._changed = changed
        self._clock = clock
        self._waiting: list[Question] = []
        self._last_key = 0.0

    @property
    def current(self) -> Question | None:
        """The question that is shown, or None."""
        return self._waiting[0] if self._waiting else None

    @property
    def place(self) -> str:
        """Which of several it is; empty where it is alone."""
        return f"1 of {len(self._waiting)}, Tab for the next" if len(self._waiting) > 1 else ""

    def note_key(self) -> None:
        """Record that a key was typed."""
        self._last_key = self._clock()

    @property
    def armed(self) -> bool:
        """Whether keys are the answer of the question that is shown."""
        question = self.current
        if question is None or question.shown_at is None:
            return False
        quiet_since = max(question.shown_at, self._last_key)
        return self._clock() - quiet_since >= QUIET_SECONDS

    def next(self) -> None:
        """Show the next question."""
        if len(self._waiting) > 1:
            self._waiting.append(self._waiting.pop(0))
            self._waiting[0].shown_at = self._clock()

    async def ask(self, question: Question) -> JsonValue:
        """Show a question, and wait for its answer; None where it was dismissed."""
        self._waiting.append(question)
        question.shown_at = self._clock()
        self._changed()
        try:
            await question.done.wait()
        finally:
            self._waiting.remove(question)
            if self._waiting:
                self._waiting[0].shown_at = self._clock()
            self._changed()
        return None if question.dismissed else question.answer


class TerminalUser:
    """The user at the terminal, as agents and servers ask one.

    Args:
        questions: Where questions wait.
        origins: Knows where agents and servers come from.
    """

    def __init__(self, questions: Questions, origins: Origins) -> None:
        self._questions = questions
        self._origins = origins

    async def ask(self, request: HumanRequest) -> HumanAnswer:
        """Ask and wait for the answer; see `Human.ask`."""
        title = f"{asker(request, self._origins)}:"
        lines = [shown(line) for line in request.message.split("\n")[:_MAX_LINES]]
        if request.url is not None:
            return await self._open(title, [*lines, "", shown(request.url)])
        if request.schema is None:
            text = await self._questions.ask(Question(title, lines, parse=_text))
            return _answer(None if text is None else {"text": text})
        try:
            fields = form_fields(request.schema)
        except ToolError:
            return HumanAnswer(action="cancel")
        content: dict[str, JsonValue] = {}
        for number, one in enumerate(fields, 1):
            place = f" ({number} of {len(fields)})" if len(fields) > 1 else ""
            value = await self._questions.ask(_field_question(one, title + place, lines))
            if value is None:
                return HumanAnswer(action="cancel")
            if value == _DECLINED:
                return HumanAnswer(action="decline")
            if value != _LEFT_OUT:
                content[one.name] = value
        return HumanAnswer(action="accept", content=content)

    async def confirm(self, title: str, text: str) -> bool:
        """Ask whether to continue; no answer means no."""
        lines = [shown(line) for line in text.split("\n")]
        choices = [Choice("y", "yes", "yes"), Choice("n", "no", "no")]
        return await self._questions.ask(Question(title, lines, choices)) == "yes"

    async def _open(self, title: str, lines: list[str]) -> HumanAnswer:
        choices = [
            Choice("y", "I opened it", "accept"),
            Choice("n", "decline", "decline"),
        ]
        asked = [*lines, "", "Open this address yourself, if you trust it."]
        chosen = await self._questions.ask(Question(title, asked, choices))
        return HumanAnswer(action="accept" if chosen == "accept" else "decline")


class TerminalPermission:
    """Asks the user before commands run and marked tools act.

    Args:
        questions: Where questions wait.
        origins: Knows where agents and servers come from.
        remembered: What was decided for good, shared with editors.
        protected: Files whose every write is asked about separately.
        cwd: The directory that verdicts hold in.

    Attributes:
        mode: Whether it asks, refuses or allows.
        allowed: What the user allows in this session.
    """

    def __init__(
        self,
        questions: Questions,
        origins: Origins,
        remembered: RememberedPermissions,
        protected: ProtectedFiles,
        cwd: Path,
    ) -> None:
        self._questions = questions
        self._origins = origins
        self._remembered = remembered
        self._cwd = cwd
        self._subjects = Subjects(cwd, self._resolve, protected)
        self.mode: Mode = "ask"
        self.allowed: set[str] = set()

    async def ask(self, request: PermissionRequest) -> str | None:
        """Ask for permission; see `Permission.ask`."""
        if self.mode == "trusting":
            return None
        if self.mode == "reading":
            return "the permission mode `reading` allows no calls that need approval"
        subject = self._subjects.of(request)
        if subject.lasts:
            verdict = await run_sync(
                remembered_verdict, self._remembered, str(self._cwd), subject, self.allowed
            )
            if verdict is not None:
                return None if verdict == "allow" else "the user does not allow it"
        return await self._settle(
            await self._questions.ask(self._question(request, subject)), subject
        )

    async def approve(self, request: SamplingRequest) -> bool:
        """Ask before a server gets an answer of a model; see `SamplingApproval.approve`."""
        if self.mode != "ask":
            return self.mode == "trusting"
        server = request.server_name
        key = f"sampling {server}"
        if key in self.allowed:
            return True
        name = named(server, self._origins.server_origin(server))
        agents = ", ".join(f"`{shown(one)}`" for one in request.agent_names)
        title = f"server {name} asks for an answer of a model, while it works for {agents}"
        choices = [
            Choice("y", "yes", "once"),
            Choice("s", f"yes, in this session: every answer for {shown(server)}", "session"),
            Choice("n", "no", "no"),
        ]
        question = Question(title, _sampling_lines(request), choices, kind="permission required")
        chosen = await self._questions.ask(question)
        if chosen == "session":
            self.allowed.add(key)
        return chosen in {"once", "session"}

    def listed(self) -> str:
        """Describe the current mode, and what is allowed without a question."""
        lines = [f"permission mode: `{self.mode}`"]
        lines += [f"- `{shown(key)}`: in this session" for key in sorted(self.allowed)]
        kept = self._remembered.all(str(self._cwd))
        lines += [f"- `{shown(key)}`: always {verdict}" for key, verdict in sorted(kept.items())]
        return "\n".join(lines)

    def forget(self, key: str) -> str:
        """Take back what was decided for good; all of it where nothing is named.

        Raises:
            RunError: Nothing of that name is kept.
        """
        kept = [*self.allowed, *self._remembered.all(str(self._cwd))]
        wanted = [one for one in kept if not key or shown(one) == key.strip("`")]
        if not wanted:
            raise RunError(f"`{shown(key)}` is not kept", hint="`/permissions` lists what is")
        for one in wanted:
            self.allowed.discard(one)
            self._remembered.forget(str(self._cwd), one)
        return f"forgot {len(wanted)}"

    async def _settle(self, chosen: JsonValue, subject: Subject) -> str | None:
        match chosen:
            case "once":
                return None
            case "session":
                self.allowed.add(subject.key)
                return None
            case "always":
                for key in await self._covered(subject):
                    await run_sync(self._remembered.keep, str(self._cwd), key, "allow")
                return None
            case "why":
                why = await self._questions.ask(
                    Question("Why not? The agent gets your answer.", [], parse=_text)
                )
                said = f": {why}" if isinstance(why, str) and why.strip() else ""
                return f"the user did not allow it{said}"
            case _:
                return "the user did not allow it"

    async def _covered(self, subject: Subject) -> tuple[str, ...]:
        """Ask how much of a command is always allowed; nothing more where that is dismissed."""
        patterns = [] if subject.command is None else command_patterns(subject.command)
        if not patterns:
            return (subject.key,)
        choices = [Choice("", subject.said, 0)]
        choices += [
            Choice("", " and ".join(map(shown, keys)), number)
            for number, keys in enumerate(patterns, 1)
        ]
        lines = ["Every part of a command line has to be allowed; other parts are asked about."]
        chosen = await self._questions.ask(Question("What is always allowed here?", lines, choices))
        if not isinstance(chosen, int):
            return ()
        return patterns[chosen - 1] if chosen else (subject.key,)

    def _question(self, request: PermissionRequest, subject: Subject) -> Question:
        call, context = request.call, request.context
        who = asker(HumanRequest(message="", agent_name=context.agent_name), self._origins)
        tool = shown(call.name)
        title = f"{who} to call `{tool}`"
        server = request.server_name
        if server is not None:
            title += f" of server {named(server, self._origins.server_origin(server))}"
        choices = [Choice("y", "yes", "once")]
        if subject.lasts:
            choices.append(Choice("s", f"yes, in this session: {subject.said}", "session"))
            choices.append(Choice("a", f"always: {subject.said}", "always"))
        choices += [Choice("n", "no", "no"), Choice("w", "no, and say why", "why")]
        lines = _argument_lines(request, self._cwd)
        is_diff = request.change is not None
        return Question(title, lines, choices, is_diff=is_diff, kind="permission required")

    def _resolve(self, path: JsonValue) -> Path | None:
        if not isinstance(path, str) or not path.strip() or "\0" in path:
            return None
        return Path(os.path.realpath(self._cwd / path))


_LEFT_OUT: Final = "\0left out"
_DECLINED: Final = "\0declined"


def _answer(content: dict[str, JsonValue] | None) -> HumanAnswer:
    if content is None:
        return HumanAnswer(action="cancel")
    if content.get("text") == _DECLINED:
        return HumanAnswer(action="decline")
    return HumanAnswer(action="accept", content=content)


def _text(text: str) -> JsonValue:
    return _DECLINED if text.strip() == "/decline" else text


def _field_question(one: FormField, title: str, lines: list[str]) -> Question:
    about = [*lines, ""] if lines else []
    described = f": {shown(one.description)}" if one.description else ""
    about.append(f"{shown(one.label)}{described}")
    if one.kind != "array" and (one.choices or one.kind == "boolean"):
        choices = [Choice("", shown(label), value) for value, label in one.choices] or [
            Choice("y", "yes", True),
            Choice("n", "no", False),
        ]
        values = [choice.value for choice in choices]
        has_default = one.default is not None and one.default in values
        selected = values.index(one.default) if has_default else None
        if not one.required:
            choices.append(Choice("", "leave it out", _LEFT_OUT))
        return Question(title, about, choices, selected=selected)

    def parse(text: str) -> JsonValue:
        if text.strip() == "/decline":
            return _DECLINED
        if text:
            return one.parse(text)
        if one.default is not None:
            return one.default
        if one.required:
            raise ToolError("an answer is needed")
        return _LEFT_OUT

    for number, (_, label) in enumerate(one.choices, 1):
        about.append(f"{number} {shown(label)}")
    kind = "numbers with commas" if one.kind == "array" else one.kind
    empty = "" if one.required else ", may be empty"
    empty = f", empty for {one.default}" if one.default is not None else empty
    about.append(f"({kind}{shown(empty)})")
    return Question(title, about, parse=parse, secret=one.schema.get("format") == "password")


def _sampling_lines(request: SamplingRequest) -> list[str]:
    """Return what a server wants of a model, whole: all of it is the server's own text."""
    hints = ", ".join(map(shown, request.model_hints))
    model = shown(request.model) if request.model else "that of the agent"
    lines = [f"model: {model}{f'; the server would like {hints}' if hints else ''}"]
    if request.params.max_tokens is not None:
        lines.append(f"most tokens: {request.params.max_tokens:,}")
    if request.tools:
        lines.append(f"tools: {', '.join(shown(tool.name) for tool in request.tools)}")
    said = [("system", request.system)] if request.system else []
    said += [(message.role, _said_in(message)) for message in request.messages]
    for role, text in said:
        first, *rest = text.split("\n")
        lines.append(f"{role}: {shown(first)}")
        lines += [f"  {shown(line)}" for line in rest]
    return lines


def _said_in(message: Message) -> str:
    """Return the text of a message, and of how many other blocks it consists."""
    others = sum(not isinstance(block, TextContent) for block in message.content)
    others += len(message.tool_calls) + len(message.tool_results)
    return f"{message.text} [and {others} other blocks]" if others else message.text


def _argument_lines(request: PermissionRequest, cwd: Path) -> list[str]:
    """Return the arguments of a call, whole, a line or more for each."""
    arguments = dict(request.call.arguments)
    lines: list[str] = []
    if request.change is not None:
        changed = request.change.diff() or f"no change of `{request.change.name}`"
        return [shown(line) for line in changed.splitlines()]
    command = arguments.pop("command", None) if request.call.name == "execute" else None
    if isinstance(command, str):
        lines += [shown(line) for line in command.split("\n")]
        lines.append(f"in {shown(str(cwd))}")
    for name, value in arguments.items():
        text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
        first, *rest = text.split("\n")
        lines.append(f"{shown(name)}: {shown(first)}")
        lines += [f"  {shown(line)}" for line in rest]
    return lines or ["(no arguments)"]


def question_lines(question: Question) -> list[str]:
    """Return a question as lines, its choices numbered."""
    lines = [f"{question.kind}: {question.title}", *question.lines]
    lines += [f"{number}. {choice.label}" for number, choice in enumerate(question.choices, 1)]
    if question.choices:
        at = question.selected
        empty = "" if at is None else f", empty for {question.choices[at].label}"
        lines.append(f"answer with a number from 1 to {len(question.choices)}{empty}, or /cancel")
    return lines
