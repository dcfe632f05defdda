"""Turn record: what a log holds of one turn."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from fast_agent.errors import SessionError
from fast_agent.messages.content import TextContent
from fast_agent.messages.message import Message, ToolResult
from fast_agent.sessions.cumulative import Entry
from fast_agent.sessions.message_text import read, read_result

if TYPE_CHECKING:
    from collections.abc import Iterable

    from fast_agent.sessions.event import Place
    from fast_agent.sessions.message_text import Stored

LOST = "interrupted before it finished"
"""What the result of a call says that was running when the program ended."""

INTERRUPTED = "[interrupted before an answer]"
"""Replaces an answer that was never given."""


@dataclass(slots=True)
class TurnRecord:
    """What a log holds of one turn; its messages are read when they are asked for.

    Args:
        turn_id: The turn.
        agent: Whose turn it is.
        parent_call_id: The call or the turn it answers to, or None.
        depth: How many agents stand above it.
        keeps: Whether its agent remembers turns.
        began: The number of the event it began with.
        texts: Its messages as written; a list is a message of nothing but results, of those there
            are.
        history_version: How often the agent's history had been replaced when it began.
        stop_reason: Why it ended; None while it runs.
        ended: The number of the event it ended with, or None.
        place: Where it stands in the transcript, once it ended.
        used: What it used with all it started; see `TurnEnded`.
        own: What its agent used itself.
        model: The model it asked last, or None.
    """

    turn_id: str
    agent: str
    parent_call_id: str | None
    depth: int
    keeps: bool
    began: int
    texts: list[Stored | list[Stored]]
    history_version: int = 0
    stop_reason: str | None = None
    ended: int | None = None
    place: Place = "held"
    used: tuple[int, ...] = ()
    own: tuple[int, ...] = ()
    model: str | None = None

    def put(self, index: int, text: Stored) -> None:
        """Take a message."""
        texts = self.texts
        if index == len(texts):
            texts.append(text)
        elif index < len(texts):
            texts[index] = text
        else:
            raise SessionError(f"turn `{self.turn_id}` has no message {index - 1}")

    def answer(self, text: Stored) -> None:
        """Take the result of a tool call of the last message."""
        results = self.texts[-1]
        if isinstance(results, list):
            results.append(text)
        else:
            self.texts.append([text])

    def messages(self) -> list[Message]:
        """Read its messages, with those of results that came after them.

        Raises:
            SessionError: One of them is damaged.
        """
        there: list[Message] = []
        self.read_to(there)
        return there

    def read_to(self, there: list[Message]) -> None:
        """Append the messages as of this turn to `there`.

        Raises:
            SessionError: One of them is damaged.
        """
        for text in self.texts:
            if isinstance(text, list):
                there.append(_carrier(there[-1], text))
            else:
                form, data = text
                there.append(read(form, data))

    def closed(self) -> list[Message]:
        """Read its messages, put right where it was interrupted.

        Calls that have no result get one that says so, and a note takes the place of an answer, so
        that the next user message may follow.

        Raises:
            SessionError: One of them is damaged.
        """
        there = self.messages()
        if there[-1].tool_calls:
            there.append(_carrier(there[-1], ()))
        if there[-1].role == "user":
            there.append(Message.assistant(INTERRUPTED, "cancelled"))
        return there

    def entry(self) -> Entry:
        """Return it as an entry of a transcript.

        Raises:
            SessionError: A message of it is damaged.
        """
        messages = self.closed() if self.ended is None else self.messages()
        return Entry(self.agent, self.turn_id, self.parent_call_id, tuple(messages))


def _carrier(asking: Message, texts: Iterable[Stored]) -> Message:
    """Make the message that carries the results of the calls of `asking`, in call order."""
    calls = asking.tool_calls
    results = [read_result(form, text) for form, text in texts]
    if len(calls) == 1 == len(results) and results[0].id == calls[0].id:
        return Message("user", (), (), (results[0],))  # as nearly all are
    if [result.id for result in results] != [call.id for call in calls]:
        there = {result.id: result for result in results}
        results = [
            there.get(call.id) or ToolResult(call.id, (TextContent(LOST),), is_error=True)
            for call in calls
        ]
    return Message("user", (), (), tuple(results))
