"""Child history: where the messages a child starts with come from, and where its new ones go.

Five sources and five merge targets, in every combination; each is one small value here.

A child call is one turn of a clone with such a history.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Final, Protocol, TypeAlias, assert_never

from anyio import CancelScope

from fast_agent.agents.conversation import conversation_of
from fast_agent.agents.history.transcript import Transcript
from fast_agent.cards.agent_config import NO_OVERRIDES, ChildHistory
from fast_agent.errors import FastAgentError, RunError
from fast_agent.messages.json_message import message_from_wire
from fast_agent.sessions.cumulative import CumulativeTranscript
from fast_agent.steps.steps import Codec, Step, here
from fast_agent.text.frozen import frozen

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from pathlib import Path

    from fast_agent.agents.tool_calls import ChildCallBatch
    from fast_agent.cards.agent_config import AgentConfig, HistorySource, HistoryTarget
    from fast_agent.cards.card import Card
    from fast_agent.messages.message import Message

    Check = Callable[[Path], Path]
    from collections.abc import Callable

    from fast_agent.agents.agent import Agent
    from fast_agent.agents.turn_context import TurnContext, TurnResult
    from fast_agent.text.json_value import JsonValue


@frozen
class HistoryRoute:
    """How the histories of a parent and one of its children meet.

    Args:
        child: The child's name, for messages.
        source: What the child starts with; None is nothing.
        target: Where its new messages go; None is nowhere.
    """

    child: str
    source: Source | None = None
    target: Target | None = None

    def defer(self, child_calls: ChildCallBatch, index: int, messages: Sequence[Message]) -> None:
        """Deliver a child's new messages when all calls of the message have ended.

        Args:
            child_calls: The parent's side.
            index: Which call of the parent's message the child answered, from 0.
            messages: The child's new messages.
        """
        target = self.target
        if target is None or not messages:
            return

        async def deliver() -> None:
            try:
                await target(child_calls, messages)
            except FastAgentError as error:
                child_calls.warn(
                    f"the messages of agent `{self.child}` were not saved: {error.message}"
                )

        child_calls.defer(index, deliver)


@frozen(kw_only=True)
class ChildHistories:
    """Draws the routes of one runtime.

    Args:
        cards: All cards, by name.
        workspace: Where relative paths of agents made in Python start.
        wanted: What the program wants of every parent, over cards.
    """

    cards: Mapping[str, Card]
    workspace: Path
    wanted: ChildHistory = NO_OVERRIDES

    def route(
        self, parent: AgentConfig, child: str, wanted: ChildHistory | None = None
    ) -> HistoryRoute:
        """Draw the route between a parent and a child.

        Args:
            parent: The parent.
            child: The child's name; the parent's `child_history` may hold settings for it.
            wanted: What this one call wants, over the program and the cards.

        Raises:
            RunError: The child has no history file to merge into.
        """
        source, target = resolve_history(parent, child, wanted or NO_OVERRIDES, self.wanted)
        return HistoryRoute(child, self._source(child, source), self._target(parent, child, target))

    def _source(self, child: str, word: HistorySource) -> Source | None:
        match word:
            case "none":
                return None
            case "messages":
                paths = self._files(child)
                return self._from_files(child, paths) if paths else None
            case "child":
                return ChildMemory(child)
            case "orchestrator":
                return parent_conversation
            case "cumulative":
                return session_transcript
        assert_never(word)

    def _target(self, parent: AgentConfig, child: str, word: HistoryTarget) -> Target | None:
        match word:
            case "none" | "cumulative":
                # Every turn goes into the transcript of the session, children's too.
                return None
            case "messages":
                paths = self._files(child)
                if not paths:
                    raise RunError(
                        f"agent `{parent.name}` merges into the `messages` of `{child}`,"
                        " which has none",
                        hint=f"give `{child}` a file in `messages`, or choose another"
                        " `history_merge_target`",
                    )
                return self._into_file(child, paths[0])
            case "child":
                return IntoChildMemory(child)
            case "orchestrator":
                return into_parent
        assert_never(word)

    def _from_files(self, child: str, paths: Sequence[Path]) -> Source:
        return StepSource(child, HistoryFiles(paths, reads_of(self.cards[child].config)))

    def _into_file(self, child: str, path: Path) -> Target:
        grant = self.cards[child].config.grant
        return StepTarget(child, IntoFile(path, None if grant is None else grant.check_write))

    def _files(self, child: str) -> tuple[Path, ...]:
        config = self.cards[child].config
        return history_files(config, self.workspace)


def resolve_history(
    parent: AgentConfig, child: str, *over: ChildHistory
) -> tuple[HistorySource, HistoryTarget]:
    """Resolve the history fields of a parent's child by precedence.

    Args:
        parent: The parent: its own words, and those of its `child_history` before them.
        child: The child's name.
        over: What goes before the card, the strongest first.

    Returns:
        The source and the merge target.
    """
    source, target = parent.history_source, parent.history_merge_target
    own = (parent.child_history or {}).get(child, NO_OVERRIDES)
    for stronger in (own, *reversed(over)):
        source, target = stronger.source or source, stronger.merge_target or target
    return source, target


def reads_of(config: AgentConfig) -> Callable[[Path], Path] | None:
    """Return what is asked before a file of a card is read; None where a user named the card."""
    return None if config.grant is None else config.grant.check_read


def history_files(config: AgentConfig, workspace: Path) -> tuple[Path, ...]:
    """Return the files of a card's `messages`; none for a card from a web address."""
    if config.remote is not None:
        return ()
    directory = config.directory or workspace
    return tuple([directory / name for name in config.messages])


