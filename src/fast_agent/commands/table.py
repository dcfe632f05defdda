"""The table of commands: running a line of it, and its reference."""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING

from fast_agent.commands.agent_commands import AGENT_COMMANDS, CARD_COMMANDS
from fast_agent.commands.command import (
    Ask,
    Command,
    CommandResult,
    Word,
    failure,
    listed,
    parse_arguments,
)
from fast_agent.commands.history_commands import HISTORY_COMMANDS
from fast_agent.commands.offer_commands import OFFER_COMMANDS
from fast_agent.commands.session_commands import SESSION
from fast_agent.errors import FastAgentError, RunError
from fast_agent.text.wording import closest, did_you_mean

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from fast_agent.commands.command import Arguments
    from fast_agent.commands.controller import ConversationController
    from fast_agent.resources.internal.provider import InternalDocument

_TOPICS: Mapping[str, str] = MappingProxyType(
    {"smart-agent-cards": "cards", "histories": "sessions"}
)
"""What help calls a document that has another id."""


async def _help(arguments: Arguments, controller: ConversationController) -> CommandResult:
    del controller
    return command_help(arguments.word(), COMMANDS)


def help_topics(commands: Mapping[str, Command]) -> dict[str, InternalDocument]:
    """Return the documents of the program by topic, but for topics that are names of commands."""
    from fast_agent.resources.internal.provider import InternalProvider

    documents = {one.id: one for one in InternalProvider().index if "/" not in one.id}
    topics = {_TOPICS.get(name, name): one for name, one in documents.items()}
    return {name: topics[name] for name in sorted(topics.keys() - commands.keys())}


def command_help(wanted: str | None, commands: Mapping[str, Command]) -> CommandResult:
    """List commands, describe one, or show a document of the program.

    Args:
        wanted: The name of the command, or a topic; None lists all.
        commands: The commands of the shell.

    Raises:
        RunError: There is no such command, and no such topic.
    """
    if wanted is None:
        lines = [f"`/{one.usage}`: {one.summary}" for one in commands.values()]
        lines += [f"`{sign}`: {summary}" for sign, summary in SIGNS.items()]
        topics = ", ".join(f"`/help {name}`" for name in help_topics(commands))
        return CommandResult(text=f"{listed(lines)}\n\ntopics: {topics}")
    document = help_topics(commands).get(wanted)
    if document is not None:
        from fast_agent.resources.internal.provider import InternalProvider

        return CommandResult(text=InternalProvider().text_of(document))
    command = _command(wanted.removeprefix("/"), commands)
    lines = [f"`{one.name}`: {one.summary}" for one in command.options]
    lines += [f"`/{command.name} {one.usage}`: {one.summary}" for one in command.actions]
    text = f"`/{command.usage}`: {command.summary}"
    return CommandResult(text=f"{text}\n\n{listed(lines)}" if lines else text)


async def _exit(arguments: Arguments, controller: ConversationController) -> CommandResult:
    del arguments, controller
    return CommandResult(leave=True)


_HELP = Command(
    name="help",
    busy="now",
    summary="list the commands, describe one, or show a topic such as models",
    act=_help,
    words=(Word("COMMAND|TOPIC", "command"),),
)
_EXIT = Command(name="exit", busy="now", summary="leave", act=_exit)

COMMANDS: Mapping[str, Command] = MappingProxyType(
    {
        command.name: command
        for command in (
            _HELP,
            *AGENT_COMMANDS,
            *CARD_COMMANDS,
            *OFFER_COMMANDS,
            *HISTORY_COMMANDS,
            SESSION,
            _EXIT,
        )
    }
)
"""Every command by its name, in the order of the help; a shell may leave out or add some."""

SIGNS: Mapping[str, str] = MappingProxyType(
    {
        "@AGENT [MESSAGE…]": "switch to an agent",
        "#AGENT MESSAGE…": "send one message to an agent",
    }
)
"""The short forms, as help writes them."""


def is_command(
    line: str, controller: ConversationController, commands: Mapping[str, Command] = COMMANDS
) -> bool:
    """Return whether a line is a command; any other is a message for the agent.

    A path (`/etc/hosts`), a heading (`# Plan`), `#include` and `@someone` are not commands; a name
    that is nearly one is, so that a slip of the finger is not sent to a model.

    Args:
        line: What was typed.
        controller: The conversation.
        commands: The commands of the shell.
    """
    sign, name, _rest = _taken_apart(line)
    if sign == "/":
        if name in commands:
            return True
        plain = name.replace("_", "").replace("-", "")
        return plain.isalnum() and name[0].isalpha() and name.isascii()
    agents = {*controller.app.load_set.cards, *controller.waiting}
    return bool(sign and name) and (name in agents or closest(name, agents) is not None)


