"""Models that run in this process, on the CPU, without a key or a network.

How well such a model does depends on its size. One of 135 million parameters writes prose and JSON
that fits a schema; it does not choose tools, and what it says is often wrong. For tools take an
instruct model of 1.5 billion parameters or more, and measure it with `bench/local_eval`.
"""

from __future__ import annotations

import json
import threading
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final
from uuid import uuid4

import anyio
import anyio.to_thread
from anyio.lowlevel import RunVar

from fast_agent.cards.agent_config import NO_PARAMS, RequestParams
from fast_agent.errors import ModelError
from fast_agent.messages.message import (
    AudioContent,
    EmbeddedResource,
    ImageContent,
    OpaqueContent,
    ResourceLink,
    TextContent,
)
from fast_agent.models.local.answer import Answer
from fast_agent.models.local.engine import DEFAULT_CONTEXT, PROCESS_ENGINES, EngineKey
from fast_agent.models.local.repetition import RepetitionStop
from fast_agent.text.json_value import plain_json, plain_object

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from fast_agent.messages.message import Content, Message, ToolCall, ToolResult
    from fast_agent.models.local.answer import Chunk
    from fast_agent.models.local.engine import Engine, EnginePool, TemplateAbilities
    from fast_agent.models.model import DeltaSink, ModelRequest, ModelResponse, ToolSpec

DEFAULT_MAX_TOKENS: Final = 1024
"""Most tokens of an answer when the request names no limit: a small model may never stop."""

_TEMPERATURE: Final = 0.0
"""Temperature of a request that names none: small models ramble when they may choose."""

_REPEAT_PENALTY: Final = 1.05
"""Repeat penalty of prose, where a request sets no sampling of its own. More of it bends facts:
at 1.1 the capital of France was "Paris, not France"; without it four of 20 answers were loops."""

_QUEUES: Final[RunVar[dict[EngineKey, anyio.CapacityLimiter]]] = RunVar("local_model_queues")
"""One queue for each engine and event loop: requests wait there, and not in a thread."""


class LocalModel:
    """A model of a GGUF file, bound to one agent instance; instances share the loaded weights.

    Args:
        path: The GGUF file.
        name: The spec it was made from.
        threads: Threads to compute with; all cores but one by default.
        context: Context length in tokens.
        params: Request parameters under those of each request.
        tools_after_result: Offer tools again right after a tool's result. Small models call the
            same tool over and over when they may, so the default is to let them answer.
        recover_calls: Take calls of offered tools that were written as text for calls.
        engines: Where loaded weights are shared.
        new_id: Makes the id of a call that was written as text.
    """

    def __init__(
        self,
        path: Path,
        *,
        name: str = "local",
        threads: int | None = None,
        context: int | None = None,
        params: RequestParams = NO_PARAMS,
        tools_after_result: bool = False,
        recover_calls: bool = True,
        engines: EnginePool = PROCESS_ENGINES,
        new_id: Callable[[], str] = lambda: f"call_{uuid4().hex[:24]}",
    ) -> None:
        self._key = EngineKey(
            path=path.absolute(), context=context or DEFAULT_CONTEXT, threads=threads
        )
        self._name = name
        self._params = params
        self._tools_after_result = tools_after_result
        self._recover_calls = recover_calls
        self._engines = engines
        self._new_id = new_id
        self._engine: Engine | None = None
        self._loading = anyio.Lock()

    @property
    def name(self) -> str:
        """The spec it was made from."""
        return self._name

    async def request(
        self, request: ModelRequest, on_delta: DeltaSink | None = None
    ) -> ModelResponse:
        """Answer one request.

        A request with an `output_schema` is answered with JSON that fits it, and offers no tools:
        the runtime cannot hold a model to both. Cancelling stops the work within moments.

        Args:
            request: What to answer.
            on_delta: Called with each piece as it arrives; None asks for no streaming.

        Raises:
            ModelError: The weights cannot be loaded, or the request does not fit the model.
        """
        params = request.params.over(self._params)
        with anyio.move_on_after(params.timeout_seconds):
            engine = await self._loaded()
            able = await anyio.to_thread.run_sync(engine.abilities)
            tools = self._offered(request)
            body = _body(request, params, has_native_tools=bool(tools and able.tools))
            body["messages"] = chat_messages(request.system, request.messages, tools, able)
            if tools and able.tools:
                body["tools"] = chat_tools(tools)
                body["parallel_tool_calls"] = params.parallel_tool_calls is not False
            recoverable = tools if self._recover_calls else ()
            names = frozenset(tool.name for tool in recoverable)
            answer = Answer(names, self._new_id, _repetition_stop(request, params))
            await self._generate(engine, body, answer, on_delta)
            return replace(answer.response(), window=self._key.context)
        raise ModelError(
            f"`{self._name}` did not answer within {params.timeout_seconds:g} seconds",
            hint="raise `timeout_seconds`, or lower `max_tokens` in `request_params`",
        )

    async def aclose(self) -> None:
        """Release the weights; safe to call twice."""
        engine, self._engine = self._engine, None
        if engine is not None:
            self._engines.release(self._key)

    async def _loaded(self) -> Engine:
        async with self._loading:
            if self._engine is None:
                self._engine = await anyio.to_thread.run_sync(self._engines.acquire, self._key)
            return self._engine

    def _offered(self, request: ModelRequest) -> tuple[ToolSpec, ...]:
        after_result = bool(request.messages and request.messages[-1].tool_results)
        if request.output_schema is not None or (after_result and not self._tools_after_result):
            return ()
        return tuple(request.tools)

    async def _generate(
        self, engine: Engine, body: dict[str, Any], answer: Answer, on_delta: DeltaSink | None
    ) -> None:
        """Work in a thread that is left behind when the request is cancelled, and then stops."""
        import asyncio

        loop = asyncio.get_running_loop()
        stop = threading.Event()

        def deliver() -> None:
            for delta in answer.take_deltas():
                if on_delta is not None and not stop.is_set():
                    on_delta(delta)

        def on_chunk(chunk: Chunk) -> bool:
            if stop.is_set():
                return True
            answer.add(chunk)
            if on_delta is not None:
                loop.call_soon_threadsafe(deliver)
            return answer.repeats

        try:
            await anyio.to_thread.run_sync(
                engine.chat, body, on_chunk, abandon_on_cancel=True, limiter=_queue(self._key)
            )
            answer.finish()
            deliver()
        finally:
            stop.set()