class Source(Protocol):
    """Where the messages a child starts with come from."""

    async def __call__(self, child_calls: ChildCallBatch, /) -> Iterable[Message]:
        """Return the messages; a conversation where starting from it must cost nothing.

        Raises:
            FastAgentError: They cannot be read.
        """
        ...


class Target(Protocol):
    """Where a child's new messages go."""

    async def __call__(self, child_calls: ChildCallBatch, messages: Sequence[Message], /) -> None:
        """Add them there as one block; no cancellation stops it.

        Raises:
            FastAgentError: They cannot be put there.
        """
        ...


class HistoryFiles:
    """The files of a card's `messages`, read again when one of them changed.

    Args:
        paths: The files.
        check: Asked before one is read, where the card was found; returns where it ends.
    """

    def __init__(self, paths: Sequence[Path], check: Check | None = None) -> None:
        self._paths = paths
        self._check = check
        self._seen: list[tuple[int, int, int]] | None = None
        self._conversation = Transcript()

    async def __call__(self, child_calls: ChildCallBatch) -> Transcript:
        """Return what the files contain now."""
        del child_calls
        seen = self._scan()
        if seen is None or seen != self._seen:
            from anyio.to_thread import run_sync

            self._conversation = await run_sync(self._read)
            self._seen = seen
        return self._conversation

    def _scan(self) -> list[tuple[int, int, int]] | None:
        """Return the state of the files; None if one cannot be found."""
        try:
            states = [path.stat() for path in self._paths]
        except OSError:
            return None
        return [(state.st_ino, state.st_size, state.st_mtime_ns) for state in states]

    def _read(self) -> Transcript:
        from fast_agent.messages.file import read_history

        return Transcript(
            [
                message
                for path in self._paths
                for message in read_history(path, check=self._check).messages
            ]
        )


class IntoFile:
    """A history file as a target.

    Args:
        path: The file.
        check: Asked before it is written, where the card was found; returns where it ends.
    """

    def __init__(self, path: Path, check: Check | None = None) -> None:
        self._path = path
        self._check = check

    async def __call__(self, child_calls: ChildCallBatch, messages: Sequence[Message]) -> None:
        """Merge messages into the file, under a lock between processes."""
        del child_calls
        from anyio.to_thread import run_sync

        from fast_agent.messages.file import merge_into

        path = self._path if self._check is None else self._check(self._path)
        with CancelScope(shield=True):
            await run_sync(partial(merge_into, path, messages))


class ChildMemory:
    """What the child's shared instance remembers.

    Args:
        child: The child's name.
    """

    def __init__(self, child: str) -> None:
        self._child = child

    async def __call__(self, child_calls: ChildCallBatch) -> Transcript:
        """Return what it remembers now."""
        return conversation_of(child_calls).agent(self._child).conversation


class IntoChildMemory:
    """The memory of the child's shared instance as a target.

    Args:
        child: The child's name.
    """

    def __init__(self, child: str) -> None:
        self._child = child

    async def __call__(self, child_calls: ChildCallBatch, messages: Sequence[Message]) -> None:
        """Add messages from outside; during a turn of the agent they are added after it."""
        conversation_of(child_calls).agent(self._child).add_external(messages)


