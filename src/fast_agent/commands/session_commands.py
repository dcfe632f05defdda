"""Commands about sessions: conversations that are kept, and what they used.

What was used is counted in the sessions' logs, by agent, model and turn.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import asdict
from functools import partial
from typing import TYPE_CHECKING, Self

from fast_agent.commands.command import (
    Ask,
    Command,
    CommandResult,
    Option,
    Word,
    listed,
    named_path,
    short,
)
from fast_agent.errors import RunError, SessionError, os_reason
from fast_agent.models.model import Usage
from fast_agent.text.frozen import frozen
from fast_agent.text.visible import visible
from fast_agent.text.wording import local_minute, plural

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from fast_agent.commands.command import Arguments
    from fast_agent.commands.controller import ConversationController
    from fast_agent.sessions.facts import SessionSummary
    from fast_agent.sessions.session import InterruptedTurn, Session
    from fast_agent.sessions.state import SessionState
    from fast_agent.text.json_value import JsonObject

_BAR_COLUMNS = 60
_LINE_COLUMNS = 79
_MAX_NAME_COLUMNS = 32


@frozen
class TurnUsage:
    """What a turn used with all it started.

    Args:
        label: What names the turn: its number, or its session and number.
        agent: The agent.
        usage: The counts.
    """

    label: str
    agent: str
    usage: Usage


@frozen
class SessionUsage:
    """What a session used, or several.

    Args:
        total: All of it; also what no turn below says.
        agents: What each agent used itself, the most first.
        models: What each model used, the most first.
        turns: The turns that nothing else started, in order.
    """

    total: Usage
    agents: Mapping[str, Usage]
    models: Mapping[str, Usage]
    turns: tuple[TurnUsage, ...]

    @classmethod
    def of(cls, state: SessionState) -> Self:
        """Count what a session used."""
        turns = state.all_turns
        return cls(
            Usage(*state.used),
            _sums((turn.agent, Usage(*turn.own)) for turn in turns if turn.own),
            _sums((turn.model, Usage(*turn.own)) for turn in turns if turn.own and turn.model),
            tuple(
                TurnUsage(str(number), turn.agent, Usage(*turn.used))
                for number, turn in enumerate(state.turns, 1)
            ),
        )

    @classmethod
    def together(cls, sessions: Mapping[str, SessionUsage]) -> Self:
        """Add what sessions used; each is one of the turns of the sum.

        Args:
            sessions: The sessions by their label.
        """
        every = sessions.values()
        return cls(
            sum((one.total for one in every), Usage()),
            _sums(pair for one in every for pair in one.agents.items()),
            _sums(pair for one in every for pair in one.models.items()),
            tuple(TurnUsage(label, _main_agent(one), one.total) for label, one in sessions.items()),
        )


def _main_agent(usage: SessionUsage) -> str:
    """Return the agent most turns of a session were asked of."""
    counts = Counter(turn.agent for turn in usage.turns)
    return counts.most_common(1)[0][0] if counts else ""


def _sums(pairs: Iterable[tuple[str | None, Usage]]) -> dict[str, Usage]:
    found: dict[str, Usage] = {}
    for name, usage in pairs:
        if name is not None:
            found[name] = found.get(name, Usage()) + usage
    return dict(sorted(found.items(), key=lambda one: (-one[1].total_tokens, one[0])))


def usage_lines(usage: SessionUsage, *, turns: str = "turn", most: int = 50) -> list[str]:
    """Draw what was used: the sum, each agent and model, and a bar for each turn.

    Args:
        usage: The counts.
        turns: What a turn is called, such as `session` where each is the sum of one.
        most: Maximum number of turns; the last ones are drawn.
    """
    lines = [counted(usage.total)]
    lines += _table("by agent, each itself:", usage.agents)
    lines += _table("by model:", usage.models)
    uncounted = usage.total.requests - sum(one.requests for one in usage.agents.values())
    if uncounted > 0:
        lines.append(
            f"  in addition {plural(uncounted, 'request')} of agents that were not recorded"
        )
    return lines + _bars(usage, turns, most)


def usage_json(usage: SessionUsage, *, turns: str = "turns") -> JsonObject:
    """Return the counts as a JSON object."""
    return {
        "total": asdict(usage.total),
        "agents": {name: asdict(one) for name, one in usage.agents.items()},
        "models": {name: asdict(one) for name, one in usage.models.items()},
        turns: [{"id": one.label, "agent": one.agent, **asdict(one.usage)} for one in usage.turns],
    }


def counted(usage: Usage) -> str:
    """Describe counts in a line."""
    cached = f" ({usage.cache_read_tokens:,} cached)" if usage.cache_read_tokens else ""
    return (
        f"{usage.input_tokens:,} tokens in{cached}, {usage.output_tokens:,} out, "
        f"{plural(usage.requests, 'request')}, {plural(usage.tool_calls, 'tool call')}"
        f"{_price(usage)}"
    )


def _table(title: str, rows: Mapping[str, Usage]) -> list[str]:
    if not rows:
        return []
    names = {name: _named(name) for name in rows}
    width = max(map(len, names.values()))
    return ["", title, *(f"  {names[name]:<{width}}  {counted(one)}" for name, one in rows.items())]


def _bars(usage: SessionUsage, turns: str, most: int) -> list[str]:
    shown = usage.turns[-most:]
    if not shown:
        return []
    longest = max(1, *(one.usage.total_tokens for one in shown))
    labels = [f"{one.label} {_named(one.agent)}" for one in shown]
    width = max(map(len, labels))
    left = len(usage.turns) - len(shown)
    more = f", the last {len(shown)} of {len(usage.turns):,}" if left else ""
    lines = ["", f"tokens by {turns}, with all it started{more}:"]
    digits = len(f"{longest:,}")
    room = min(_BAR_COLUMNS, _LINE_COLUMNS - len(f"  {'':{width}}  {'':{digits}} "))
    for label, one in zip(labels, shown, strict=True):
        tokens = one.usage.total_tokens
        bar = "#" * max(bool(tokens), round(room * tokens / longest))
        lines.append(f"  {label:<{width}}  {tokens:>{digits},} {bar}".rstrip())
    return lines


def _named(name: str) -> str:
    text = visible(name)
    cut = f"{text[: _MAX_NAME_COLUMNS - 3]}..."
    return text if len(text) <= _MAX_NAME_COLUMNS else cut


def _price(usage: Usage) -> str:
    if not usage.priced:
        return ""
    rest = usage.requests - usage.priced
    more = f" and {plural(rest, 'request')} of unknown price" if rest else ""
    return f", ${usage.nanodollars / 1e9:,.4f}{more}"


async def _list(arguments: Arguments, controller: ConversationController) -> CommandResult:
    from anyio.to_thread import run_sync

    del arguments
    here = None if controller.session is None else controller.session.id
    lines = [_line(one, here) for one in await run_sync(controller.sessions.list)]
    return CommandResult(text=listed(lines) if lines else "there are no sessions")


def _line(one: SessionSummary, here: str | None) -> str:
    when = local_minute(one.changed)
    about = short(one.problem or one.title)
    mark = " (this one)" if one.id == here else ""
    turns = plural(one.turns, "turn")
    return f"`{one.id}`{mark} {when}, {turns}" + (f": {about}" if about else "")


async def _new(arguments: Arguments, controller: ConversationController) -> CommandResult:
    session = controller.sessions.create(arguments.word(), cwd=controller.workspace)
    return await _changed(controller, session, "session `{}` began")


async def _resume(arguments: Arguments, controller: ConversationController) -> CommandResult:
    wanted = arguments.word()
    if wanted is None:
        wanted = controller.sessions.latest(controller.workspace)
        if wanted is None:
            raise SessionError(
                "no session of this project began in this directory",
                hint="`/session list` lists others",
            )
    found = controller.sessions.find(wanted)
    if controller.session is not None and found == controller.session.id:
        return CommandResult(text=f"session `{found}` is already open here")
    from anyio.to_thread import run_sync

    session = await run_sync(controller.sessions.open_unasked, found)
    try:
        await _agree(controller, session)
    except BaseException:
        session.close()
        raise
    return await _changed(controller, session, "session `{}` continues")


async def _agree(controller: ConversationController, session: Session) -> None:
    """Ask the user where agents may do more than when the session was kept, or elsewhere.

    Raises:
        TrustError: The user did not agree, or cannot be asked.
    """
    policy = controller.program.gate.policy
    if policy.everything:  # `--trust` holds for this run, and is not remembered
        return
    change = controller.sessions.change(session)
    if change is not None:
        ask = controller.confirm if policy.may_ask else None
        if ask is None or not await ask("Go on with this session?", change.text):
            raise change.refusal
    controller.sessions.agreed(session)


async def _continue(arguments: Arguments, controller: ConversationController) -> CommandResult:
    del arguments
    session = _require_session(controller)
    found = session.interrupted
    if found is None:
        return CommandResult(text="no turn of this session was interrupted", failed=True)
    session.take_up()
    controller.conversation.restore()
    return CommandResult(
        text=f"{_answered(found)} kept, the rest is asked now",
        session_changed=True,
        agent=found.agent if found.agent != controller.agent else None,
        ask=Ask(agent=found.agent, text=found.message.text, content=found.message.content),
    )


def _answered(found: InterruptedTurn) -> str:
    return f"{found.answered} answer{' is' if found.answered == 1 else 's are'}"


def interruption(session: Session | None) -> str | None:
    """Return the notice about an interrupted turn, or None."""
    found = None if session is None else session.interrupted
    if found is None:
        return None
    return (
        f"the turn `{short(found.message.text)}` was interrupted, and {_answered(found)} kept;"
        " `/session continue` continues it"
    )


async def _fork(arguments: Arguments, controller: ConversationController) -> CommandResult:
    from anyio.to_thread import run_sync

    here, at = _require_session(controller), arguments.word()
    session = await run_sync(partial(controller.sessions.fork, here.id, at))
    return await _changed(
        controller, session, "session `{}` continues from here; " + f"`{here.id}` stays"
    )


async def _changed(
    controller: ConversationController, session: Session, template: str
) -> CommandResult:
    before = controller.agent
    await controller.change_session(session)
    text = template.format(session.id)
    if controller.agent != before:
        text += f"; talking to `{controller.agent}`"
    other = controller.agent if controller.agent != before else None
    return CommandResult(text=text, session_changed=True, agent=other)


async def _rename(arguments: Arguments, controller: ConversationController) -> CommandResult:
    _require_session(controller).rename(arguments.words[0])
    return CommandResult(text=f"the session is called {short(arguments.words[0])}")


async def _delete(arguments: Arguments, controller: ConversationController) -> CommandResult:
    found = controller.sessions.find(arguments.words[0])
    if controller.session is not None and found == controller.session.id:
        raise RunError(
            "the open session cannot be deleted",
            hint="`/session new` starts another first",
        )
    controller.sessions.delete(found)
    return CommandResult(text=f"session `{found}` is deleted")


async def _export(arguments: Arguments, controller: ConversationController) -> CommandResult:
    from anyio.to_thread import run_sync

    from fast_agent.sessions.export import export_json, export_markdown
    from fast_agent.text.safe_file import write_atomic

    here = _require_session(controller)
    name = arguments.word() or f"{here.id}.md"
    path = named_path(name, controller)
    if not arguments.has("--force") and (path.is_symlink() or path.exists()):
        raise RunError(f"`{path}` already exists", hint="`--force` replaces it")
    summary, state = await run_sync(controller.sessions.read, here.id)
    as_json = path.suffix.lower() == ".json"
    text = export_json(state) if as_json else export_markdown(summary, state)
    try:
        await run_sync(write_atomic, path, text.encode(errors="replace"))
    except OSError as error:
        reason = os_reason(error)
        raise SessionError(f"`{path}` cannot be written: {reason}") from error
    return CommandResult(text=f"the session is written to `{path}`")


def _require_session(controller: ConversationController) -> Session:
    if controller.session is None:
        hint = "`/session new` starts one" if controller.keeps_sessions else None
        raise RunError("this conversation is not saved as a session", hint=hint)
    return controller.session


_ID = Word("ID", "session", required=True)
SESSION = Command(
    name="session",
    summary="list, start, resume, fork, rename, delete or export saved conversations",
    actions=(
        Command(name="list", busy="now", summary="list the sessions", act=_list),
        Command(
            name="new",
            busy="no",
            summary="start a session",
            act=_new,
            words=(Word("TITLE", rest=True),),
        ),
        Command(
            name="resume",
            busy="no",
            summary="resume a session; without an id, the newest one in this directory",
            act=_resume,
            words=(Word("ID", "session"),),
        ),
        Command(
            name="continue",
            busy="no",
            summary="continue the turn that was under way when the program was killed",
            act=_continue,
        ),
        Command(
            name="fork",
            busy="no",
            summary="continue in a new session, copied from this one up to a turn",
            act=_fork,
            words=(Word("TURN", "turn"),),
        ),
        Command(
            name="rename",
            summary="set the title of this session",
            act=_rename,
            words=(Word("TITLE", required=True, rest=True),),
        ),
        Command(
            name="delete", busy="no", summary="delete another session", act=_delete, words=(_ID,)
        ),
        Command(
            name="export",
            summary="write this session as Markdown, or as JSON if the name ends in `.json`",
            act=_export,
            words=(Word("FILE", "file"),),
            options=(Option("--force", "overwrite an existing file"),),
        ),
    ),
)
