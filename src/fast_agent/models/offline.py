"""Models that need no network and no weights: `passthrough`, `slow` and `playback`."""

from __future__ import annotations

import re
from dataclasses import replace
from functools import cache
from typing import TYPE_CHECKING, Final, cast

from fast_agent.errors import ModelError
from fast_agent.messages.message import (
    AudioContent,
    EmbeddedResource,
    ImageContent,
    Message,
    OpaqueContent,
    ResourceLink,
    TextContent,
    ToolCall,
)
from fast_agent.models.model import ModelResponse, TextDelta, Usage
from fast_agent.text.wording import closest, did_you_mean

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from json import JSONDecoder

    from fast_agent.messages.message import Content, ToolResult
    from fast_agent.models.model import DeltaSink, ModelRequest
    from fast_agent.text.json_value import JsonObject

_MARK: Final = "***"
_CALL_TOOL: Final = "***CALL_TOOL"
_FIXED_RESPONSE: Final = "***FIXED_RESPONSE"
_COMMANDS: Final = (_CALL_TOOL, _FIXED_RESPONSE)
_COMMAND: Final = re.compile(r"\*\*\*[A-Z][A-Z_]*(?=\s|$)")


class PassthroughModel:
    """Answers with the trailing user text; offline, instantly, at a cost that ignores the history.

    `***CALL_TOOL name {json}` on a separate line makes that call, several lines make several; the
    answer is then the text of the results. `***FIXED_RESPONSE text` answers `text`, which may be
    followed by more lines to the end of the message, from then on.

    Args:
        name: The spec it was made from.
        new_call_id: Gives ids of tool calls; without it they are made of the place in the
            conversation, so that they are unique in it and the same in every run.
    """

    def __init__(
        self, name: str = "passthrough", new_call_id: Callable[[], str] | None = None
    ) -> None:
        self._name = name
        self._new_call_id = new_call_id
        self._fixed: str | None = None

    @property
    def name(self) -> str:
        """The spec it was made from."""
        return self._name

    async def request(
        self, request: ModelRequest, on_delta: DeltaSink | None = None
    ) -> ModelResponse:
        """Echo, or do what the text commands.

        Raises:
            ModelError: There is no user text to answer, or a command is malformed.
        """
        return self.answer(request, on_delta)

    async def aclose(self) -> None:
        """Do nothing; nothing is held."""

    def answer(self, request: ModelRequest, on_delta: DeltaSink | None) -> ModelResponse:
        """Answer without waiting; what `request` does."""
        messages = request.messages
        heard = last_text(messages)
        if _MARK in heard and (messages[-1].content or not messages[-1].tool_results):
            calls = self._run_commands(heard, len(messages))
            if calls:
                return _respond(
                    heard, Message("assistant", (), calls, stop_reason="toolUse"), heard
                )
        text = heard if self._fixed is None else self._fixed
        if on_delta is not None and text:
            on_delta(TextDelta(text))
        return _respond(heard, Message.assistant(text), text)

    def _run_commands(self, text: str, position: int) -> tuple[ToolCall, ...]:
        """Run the commands in a text and return the calls it asks for."""
        calls: list[ToolCall] = []
        lines = text.split("\n")
        for number, line in enumerate(lines):
            found = _COMMAND.match(line)
            if found is None:
                continue
            command, rest = found[0], line[found.end() :].strip()
            if command == _CALL_TOOL:
                name, arguments = _parse_call(rest)
                new_id = self._new_call_id
                call_id = f"call_{position}_{len(calls) + 1}" if new_id is None else new_id()
                calls.append(ToolCall(call_id, name, arguments))
            elif command == _FIXED_RESPONSE:
                self._fixed = _fixed_text(rest, lines[number + 1 :])
                break
            else:
                _check_not_misspelt(command)
        return tuple(calls)


def last_text(messages: Sequence[Message]) -> str:
    """Return what there is to answer, reading only the end of a conversation.

    Args:
        messages: The conversation.

    Returns:
        The text of the user messages that end it; that of the tool results in the last one, where
        it holds nothing else.

    Raises:
        ModelError: The conversation does not end with the user.
    """
    count = len(messages)
    last = messages[-1] if count else None
    if last is None or last.role != "user":
        raise ModelError(
            "there is nothing to answer: the conversation does not end with a user message",
            hint="add a user message",
        )
    if last.tool_results:
        # What a user says after interrupted calls counts, not the results of those calls.
        if last.content:
            return last.text
        return "\n".join([one.text or _described(one) for one in last.tool_results])
    if count == 1 or messages[-2].role != "user":
        return last.text
    texts: list[str] = []
    for index in range(count - 1, -1, -1):
        message = messages[index]
        if message.role != "user" or message.tool_results:
            break
        texts.append(message.text)
    return "\n".join(reversed(texts))