def _queue(key: EngineKey) -> anyio.CapacityLimiter:
    queues: dict[EngineKey, anyio.CapacityLimiter] | None = _QUEUES.get(None)
    if queues is None:
        queues = {}
        _QUEUES.set(queues)
    return queues.setdefault(key, anyio.CapacityLimiter(1))


def _repetition_stop(request: ModelRequest, params: RequestParams) -> RepetitionStop | None:
    """Make what ends an answer that repeats itself; a structured one ends with its schema."""
    if request.output_schema is not None:
        return None
    # A model that always takes its likeliest word repeats a passage for ever once it said it
    # twice; one with a temperature may find out of it.
    return RepetitionStop(passages=params.temperature is None)


def _body(
    request: ModelRequest, params: RequestParams, *, has_native_tools: bool
) -> dict[str, Any]:
    is_prose = request.output_schema is None and not has_native_tools
    own_sampling = (params.temperature, params.presence_penalty, params.frequency_penalty)
    is_default = is_prose and all(value is None for value in own_sampling)
    named = {
        "temperature": _TEMPERATURE if params.temperature is None else params.temperature,
        "repeat_penalty": _REPEAT_PENALTY if is_default else None,
        "top_p": params.top_p,
        "top_k": params.top_k,
        "seed": params.seed,
        "presence_penalty": params.presence_penalty,
        "frequency_penalty": params.frequency_penalty,
        "stop": list(params.stop_sequences) if params.stop_sequences else None,
    }
    body: dict[str, Any] = {key: value for key, value in named.items() if value is not None}
    body["max_tokens"] = params.max_tokens or DEFAULT_MAX_TOKENS
    body["stream_options"] = {"include_usage": True}
    body["timings_per_token"] = True  # counts of an answer that is stopped before its end
    body["return_progress"] = True  # pieces while the prompt is read, so that it can be stopped
    shape = request.output_schema
    if shape is not None:
        body["response_format"] = {
            "type": "json_schema",
            "json_schema": {"name": shape.name, "schema": plain_object(shape.schema)},
        }
    return {**body, **(plain_object(params.extra_body) if params.extra_body else {})}


