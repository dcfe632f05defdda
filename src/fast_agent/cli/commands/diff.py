"""`fast-agent diff`: what differs between two card sets, conversations, or runs."""

from __future__ import annotations

import hashlib
import json
import os
from collections import Counter
from difflib import SequenceMatcher
from itertools import zip_longest
from pathlib import Path
from typing import TYPE_CHECKING, Final, Literal, TypeAlias

import click

from fast_agent.cards.card_files import CARD_SUFFIXES
from fast_agent.cli import options
from fast_agent.cli.output import standard_output
from fast_agent.errors import CardError, FastAgentError, RunError, SessionError
from fast_agent.text.frozen import frozen
from fast_agent.text.visible import visible, visible_lines
from fast_agent.text.wording import plural

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from fast_agent.cards.card import Card
    from fast_agent.commands.session_commands import SessionUsage
    from fast_agent.messages.message import Content, Message
    from fast_agent.recording.cassette import Cassette
    from fast_agent.sessions.state import SessionState
    from fast_agent.text.json_value import JsonObject, JsonValue
    from fast_agent.trust.effect import Effect

Kind: TypeAlias = Literal["cards", "messages", "steps"]
Parts: TypeAlias = "dict[str, JsonObject]"

_WHAT: Final = {
    "cards": ("agent", "agents"),
    "messages": ("message", "messages"),
    "steps": ("step", "steps"),
}
_SIGNS: Final = {"added": "+", "removed": "-", "changed": "~"}
_COLOURS: Final = {"+": "32", "-": "31", "~": "1"}
_HISTORY_SUFFIX: Final = ".json"
_DELIMITERS: Final = ("---SYSTEM", "---USER", "---ASSISTANT")
_UNCOMPARED: Final = frozenset({"order", "clock", "id", "time"})
"""Kinds of steps that differ in every run."""

_BAR_COLUMNS: Final = 40
_MAX_BARS: Final = 50


@frozen
class Side:
    """One of the two things that are compared.

    Args:
        name: What the user calls it.
        kind: What its parts are; only equal kinds are compared.
        parts: The agents, messages or steps by name, in order.
        usage: What a session used; None where that is not known.
        cards: The cards, where it is a card set.
    """

    name: str
    kind: Kind
    parts: Parts
    usage: SessionUsage | None = None
    cards: tuple[Card, ...] = ()


@frozen
class Change:
    """One part that differs.

    Args:
        name: The agent, message or step.
        before: The part as A has it, without members that B has as well; None where A lacks it.
        after: The part as B has it, likewise.
    """

    name: str
    before: JsonObject | None
    after: JsonObject | None

    @property
    def kind(self) -> Literal["added", "removed", "changed"]:
        """Whether A lacks it, B lacks it, or they differ."""
        if self.before is None:
            return "added"
        return "removed" if self.after is None else "changed"


@click.command()
@click.argument("a")
@click.argument("b")
@options.output_format(
    "json", "svg", help_text="Text, JSON, or a picture of both card sets as SVG."
)
@click.option("--exit-code", is_flag=True, help="Exit with status 1 if there are differences.")
@options.MULTI_CARD
@options.STORE
@click.pass_context
def command(
    ctx: click.Context, a: str, b: str, output: str, exit_code: bool, multi_card: bool
) -> None:
    """Show what differs between A and B. Nothing is run.

    A and B are two card files or directories; two conversations, each a session or a history file;
    or two runs, each a recording or a run of a batch. Sessions and runs are named by their ids or a
    unique prefix. Of cards it shows fields, instructions, effects and agents that were added or
    removed.

    Exit status: 0, or 1 with --exit-code if something differs; 1 if A or B cannot be read.
    """
    before, after = read_side(a, multi_card=multi_card), read_side(b, multi_card=multi_card)
    if before.kind != after.kind:
        one, other = (_WHAT[side.kind][1] for side in (before, after))
        raise click.UsageError(f"`{a}` has {one} and `{b}` has {other}, which cannot be compared")
    changes = list(compare(before, after))
    out = standard_output()
    if output == "json":
        out.write_json(diff_json(before, after, changes))
    elif output == "svg":
        if before.kind != "cards":
            raise click.UsageError("--format svg draws card sets only")
        out.write_facts(_picture(before, after, changes))
    else:
        lines = [*_head(before, after, changes), *_lines(changes), *_usage(before, after)]
        if out.wants_color:
            out.write_painted("".join(f"{_painted(line)}\n" for line in lines))
        else:
            out.write_facts("".join(f"{line}\n" for line in lines))
    if exit_code and changes:
        ctx.exit(1)