def _described(result: ToolResult) -> str:
    """Return a line for each block of a result that has no text of its own."""
    from fast_agent.text.json_value import plain_json

    if not result.content and result.structured is not None:
        import json

        return json.dumps(plain_json(result.structured), ensure_ascii=False)
    return "\n".join([_described_block(block) for block in result.content])


def _described_block(block: Content) -> str:
    """Return a content block as text: what it holds, or its type, size and address."""
    match block:
        case TextContent():
            return block.text
        case ImageContent() | AudioContent():
            return f"[{block.mime_type}, {_size(block.data)}]"
        case EmbeddedResource():
            if block.text is not None:
                return block.text
            return f"[{block.uri}, {block.mime_type or 'unknown type'}, {_size(block.blob or '')}]"
        case ResourceLink():
            return f"[{block.name}: {block.uri}]"
        case OpaqueContent():
            return f"[a block of the type `{block.data.get('type')}`]"


def _size(base64: str) -> str:
    return f"{len(base64) * 3 // 4 - base64[-2:].count('='):,} bytes"


def _parse_call(text: str) -> tuple[str, JsonObject]:
    name, _, rest = text.partition(" ")
    if not name or name.startswith("{"):
        raise ModelError(
            f"`{_CALL_TOOL}` names no tool",
            hint=f'write `{_CALL_TOOL} name {{"key": "value"}}`',
        )
    rest = rest.strip()
    if not rest:
        return name, {}
    hint = f'write `{_CALL_TOOL} {name} {{"key": "value"}}` on one line'
    try:
        value: object = _decoder().decode(rest)
    except (ValueError, RecursionError) as error:
        reason = f"{str(error)[:1].lower()}{str(error)[1:]}"
        raise ModelError(
            f"the arguments of `{_CALL_TOOL} {name}` are not JSON: {reason}", hint=hint
        ) from None
    if not isinstance(value, dict):
        raise ModelError(f"the arguments of `{_CALL_TOOL} {name}` are not a JSON object", hint=hint)
    return name, cast("JsonObject", value)


@cache
def _decoder() -> JSONDecoder:
    from json import JSONDecoder

    return JSONDecoder(parse_constant=_no_constant)


def _no_constant(word: str) -> object:
    raise ValueError(f"`{word}` is not JSON")


def _fixed_text(first: str, rest: list[str]) -> str:
    text = "\n".join([first, *rest]).strip()
    if not text:
        raise ModelError(f"`{_FIXED_RESPONSE}` has no text", hint=f"write `{_FIXED_RESPONSE} text`")
    return text


def _check_not_misspelt(command: str) -> None:
    """Refuse what is meant as a command; bold capitals in prose are not."""
    near = closest(command, _COMMANDS)
    if near is None and "_" not in command:
        return
    listed = " and ".join(f"`{known}`" for known in _COMMANDS)
    hint = did_you_mean(near, f"the commands are {listed}")
    raise ModelError(f"unknown passthrough command `{command}`", hint=hint)


def _respond(heard: str, message: Message, said: str) -> ModelResponse:
    usage = Usage((len(heard) + 3) >> 2, (len(said) + 3) >> 2, 0, 0, 1)
    return ModelResponse(message, usage)


DEFAULT_SECONDS: Final = 3.0
"""How long `slow` waits when its spec does not say."""


class SlowModel(PassthroughModel):
    """Answers as passthrough does, later.

    Args:
        seconds: Wait before each answer.
        name: The spec it was made from.
        new_call_id: Gives ids of tool calls, as for passthrough.
    """

    def __init__(
        self,
        seconds: float = DEFAULT_SECONDS,
        name: str = "slow",
        new_call_id: Callable[[], str] | None = None,
    ) -> None:
        super().__init__(name, new_call_id)
        self._seconds = seconds

    async def request(
        self, request: ModelRequest, on_delta: DeltaSink | None = None
    ) -> ModelResponse:
        """Wait, then answer as passthrough does.

        Raises:
            ModelError: As passthrough.
        """
        import anyio

        await anyio.sleep(self._seconds)
        return self.answer(request, on_delta)


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
        heard = last_text(request.messages)
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
