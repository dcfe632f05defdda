"""Completion: what may stand where a line ends."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, get_args

from fast_agent.cards.agent_config import HISTORIES
from fast_agent.cards.card_files import CARD_SUFFIXES
from fast_agent.commands.arguments import next_token
from fast_agent.commands.command import Command
from fast_agent.commands.table import COMMANDS
from fast_agent.config.tui import TUI, ThemeName
from fast_agent.errors import FastAgentError
from fast_agent.text.frozen import frozen
from fast_agent.text.suggestion import is_subsequence

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from fast_agent.commands.command import WordKind
    from fast_agent.commands.controller import ConversationController
    from fast_agent.sessions.facts import SessionSummary

_FUZZY = frozenset({"agent", "model", "session"})
_MOST = 100
_MAX_ENTRIES = 5_000


@frozen
class Completion:
    """One way to continue a line.

    Args:
        text: What to insert instead of the line's end.
        start: Where in the line that text goes.
        about: What it is, in a line; may be empty.
    """

    text: str
    start: int
    about: str = ""


def complete(
    line: str, controller: ConversationController, commands: Mapping[str, Command] = COMMANDS
) -> tuple[Completion, ...]:
    """Return the ways a line may continue.

    Args:
        line: The line up to the cursor.
        controller: The conversation.
        commands: The commands of the shell.

    Returns:
        The ways, at most 100; none for a line that is a message.
    """
    found = _found(line, controller, commands)
    return tuple(one for one, _ in zip(found, range(_MOST), strict=False))


def _found(
    line: str, controller: ConversationController, commands: Mapping[str, Command]
) -> Iterator[Completion]:
    sign, space = line[:1], " " in line
    if sign in {"@", "#"} and not space:
        named = [(name, _agent_about(name, controller)) for name in controller.app.agent_names()]
        for name, about in _fitting(line[1:], named):
            yield Completion(f"{sign}{name}", 0, about)
    elif sign == "/" and not space:
        for command in commands.values():
            if command.name.startswith(line[1:]):
                yield Completion(f"/{command.name}", 0, command.summary)
    elif sign == "/":
        name, _, _rest = line[1:].partition(" ")
        command = commands.get(name)
        if command is not None:
            yield from _arguments(line, len(name) + 2, command, controller, commands)


def _arguments(
    line: str,
    at: int,
    command: Command,
    controller: ConversationController,
    commands: Mapping[str, Command],
) -> Iterator[Completion]:
    """Complete the last word, by the words before it."""
    before = _Before(command)
    while (token := next_token(line, at)) is not None and token.end < len(line):
        at = token.end
        before.take(token.text)
    start = len(line) if token is None else token.start
    begun = "" if token is None else token.text
    command, kind = before.command, before.expected
    if before.value is None and begun.startswith("-"):
        named = [(one.name, one.summary) for one in command.options]
    elif before.value is None and command.actions:
        named = [(one.name, one.summary) for one in command.actions]
    else:
        if kind is not None:
            yield from _of_kind(kind, begun, start, controller, commands)
        return
    for name, about in named:
        if name.startswith(begun):
            yield Completion(name, start, about)


class _Before:
    """What the words before the last one say of it.

    Args:
        command: The command.

    Attributes:
        command: The same, or the action of it that was named.
        value: What the value of an option means, where one is due.
    """

    def __init__(self, command: Command) -> None:
        self.command = command
        self.value: WordKind | None = None
        self._given = 0

    @property
    def expected(self) -> WordKind | None:
        """What the word means; None where no word is accepted."""
        if self.value is not None:
            return self.value
        words = self.command.words
        return words[self._given].kind if self._given < len(words) else None

    def take(self, word: str) -> None:
        """Read a word that is whole."""
        option = next((one for one in self.command.options if one.name == word), None)
        if self.value is not None:
            self.value = None
        elif option is not None:
            self.value = option.kind if option.value else None
        elif self.command.actions:
            self.command = self.command.action(word) or Command(name=word, summary="")
        elif not word.startswith("--"):
            self._given += 1


def _of_kind(
    kind: WordKind,
    begun: str,
    start: int,
    controller: ConversationController,
    commands: Mapping[str, Command],
) -> Iterator[Completion]:
    if kind in {"card", "file"}:
        yield from _paths(begun, start, controller, CARD_SUFFIXES if kind == "card" else None)
        return
    choices = list(_choices(kind, controller, commands))
    if kind not in _FUZZY:
        choices = [one for one in choices if one[0].startswith(begun)]
    for text, about in _fitting(begun, choices, by_about=kind == "session"):
        yield Completion(_quoted(text), start, about)


def _fitting(
    begun: str, choices: Sequence[tuple[str, str]], *, by_about: bool = False
) -> Iterator[tuple[str, str]]:
    """Yield what starts as typed, then what contains the typed letters in their order."""
    yield from (one for one in choices if one[0].startswith(begun))
    for text, about in choices:
        pool = f"{text} {about}" if by_about else text
        if not text.startswith(begun) and is_subsequence(begun.lower(), pool.lower()):
            yield text, about


def _choices(
    kind: WordKind, controller: ConversationController, commands: Mapping[str, Command]
) -> Iterable[tuple[str, str]]:
    match kind:
        case "agent":
            return [
                (name, _agent_about(name, controller)) for name in controller.app.load_set.cards
            ]
        case "command":
            return [(command.name, command.summary) for command in commands.values()]
        case "history":
            return [(word, "") for word in HISTORIES]
        case "model":
            return _models(controller)
        case "server":
            return [(one.name, one.state) for one in controller.app.runtime.server_reports()]
        case "session":
            return _sessions(controller)
        case "setting":
            return [(one.name, one.doc) for one in TUI.entries]
        case "theme":
            return [(word, "") for word in get_args(ThemeName)]
        case _:
            return ()


def _agent_about(name: str, controller: ConversationController) -> str:
    config = controller.app.load_set.cards[name].config
    return " ".join((config.description or config.type).split())


def _models(controller: ConversationController) -> Iterable[tuple[str, str]]:
    from fast_agent.models.spec import model_aliases

    try:
        aliases = model_aliases(controller.program.settings.model_aliases)
    except FastAgentError:
        return ()
    return [("default", "that of its card"), *aliases.items()]


def _sessions(controller: ConversationController) -> Iterable[tuple[str, str]]:
    if not controller.keeps_sessions:
        return ()
    return [(one.id, _session_about(one)) for one in controller.sessions.list()]


def _session_about(one: SessionSummary) -> str:
    when = datetime.fromtimestamp(one.changed).astimezone().isoformat(" ", "minutes")[:16]
    turns = f"{one.turns} turn{'' if one.turns == 1 else 's'}"
    return f"{when}, {turns}: {one.problem or one.title}"


def _paths(
    begun: str, start: int, controller: ConversationController, suffixes: tuple[str, ...] | None
) -> Iterator[Completion]:
    """List directories, and the files with the right suffix, that continue a path."""
    import os

    folder, slash, name = begun.rpartition("/")
    place = os.path.expanduser(f"{folder}{slash}" if slash else ".")  # noqa: PTH111
    if "\0" in place:
        return
    try:
        with os.scandir(controller.workspace / place) as entries:
            found = sorted(
                (entry.name, entry.is_dir())
                for entry, _ in zip(entries, range(_MAX_ENTRIES), strict=False)
                if is_subsequence(name.lower(), entry.name.lower()) and entry.name.isprintable()
            )
    except OSError:
        return
    begun_so = [one for one in found if one[0].startswith(name)]
    for entry, is_directory in begun_so or found:
        if entry.startswith(".") and not name.startswith("."):
            continue
        if is_directory:
            yield Completion(_quoted(f"{folder}{slash}{entry}/"), start)
        elif suffixes is None or entry.lower().endswith(suffixes):
            yield Completion(_quoted(f"{folder}{slash}{entry}"), start)


def _quoted(text: str) -> str:
    """Write a word so that it is read back as it is."""
    if text and not any(letter.isspace() for letter in text) and text[0] not in "'\"":
        return text
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'
