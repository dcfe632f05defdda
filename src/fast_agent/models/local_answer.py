"""An answer of a local model, put together from its pieces."""

from __future__ import annotations

import json
import threading
from typing import TYPE_CHECKING, Any, Final, TypedDict, cast

from fast_agent.errors import ContextError, ModelError
from fast_agent.messages.content import TextContent
from fast_agent.messages.message import NO_CHANNELS, Message, ToolCall
from fast_agent.models.model import ModelResponse, TextDelta, ThinkingDelta
from fast_agent.models.text_tool_calls import recover_tool_calls, where_a_call_may_begin
from fast_agent.models.usage import Usage

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from fast_agent.models.model import Delta
    from fast_agent.models.repetition import RepetitionStop


class _Function(TypedDict, total=False):
    name: str | None
    arguments: str | None


class _CallPiece(TypedDict, total=False):
    index: int
    id: str | None
    function: _Function


class _Said(TypedDict, total=False):
    content: str | None
    reasoning_content: str | None
    tool_calls: list[_CallPiece]


class _Choice(TypedDict, total=False):
    delta: _Said
    finish_reason: str | None


class _Refused(TypedDict, total=False):
    type: str
    message: str
    n_prompt_tokens: int
    n_ctx: int


class _Details(TypedDict, total=False):
    cached_tokens: int


class _Counts(TypedDict, total=False):
    prompt_tokens: int
    completion_tokens: int
    prompt_tokens_details: _Details


class _Timings(TypedDict, total=False):
    cache_n: int
    prompt_n: int
    predicted_n: int


class Chunk(TypedDict, total=False):
    """One piece of an answer, as the OpenAI chat API streams it."""

    choices: list[_Choice]
    usage: _Counts | None
    timings: _Timings
    error: _Refused


_STOP_REASONS: Final = {
    "length": "maxTokens",
    "tool_calls": "toolUse",
    "repetition": "repetition",
}


