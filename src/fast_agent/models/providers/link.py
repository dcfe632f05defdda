"""One model of the provider library, asked directly: a request in, a message out."""

from __future__ import annotations

import re
from contextlib import AsyncExitStack, contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias, cast

import httpx2
from pydantic_ai import messages as lib
from pydantic_ai.direct import model_request, model_request_stream
from pydantic_ai.exceptions import UnexpectedModelBehavior
from pydantic_ai.messages import InstructionPart
from pydantic_ai.models import ModelRequestContext, ModelRequestParameters
from pydantic_ai.output import OutputObjectDefinition
from pydantic_ai.tools import ToolDefinition

from fast_agent.errors import ModelError
from fast_agent.messages.message import TextContent
from fast_agent.models.facts import UNKNOWN
from fast_agent.models.model import ModelResponse, TextDelta, ThinkingDelta, Usage
from fast_agent.models.providers.classes import (
    THINKING_IN_TEXT,
    ThinkingSplitter,
    connect,
    has_own_client,
)
from fast_agent.models.providers.errors import (
    Failure,
    broken_off,
    ended_with_error,
    failure_of,
    is_of_cloud,
    raw_reason,
    refusal_notes,
)
from fast_agent.models.providers.messages import MessageConverter, message_of
from fast_agent.models.providers.settings import SettingsReader
from fast_agent.models.providers.strict_schema import AnswerForm, answer_form
from fast_agent.text.frozen import frozen
from fast_agent.text.json_value import plain_object

if TYPE_CHECKING:
    from collections.abc import Generator, Sequence

    from pydantic_ai.models import Model as LibraryModel
    from pydantic_ai.settings import ModelSettings
    from pydantic_ai.usage import RequestUsage

    from fast_agent.cards.agent_config import RequestParams
    from fast_agent.config.providers import Effort
    from fast_agent.models.check import Endpoint
    from fast_agent.models.facts import ModelFacts
    from fast_agent.models.model import Delta, DeltaSink, ModelRequest, OutputSchema, ToolSpec


_MAX_PAUSES: Final = 10
"""How often a provider may pause in one answer before the answer ends there."""


class AttemptError(Exception):
    """One attempt failed; `failure` says how."""

    def __init__(self, failure: Failure) -> None:
        super().__init__(failure.message)
        self.failure = failure


