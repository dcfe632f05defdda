"""One model of the provider library, asked directly: a request in, a message out."""

from __future__ import annotations

from contextlib import AsyncExitStack
from typing import TYPE_CHECKING

import httpx2
from pydantic_ai import messages as lib
from pydantic_ai.direct import model_request, model_request_stream

from fast_agent.errors import ModelError
from fast_agent.models.model import ModelResponse, TextDelta, ThinkingDelta
from fast_agent.models.provider_classes import connect
from fast_agent.models.provider_errors import Failure, failure_of
from fast_agent.models.provider_messages import Outbox, message_of
from fast_agent.models.provider_request import library_request
from fast_agent.models.usage import Usage

if TYPE_CHECKING:
    from fast_agent.cards.request_params import RequestParams
    from fast_agent.models.model import Delta, DeltaSink, ModelRequest
    from fast_agent.models.provider_classes import Endpoint
    from fast_agent.models.provider_request import LibraryRequest
    from fast_agent.models.spec_query import Effort


class AttemptError(Exception):
    """One attempt failed; `failure` says how."""

    def __init__(self, failure: Failure) -> None:
        super().__init__(failure.message)
        self.failure = failure


class ProviderLink:
    """The library's model of an endpoint, and what it has been told of the conversation.

    Args:
        endpoint: Where the model is.

    Raises:
        ModelError: It cannot be set up.
    """

    def __init__(self, endpoint: Endpoint) -> None:
        self._endpoint = endpoint
        self._model = connect(endpoint)
        self._outbox = Outbox(endpoint.provider)
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
        asked = library_request(self._model, self._endpoint.provider, request, params, effort)
        messages = self._outbox.convert(request.messages)
        if not messages:
            raise ModelError("there is no message to answer", hint="send one that is not empty")
        try:
            if on_delta is None:
                response = await model_request(
                    self._model,
                    messages,
                    model_settings=asked.settings,
                    model_request_parameters=asked.parameters,
                )
            else:
                response = await self._stream(messages, asked, on_delta)
        except (RuntimeError, httpx2.HTTPError) as error:
            raise AttemptError(failure_of(error, self._endpoint)) from error
        return self._answer(response, asked.output_tool)

    async def _stream(
        self, messages: list[lib.ModelMessage], asked: LibraryRequest, on_delta: DeltaSink
    ) -> lib.ModelResponse:
        answering: set[int] = set()
        async with model_request_stream(
            self._model,
            messages,
            model_settings=asked.settings,
            model_request_parameters=asked.parameters,
        ) as stream:
            async for event in stream:
                delta = _delta(event, asked.output_tool, answering)
                if delta is not None and delta.text:
                    on_delta(delta)
            response = stream.get()
        if response.finish_reason is None:
            who = f"`{self._endpoint.provider}.{self._endpoint.model}`"
            raise AttemptError(
                Failure(f"the answer of {who} broke off before its end", "try again", passing=True)
            )
        return response

    def _answer(self, response: lib.ModelResponse, output_tool: str | None) -> ModelResponse:
        if response.finish_reason == "error":
            who = f"`{self._endpoint.provider}.{self._endpoint.model}`"
            raise AttemptError(Failure(f"{who} ended its answer with an error", "try again"))
        usage = response.usage
        return ModelResponse(
            message_of(response, self._endpoint.provider, output_tool),
            Usage(
                input_tokens=usage.input_tokens,
                output_tokens=usage.output_tokens,
                cache_read_tokens=usage.cache_read_tokens,
                cache_write_tokens=usage.cache_write_tokens,
                requests=1,
            ),
        )

    async def aclose(self) -> None:
        """Close the connections."""
        self._entered = False
        await self._open.aclose()


def _delta(
    event: lib.ModelResponseStreamEvent, output_tool: str | None, answering: set[int]
) -> Delta | None:
    """Read what an event adds to the answer.

    Args:
        event: One event of the stream.
        output_tool: The tool whose arguments are the answer; text beside it is not part of it.
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
