"""The queue of a terminal: lines that wait to be sent, one turn after another."""

from __future__ import annotations

from typing import TYPE_CHECKING

import anyio

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from fast_agent.sessions.session import Session


class LineQueue:
    """Lines that wait to be sent, kept in the session so that a crash does not lose them.

    The lines at the end may be parked: they wait until the user resumes the queue, and lines
    that are added later go ahead of them.

    Attributes:
        lines: The lines that wait, in the order they are sent.
        sending: The message that is being sent until the session has it; None for a command,
            which is not run again after a crash.
        is_sending: Whether a line was taken and its turn or command has not ended.
    """

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.sending: str | None = None
        self.is_sending = False
        self._parked = 0
        self._added = anyio.Event()
        self._kept: tuple[str | None, list[str]] = (None, [])

    @property
    def is_parked(self) -> bool:
        """Whether lines wait until the user resumes the queue."""
        return self._parked > 0

    @property
    def has_ready(self) -> bool:
        """Whether a line waits only for the lines before it."""
        return len(self.lines) > self._parked

    @property
    def shown(self) -> list[tuple[str, bool]]:
        """The lines to show as waiting, each with whether it is parked.

        A line that is going to be taken at once is not shown: it would flash up for one frame.
        """
        ready = len(self.lines) - self._parked
        shown = [(line, place >= ready) for place, line in enumerate(self.lines)]
        return shown if self.is_sending or not ready else shown[1:]

    def add(self, line: str) -> None:
        """Add a line behind those that are ready, ahead of those that are parked."""
        self.lines.insert(len(self.lines) - self._parked, line)
        self._added.set()

    def pop(self, place: int = -1) -> str:
        """Remove and return the line at a place; the last one by default."""
        place %= len(self.lines)
        if place >= len(self.lines) - self._parked:
            self._parked -= 1
        return self.lines.pop(place)

    def move(self, here: int, there: int) -> None:
        """Move a line to another place; as many lines as before stay parked."""
        self.lines.insert(there, self.lines.pop(here))

    def clear(self) -> None:
        """Remove all lines."""
        self.lines.clear()
        self._parked = 0

    def put_back(self, lines: Sequence[str], *, parked: bool) -> None:
        """Insert lines ahead of all others; `parked` parks all that wait."""
        self.lines[:0] = lines
        if parked:
            self.park()
        self._added.set()

    def park(self) -> None:
        """Keep all lines until the user resumes the queue."""
        self._parked = len(self.lines)

    def resume(self) -> None:
        """Make all lines ready."""
        self._parked = 0
        self._added.set()

    async def wait(self) -> None:
        """Wait until lines were added or resumed since the last wait."""
        await self._added.wait()
        self._added = anyio.Event()

    def take(self) -> str | None:
        """Return the next line that is ready; None if there is none."""
        self.is_sending, self.sending = self.has_ready, None
        if not self.is_sending:
            return None
        line = self.lines.pop(0)
        self.sending = None if line[:1] in {"/", "!"} else line
        return line

    def take_from(self, session: Session | None) -> int:
        """Park the lines that waited when a session was closed or killed.

        Returns:
            How many there are.
        """
        left = () if session is None else session.queue
        if left:
            ready = len(self.lines) - self._parked
            self.lines += left
            self._parked = len(self.lines) - ready
        return len(left)

    def keep(self, session: Session | None, steering: Iterable[str]) -> None:
        """Record in the session what waits, the message that is being sent included.

        Args:
            session: The session of the conversation; None records nothing.
            steering: Messages for the turn that is running, which it has not taken yet.

        Raises:
            SessionError: The session cannot be written.
        """
        if session is None:
            return
        queue = [] if self.sending is None else [self.sending]
        queue += [*steering, *self.lines]
        before = self._kept[1] if self._kept[0] == session.id else list(session.queue)
        self._kept = session.id, queue
        if queue != before:
            session.keep_queue(queue)
