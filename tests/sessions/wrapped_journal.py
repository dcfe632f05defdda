"""A journal around another: it reads what that holds; writing is left to subclasses."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from fast_agent.messages.history import History
    from fast_agent.sessions.cumulative import CumulativeTranscript
    from fast_agent.sessions.event import HistoryCompacted
    from fast_agent.sessions.journal import SessionJournal
    from fast_agent.steps.steps import Steps


class WrappedJournal:
    def __init__(self, inner: SessionJournal) -> None:
        self._inner = inner

    @property
    def session_id(self) -> str:
        return self._inner.session_id

    @property
    def steps(self) -> Steps | None:
        return self._inner.steps

    @property
    def used(self) -> tuple[int, ...]:
        return self._inner.used

    @property
    def transcript(self) -> CumulativeTranscript:
        return self._inner.transcript

    def history(self, agent: str) -> History | None:
        return self._inner.history(agent)

    def compaction(self, agent: str) -> HistoryCompacted | None:
        return self._inner.compaction(agent)

    def is_due(self, *, top: bool) -> bool:
        return self._inner.is_due(top=top)

    async def barrier(self) -> None:
        await self._inner.barrier()