def read_side(name: str, *, multi_card: bool = False) -> Side:
    """Read one of the two things to compare.

    Args:
        name: A path, or the id of a session or run.
        multi_card: Whether a card file may hold several cards.

    Raises:
        FastAgentError: It does not exist, or cannot be read.
    """
    path = Path(name)
    if path.is_dir():
        return _card_side(name, multi_card=multi_card)
    if not path.exists():
        return _stored_side(name)
    with path.open("rb") as file:
        head = file.read(4096).decode("utf-8", "replace")
    if head.lstrip().startswith('{"cassette"'):
        return _recorded_side(name, path)
    if path.suffix.lower() == _HISTORY_SUFFIX or head.lstrip().startswith(_DELIMITERS):
        return _history_side(name, path)
    if path.suffix.lower() in CARD_SUFFIXES:
        return _card_side(name, multi_card=multi_card)
    raise FastAgentError(
        f"`{name}` is neither a card, a history nor a recording",
        hint="cards end in `.md`, `.markdown`, `.yaml` or `.yml`, histories in `.json`",
    )


def compare(before: Side, after: Side) -> Iterator[Change]:
    """Compare two sides of one kind.

    Yields:
        What differs: in the order of A, and what only B has at the end or, for messages, where it
        was inserted.
    """
    if before.kind == "messages":
        yield from _compare_messages(before.parts, after.parts)
        return
    for name in dict.fromkeys((*before.parts, *after.parts)):
        one, other = before.parts.get(name), after.parts.get(name)
        if one != other:
            yield _change(name, one, other)


def _compare_messages(before: Parts, after: Parts) -> Iterator[Change]:
    """Align messages by their content, so that an inserted one does not move all that follow."""
    names, others = list(before), list(after)
    texts = [[json.dumps(part) for part in parts.values()] for parts in (before, after)]
    matcher = SequenceMatcher(None, *texts, autojunk=False)
    for tag, start, end, first, last in matcher.get_opcodes():
        if tag == "equal":
            continue
        for one, other in zip_longest(names[start:end], others[first:last]):
            old, new = before.get(one or ""), after.get(other or "")
            yield _change(one or other or "", old, new)


def _change(name: str, before: JsonObject | None, after: JsonObject | None) -> Change:
    if before is None or after is None:
        return Change(name, before, after)
    return Change(
        name,
        {key: value for key, value in before.items() if after.get(key) != value},
        {key: value for key, value in after.items() if before.get(key) != value},
    )


def _card_side(name: str, *, multi_card: bool) -> Side:
    from fast_agent.cards.load import load_cards
    from fast_agent.text.environment import VariableNames

    load = load_cards([name], environ=VariableNames(os.environ), multi_card=multi_card)
    if unread := load.unread_errors():
        raise CardError(unread[0].message, hint=unread[0].hint, diagnostics=unread)
    effects: dict[str, list[JsonValue]] = {}
    for effect in _effects(name, load.cards):
        effects.setdefault(effect.holder.name, []).append(f"{effect.kind} {effect.subject}")
    parts: Parts = {}
    for card in load.cards:
        own = effects.get(card.config.name)
        parts[card.config.name] = {**_card_facts(card), **({"effects": own} if own else {})}
    return Side(name, "cards", parts, cards=tuple(load.cards))


def _card_facts(card: Card) -> dict[str, JsonValue]:
    """Return the fields that a card sets, the instruction last, with paths as they are written."""
    from fast_agent.cards.dump import PathRebase, field_values

    here = card.config.directory or Path()
    values, _ = field_values(card.config, written=card.written, moved=PathRebase(here, here))
    facts = {name: value for name, value in values.items() if name not in {"name", "instruction"}}
    if card.config.instruction:
        facts["instruction"] = card.config.instruction
    return facts


