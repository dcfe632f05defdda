"""Commands about histories: shown, cleared, saved, loaded, taken back."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fast_agent.commands.command import (
    Command,
    CommandResult,
    Option,
    Word,
    listed,
    named_path,
    short,
)
from fast_agent.errors import RunError
from fast_agent.text.wording import plural

if TYPE_CHECKING:
    from pathlib import Path

    from fast_agent.commands.command import Arguments
    from fast_agent.commands.controller import ConversationController
    from fast_agent.messages.message import Message

_SHOWN = 20


async def _show(arguments: Arguments, controller: ConversationController) -> CommandResult:
    most = _number(arguments.word(), _SHOWN)
    messages = controller.instance().history
    if not messages:
        return CommandResult(text=f"`{controller.agent}` remembers nothing")
    first = max(0, len(messages) - most)
    lines = [_line(number, messages[number]) for number in range(first, len(messages))]
    more = f"{first} before these\n" if first else ""
    return CommandResult(text=more + listed(lines))


def _line(number: int, message: Message) -> str:
    parts = [short(message.text)] if message.text else []
    parts += [f"calls `{short(call.name)}`" for call in message.tool_calls]
    parts += [f"{'error' if one.is_error else 'result'}: {short(one.text)}"
              for one in message.tool_results]  # fmt: skip
    kind = f"{message.role}, template" if message.is_template else message.role
    return f"{number + 1} {kind}: {'; '.join(parts) or '(no text)'}"


async def _clear(arguments: Arguments, controller: ConversationController) -> CommandResult:
    word = arguments.word()
    if word not in {None, "all"}:
        raise RunError(f"`{short(word or '')}` cannot be cleared", hint="write `all`, or nothing")
    agent = controller.instance()
    agent.clear(all=word == "all")
    await agent.barrier()
    kept = len(agent.history)
    rest = f"; its {kept} templates stay" if kept else ""
    return CommandResult(text=f"`{agent.name}` remembers nothing now{rest}")


async def _compact(arguments: Arguments, controller: ConversationController) -> CommandResult:
    agent = controller.require_llm_agent()
    compaction = await agent.compact(" ".join(arguments.words))
    shown = f":\n\n{compaction.summary}" if compaction.summary else ", in its provider's own form"
    return CommandResult(
        text=f"`{agent.name}` continues from a summary of the {compaction.start} messages so far,"
        f" which stay in its history{shown}"
    )


async def _save(arguments: Arguments, controller: ConversationController) -> CommandResult:
    from anyio.to_thread import run_sync

    from fast_agent.messages.file import HistoryDocument, write_history

    agent = controller.instance()
    path = named_path(arguments.word() or f"{_slug(agent.name)}-history.json", controller)
    messages = tuple(agent.history)
    if not messages:
        raise RunError(f"`{agent.name}` has no history to save")
    if not arguments.has("--force"):
        _check_absent(path)
    await run_sync(write_history, path, HistoryDocument(None, messages))
    return CommandResult(text=f"saved {len(messages)} messages to `{path}`")


def _check_absent(path: Path) -> None:
    if path.is_symlink() or path.exists():
        raise RunError(f"`{path}` already exists", hint="`--force` replaces it")


async def _load(arguments: Arguments, controller: ConversationController) -> CommandResult:
    from anyio.to_thread import run_sync

    from fast_agent.messages.file import read_history

    path = named_path(arguments.words[0], controller)
    transcript = await run_sync(read_history, path)
    agent = controller.instance()
    agent.load_history(transcript.messages)
    await agent.barrier()
    text = f"`{agent.name}` remembers the {len(transcript.messages)} messages of `{path}`"
    if transcript.system is not None:
        text += "; the `---SYSTEM` section is not used"
    return CommandResult(text=text)


async def _rewind(arguments: Arguments, controller: ConversationController) -> CommandResult:
    back = _number(arguments.word(), 1)
    session = controller.session
    if session is not None:
        turns = len(session.state.turns)
        _check_turn_count(back, turns)
        session.rewind(turns - back)
        controller.conversation.restore()
        return CommandResult(text=_rewound_text(back), session_changed=True)
    agent = controller.instance()
    messages = tuple(agent.history)
    starts = [number for number, message in enumerate(messages) if message.begins_turn]
    _check_turn_count(back, len(starts))
    agent.load_history(messages[: starts[-back]])
    await agent.barrier()
    return CommandResult(text=_rewound_text(back), session_changed=True)


def _check_turn_count(back: int, turns: int) -> None:
    if back > turns:
        raise RunError(
            f"there {'is' if turns == 1 else 'are'} only {plural(turns, 'turn')} to take back"
        )


def _rewound_text(back: int) -> str:
    return f"{plural(back, 'turn')} taken back"


def _number(text: str | None, default: int) -> int:
    if text is None:
        return default
    if text.isascii() and text.isdecimal() and len(text) < 10 and int(text):
        return int(text)
    raise RunError(f"`{short(text)}` is not a number from 1 on")


def _slug(name: str) -> str:
    """Make a file name of an agent's name."""
    kept = "".join(letter if letter.isalnum() or letter in "-_" else "-" for letter in name)
    return kept[:64].lstrip("-") or "agent"


_FORCE = Option("--force", "overwrite an existing file")

HISTORY = Command(
    name="history",
    summary="show, clear, save, load or rewind the agent's history",
    actions=(
        Command(
            name="show",
            busy="now",
            summary="show the last messages, 20 by default",
            act=_show,
            words=(Word("MESSAGES"),),
        ),
        Command(
            name="clear",
            busy="no",
            summary="clear all messages but templates; with `all`, templates too",
            act=_clear,
            words=(Word("all"),),
        ),
        Command(
            name="save",
            summary="write it to a file, as JSON if the name ends in `.json`",
            act=_save,
            words=(Word("FILE", "file"),),
            options=(_FORCE,),
        ),
        Command(
            name="load",
            busy="no",
            summary="replace it by the messages of a file",
            act=_load,
            words=(Word("FILE", "file", required=True),),
        ),
        Command(
            name="rewind",
            busy="no",
            summary="undo the last turn, or several",
            act=_rewind,
            words=(Word("TURNS"),),
        ),
    ),
)

HISTORY_COMMANDS = (
    HISTORY,
    Command(
        name="save_history",
        summary="save the history; short for `/history save`",
        act=_save,
        words=(Word("FILE", "file"),),
        options=(_FORCE,),
    ),
    Command(
        name="compact",
        summary="let the model summarize the conversation to free context",
        act=_compact,
        words=(Word("WHAT TO KEEP", rest=True),),
    ),
    Command(
        name="clear",
        busy="no",
        summary="clear the history; short for `/history clear`",
        act=_clear,
        words=(Word("all"),),
    ),
)
