"""Completion: what may stand where a line ends.

MCP servers complete the arguments of their prompts and resource templates.
"""

from __future__ import annotations

import re
import shlex
from itertools import islice
from typing import TYPE_CHECKING, Final, TypeVar, get_args

import anyio

from fast_agent.cards.agent_config import HISTORIES
from fast_agent.cards.card_files import CARD_SUFFIXES
from fast_agent.commands.command import CARD_MODEL, Command, next_token, short
from fast_agent.commands.table import COMMANDS, help_topics
from fast_agent.config.providers import PROVIDERS
from fast_agent.config.settings import TUI, ThemeName
from fast_agent.errors import FastAgentError
from fast_agent.text.frozen import frozen
from fast_agent.text.wording import is_subsequence, local_minute, plural

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from fast_agent.commands.command import Token, WordKind
    from fast_agent.commands.controller import ConversationController
    from fast_agent.mcp.offers import ServerOffers, ServerResources
    from fast_agent.sessions.facts import SessionSummary


_FUZZY = frozenset({"agent", "model", "session"})
MAX_COMPLETIONS: Final = 100
"""Most completions that are offered for a line."""
_MAX_ENTRIES = 5_000


@frozen
class Completion:
    """A completion of a line.

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
    """Return completions of a line.

    Args:
        line: The line up to the cursor.
        controller: The conversation.
        commands: The commands of the shell.

    Returns:
        The completions, at most 100; none for a line that is a message.
    """
    found = _found(line, controller, commands)
    return tuple(islice(found, MAX_COMPLETIONS))


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
    before = _LineContext(command)
    while (token := next_token(line, at)) is not None and token.end < len(line):
        at = token.end
        before.take(token.text)
    start = len(line) if token is None else token.start
    typed = "" if token is None else token.text
    command, kind = before.command, before.expected
    if before.value is None and typed.startswith("-"):
        named = [(one.name, one.summary) for one in command.options]
    elif before.value is None and command.actions:
        named = [(one.name, one.summary) for one in command.actions]
    else:
        if kind is not None:
            yield from _of_kind(kind, typed, start, controller, commands)
        return
    for name, about in named:
        if name.startswith(typed):
            yield Completion(name, start, about)


class _LineContext:
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
    typed: str,
    start: int,
    controller: ConversationController,
    commands: Mapping[str, Command],
) -> Iterator[Completion]:
    if kind in {"card", "file"}:
        yield from _paths(typed, start, controller, CARD_SUFFIXES if kind == "card" else None)
        return
    choices = list(_choices(kind, controller, commands))
    if kind not in _FUZZY:
        choices = [one for one in choices if one[0].startswith(typed)]
    for text, about in _fitting(typed, choices, by_about=kind == "session"):
        yield Completion(_quoted(text), start, about)


def _fitting(
    typed: str, choices: Sequence[tuple[str, str]], *, by_about: bool = False
) -> Iterator[tuple[str, str]]:
    """Yield what starts as typed, then what contains the typed letters in their order."""
    yield from (one for one in choices if one[0].startswith(typed))
    for text, about in choices:
        pool = f"{text} {about}" if by_about else text
        if not text.startswith(typed) and is_subsequence(typed.lower(), pool.lower()):
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
            named = {command.name: command.summary for command in commands.values()}
            topics = {name: one.title for name, one in help_topics(commands).items()}
            return [*named.items(), *topics.items()]
        case "history":
            return [(word, "") for word in HISTORIES]
        case "model":
            return _models(controller)
        case "provider":
            return [(one.name, one.label) for one in PROVIDERS.values() if one.key_variables]
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
    return [(CARD_MODEL, "that of its card"), *aliases.items()]


def _sessions(controller: ConversationController) -> Iterable[tuple[str, str]]:
    if not controller.keeps_sessions:
        return ()
    return [(one.id, _session_about(one)) for one in controller.sessions.list()]


def _session_about(one: SessionSummary) -> str:
    turns = plural(one.turns, "turn")
    return f"{local_minute(one.changed)}, {turns}: {one.problem or one.title}"


def _paths(
    typed: str, start: int, controller: ConversationController, suffixes: tuple[str, ...] | None
) -> Iterator[Completion]:
    """List directories, and the files with the right suffix, that continue a path."""
    import os

    folder, slash, name = typed.rpartition("/")
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


S = TypeVar("S", bound="ServerOffers")
ANSWER_SECONDS: Final = 0.3
_MAX_VALUE: Final = 500
_VARIABLE: Final = re.compile(r"\{([^{}]*)\}")
_OPERATORS: Final = "+#./;?&"


async def complete_from_server(
    line: str, controller: ConversationController, *, seconds: float = ANSWER_SECONDS
) -> tuple[Completion, ...]:
    """Return completions that only a server knows; asks no server that is not open.

    Args:
        line: The line up to the cursor.
        controller: The conversation.
        seconds: Maximum wait for the server.

    Returns:
        The completions, at most 100; none where the server does not answer in time.
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
    return tuple(found[:MAX_COMPLETIONS])


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
    typed, start = words[-1]
    if len(words) == 2:
        named = [(name, prompts[name].description) for name in prompts if name.startswith(typed)]
        return _completions(named, start)
    prompt = prompts.get(words[1][0])
    if prompt is None or any(quote in line[start:] for quote in "'\""):
        return []
    given = dict(word.split("=", 1) for word, _ in words[2:-1] if "=" in word)
    name, equals, value = typed.partition("=")
    if not equals:
        named = [(f"{one.name}=", one.description) for one in prompt.arguments]
        return _completions((one for one in named if one[0].startswith(typed)), start)
    values = await server.complete(prompt.name, (name, value), given, agent_name=controller.agent)
    return _completions(((f"{name}={shlex.quote(one)}", "") for one in _safe(values)), start)


async def _of_resources(
    words: list[tuple[str, int]], controller: ConversationController
) -> list[Completion]:
    server = _open(
        controller.app.runtime.server_resources(controller.agent), words[0][0], controller
    )
    if server is None:
        return []
    typed, start = words[1]
    listed = [(one.uri, one.description) for one in await server.resources()]
    found = [one for one in listed if one[0].startswith(typed)]
    for template in await server.templates():
        found += await _of_template(server, template.uri_template, typed, controller)
    return _completions(found, start)


async def _of_template(
    server: ServerResources, template: str, typed: str, controller: ConversationController
) -> list[tuple[str, str]]:
    """Complete the variable of a template that a URI has got to."""
    pieces = _VARIABLE.split(template)  # text, variable, text, variable, text
    at = 0
    given: dict[str, str] = {}
    for number in range(0, len(pieces) - 1, 2):
        text, variable, behind = pieces[number : number + 3]
        if not typed.startswith(text, at):
            whole = typed[:at] + text
            return [(whole, template)] if text.startswith(typed[at:]) else []
        at += len(text)
        end = typed.find(behind, at) if behind else -1
        name = variable.lstrip(_OPERATORS)
        if end < 0:
            values = await server.complete(
                template, (name, typed[at:]), given, agent_name=controller.agent
            )
            return [(f"{typed[:at]}{one}{behind}", template) for one in _safe(values)]
        given[name] = typed[at:end]
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


def _completions(found: Iterable[tuple[str, str | None]], start: int) -> list[Completion]:
    return [
        Completion(text, start, short(about or "")) for text, about in found if text.isprintable()
    ]