def _effects(name: str, cards: Sequence[Card]) -> tuple[Effect, ...]:
    """Work out what cards would do beyond talking, as if a found project had them."""
    from fast_agent.models.spec import parse_model_spec
    from fast_agent.trust.context import GivenOptions
    from fast_agent.trust.effects.survey import RootSurvey, survey

    path = Path(os.path.realpath(name))
    root = path if path.is_dir() else path.parent
    given = GivenOptions(parse_model=parse_model_spec, environ=dict(os.environ), cwd=Path.cwd())
    return survey(RootSurvey(root=root, given=given, cards=tuple(cards))).effects


def _history_side(name: str, path: Path) -> Side:
    from fast_agent.messages.file import read_history

    document = read_history(path)
    system: Parts = {} if document.system is None else {"system prompt": {"text": document.system}}
    messages = {
        f"message {number}, {message.role}": _message_facts(message)
        for number, message in enumerate(document.messages, 1)
    }
    return Side(name, "messages", {**system, **messages})


def _stored_side(name: str) -> Side:
    """Read a session, else a run.

    Raises:
        FastAgentError: There is neither, or the id is that of several.
    """
    from fast_agent.cli.commands.session import session_store

    store = session_store()
    try:
        found = store.find(name)
    except SessionError as error:
        if not error.message.startswith("there is no session"):
            raise
    else:
        return _session_side(name, store.read(found)[1])
    try:
        return _run_side(name)
    except RunError as error:
        if "several" in error.message:
            raise
        raise FastAgentError(
            f"there is no file, session or run `{name}`",
            hint="`fast-agent session list` and `fast-agent runs list` show their ids",
        ) from error


def _session_side(name: str, state: SessionState) -> Side:
    from fast_agent.commands.session_commands import SessionUsage

    parts: Parts = {}
    for number, turn in enumerate(state.turns, 1):
        messages = turn.closed() if turn.ended is None else turn.messages()
        for place, message in enumerate(messages, 1):
            who = "you" if message.role == "user" and not message.tool_results else turn.agent
            parts[f"turn {number}, message {place}, {who}"] = _message_facts(message)
    return Side(name, "messages", parts, SessionUsage.of(state))


def _message_facts(message: Message) -> JsonObject:
    """Return what a message says, without the ids of its calls, which differ in every run."""
    facts: dict[str, JsonValue] = {}
    if message.content:
        facts["text"] = "\n".join(map(_block, message.content))
    if message.tool_calls:
        facts["calls"] = [{call.name: call.arguments} for call in message.tool_calls]
    if message.tool_results:
        facts["results"] = [
            {"error" if result.is_error else "result": "\n".join(map(_block, result.content))}
            for result in message.tool_results
        ]
    if message.stop_reason not in {None, "endTurn", "toolUse"}:
        facts["stop_reason"] = message.stop_reason
    return facts


def _block(block: Content) -> str:
    """Return a text as it is, and anything else by its type and digest."""
    from fast_agent.messages.json_message import content_to_wire
    from fast_agent.messages.message import TextContent

    if isinstance(block, TextContent):
        return block.text
    text = json.dumps(content_to_wire(block), sort_keys=True)
    digest = hashlib.sha256(text.encode()).hexdigest()[:12]
    return f"[{type(block).__name__}, {len(text):,} characters, {digest}]"


def _run_side(name: str) -> Side:
    from fast_agent.cli import process as event_loop
    from fast_agent.cli.running.batch_run import runs_directory
    from fast_agent.engine.embedded import EmbeddedRuns

    runs = EmbeddedRuns(runs_directory())

    async def read() -> Cassette:
        return await runs.export((await runs.find(name)).id)

    return _step_side(name, event_loop.run(read))


def _recorded_side(name: str, path: Path) -> Side:
    from fast_agent.recording.cassette import read_cassette

    return _step_side(name, read_cassette(path))


