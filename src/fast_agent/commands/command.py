"""Command: one row of the table of commands, and the result of running it."""

from __future__ import annotations

from dataclasses import field
from typing import TYPE_CHECKING, Literal, TypeAlias

from fast_agent.messages.message import Message
from fast_agent.text.frozen import frozen

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from fast_agent.commands.controller import ConversationController
    from fast_agent.messages.content import Content
    from fast_agent.resources.skill_client.entry import SkillCall

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
        skill: The skill the person called by it, or None.
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
