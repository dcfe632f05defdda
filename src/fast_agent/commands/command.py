"""Command: one row of the table of commands, its arguments, and the result of running it.

A result is Markdown that reads well unrendered.
"""

from __future__ import annotations

import re
from dataclasses import field
from typing import TYPE_CHECKING, Literal, TypeAlias

from fast_agent.diagnostics.render_human import render_human
from fast_agent.errors import RunError
from fast_agent.messages.message import Message
from fast_agent.text.frozen import frozen
from fast_agent.text.visible import visible
from fast_agent.text.wording import closest, shortened_line

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable
    from pathlib import Path

    from fast_agent.commands.controller import ConversationController
    from fast_agent.errors import FastAgentError
    from fast_agent.messages.message import Content
    from fast_agent.resources.skill_client.entry import SkillCall

CARD_MODEL = "default"
"""The choice that returns to the model of the card."""

_QUOTES = frozenset("'\"")


@frozen
class Token:
    """A word of a line.

    Args:
        text: What it says, without quotes.
        start: Where it starts in the line.
        end: Where it ends.
        quoted: Whether it was quoted, and therefore is not an option.
        closed: Whether its quote was closed.
    """

    text: str
    start: int
    end: int
    quoted: bool = False
    closed: bool = True


class _WrongError(Exception):
    """What is wrong with a line."""


def next_token(line: str, start: int) -> Token | None:
    """Read the word at or behind a place of a line; None where there is none.

    A word that starts with a quote ends with it; inside, a backslash escapes a quote.

    Args:
        line: The line.
        start: Where to look from.
    """
    while start < len(line) and line[start].isspace():
        start += 1
    if start == len(line):
        return None
    if line[start] in _QUOTES:
        return _quoted(line, start)
    end = start
    while end < len(line) and not line[end].isspace():
        end += 1
    return Token(line[start:end], start, end)


def parse_arguments(command: Command, rest: str, *, said: str) -> Arguments:
    """Take the arguments of a command apart.

    Options may stand before and between the words, never in the rest of a line.

    Args:
        command: The command, or the action of one.
        rest: What stands behind its name.
        said: What stands before that: `/history load`.

    Raises:
        RunError: They are not what it takes.
    """
    try:
        return _parsed(command, rest)
    except _WrongError as wrong:
        usage = f"{said} {command.hint}".rstrip()
        raise RunError(str(wrong), hint=f"the usage is `{usage}`") from None


def _parsed(command: Command, rest: str) -> Arguments:
    words: list[str] = []
    options: dict[str, str] = {}
    at, plain = 0, False
    while (token := next_token(rest, at)) is not None:
        if not token.closed:
            raise _WrongError("unclosed quote")
        if not plain and not token.quoted and token.text.startswith("--"):
            at = token.end
            if token.text == "--":
                plain = True
            else:
                at = _take_option(command, token, rest, options)
            continue
        if len(words) == len(command.words):
            raise _WrongError(f"unexpected argument `{token.text}`")
        word = command.words[len(words)]
        words.append(rest[token.start :].rstrip() if word.rest else token.text)
        at = len(rest) if word.rest else token.end
    _check_required(command.words, len(words))
    return Arguments(tuple(words), options)


def _take_option(command: Command, token: Token, rest: str, options: dict[str, str]) -> int:
    name, equals, value = token.text.partition("=")
    option = _option(command, name)
    at = token.end
    if option.value and not equals:
        after = next_token(rest, at)
        if after is None or (after.text.startswith("--") and not after.quoted):
            raise _WrongError(f"`{name}` needs a value")
        if not after.closed:
            raise _WrongError("unclosed quote")
        value, at = after.text, after.end
    elif equals and not option.value:
        raise _WrongError(f"`{name}` takes no value")
    options[name] = value
    return at


def _option(command: Command, name: str) -> Option:
    for option in command.options:
        if option.name == name:
            return option
    near = closest(name, [option.name for option in command.options])
    meant = f"; did you mean `{near}`?" if near else ""
    raise _WrongError(f"there is no option `{name}`{meant}")


def _check_required(words: tuple[Word, ...], given: int) -> None:
    for word in words[given:]:
        if word.required:
            raise _WrongError(f"{word.name} is missing")


def _quoted(line: str, start: int) -> Token:
    quote, at = line[start], start + 1
    letters: list[str] = []
    while at < len(line):
        letter = line[at]
        if letter == quote:
            return Token("".join(letters), start, at + 1, quoted=True)
        if letter == "\\" and at + 1 < len(line) and line[at + 1] in {quote, "\\"}:
            at += 1
            letter = line[at]
        letters.append(letter)
        at += 1
    return Token("".join(letters), start, at, quoted=True, closed=False)


def named_path(text: str, controller: ConversationController) -> Path:
    """Return the path a user named, absolute.

    Args:
        text: A path relative to the workspace, or one from `~` or `/` on.
        controller: The conversation.

    Raises:
        RunError: It is not a path.
    """
    from pathlib import Path

    if not text.strip() or not text.isprintable():
        raise RunError("that is not a path", hint="name a file or a directory")
    path = Path(text)
    if text == "~" or text.startswith("~/"):
        path = path.expanduser()
    return controller.workspace / path


WordKind: TypeAlias = Literal[
    "action",
    "agent",
    "card",
    "command",
    "file",
    "history",
    "model",
    "provider",
    "server",
    "session",
    "setting",
    "text",
    "theme",
    "turn",
]
"""What a word means; completion offers the words available."""
Busy: TypeAlias = Literal["now", "queue", "no"]
"""Whether a command may run while a turn works: at once, after it, or not."""
Act: TypeAlias = "Callable[[Arguments, ConversationController], Awaitable[CommandResult]]"
"""Does what a command says."""