class ProviderLink:
    """The library's model of an endpoint, and the conversation sent to it so far.

    Args:
        endpoint: Where the model is.
        facts: What is known of it.

    Raises:
        ModelError: It cannot be set up.
    """

    def __init__(self, endpoint: Endpoint, facts: ModelFacts = UNKNOWN) -> None:
        self._endpoint = endpoint
        self._facts = facts
        self._model = connect(endpoint)
        self._reader = SettingsReader(self._model, endpoint)
        self._noted: set[str] = set()
        self._outbox = MessageConverter(endpoint.provider)
        self._open = AsyncExitStack()
        self._entered = False

    async def ask(
        self,
        request: ModelRequest,
        params: RequestParams,
        effort: Effort | None,
        on_delta: DeltaSink | None,
    ) -> ModelResponse:
        """Send a request once.

        Raises:
            AttemptError: The provider could not be reached, refused, or broke off.
            ModelError: The request cannot be said in the provider's form.
        """
        if not self._entered:
            self._entered = True
            await self._open.enter_async_context(self._model)
            client = getattr(self._model, "client", None)
            if has_own_client(self._endpoint) and client is not None:
                self._open.push_async_callback(client.close)  # the library closes only its own
        asked = library_request(self._model, self._reader, self._endpoint, request, params, effort)
        messages = self._outbox.convert(request.messages)
        if not messages:
            raise ModelError("there is no message to answer", hint="send one that is not empty")
        try:
            if request.compaction is not None:
                response = await self._compact(messages, asked, request)
            else:
                response = await self._ask_until_complete(messages, asked, on_delta)
        except Exception as error:
            if not isinstance(error, RuntimeError | httpx2.HTTPError) and not is_of_cloud(error):
                raise
            raise AttemptError(failure_of(error, self._endpoint)) from error
        return self._answer(response, asked)

    async def _compact(
        self, messages: list[lib.ModelMessage], asked: LibraryRequest, request: ModelRequest
    ) -> lib.ModelResponse:
        """Ask for the provider's compact form of the messages."""
        wanted = request.compaction or None
        if wanted is not None and self._endpoint.provider == "openai":
            # There, these replace the system prompt for this one request.
            wanted = f"{request.system}\n\nKeep this above all: {wanted}".strip()
        context = ModelRequestContext(
            model=self._model,
            messages=messages,
            model_settings=asked.settings,
            model_request_parameters=asked.parameters,
        )
        return await self._model.compact_messages(context, instructions=wanted)

    async def _ask_until_complete(
        self, messages: list[lib.ModelMessage], asked: LibraryRequest, on_delta: DeltaSink | None
    ) -> lib.ModelResponse:
        """Ask, and let a provider continue that paused while its own tools are at work."""
        response = await self._ask_once(messages, asked, on_delta)
        for _ in range(_MAX_PAUSES):
            if response.state != "suspended":
                break
            rest = await self._ask_once([*messages, response], asked, on_delta)
            response = replace(
                rest,
                parts=[*response.parts, *rest.parts],
                usage=response.usage + rest.usage,
                provider_details={
                    **(response.provider_details or {}),
                    **(rest.provider_details or {}),
                },
            )
        return response

    async def _ask_once(
        self, messages: list[lib.ModelMessage], asked: LibraryRequest, on_delta: DeltaSink | None
    ) -> lib.ModelResponse:
        if on_delta is not None:
            return await self._stream(messages, asked, on_delta)
        with _reading():
            return await model_request(
                self._model,
                messages,
                model_settings=asked.settings,
                model_request_parameters=asked.parameters,
            )

    async def _stream(
        self, messages: list[lib.ModelMessage], asked: LibraryRequest, on_delta: DeltaSink
    ) -> lib.ModelResponse:
        answering: set[int] = set()
        splitter = None
        if self._endpoint.provider in THINKING_IN_TEXT and asked.output_tool is None:
            splitter = ThinkingSplitter(on_delta)
        async with AsyncExitStack() as opened:
            with _reading():
                stream = await opened.enter_async_context(
                    model_request_stream(
                        self._model,
                        messages,
                        model_settings=asked.settings,
                        model_request_parameters=asked.parameters,
                    )
                )
            events = aiter(stream)
            while True:
                with _reading():
                    event = await anext(events, None)
                if event is None:
                    break
                delta = _delta(event, asked.output_tool, answering)
                if delta is None or not delta.text:
                    continue
                if splitter is not None and isinstance(delta, TextDelta):
                    splitter.add(delta.text)
                else:
                    on_delta(delta)
            if splitter is not None:
                splitter.end()
            response = stream.get()
        if not _is_finished(response):
            raise AttemptError(broken_off(self._endpoint))
        return response

    def _answer(self, response: lib.ModelResponse, asked: LibraryRequest) -> ModelResponse:
        if response.finish_reason == "error":
            raise AttemptError(ended_with_error(response, self._endpoint))
        if not response.parts and not _is_finished(response):
            raise AttemptError(broken_off(self._endpoint))
        message = message_of(response, self._endpoint.provider, asked.output_tool)
        if asked.form is not None and not message.tool_calls:
            text = asked.form.restore(message.text)
            if text != message.text:
                message = replace(message, content=(TextContent(text),), native=None)
        return ModelResponse(
            message,
            self._priced(response.usage),
            self._facts.window,
            (*self._news(asked.notes), *refusal_notes(response, self._endpoint)),
        )

    def _news(self, notes: Sequence[str]) -> tuple[str, ...]:
        """Return the notes that no earlier answer had."""
        news = tuple(note for note in notes if note not in self._noted)
        self._noted.update(news)
        return news

    def _priced(self, counted: RequestUsage) -> Usage:
        usage = Usage(
            input_tokens=counted.input_tokens,
            output_tokens=counted.output_tokens,
            cache_read_tokens=counted.cache_read_tokens,
            cache_write_tokens=counted.cache_write_tokens,
            requests=1,
        )
        price = self._facts.price(usage)
        return usage if price is None else replace(usage, nanodollars=price, priced=1)

    async def aclose(self) -> None:
        """Close the connections."""
        self._entered = False
        await self._open.aclose()


@contextmanager
def _reading() -> Generator[None]:
    """Name an answer of a kind that the library does not know, and trips over."""
    try:
        yield
    except (AssertionError, AttributeError, LookupError, TypeError, ValueError) as error:
        raise UnexpectedModelBehavior(f"{type(error).__name__}: {error}") from error


def _is_finished(response: lib.ModelResponse) -> bool:
    return response.finish_reason is not None or raw_reason(response) is not None