async def session_transcript(child_calls: ChildCallBatch) -> Transcript:
    """Return what was said in the conversation until now, in turns that ended."""
    transcript = conversation_of(child_calls).transcript
    return Transcript.of_valid(transcript.messages(), transcript.call_ids)


async def parent_conversation(child_calls: ChildCallBatch) -> Transcript:
    """Return the parent's conversation before the message that made the call."""
    return child_calls.before


async def into_parent(child_calls: ChildCallBatch, messages: Sequence[Message]) -> None:
    """Add messages to the parent's history."""
    child_calls.add_external(messages)


class StepSource:
    """The history files of a child, each reading a step.

    Args:
        child: The child's name.
        source: Reads the files.
    """

    def __init__(self, child: str, source: Source) -> None:
        self._name = f"history files of {child}"
        self._source = source

    async def __call__(self, child_calls: ChildCallBatch) -> Iterable[Message]:
        """Return what the files hold, or held."""
        place = here()
        if place.silent:
            return await self._source(child_calls)
        steps = place.steps

        async def work() -> Iterable[Message]:
            return await self._source(child_calls)

        def write(messages: Iterable[Message]) -> JsonValue:
            parts = steps.parts
            return parts.digest([parts.digest_of_message(message) for message in messages])

        def read(value: JsonValue) -> Iterable[Message]:
            digests = steps.part(str(value))
            if not isinstance(digests, Sequence):
                return ()
            return [message_from_wire(steps.part(str(digest))) for digest in digests]

        return Transcript(await steps.ask(Step("read", self._name), work, Codec(write, read)))


class StepTarget:
    """A history file that children's messages are merged into, as a step.

    Args:
        child: The child's name.
        target: Merges them.
    """

    def __init__(self, child: str, target: Target) -> None:
        self._name = f"history file of {child}"
        self._target = target

    async def __call__(self, child_calls: ChildCallBatch, messages: Sequence[Message]) -> None:
        """Merge them, or check that they are the recorded ones."""
        place = here()
        if place.silent:
            await self._target(child_calls, messages)
            return

        async def work() -> None:
            await self._target(child_calls, messages)

        asked = {"messages": place.steps.parts.digest_of_conversation(messages)}
        await place.steps.ask(Step("write", self._name, asked), work, _NOTHING)


_NOTHING: Final[Codec[None]] = Codec(lambda _: None, lambda _: None)

Clone: TypeAlias = "Callable[[Iterable[Message]], Agent]"
"""Makes a fresh instance of a child that starts with the given messages."""


async def call_child(
    clone: Clone,
    route: HistoryRoute,
    child_calls: ChildCallBatch,
    message: Message | str,
    *,
    index: int,
    context: TurnContext,
) -> TurnResult:
    """Call a clone of a child, and deliver its new messages.

    A child that fails, is cancelled or takes too long leaves what its own history would keep: its
    messages so far, closed so that a model can continue from them; or nothing if it failed before
    its first answer or does not remember.

    Args:
        clone: Makes the clone.
        route: Where it starts from, and where its messages go.
        child_calls: The parent's side.
        message: What it is asked.
        index: Which call of the parent's message this is, from 0.
        context: Where its turn stands.

    Raises:
        FastAgentError: What it starts with cannot be read, or its turn could not be finished.
    """
    child = clone(() if route.source is None else await route.source(child_calls))
    started = len(child.history)
    left: Sequence[Message] | None = None
    transcript, own = context.transcript, None
    if transcript is not None and child_calls.concurrent:
        # What the child and those below it say is held back until its place is known.
        own = CumulativeTranscript()
        context = replace(context, transcript=own)
    try:
        turn = await child.generate(message, context=context)
        left = turn.messages + turn.external_messages
    finally:
        if transcript is not None and own is not None:
            child_calls.defer(index, partial(_join_transcript, transcript, own))
        if route.target is not None:
            route.defer(child_calls, index, child.history[started:] if left is None else left)
        with CancelScope(shield=True):
            await child.aclose()
    return turn


async def _join_transcript(transcript: CumulativeTranscript, held: CumulativeTranscript) -> None:
    transcript.block(held)
