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
    from collections.abc import Iterable, Sequence

    from fast_agent.sessions.event import Place
    from fast_agent.sessions.message_text import Stored

LOST = "interrupted before it finished"
"""What the result of a call says that was running when the program ended."""

INTERRUPTED = "[interrupted before an answer]"
"""What stands in the place of an answer that was never given."""


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
        texts: Its messages as written; None is a message of nothing but results.
        results: The results written after each message, by its index.
        history_version: How often the agent's history had been replaced when it began.
        stop_reason: Why it ended; None while it runs.
        ended: The number of the event it ended with, or None.
        place: Where it stands in the transcript, once it ended.
        used: What it used with all it started; see `TurnEnded`.
    """

    turn_id: str
    agent: str
    parent_call_id: str | None
    depth: int
    keeps: bool
    began: int
    texts: list[Stored | None]
    history_version: int = 0
    results: dict[int, list[Stored]] | None = None
    stop_reason: str | None = None
    ended: int | None = None
    place: Place = "held"
    used: tuple[int, ...] = ()

    def put(self, index: int, text: Stored) -> None:
        """Take a message."""
        texts = self.texts
        if index == len(texts):
            texts.append(text)
        elif index < len(texts):
            texts[index] = text
        elif index == len(texts) + 1 and self._open_results():
            # The message between them holds the results alone.
            texts += (None, text)
        else:
            raise SessionError(f"turn `{self.turn_id}` has no message {index - 1}")

    def answer(self, text: Stored) -> None:
        """Take the result of a tool call of the last message."""
        if self.results is None:
            self.results = {}
        self.results.setdefault(len(self.texts) - 1, []).append(text)

    def messages(self) -> list[Message]:
        """Read its messages, with those of results that came after them.

        Raises:
            SessionError: One of them is damaged.
        """
        if self.results is None:
            return [read(*text) for text in self.texts if text is not None]
        there: list[Message] = []
        for index, text in enumerate(self.texts):
            if text is not None:
                there.append(read(*text))
            else:
                there.append(_carrier(there[-1], self.results.get(index - 1, ())))
        results = self._open_results()
        if results:
            there.append(_carrier(there[-1], results))
        return there

    def _open_results(self) -> Sequence[Stored]:
        """Give the results that came after the last message."""
        return () if self.results is None else self.results.get(len(self.texts) - 1, ())

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
        """Give it as an entry of a transcript.

        Raises:
            SessionError: A message of it is damaged.
        """
        messages = self.closed() if self.ended is None else self.messages()
        return Entry(self.agent, self.turn_id, self.parent_call_id, tuple(messages))


def _carrier(asking: Message, texts: Iterable[Stored]) -> Message:
    """Make the message that carries the results of the calls of `asking`, in call order."""
    there = {result.id: result for result in [read_result(*text) for text in texts]}
    return Message(
        "user",
        tool_results=tuple(
            [
                there.get(call.id) or ToolResult(call.id, (TextContent(LOST),), is_error=True)
                for call in asking.tool_calls
            ]
        ),
    )
