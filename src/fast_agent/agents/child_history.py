"""Child history: what a child agent starts with, and where its new messages go.

Five sources and five merge targets, in every combination; each is one small value here.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, assert_never

from fast_agent.agents.history_places import (
    ChildMemory,
    HistoryFiles,
    IntoChildMemory,
    IntoFile,
    StepSource,
    StepTarget,
    into_parent,
    parent_conversation,
    session_transcript,
)
from fast_agent.cards.agent_config import NO_OVERRIDES, ChildHistory
from fast_agent.errors import FastAgentError, RunError
from fast_agent.text.frozen import frozen

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

    from fast_agent.agents.child_call_batch import ChildCallBatch
    from fast_agent.agents.history_places import Source, Target
    from fast_agent.cards.agent_config import AgentConfig, HistorySource, HistoryTarget
    from fast_agent.cards.card import Card
    from fast_agent.messages.message import Message


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

    def leave(self, site: ChildCallBatch, index: int, messages: Sequence[Message]) -> None:
        """Deliver a child's new messages when all calls of the message have ended.

        Args:
            site: The parent's side.
            index: Which call of the parent's message the child answered, from 0.
            messages: The child's new messages.
        """
        target = self.target
        if target is None or not messages:
            return

        async def land() -> None:
            try:
                await target(site, messages)
            except FastAgentError as error:
                site.warn(f"what agent `{self.child}` said is not kept: {error.message}")

        site.leave(index, land)


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
        source, target = wanted_history(parent, child, wanted or NO_OVERRIDES, self.wanted)
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


def wanted_history(
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
    """Return what is asked before a file of a card is read; None where a person named the card."""
    return None if config.grant is None else config.grant.check_read


def history_files(config: AgentConfig, workspace: Path) -> tuple[Path, ...]:
    """Return the files of a card's `messages`; none for a card from a web address."""
    if config.remote is not None:
        return ()
    directory = config.directory or workspace
    return tuple([directory / name for name in config.messages])