def _delta(
    event: lib.ModelResponseStreamEvent, output_tool: str | None, answering: set[int]
) -> Delta | None:
    """Read what an event adds to the answer.

    Args:
        event: One event of the stream.
        output_tool: The tool whose arguments are the answer; text next to it is not part of it.
        answering: Indexes of parts that are calls of that tool; added to.
    """
    match event:
        case lib.PartStartEvent(part=lib.ThinkingPart(content=text)):
            return ThinkingDelta(text)
        case lib.PartDeltaEvent(delta=lib.ThinkingPartDelta(content_delta=str(text))):
            return ThinkingDelta(text)
        case lib.PartStartEvent(part=lib.TextPart(content=text)) if output_tool is None:
            return TextDelta(text)
        case lib.PartDeltaEvent(delta=lib.TextPartDelta(content_delta=text)) if not output_tool:
            return TextDelta(text)
        case lib.PartStartEvent(index=index, part=lib.ToolCallPart(tool_name=name, args=args)):
            if name != output_tool:
                return None
            answering.add(index)
            return TextDelta(args) if isinstance(args, str) else None
        case lib.PartDeltaEvent(index=index, delta=lib.ToolCallPartDelta(args_delta=str(text))):
            return TextDelta(text) if index in answering else None
        case _:
            return None


OutputMode: TypeAlias = Literal["text", "native", "tool", "prompted"]

_STRICT: Final = frozenset({"openai", "azure"})
"""Providers that hold a model to a tool's schema; to others the schema goes just as it is."""

_NOT_IN_NAMES: Final = re.compile(r"[^A-Za-z0-9_-]")


@frozen
class LibraryRequest:
    """What the library is asked.

    Args:
        settings: Sampling, limits and the like.
        parameters: Tools, instructions and the shape of the answer.
        output_tool: The tool whose arguments are the structured answer, or None.
        form: How the structured answer is asked for, or None.
        notes: Settings that were changed or left out.
    """

    settings: ModelSettings
    parameters: ModelRequestParameters
    output_tool: str | None
    form: AnswerForm | None = None
    notes: tuple[str, ...] = ()


def library_request(
    model: LibraryModel[Any],
    reader: SettingsReader,
    endpoint: Endpoint,
    request: ModelRequest,
    params: RequestParams,
    effort: Effort | None,
) -> LibraryRequest:
    """Convert a request to the library's types.

    Raises:
        ModelError: The provider cannot do what a parameter asks, and leaving it out would change
            what the request promises. A preference it does not take, such as a seed, is left out
            with a note.
    """
    provider = endpoint.provider
    strict = None if provider in _STRICT else False
    tools = [_tool(tool, strict) for tool in request.tools]
    shape = request.output_schema
    form = None if shape is None else _form(shape, provider)
    mode = _mode(model, form, provider)
    answer_tool = (
        _answer_tool(shape, form, request.tools) if mode == "tool" and shape and form else None
    )
    parameters = ModelRequestParameters(
        function_tools=tools,
        native_tools=reader.server_tools(params),
        output_mode=mode,
        output_object=_answer_object(shape, form)
        if mode in {"native", "prompted"} and shape and form
        else None,
        output_tools=[answer_tool] if answer_tool else [],
        allow_text_output=answer_tool is None,
        instruction_parts=[InstructionPart(content=request.system)] if request.system else [],
    )
    settings, notes = reader.settings(params, effort, has_tools=bool(tools))
    if tools or len(request.messages) > 1:
        settings["cache"] = True
    name = answer_tool.name if answer_tool else None
    return LibraryRequest(settings, parameters, name, form, tuple(notes))


def _tool(tool: ToolSpec, strict: bool | None) -> ToolDefinition:
    return ToolDefinition(
        name=tool.name,
        description=tool.description,
        parameters_json_schema=cast("dict[str, Any]", plain_object(tool.input_schema)),
        strict=strict,
    )


def _form(shape: OutputSchema, provider: str) -> AnswerForm:
    closed = provider == "anthropic"
    return answer_form(shape.schema, all_required=not closed, may_recur=not closed)


def _mode(model: LibraryModel[Any], form: AnswerForm | None, provider: str) -> OutputMode:
    """Pick how a structured answer is asked for: by the API itself where it can do that."""
    if form is None:
        return "text"
    if provider == "anthropic" and not form.is_strict:
        return "tool"  # the API takes no open objects
    if model.profile.get("supports_json_schema_output", False):
        return "native"
    return "tool" if model.profile.get("supports_tools", True) else "prompted"


def _answer_object(shape: OutputSchema, form: AnswerForm) -> OutputObjectDefinition:
    schema = cast("dict[str, Any]", plain_object(form.schema))
    name = _NOT_IN_NAMES.sub("_", shape.name)[:64] or "answer"
    return OutputObjectDefinition(json_schema=schema, name=name, strict=form.is_strict)


def _answer_tool(
    shape: OutputSchema, form: AnswerForm, tools: Sequence[ToolSpec]
) -> ToolDefinition:
    taken = {tool.name for tool in tools}
    name = "final_answer"
    while name in taken:
        name += "_"
    return ToolDefinition(
        name=name,
        description=f"Give the final answer, `{shape.name}`.",
        parameters_json_schema=cast("dict[str, Any]", plain_object(form.schema)),
        strict=False,
        kind="output",
    )