_HOW_TO_CALL = """\
You can call these tools:
{tools}
To call one, answer with nothing but
<tool_call>{{"name": "the tool's name", "arguments": {{its arguments}}}}</tool_call>
Call a tool only when it is needed; otherwise answer in plain words."""


def chat_tools(tools: Sequence[ToolSpec]) -> list[dict[str, Any]]:
    """Write tools as the OpenAI chat API has them."""
    return [{"type": "function", "function": _function(tool)} for tool in tools]


def _function(tool: ToolSpec) -> dict[str, Any]:
    return {
        "name": tool.name,
        "description": tool.description,
        "parameters": plain_object(tool.input_schema),
    }


def chat_messages(
    system: str,
    messages: Sequence[Message],
    tools: Sequence[ToolSpec],
    able: TemplateAbilities,
) -> list[dict[str, Any]]:
    """Write a conversation as the OpenAI chat API has it.

    Args:
        system: The system prompt; empty for none.
        messages: The conversation.
        tools: The tools offered.
        able: What the chat template can express.
    """
    if tools and not able.tools:
        lines = "\n".join(json.dumps(_function(tool), ensure_ascii=False) for tool in tools)
        system = "\n\n".join(part for part in (system, _HOW_TO_CALL.format(tools=lines)) if part)
    chat: list[dict[str, Any]] = []
    if system and able.system:
        chat.append({"role": "system", "content": system})
        system = ""
    for message in messages:
        for turn in _turns(message, able):
            if system and turn["role"] == "user":
                turn["content"] = f"{system}\n\n{turn['content']}"
                system = ""
            _add(chat, turn)
    return chat


def _turns(message: Message, able: TemplateAbilities) -> list[dict[str, Any]]:
    text = _text(message.content)
    if message.role == "assistant":
        if not message.tool_calls:
            return [{"role": "assistant", "content": text}]
        if able.tool_calls:
            calls = [_call(call) for call in message.tool_calls]
            return [{"role": "assistant", "content": text, "tool_calls": calls}]
        written = [text, *(_written_call(call) for call in message.tool_calls)]
        return [{"role": "assistant", "content": "\n".join(part for part in written if part)}]
    turns: list[dict[str, Any]] = []
    for result in message.tool_results:
        if able.tool_calls:
            turn = {"role": "tool", "tool_call_id": result.id, "content": _result(result)}
        else:
            content = f"<tool_response>\n{_result(result)}\n</tool_response>"
            turn = {"role": "user", "content": content}
        turns.append(turn)
    if text or not turns:
        turns.append({"role": "user", "content": text})
    return turns


def _add(chat: list[dict[str, Any]], turn: dict[str, Any]) -> None:
    """Append a turn; neighbours of one speaker become one, as templates expect."""
    last = chat[-1] if chat else None
    plain = last is not None and not last.get("tool_calls") and not turn.get("tool_calls")
    if last is not None and plain and turn["role"] != "tool" and last["role"] == turn["role"]:
        last["content"] = f"{last['content']}\n\n{turn['content']}".strip()
    else:
        chat.append(turn)


def _call(call: ToolCall) -> dict[str, Any]:
    arguments = json.dumps(plain_object(call.arguments), ensure_ascii=False)
    return {
        "id": call.id,
        "type": "function",
        "function": {"name": call.name, "arguments": arguments},
    }


def _written_call(call: ToolCall) -> str:
    body = {"name": call.name, "arguments": plain_object(call.arguments)}
    return f"<tool_call>{json.dumps(body, ensure_ascii=False)}</tool_call>"


def _result(result: ToolResult) -> str:
    text = _text(result.content)
    if not text and result.structured is not None:
        text = json.dumps(plain_json(result.structured), ensure_ascii=False)
    return f"error: {text}" if result.is_error else text


def _text(content: Sequence[Content]) -> str:
    return "\n".join(_block(block) for block in content)


def _block(block: Content) -> str:
    match block:
        case TextContent():
            return block.text
        case ImageContent() | AudioContent():
            return f"[{block.mime_type}, which this model cannot read]"
        case EmbeddedResource():
            if block.text is not None:
                return f"[resource {block.uri}]\n{block.text}\n[end of resource]"
            return f"[resource {block.uri}, which this model cannot read]"
        case ResourceLink():
            return f"[resource {block.name}: {block.uri}]"
        case OpaqueContent():
            return f"[a block of the type {block.data.get('type')!r}]"
