"""Arguments: what stands behind the name of a command, taken apart; paths among them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fast_agent.commands.command import Arguments
from fast_agent.errors import RunError
from fast_agent.text.frozen import frozen
from fast_agent.text.suggestion import closest

if TYPE_CHECKING:
    from pathlib import Path

    from fast_agent.commands.command import Command, Option, Word
    from fast_agent.commands.controller import ConversationController

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
            raise _WrongError("a quote is not closed")
        if not plain and not token.quoted and token.text.startswith("--"):
            at = token.end
            if token.text == "--":
                plain = True
            else:
                at = _take_option(command, token, rest, options)
            continue
        if len(words) == len(command.words):
            raise _WrongError(f"there is a word too many: `{token.text}`")
        word = command.words[len(words)]
        words.append(rest[token.start :].rstrip() if word.rest else token.text)
        at = len(rest) if word.rest else token.end
    _see_that_all_are_there(command.words, len(words))
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
            raise _WrongError("a quote is not closed")
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


def _see_that_all_are_there(words: tuple[Word, ...], given: int) -> None:
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
