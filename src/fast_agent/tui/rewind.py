"""Rewind: take turns back, with the files they wrote, and undo that."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Final

from anyio.to_thread import run_sync

from fast_agent.commands.command import Command, CommandResult, short
from fast_agent.errors import RunError
from fast_agent.text.frozen import frozen
from fast_agent.text.wording import plural
from fast_agent.tools.files.file_history import FileRestore, content_of
from fast_agent.tui.drawing.rows import shown
from fast_agent.tui.input.attachments import typed_text
from fast_agent.tui.questions import Choice, Question

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from fast_agent.commands.command import Arguments
    from fast_agent.commands.controller import ConversationController
    from fast_agent.sessions.event import Row
    from fast_agent.tui.console import Console

_MAX_CHOICES: Final = 9
_MAX_FILES: Final = 20


@frozen
class _Turn:
    """A turn that may be taken back.

    Args:
        turn_id: The turn; empty where the conversation is not saved as a session.
        agent: Whose turn it was.
        text: What the user said.
    """

    turn_id: str
    agent: str
    text: str


@frozen
class _Undo:
    """What a rewind took away.

    Args:
        conversation: The session, or None; the undo holds in this conversation alone.
        turns: How many turns were left.
        restore: Restores the turns.
        files: The files that were restored, as they were before it; None for one that was created.
    """

    conversation: str | None
    turns: int
    restore: Callable[[], None]
    files: tuple[tuple[Path, bytes | None], ...]


class Rewind:
    """The commands `/history rewind` and `/undo`.

    Args:
        console: The terminal.
    """

    def __init__(self, console: Console) -> None:
        self._console = console
        self._undo: _Undo | None = None

    def commands(self, history: Command) -> tuple[Command, ...]:
        """Return `/history` with this rewind, and `/undo`.

        Args:
            history: The command of the table.
        """
        actions = tuple(
            replace(one, act=self.rewind) if one.name == "rewind" else one
            for one in history.actions
        )
        undo = Command(
            name="undo", summary="restore the turns of the last rewind", act=self.undo, busy="no"
        )
        return replace(history, actions=actions), undo

    async def rewind(
        self, arguments: Arguments, controller: ConversationController
    ) -> CommandResult:
        """Take turns back; asks which, and what with the files they wrote."""
        turns = _turns(controller, self._console.file_history.turn_ids)
        if not turns:
            raise RunError("there are no turns to take back")
        back = _number(arguments.word(), len(turns))
        if back is None:
            back = await self._choose(turns)
        if not back:
            return CommandResult(text="nothing was taken back")
        taken = turns[-back:]
        files = await run_sync(
            self._console.file_history.restores, {turn.turn_id for turn in taken}
        )
        how = await self._confirm(taken, files, can_fork=controller.session is not None)
        if how == "fork":
            return await self._fork(controller, len(turns) - back)
        if how not in {"turns", "files"}:
            return CommandResult(text="nothing was taken back")
        chosen = files if how == "files" else ()
        before = [(one.path, content_of(one.path)) for one in chosen if one.obstacle is None]
        restored = await run_sync(self._console.file_history.restore, chosen)
        turn_ids = self._console.file_history.turn_ids
        restore = _rewind_turns(controller, back, len(turns) - back, turn_ids)
        here = None if controller.session is None else controller.session.id
        kept = tuple((path, old) for path, old in before if path in restored)
        self._undo = _Undo(here, len(turns) - back, restore, kept)
        if self._console.editor.is_empty:
            self._console.editor.put(taken[0].text)
        text = f"{plural(back, 'turn')} taken back"
        if restored:
            text += f", {plural(len(restored), 'file')} restored"
        return CommandResult(text=f"{text}; `/undo` reverses this", session_changed=True)

    async def undo(self, arguments: Arguments, controller: ConversationController) -> CommandResult:
        """Restore what the last rewind took away, if nothing was said since."""
        del arguments
        undo, here = self._undo, None if controller.session is None else controller.session.id
        if undo is None or undo.conversation != here:
            raise RunError("there is no rewind to undo")
        if len(_turns(controller, self._console.file_history.turn_ids)) != undo.turns:
            raise RunError(
                "the rewind cannot be undone: the conversation continued after it",
                hint="`/session fork` keeps another version of a conversation",
            )
        self._undo = None
        undo.restore()
        files = [FileRestore(path, content) for path, content in undo.files]
        await run_sync(self._console.file_history.restore, files)
        self._console.editor.clear()
        more = f" and {plural(len(files), 'file')}" if files else ""
        return CommandResult(text=f"restored the turns{more}", session_changed=True)

    async def _choose(self, turns: Sequence[_Turn]) -> int:
        """Ask which turn to go back to; returns how many turns that takes back."""
        newest = list(enumerate(reversed(turns), 1))[: _MAX_CHOICES - 1]
        choices = [Choice("", "(now) change nothing", 0)]
        choices += [
            Choice("", f"{shown(turn.agent)}: {shown(short(turn.text))}", back)
            for back, turn in newest
        ]
        left = len(turns) - len(newest)
        lines = [f"{left} earlier: `/history rewind TURNS`"] if left else []
        question = Question("Go back to before which message?", lines, choices, selected=0)
        back = await self._console.questions.ask(question)
        return back if isinstance(back, int) else 0

    async def _confirm(
        self, taken: Sequence[_Turn], files: Sequence[FileRestore], *, can_fork: bool
    ) -> object:
        agents = ", ".join(sorted({turn.agent for turn in taken}))
        lines = [f"{plural(len(taken), 'turn')} of {shown(agents)}"]
        lines += [f"  {shown(short(turn.text))}" for turn in taken]
        free = [one for one in files if one.obstacle is None]
        lines += [_file_line(one, self._console.controller.workspace) for one in files[:_MAX_FILES]]
        if len(files) > _MAX_FILES:
            lines.append(f"  {len(files) - _MAX_FILES} more files")
        if files:
            lines.append("What commands changed is not restored.")
        choices = [Choice("t", "take back the turns", "turns")]
        if free:
            count = plural(len(free), "file")
            choices.append(Choice("f", f"take back the turns, and restore {count}", "files"))
        if can_fork:
            choices.append(Choice("k", "fork: keep this session, continue in another", "fork"))
        choices.append(Choice("n", "back", None))
        return await self._console.questions.ask(Question("This takes back:", lines, choices))

    async def _fork(self, controller: ConversationController, at: int) -> CommandResult:
        here = controller.session
        if here is None:
            raise RunError("this conversation is not saved as a session")
        session = await run_sync(partial(controller.sessions.fork, here.id, at))
        await controller.change_session(session)
        text = f"session `{session.id}` is a fork of `{here.id}`, which stays as it is"
        return CommandResult(text=text, session_changed=True)


def _turns(controller: ConversationController, turn_ids: Sequence[str]) -> list[_Turn]:
    if controller.session is not None:
        found: list[_Turn] = []
        for turn in controller.session.state.turns:
            asked = next((typed_text(one) for one in turn.closed() if one.role == "user"), "")
            found.append(_Turn(turn.turn_id, turn.agent, asked))
        return found
    agent = controller.instance()
    said = [typed_text(one) for one in agent.history if one.begins_turn]
    ids = [*([""] * len(said)), *turn_ids][-len(said) :] if said else []
    return [_Turn(one, agent.name, text) for one, text in zip(ids, said, strict=True)]


def _rewind_turns(
    controller: ConversationController, back: int, left: int, turn_ids: list[str]
) -> Callable[[], None]:
    """Take turns back; returns what restores them."""
    gone = turn_ids[-back:]
    del turn_ids[-back:]
    session = controller.session
    if session is None:
        agent = controller.instance()
        messages = tuple(agent.history)
        starts = [number for number, one in enumerate(messages) if one.begins_turn]
        agent.load_history(messages[: starts[-back]])

        def load() -> None:
            agent.load_history(messages)
            turn_ids.extend(gone)

        return load
    events: list[tuple[float, Row]] = session.events_after(left)
    session.rewind(left)
    controller.conversation.restore()

    def restore() -> None:
        session.take_over(events)
        turn_ids.extend(gone)
        controller.conversation.restore()

    return restore


def _file_line(one: FileRestore, workspace: Path) -> str:
    is_below = one.path.is_relative_to(workspace)
    name = shown(str(one.path.relative_to(workspace) if is_below else one.path))
    if one.obstacle is not None:
        return f"  {name}: stays as it is ({one.obstacle})"
    return f"  {'remove' if one.old is None else 'restore'} {name}"


def _number(text: str | None, most: int) -> int | None:
    if text is None:
        return None
    if text.isascii() and text.isdecimal() and len(text) < 10 and 1 <= int(text) <= most:
        return int(text)
    raise RunError(f"`{short(text)}` is not a number of turns", hint=f"there are {most}")