class Answer:
    """Collects pieces in one thread and gives deltas to another.

    Text from the place where a call may begin is held back until the answer is whole, so that what
    was streamed is always the beginning of the message's text.

    Args:
        offered: Tools whose calls may be written as text; empty to take all text as it is.
        new_id: Makes the id of a call that has none.
        repetition: Ends an answer that repeats itself, at its last good place; None lets it go on.
    """

    def __init__(
        self,
        offered: frozenset[str],
        new_id: Callable[[], str],
        repetition: RepetitionStop | None = None,
    ) -> None:
        self._offered = offered
        self._new_id = new_id
        self._repetition = repetition
        self._text = ""
        self._sent = 0
        self._thoughts: list[str] = []
        self._calls: dict[int, dict[str, str]] = {}
        self._finish: str | None = None
        self._usage: _Counts = {}
        self._error: _Refused | None = None
        self._ready: list[Delta] = []
        self._lock = threading.Lock()
        self._written: tuple[ToolCall, ...] = ()

    def add(self, chunk: Chunk) -> None:
        """Take one piece; those after `repeats` is set are ignored."""
        if self.repeats:
            return
        if "error" in chunk:
            self._error = chunk["error"]
            return
        self._usage = chunk.get("usage") or _counts(chunk.get("timings")) or self._usage
        for choice in chunk.get("choices", []):
            self._finish = choice.get("finish_reason") or self._finish
            self._add_said(choice.get("delta", {}))

    def _add_said(self, said: _Said) -> None:
        thought = said.get("reasoning_content")
        if thought:
            self._thoughts.append(thought)
            self._give(ThinkingDelta(thought))
        text = said.get("content")
        if text:
            self._add_text(text)
        for piece in said.get("tool_calls", []):
            self._add_call(piece)

    def _add_text(self, text: str) -> None:
        self._text += text
        sure = len(self._text)
        if self._offered:
            sure = where_a_call_may_begin(self._text, self._sent)
        if self._repetition is not None:
            self._repetition.add(text, in_call=sure < len(self._text))
            sure = min(sure, self._repetition.sure)
        self._send(sure)

    @property
    def repeats(self) -> bool:
        """Whether it repeats itself, so that the model can be stopped."""
        return self._repetition is not None and self._repetition.cut is not None

    def _add_call(self, piece: _CallPiece) -> None:
        call = self._calls.setdefault(
            piece.get("index", 0), {"id": "", "name": "", "arguments": ""}
        )
        function = piece.get("function", {})
        call["id"] = call["id"] or piece.get("id") or ""
        call["name"] += function.get("name") or ""
        call["arguments"] += function.get("arguments") or ""

    def _send(self, sure: int) -> None:
        if sure > self._sent:
            self._give(TextDelta(self._text[self._sent : sure]))
            self._sent = sure

    def _give(self, delta: Delta) -> None:
        with self._lock:
            self._ready.append(delta)

    def take_deltas(self) -> list[Delta]:
        """Take the deltas that are ready."""
        with self._lock:
            ready, self._ready = self._ready, []
        return ready

    def finish(self) -> None:
        """End the answer: find written calls, and let the text go that was held back.

        Raises:
            ModelError: The runtime refused the request, or broke off.
        """
        if self._error is not None:
            raise _refusal(self._error)
        if self._repetition is not None and self._repetition.cut is not None:
            self._text = self._text[: self._repetition.cut]
            self._finish = "repetition"
        if self._finish is None:
            raise ModelError("the answer of the local model broke off before its end")
        if self._offered and not self._calls:
            recovered = recover_tool_calls(self._text, self._offered)
            if recovered is not None:
                self._text = recovered.prose
                self._written = tuple(
                    ToolCall(self._new_id(), call.name, call.arguments) for call in recovered.calls
                )
        self._send(len(self._text))

    def response(self) -> ModelResponse:
        """Make the message, once the answer is finished."""
        calls = (*(self._call(call) for call in self._calls.values()), *self._written)
        reason = "toolUse" if calls else _STOP_REASONS.get(self._finish or "", "endTurn")
        thoughts = "".join(self._thoughts)
        message = Message(
            "assistant",
            (TextContent(self._text),) if self._text else (),
            tool_calls=calls,
            channels={"reasoning": (TextContent(thoughts),)} if thoughts else NO_CHANNELS,
            stop_reason=reason,
        )
        details = self._usage.get("prompt_tokens_details", {})
        return ModelResponse(
            message,
            Usage(
                input_tokens=self._usage.get("prompt_tokens", 0),
                output_tokens=self._usage.get("completion_tokens", 0),
                cache_read_tokens=details.get("cached_tokens", 0),
                requests=1,
            ),
        )

    def _call(self, call: Mapping[str, str]) -> ToolCall:
        try:
            arguments: object = json.loads(call["arguments"] or "{}")
        except ValueError:
            arguments = None
        if not isinstance(arguments, dict):
            arguments = {"INVALID_JSON": call["arguments"]}
        named = cast("dict[str, Any]", arguments)
        return ToolCall(call["id"] or self._new_id(), call["name"], named)


def _counts(timings: _Timings | None) -> _Counts | None:
    """Return what was counted so far; an answer that is stopped has no counts at its end."""
    if not timings:
        return None
    cached = timings.get("cache_n", 0)
    return {
        "prompt_tokens": cached + timings.get("prompt_n", 0),
        "completion_tokens": timings.get("predicted_n", 0),
        "prompt_tokens_details": {"cached_tokens": cached},
    }


def _refusal(error: _Refused) -> ModelError:
    if error.get("type") == "exceed_context_size_error":
        return ContextError(
            f"the conversation has {error.get('n_prompt_tokens')} tokens, and the local model's "
            f"context holds {error.get('n_ctx')}",
            hint="clear or shorten the history, or give it more, as in `local?context=8192`",
        )
    text = " ".join(str(error.get("message", error)).split())
    return ModelError(f"the local model cannot take this request: {text}")