def _step_side(name: str, cassette: Cassette) -> Side:
    """Number the steps of each agent by kind, since ids and message digests differ in every run."""
    from fast_agent.steps.parts import spread

    counts: Counter[tuple[str, str]] = Counter()
    parts: Parts = {}
    for entry in cassette.entries.values():
        key = entry.key
        if key.kind in _UNCOMPARED:
            continue
        counts[key.agent, key.kind] += 1
        facts: dict[str, JsonValue] = {"asked": spread(entry.asked, cassette.parts)}
        if entry.failure is not None:
            facts["error"] = entry.failure.message
        elif entry.unfinished:
            facts["unfinished"] = True
        else:
            facts["gave"] = entry.gave
        parts[f"{key.agent or 'run'}: {key.kind} {counts[key.agent, key.kind]}"] = facts
    return Side(name, "steps", parts)


def diff_json(before: Side, after: Side, changes: Sequence[Change]) -> JsonObject:
    """Return a comparison as a JSON object.

    Args:
        before: A.
        after: B.
        changes: What differs.
    """
    from fast_agent.commands.session_commands import usage_json

    sides: dict[str, JsonValue] = {}
    for label, side in (("a", before), ("b", after)):
        facts: dict[str, JsonValue] = {"name": side.name, _WHAT[side.kind][1]: len(side.parts)}
        if side.usage is not None:
            facts["usage"] = usage_json(side.usage)
        sides[label] = facts
    return {
        "kind": before.kind,
        **sides,
        "changes": [
            {"name": one.name, "change": one.kind, "before": one.before, "after": one.after}
            for one in changes
        ],
    }


def _head(before: Side, after: Side, changes: Sequence[Change]) -> Iterator[str]:
    counts = Counter(change.kind for change in changes)
    help_text = [f"{counts[kind]} {kind}" for kind in _SIGNS if counts[kind]]
    yield f"--- {visible(before.name)}  {_counted(before)}"
    yield f"+++ {visible(after.name)}  {_counted(after)}"
    yield ", ".join(help_text) or "no differences"


def _counted(side: Side) -> str:
    one, many = _WHAT[side.kind]
    return plural(len(side.parts), one, many)


def _lines(changes: Sequence[Change]) -> Iterator[str]:
    """Write each change below a sign and its name, with a unified diff of what differs."""
    from fast_agent.recording.replayer import difference

    for change in changes:
        yield ""
        yield f"{_SIGNS[change.kind]} {visible(change.name)}"
        before, after = change.before or {}, change.after or {}
        for member in dict.fromkeys((*before, *after)):
            # One by one: lines of an instruction would be aligned with those of other fields.
            one, other = (
                {member: side[member]} if member in side else {} for side in (before, after)
            )
            for line in visible_lines(difference(one, other)).split("\n"):
                if not line.startswith("@@"):
                    yield f"  {line}"


def _usage(before: Side, after: Side) -> Iterator[str]:
    """Draw the tokens of two sessions turn by turn, on one scale."""
    from fast_agent.commands.session_commands import counted

    one, other = before.usage, after.usage
    if one is None or other is None:
        return
    yield from ("", f"- {counted(one.total)}", f"+ {counted(other.total)}")
    turns = list(zip_longest(one.turns[:_MAX_BARS], other.turns[:_MAX_BARS]))
    longest = max(
        (turn.usage.total_tokens for pair in turns for turn in pair if turn is not None), default=0
    )
    if not longest:
        return
    yield from ("", "tokens by turn, with all it started:")
    for number, pair in enumerate(turns, 1):
        for sign, turn in zip("-+", pair, strict=True):
            if turn is not None:
                tokens = turn.usage.total_tokens
                bar = "#" * max(bool(tokens), round(_BAR_COLUMNS * tokens / longest))
                yield f"{sign} {number:>4}  {tokens:>9,} {bar}".rstrip()
    if left := max(len(one.turns), len(other.turns)) - len(turns):
        yield f"… {left:,} more turns"


def _painted(line: str) -> str:
    """Colour a line by its sign; the sign stays, so colour never says anything alone."""
    colour = _COLOURS.get(line.lstrip()[:1])
    return line if colour is None else f"\x1b[{colour}m{line}\x1b[0m"


def _picture(before: Side, after: Side, changes: Sequence[Change]) -> str:
    """Draw the agents of both card sets as one graph, with what differs marked."""
    from fast_agent.cli.card_graph import CardGraph
    from fast_agent.cli.commands.graph import draw_graph

    marks = {change.name: change.kind for change in changes}
    return draw_graph(CardGraph.joined(before.cards, after.cards), marks)