def named_command(
    line: str, commands: Mapping[str, Command] = COMMANDS
) -> tuple[Command | None, Command | None]:
    """Return the command that a line names, and which of its actions acts; None for a message.

    Args:
        line: What was typed.
        commands: The commands of the shell.
    """
    if not line.startswith("/"):
        return None, None
    _, name, rest = _taken_apart(line)
    command = commands.get(name)
    if command is None or not command.actions:
        return command, command
    return command, command.action(rest.partition(" ")[0]) or command.actions[0]


async def run_command(
    line: str, controller: ConversationController, commands: Mapping[str, Command] = COMMANDS
) -> CommandResult:
    """Run a command.

    Args:
        line: The line, from its `/`, `@` or `#` on.
        controller: The conversation; commands change it.
        commands: The commands of the shell.

    Returns:
        What to show and to do. Failures are in it too; nothing is raised.
    """
    try:
        sign, name, rest = _taken_apart(line)
        if sign in {"@", "#"}:
            return _address_agent(sign, name, rest, controller)
        if sign != "/":
            raise RunError("a command starts with `/`", hint="`/help` lists them")
        if name not in commands:
            called = await controller.app.runtime.call_skill(controller.agent, name, rest)
            if called is not None:
                # What carries it out has the skill's text; the conversation needs only the call.
                text = line.strip() if called.fields.forks else called.text
                return CommandResult(ask=Ask(agent=controller.agent, text=text, skill=called))
        whole = _command(name, commands)
        command, rest = _with_action(whole, rest)
        if command.act is None:
            raise RunError(f"`/{name}` needs a subcommand")
        said = f"/{name}" if command is whole else f"/{name} {command.name}"
        return await command.act(parse_arguments(command, rest, said=said), controller)
    except FastAgentError as error:
        return failure(error)


def _with_action(command: Command, rest: str) -> tuple[Command, str]:
    if not command.actions:
        return command, rest
    word, _, behind = rest.partition(" ")
    if not word:
        return command.actions[0], ""
    action = command.action(word)
    if action is not None:
        return action, behind.strip()
    near = closest(word, [one.name for one in command.actions])
    hint = did_you_mean(near, f"the usage is `/{command.usage}`")
    raise RunError(f"`/{command.name}` does not know `{word}`", hint=hint)


def _address_agent(
    sign: str, name: str, rest: str, controller: ConversationController
) -> CommandResult:
    cards = controller.app.load_set.cards
    waits = name in controller.waiting and name not in cards
    if name not in cards and not waits:
        near = closest(name, {*cards, *controller.waiting})
        hint = f"did you mean `{sign}{near}`?" if near else "`/agents` lists them"
        raise RunError(f"no agent is named `{name}`", hint=hint)
    if sign == "#":
        if not rest:
            raise RunError("there is nothing to send", hint=f"write `#{name} MESSAGE`")
        return CommandResult(ask=Ask(agent=name, text=rest))
    if not waits and cards[name].config.tool_only:
        raise RunError(
            f"agent `{name}` is `tool_only`: only agents call it",
            hint=f"`#{name} MESSAGE` asks it once",
        )
    controller.agent = name
    ask = Ask(agent=name, text=rest) if rest else None
    return CommandResult(text=f"talking to `{name}`", agent=name, ask=ask)


def _command(name: str, commands: Mapping[str, Command]) -> Command:
    command = commands.get(name)
    if command is not None:
        return command
    known = {
        action.name: f"{one.name} {action.name}"
        for one in commands.values()
        for action in one.actions
    } | {one: one for one in commands}
    near = closest(name, known)
    hint = "`/help` lists them" if near is None else f"did you mean `/{known[near]}`?"
    raise RunError(f"there is no command `/{name}`", hint=hint)


def _taken_apart(line: str) -> tuple[str, str, str]:
    """Return the sign a line starts with, the word after it, and the rest."""
    line = line.strip()
    sign = line[:1]
    if sign not in {"/", "@", "#"}:
        return "", "", line
    name = line[1:].split(maxsplit=1)[0] if line[1:2].strip() else ""
    return sign, name, line[1 + len(name) :].strip()


def reference_page() -> str:
    """Write the page as Markdown."""
    lines = ["# Slash commands", "", "| command | what it does |", "|---|---|"]
    lines += [_row(f"/{one.usage}", one.summary) for one in COMMANDS.values()]
    lines += [_row(sign, summary) for sign, summary in SIGNS.items()]
    for command in COMMANDS.values():
        lines += _details(command)
    return "\n".join(lines) + "\n"


def _details(command: Command) -> Iterator[str]:
    rows = [_row(one.name, one.summary) for one in command.options]
    for action in command.actions:
        rows.append(_row(f"/{command.name} {action.usage}", action.summary))
        rows += [_row(one.name, one.summary) for one in action.options]
    if rows:
        yield from ("", f"## `/{command.name}`", "", "| part | what it does |", "|---|---|")
        yield from rows


def _row(code: str, text: str) -> str:
    code = code.replace("|", "\\|")
    return f"| `{code}` | {text} |"
