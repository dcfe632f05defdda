"""Steering: messages a user sends into a turn that is running."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fast_agent.errors import RunError

if TYPE_CHECKING:
    from fast_agent.messages.message import Message


class SteeringMessage:
    """A message that waits for the next boundary of a turn.

    Args:
        message: The user's message.

    Attributes:
        message: The user's message.
        taken: Whether the turn took it. One that is still waiting when the turn ends was not sent.
    """

    __slots__ = ("message", "taken")

    def __init__(self, message: Message) -> None:
        self.message = message
        self.taken = False


class Steering:
    """The waiting messages of one agent, which its turns take at their boundaries.

    A workflow hands its own to its members, so that the member that is running takes them.
    """

    __slots__ = ("_running", "_waiting")

    def __init__(self) -> None:
        self._waiting: list[SteeringMessage] = []
        self._running = 0

    def add(self, message: Message) -> SteeringMessage:
        """Add a message for the next boundary.

        Raises:
            RunError: Several members of a workflow run at the same time.
        """
        if self._running > 1:
            raise RunError(
                f"{self._running} agents are running at the same time; none can be steered alone",
                hint="send the message when the turn has ended",
            )
        waiting = SteeringMessage(message)
        self._waiting.append(waiting)
        return waiting

    def enter(self) -> None:
        """Count a turn that takes messages."""
        self._running += 1

    def leave(self) -> None:
        """Count a turn out."""
        self._running -= 1

    def take(self) -> list[Message]:
        """Return the waiting messages in order, and mark them as taken."""
        waiting, self._waiting = self._waiting, []
        for one in waiting:
            one.taken = True
        return [one.message for one in waiting]

    def drop(self) -> None:
        """Drop what waits, as when the turn has ended."""
        self._waiting.clear()

    @property
    def waits(self) -> bool:
        """Whether a message waits."""
        return bool(self._waiting)
