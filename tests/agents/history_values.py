"""What a world of parents and children is described by: asks, messages as a model sees them."""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import pairwise
from typing import TYPE_CHECKING, Literal, TypeAlias, TypeVar, get_args

from fast_agent.messages.message import Message, TextContent

if TYPE_CHECKING:
    from collections.abc import Iterable

Way: TypeAlias = Literal["answer", "look", "fail", "fail late", "hang", "hang late"]
T = TypeVar("T")
WAYS: tuple[Way, ...] = get_args(Way)

Said: TypeAlias = tuple[str, str, int, int]
"""A message as the model sees it: role, text, number of calls, number of results."""

CANCELLED: Said = ("assistant", "[cancelled before an answer]", 0, 0)
FAILED: Said = ("assistant", "[no answer: the turn failed]", 0, 0)
FILE = (Message.user("in file"), Message.assistant("filed"))
EARLIER = (Message.user("earlier"), Message.assistant("kept"))
DIRECT = "direct"
MAX_STEPS = 100_000


def said(message: Message) -> Said:
    """Return a message as the model sees it."""
    return message.role, message.text, len(message.tool_calls), len(message.tool_results)


@dataclass(slots=True)
class Ask:
    """One call of a child, and what the world saw of it."""

    number: int
    child: str
    way: Way
    base: tuple[Message, ...] | None = None
    answers: list[Message] = field(default_factory=list[Message])
    finished: bool = False
    busy: bool = False

    @property
    def text(self) -> str:
        """What the child is asked."""
        return f"ask {self.number}"


def without_direct(items: list[T]) -> list[T]:
    """Leave out turns that somebody else had with a child meanwhile; each stands in one piece."""
    kept: list[T] = []
    skips = False
    for item in items:
        text = item if isinstance(item, str) else str(item[1])  # pyright: ignore[reportIndexIssue, reportUnknownArgumentType]
        direct = text.startswith(DIRECT)
        if not direct and not (skips and text == CANCELLED[1]):
            kept.append(item)
        skips = direct
    return kept


def look() -> str:
    """Look around."""
    return "seen"


def strict_problem(messages: Iterable[Message]) -> str | None:
    """Return why a strict provider would refuse a request; None when it would not."""
    given = list(messages)
    for index, (one, after) in enumerate(pairwise(given)):
        if one.role == after.role:
            return f"message {index + 1} has the role of the one before"
        if [call.id for call in one.tool_calls] != [result.id for result in after.tool_results]:
            return f"message {index + 1} does not answer exactly the calls before it"
    if not given or given[-1].role != "user":
        return "it does not end with the user"
    if given[0].role != "user" or given[0].tool_results:
        return "it does not begin with what a user says"
    ids = [call.id for one in given for call in one.tool_calls]
    if len(set(ids)) != len(ids):
        return "two calls have one id"
    for index, one in enumerate(given):
        empty = [block for block in one.content if block == TextContent("")]
        if empty or not (one.content or one.tool_calls or one.tool_results):
            return f"message {index} is empty"
    return None
