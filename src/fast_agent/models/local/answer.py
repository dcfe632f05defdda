"""An answer of a local model, put together from its pieces."""

from __future__ import annotations

import ast
import json
import re
import threading
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final, TypedDict, cast

from fast_agent.errors import ContextError, ModelError
from fast_agent.messages.message import (
    NO_CHANNELS,
    NO_OBJECT,
    NOTHING,
    Message,
    TextContent,
    ToolCall,
)
from fast_agent.models.model import ModelResponse, TextDelta, ThinkingDelta, Usage
from fast_agent.text.frozen import frozen

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator

    from fast_agent.models.local.repetition import RepetitionStop
    from fast_agent.models.model import Delta
    from fast_agent.text.json_value import JsonObject, JsonValue


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


class _ErrorBody(TypedDict, total=False):
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
    error: _ErrorBody


_STOP_REASONS: Final = {
    "length": "maxTokens",
    "tool_calls": "toolUse",
    "repetition": "repetition",
}


class Answer:
    """Collects pieces in one thread and passes deltas to another.

    Text from the place where a call may start is held back until the answer is whole, so that what
    was streamed is always the start of the message's text.

    Args:
        offered: Tools whose calls may be written as text; empty to take all text as it is.
        new_id: Makes the id of a call that has none.
        repetition: Ends an answer that repeats itself, at its last good place; None disables it.
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
        self._error: _ErrorBody | None = None
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
            self._pass_delta(ThinkingDelta(thought))
        text = said.get("content")
        if text:
            self._add_text(text)
        for piece in said.get("tool_calls", []):
            self._add_call(piece)

    def _add_text(self, text: str) -> None:
        self._text += text
        sure = len(self._text)
        if self._offered:
            sure = end_of_prose(self._text, self._sent)
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
            self._pass_delta(TextDelta(self._text[self._sent : sure]))
            self._sent = sure

    def _pass_delta(self, delta: Delta) -> None:
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
            raise ModelError("the answer of the local model ended before it was complete")
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
            arguments = {NO_OBJECT: call["arguments"]}
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


def _refusal(error: _ErrorBody) -> ModelError:
    if error.get("type") == "exceed_context_size_error":
        return ContextError(
            f"the conversation has {error.get('n_prompt_tokens')} tokens, and the local model's "
            f"context holds {error.get('n_ctx')}",
            hint="clear or shorten the history, or give it more, as in `local?context=8192`",
        )
    text = " ".join(str(error.get("message", error)).split())
    return ModelError(f"the local model cannot process this request: {text}")


@frozen
class WrittenCall:
    """A call as it was written; it has no id yet."""

    name: str
    arguments: JsonObject


@frozen
class ParsedAnswer:
    """What a text was parsed to.

    Args:
        prose: The text before the first call; what follows the calls is dropped, since it is the
            model's guess at what the tool would say.
        calls: The calls, in order; at least one.
    """

    prose: str
    calls: tuple[WrittenCall, ...]


_NAME_KEYS: Final = ("name", "tool", "tool_name", "function_name", "function", "action")
_ARGUMENT_KEYS: Final = ("arguments", "parameters", "args", "input", "action_input", "params")
_ATTEMPTS: Final = 40
"""Maximum number of places to try in a text; bounds the work on long or hostile texts."""

_FUNCTION_TAG: Final = re.compile(r"<function=([\w.-]+)>\s*(.*?)(?:</function>|\Z)", re.DOTALL)
_PARAMETER_TAG: Final = re.compile(r"<parameter=([\w.-]+)>\n?(.*?)\n?</parameter>", re.DOTALL)
_START: Final = re.compile(r"<tool_call>|<function=|<function_call>|<\||\[TOOL|```|[{\[]")
_MAY_START: Final = re.compile(r"[<{\[]|``")
_LEAD_IN: Final = re.compile(
    r"(?:<tool_call>|<function_call>|<\|[\w]+\|>|\[TOOL_CALLS\]|```(?:json|tool_call|tool_code)?)"
    r"\s*\Z"
)


def end_of_prose(text: str, start: int = 0) -> int:
    """Find the place up to which a text is certainly prose.

    Args:
        text: What has been written so far.
        start: The part before is known to be prose.

    Returns:
        The length of the sure part.
    """
    found = _MAY_START.search(text, start)
    if found is not None:
        return found.start()
    return len(text) - 1 if text.endswith("`") else len(text)


def recover_tool_calls(text: str, offered: Collection[str]) -> ParsedAnswer | None:
    """Find calls of offered tools in a text.

    Args:
        text: A whole answer.
        offered: Names of the tools the model could call.

    Returns:
        The prose before them and the calls, or None when there is none.
    """
    tagged = _tagged(text, offered)
    if tagged is not None:
        return tagged
    calls: list[WrittenCall] = []
    first = len(text)
    position = 0
    for _ in range(_ATTEMPTS):
        start = _START.search(text, position)
        if start is None:
            break
        begin = start.start()
        if text[begin] not in "{[":
            position = start.end()
            continue
        value, end = _value_at(text, begin)
        found = list(_calls_of(value, offered)) if end else []
        if not found:
            found, end = _python_calls(text, begin, offered)
        if found:
            first = min(first, begin)
            calls.extend(found)
        position = end if end > begin else begin + 1
    if not calls:
        return None
    return ParsedAnswer(_LEAD_IN.sub("", text[:first].rstrip()).rstrip(), tuple(calls))


def _tagged(text: str, offered: Collection[str]) -> ParsedAnswer | None:
    """Read `<function=name>…</function>`, with a JSON object or parameter tags inside."""
    calls: list[WrittenCall] = []
    first = len(text)
    for match in _FUNCTION_TAG.finditer(text):
        name, body = match.groups()
        if name not in offered:
            continue
        fields = {key: _loose(raw) for key, raw in _PARAMETER_TAG.findall(body)}
        value, end = _value_at(body, 0) if body.startswith("{") else (fields, 1)
        if isinstance(value, Mapping) and end:
            first = min(first, match.start())
            calls.append(WrittenCall(name, value))
    if not calls:
        return None
    prose = re.sub(r"<tool_call>\s*\Z", "", text[:first])
    return ParsedAnswer(prose.rstrip(), tuple(calls))


def _loose(raw: str) -> JsonValue:
    try:
        return cast("JsonValue", json.loads(raw))
    except ValueError:
        return raw


def _value_at(text: str, begin: int) -> tuple[JsonValue, int]:
    """Read the JSON value that starts at a place; an end of 0 means there is none.

    One or two closing brackets missing at the very end of the text are supplied.
    """
    decoder = json.JSONDecoder()
    try:
        value, end = decoder.raw_decode(text, begin)
    except (ValueError, RecursionError):
        pass
    else:
        return cast("JsonValue", value), end
    body = re.sub(r"\s*(?:</?\w+>|```)?\s*\Z", "", text[begin:])
    for missing in ("}", "}}", "}]"):
        try:
            value, end = decoder.raw_decode(body + missing)
        except (ValueError, RecursionError):
            continue
        if end == len(body) + len(missing):
            return cast("JsonValue", value), len(text)
    return None, 0


def _calls_of(value: JsonValue, offered: Collection[str]) -> Iterator[WrittenCall]:
    """Read every notation a JSON value may be in."""
    if isinstance(value, list):
        for item in value:
            yield from _calls_of(item, offered)
        return
    if not isinstance(value, Mapping):
        return
    for key in ("tool_calls", "tool_call"):
        if key in value:
            yield from _calls_of(value[key], offered)
            return
    inner = value.get("function")
    if isinstance(inner, Mapping):
        yield from _calls_of(inner, offered)
        return
    call = _named(value, offered) or _keyed(value, offered)
    if call is not None:
        yield call


def _named(value: JsonObject, offered: Collection[str]) -> WrittenCall | None:
    """Read `{"name": …, "arguments": {…}}` and its like."""
    name = next((value[key] for key in _NAME_KEYS if isinstance(value.get(key), str)), None)
    if not isinstance(name, str) or name not in offered:
        return None
    key = next((key for key in _ARGUMENT_KEYS if key in value), None)
    if key is None:
        return WrittenCall(name, NOTHING) if len(value) == 1 else None
    arguments = value[key]
    if isinstance(arguments, str):
        arguments = _loose(arguments)
    if arguments is None:
        return WrittenCall(name, NOTHING)
    return WrittenCall(name, arguments) if isinstance(arguments, Mapping) else None


def _keyed(value: JsonObject, offered: Collection[str]) -> WrittenCall | None:
    """Read `{"name-of-a-tool": {…}}`."""
    if len(value) != 1:
        return None
    [(name, arguments)] = value.items()
    if name in offered and isinstance(arguments, Mapping):
        return WrittenCall(name, arguments)
    return None


def _python_calls(text: str, begin: int, offered: Collection[str]) -> tuple[list[WrittenCall], int]:
    """Read `[name(key="value"), …]`, with literal values only."""
    end = text.find(")]", begin) + 2
    if text[begin] != "[" or end < 2:  # not found
        return [], 0
    try:
        tree = ast.parse(text[begin:end], mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return [], 0
    calls: list[WrittenCall] = []
    for node in tree.elts if isinstance(tree, ast.List) else []:
        if not isinstance(node, ast.Call) or node.args or not isinstance(node.func, ast.Name):
            return [], 0
        if node.func.id not in offered:
            return [], 0
        try:
            arguments = {str(word.arg): ast.literal_eval(word.value) for word in node.keywords}
        except ValueError:
            return [], 0
        calls.append(WrittenCall(node.func.id, cast("JsonObject", arguments)))
    return calls, end if calls else 0
