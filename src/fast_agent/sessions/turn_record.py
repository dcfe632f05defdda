"""Turn record: what a log holds of one turn."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from fast_agent.errors import SessionError
from fast_agent.messages.content import TextContent
from fast_agent.messages.message import Message, ToolResult
from fast_agent.sessions.cumulative import Entry
from fast_agent.sessions.message_text import read_message

if TYPE_CHECKING:
    from collections.abc import Iterable

    from fast_agent.sessions.event import Place

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
    """

    turn_id: str
    agent: str
    parent_call_id: str | None
    depth: int
    keeps: bool
    began: int
    texts: list[str | None]
    history_version: int = 0
    results: dict[int, list[str]] = field(default_factory=dict[int, "list[str]"])
    stop_reason: str | None = None
    ended: int | None = None
    place: Place = "held"

    def put(self, index: int, text: str) -> None:
        """Take a message."""
        texts = self.texts
        if index == len(texts):
            texts.append(text)
        elif index < len(texts):
            texts[index] = text
        elif index == len(texts) + 1 and len(texts) - 1 in self.results:
            # The message between them holds the results alone.
            texts += (None, text)
        else:
            raise SessionError(f"turn `{self.turn_id}` has no message {index - 1}")

    def answer(self, text: str) -> None:
        """Take the result of a tool call of the last message."""
        self.results.setdefault(len(self.texts) - 1, []).append(text)

    def messages(self) -> list[Message]:
        """Read its messages, those after the last answer included.

        Raises:
            SessionError: One of them is damaged.
        """
        read: list[Message] = []
        for index, text in enumerate(self.texts):
            if text is not None:
                read.append(read_message(text))
            else:
                read.append(_carrier(read[-1], self.results.get(index - 1, ())))
        last = len(self.texts) - 1
        if last in self.results:
            read.append(_carrier(read[-1], self.results[last]))
        return read

    def closed(self) -> list[Message]:
        """Read its messages, put right where it was interrupted.

        Calls that have no result get one that says so, and a note takes the place of an answer, so
        that the next user message may follow.

        Raises:
            SessionError: One of them is damaged.
        """
        read = self.messages()
        if read[-1].tool_calls:
            read.append(_carrier(read[-1], ()))
        if read[-1].role == "user":
            read.append(Message.assistant(INTERRUPTED, "cancelled"))
        return read

    def entry(self) -> Entry:
        """Give it as an entry of a transcript.

        Raises:
            SessionError: A message of it is damaged.
        """
        messages = self.closed() if self.ended is None else self.messages()
        return Entry(self.agent, self.turn_id, self.parent_call_id, tuple(messages))


def _carrier(asking: Message, texts: Iterable[str]) -> Message:
    """Make the message that carries the results of the calls of `asking`, in call order."""
    there: dict[str, ToolResult] = {}
    for text in texts:
        there.update({result.id: result for result in read_message(text).tool_results})
    return Message(
        "user",
        tool_results=tuple(
            [
                there.get(call.id) or ToolResult(call.id, (TextContent(LOST),), is_error=True)
                for call in asking.tool_calls
            ]
        ),
    )
