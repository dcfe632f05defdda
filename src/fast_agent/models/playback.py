"""`playback`: answers with the assistant messages of a loaded history, one after another."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from fast_agent.messages.message import Message
from fast_agent.models.model import ModelResponse, TextDelta
from fast_agent.models.passthrough import heard_text
from fast_agent.models.usage import Usage

if TYPE_CHECKING:
    from collections.abc import Sequence

    from fast_agent.models.model import DeltaSink, ModelRequest


class PlaybackModel:
    """Plays a history: each request is answered with its next assistant message, calls included.

    Without `messages`, the history is what the conversation holds at the first request before the
    user messages that end it; played calls then get new ids, for the old ones are taken. After the
    last answer it says `MESSAGES EXHAUSTED`, with the number of messages loaded and of requests
    made since.

    Args:
        messages: The history to play, or None.
        name: The spec it was made from.
    """

    def __init__(self, messages: Sequence[Message] | None = None, name: str = "playback") -> None:
        self._name = name
        self._history = messages
        self._answers: list[Message] | None = None
        self._next = 0

    @property
    def name(self) -> str:
        """The spec it was made from."""
        return self._name

    async def request(
        self, request: ModelRequest, on_delta: DeltaSink | None = None
    ) -> ModelResponse:
        """Answer with the next message.

        Raises:
            ModelError: The conversation does not end with the user.
        """
        heard = heard_text(request.messages)
        answers = self._answers
        if answers is None:
            answers = self._answers = self._load(request.messages)
        at = self._next
        self._next = at + 1
        message = answers[at] if at < len(answers) else self._exhausted(at - len(answers) + 1)
        text = message.text
        if on_delta is not None and text:
            on_delta(TextDelta(text))
        usage = Usage((len(heard) + 3) >> 2, (len(text) + 3) >> 2, 0, 0, 1)
        return ModelResponse(message, usage)

    async def aclose(self) -> None:
        """Do nothing; nothing is held."""

    def _load(self, conversation: Sequence[Message]) -> list[Message]:
        suffix = ""
        if self._history is None:
            self._history = _before_the_user(conversation)
            suffix = f"_{len(conversation)}"
        return [_as_answer(one, suffix) for one in self._history if one.role == "assistant"]

    def _exhausted(self, overage: int) -> Message:
        size = len(self._history or ())
        return Message.assistant(f"MESSAGES EXHAUSTED (list size {size}) ({overage} overage)")


def _before_the_user(messages: Sequence[Message]) -> Sequence[Message]:
    end = len(messages)
    while end and messages[end - 1].role == "user" and not messages[end - 1].is_template:
        end -= 1
    return messages[:end]


def _as_answer(message: Message, suffix: str) -> Message:
    """Make an answer of a message of a history: no template, with a stop reason, its ids new."""
    calls = tuple(replace(call, id=f"{call.id}{suffix}") for call in message.tool_calls)
    reason = message.stop_reason or ("toolUse" if calls else "endTurn")
    return replace(message, tool_calls=calls, is_template=False, stop_reason=reason)