@frozen
class Arguments:
    """What a command was given.

    Args:
        words: The words, in the order the command takes them.
        options: The options given, each with its value, or with an empty one.
    """

    words: tuple[str, ...] = ()
    options: dict[str, str] = field(default_factory=dict[str, str])

    def word(self, index: int = 0) -> str | None:
        """Return a word by its position; None if it was not passed."""
        return self.words[index] if index < len(self.words) else None

    def has(self, option: str) -> bool:
        """Whether an option was given."""
        return option in self.options


@frozen
class Word:
    """A word a command takes.

    Args:
        name: What it is called in help, in capitals.
        kind: What it means.
        required: Whether it must be given.
        rest: It is the rest of the line as it is written, quotes and all.
    """

    name: str
    kind: WordKind = "text"
    required: bool = False
    rest: bool = False

    @property
    def usage(self) -> str:
        """How help writes it."""
        name = f"{self.name}…" if self.rest else self.name
        return name if self.required else f"[{name}]"


@frozen
class Option:
    """An option of a command.

    Args:
        name: Its spelling, with dashes.
        summary: What it does.
        value: What its value is called in help; empty for one without a value.
        kind: What the value means.
    """

    name: str
    summary: str
    value: str = ""
    kind: WordKind = "text"

    @property
    def usage(self) -> str:
        """How help writes it."""
        return f"[{self.name} {self.value}]" if self.value else f"[{self.name}]"


@frozen(kw_only=True)
class Command:
    """A command, or one of the actions of a command.

    Args:
        name: Its name, without the slash.
        summary: What it does, in a line.
        act: Does it; None for one that only has actions.
        words: The words it takes, in order.
        options: Its options.
        actions: Its actions; the first is meant where none is named.
        busy: Whether it may run while a turn works.
    """

    name: str
    summary: str
    act: Act | None = None
    words: tuple[Word, ...] = ()
    options: tuple[Option, ...] = ()
    actions: tuple[Command, ...] = ()
    busy: Busy = "queue"

    @property
    def hint(self) -> str:
        """What follows the name, as help writes it: `[NAME] [--tool]`."""
        if self.actions:
            return f"[{'|'.join(action.name for action in self.actions)}]"
        before = [word.usage for word in self.words if not word.rest]
        behind = [word.usage for word in self.words if word.rest]
        return " ".join([*before, *(option.usage for option in self.options), *behind])

    @property
    def usage(self) -> str:
        """The whole as help writes it, without the slash."""
        return f"{self.name} {self.hint}".rstrip()

    def action(self, name: str) -> Command | None:
        """Return an action by its name."""
        return next((action for action in self.actions if action.name == name), None)


@frozen(kw_only=True)
class Ask:
    """A message for an agent, which the shell sends as it sends any other.

    Args:
        agent: The agent.
        text: Its text, for people.
        content: The whole of it, where it is more than that.
        skill: The skill the user called by it, or None.
    """

    agent: str
    text: str
    content: tuple[Content, ...] = ()
    skill: SkillCall | None = None

    @property
    def message(self) -> Message:
        """The message."""
        return Message("user", self.content) if self.content else Message.user(self.text)


@frozen(kw_only=True)
class CommandResult:
    """What a command gave, for the shell to show and to act on.

    Args:
        text: What the user sees, in Markdown that reads well unrendered; may be empty.
        failed: Nothing was done; the text says why.
        is_answer: The text is an agent's answer, which listeners of its turn may have shown.
        agent: The agent that is talked to from now on, where that is another one.
        agents_changed: The set of agents, or their definitions, may have changed.
        session_changed: The conversation is another one now, or was taken back.
        ask: A message to send now, or None.
        leave: The shell is to end.
        restart: The program should restart, with the same arguments and this session.
    """

    text: str = ""
    failed: bool = False
    is_answer: bool = False
    agent: str | None = None
    agents_changed: bool = False
    session_changed: bool = False
    ask: Ask | None = None
    leave: bool = False
    restart: bool = False


_TICKS = re.compile("`+")
_MAX_SHORT_CHARACTERS = 160


def listed(lines: Iterable[str]) -> str:
    """Write lines as a list."""
    return "\n".join(f"- {line}" for line in lines)


def short(text: str) -> str:
    """Return foreign text as one bounded line without invisible characters."""
    return visible(shortened_line(text, _MAX_SHORT_CHARACTERS))


def fenced(text: str, language: str = "") -> str:
    """Wrap foreign text in a code block whose fence is longer than any in it."""
    longest = max((len(found) for found in _TICKS.findall(text)), default=0)
    fence = "`" * max(3, longest + 1)
    shown = "\n".join(visible(line) for line in text.rstrip().splitlines())
    return f"{fence}{language}\n{shown}\n{fence}"


def failure(error: FastAgentError) -> CommandResult:
    """Report an error, with every problem at its place."""
    if any(problem.path for problem in error.diagnostics):
        return CommandResult(text=fenced(render_human(error.diagnostics)), failed=True)
    text = "\n".join(visible(line) for line in error.message.splitlines())
    if error.hint:
        hint = "\n".join(visible(line) for line in error.hint.splitlines())
        text = f"{text}\nhint: {hint}"
    return CommandResult(text=text, failed=True)
