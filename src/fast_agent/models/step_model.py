"""Models whose requests are steps of the run they are made in."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import fields
from typing import TYPE_CHECKING, Final, cast

from fast_agent.cards.agent_config import RequestParams
from fast_agent.config.providers import COMPACTING
from fast_agent.errors import ModelError, RunError
from fast_agent.messages.json_message import message_from_wire, message_to_wire
from fast_agent.models.model import (
    ModelRequest,
    ModelResponse,
    OutputSchema,
    SkippingModel,
    TextDelta,
    ThinkingDelta,
    ToolSpec,
    Usage,
    compacts,
)
from fast_agent.models.spec import parse_models
from fast_agent.steps.steps import Codec, Step, here

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from fast_agent.config.settings import Settings
    from fast_agent.models.create import Models
    from fast_agent.models.model import Delta, DeltaSink, Model
    from fast_agent.steps.parts import Parts
    from fast_agent.text.json_value import JsonObject, JsonValue


class StepModels:
    """Makes models whose requests are steps.

    Args:
        models: Makes the models themselves.
        settings: The configuration, whose aliases and endpoints specs may name, where no model is
            asked, as in a replay; None where models are.
    """

    def __init__(self, models: Models, settings: Settings | None = None) -> None:
        self._models = models
        self._settings = settings

    def create(
        self,
        text: str,
        *,
        agent: str = "",
        api_key: str | None = None,
        directory: Path | None = None,
        new_call_id: Callable[[], str] | None = None,
    ) -> Model:
        """Make a model.

        Raises:
            ModelError: As `ModelFactory.create`.
        """
        settings = self._settings
        if settings is not None:
            specs = parse_models(text, settings.model_aliases, settings.endpoints)
            compacts = len(specs) == 1 and specs[0].provider in COMPACTING
            name = ", ".join(spec.text for spec in specs)
            return StepModel(UnaskedModel(name, compacts=compacts), agent)
        model = self._models.create(
            text, agent=agent, api_key=api_key, directory=directory, new_call_id=new_call_id
        )
        return StepModel(model, agent)

    def finish(self) -> None:
        """Check that the scripts in use were used up.

        Raises:
            ModelError: Steps were left over.
        """
        self._models.finish()


class UnaskedModel:
    """A model of which only the name is needed, since its answers are recorded.

    Args:
        name: Its spec.
        compacts: Whether its provider has a compact form of conversations.
    """

    def __init__(self, name: str, *, compacts: bool = False) -> None:
        self.name = name
        self.compacts = compacts

    async def request(
        self, request: ModelRequest, on_delta: DeltaSink | None = None
    ) -> ModelResponse:
        """Refuse to answer."""
        del request, on_delta
        raise RunError(f"model `{self.name}` is not asked in a replay")

    async def aclose(self) -> None:
        """Do nothing: it holds nothing."""


class StepModel:
    """A model whose requests are steps.

    Args:
        model: What is asked.
        agent: The agent it answers.
    """

    __slots__ = ("_agent", "_model")

    def __init__(self, model: Model, agent: str = "") -> None:
        self._model = model
        self._agent = agent

    @property
    def name(self) -> str:
        """The spec it was made from."""
        return self._model.name

    @property
    def compacts(self) -> bool:
        """Whether its provider has a compact form of conversations."""
        return compacts(self._model)

    async def request(
        self, request: ModelRequest, on_delta: DeltaSink | None = None
    ) -> ModelResponse:
        """Answer a request.

        Raises:
            ModelError: As the model itself, now or when it was recorded.
            RunError: The request is not the recorded one.
        """
        place = here()
        if place.silent:
            return await self._model.request(request, on_delta)
        heard: list[Delta] = []
        answer = Codec(
            lambda given: response_to_json(given, heard), lambda value: _read(value, on_delta)
        )

        def on_part(delta: Delta) -> None:
            heard.append(delta)
            if on_delta is not None:
                on_delta(delta)

        ran = False

        async def work() -> ModelResponse:
            nonlocal ran
            ran = True
            return await self._model.request(request, None if on_delta is None else on_part)

        asked = model_question(place.steps.parts, self.name, request)
        try:
            response = await place.steps.ask(Step("model", "", asked, self._agent), work, answer)
        except ModelError:
            self._skip_answered(ran=ran)
            raise
        self._skip_answered(ran=ran)
        return response

    def _skip_answered(self, *, ran: bool) -> None:
        """Continue a script after a request that was answered in a former life of the run."""
        if not ran and isinstance(self._model, SkippingModel):
            self._model.skip()

    async def aclose(self) -> None:
        """Release what the model holds; safe to call twice."""
        await self._model.aclose()


def model_question(parts: Parts, model: str, request: ModelRequest) -> dict[str, JsonValue]:
    """Write a model request as the digests of its parts; what is not set is left out."""
    asked: dict[str, JsonValue] = {
        "model": model,
        "system": parts.digest_of(request.system, str),
        "tools": parts.digest_of(request.tools, _tools_to_json),
        "messages": parts.digest_of_conversation(request.messages),
    }
    params = _given_params(request.params)
    if params:
        asked["params"] = params
    shape = request.output_schema
    if shape is not None:
        asked["output"] = parts.digest({"name": shape.name, "schema": shape.schema})
    if request.compaction is not None:
        asked["compaction"] = request.compaction
    return asked


def request_from_json(asked: JsonObject) -> ModelRequest:
    """Read what `model_question` wrote, once the digests are replaced by what they name.

    Raises:
        RunError: It is not a model request, or some digest was not replaced.
    """
    messages, tools = asked.get("messages"), asked.get("tools")
    if (
        not isinstance(messages, Sequence)
        or not isinstance(tools, Sequence)
        or isinstance(tools, str)
        or any(isinstance(message, str) for message in messages)
    ):
        raise RunError("a part of a model request is missing")
    output = cast("JsonObject | None", asked.get("output"))
    params = dict(cast("JsonObject", asked.get("params", {})))
    if "stop_sequences" in params:
        params["stop_sequences"] = tuple(cast("Sequence[str]", params["stop_sequences"]))
    return ModelRequest(
        str(asked["system"]),
        [message_from_wire(message) for message in messages],
        [tool_from_json(cast("JsonObject", tool)) for tool in tools],
        RequestParams(**params),  # pyright: ignore[reportArgumentType]
        None
        if output is None
        else OutputSchema(str(output["name"]), cast("JsonObject", output["schema"])),
        cast("str | None", asked.get("compaction")),
    )


def tool_from_json(spec: JsonObject) -> ToolSpec:
    """Read how the model sees a tool."""
    output, title = spec.get("output_schema"), spec.get("title")
    return ToolSpec(
        str(spec["name"]),
        str(spec["description"]),
        cast("JsonObject", spec["input_schema"]),
        None if output is None else cast("JsonObject", output),
        None if title is None else str(title),
    )


def tool_to_json(tool: ToolSpec) -> dict[str, JsonValue]:
    """Write how the model sees a tool."""
    value: dict[str, JsonValue] = {
        "name": tool.name,
        "description": tool.description,
        "input_schema": tool.input_schema,
    }
    if tool.output_schema is not None:
        value["output_schema"] = tool.output_schema
    if tool.title is not None:
        value["title"] = tool.title
    return value


def _tools_to_json(tools: Sequence[ToolSpec]) -> JsonValue:
    return [tool_to_json(tool) for tool in tools]


def _given_params(params: RequestParams) -> dict[str, JsonValue]:
    """Return the parameters sent to a model; those of the loop itself are not."""
    return {
        item.name: value
        for item in fields(params)
        if item.name not in _OF_THE_LOOP and (value := getattr(params, item.name)) is not None
    }


def usage_to_json(usage: Usage) -> dict[str, JsonValue]:
    """Write counts; those that are 0 are left out."""
    return {name: count for name in _COUNTS if (count := getattr(usage, name))}


def usage_from_json(value: JsonValue) -> Usage:
    """Read counts.

    Raises:
        ValueError: It is not an object of numbers.
    """
    if not isinstance(value, Mapping):
        raise ValueError("the usage of an answer is not an object")  # noqa: TRY004
    counts = {name: count for name, count in value.items() if isinstance(count, int)}
    return Usage(**counts)


def response_to_json(response: ModelResponse, heard: Sequence[Delta] = ()) -> JsonValue:
    """Write an answer.

    Args:
        response: The answer.
        heard: The pieces it came in.
    """
    message = response.message
    value: dict[str, JsonValue] = {
        "message": message_to_wire(message),
        "usage": usage_to_json(response.usage),
    }
    if response.notes:
        value["notes"] = list(response.notes)
    if len(heard) > 1 or (heard and heard[0] != TextDelta(message.text)):
        value["pieces"] = [
            [_TEXT if isinstance(delta, TextDelta) else _THINKING, delta.text] for delta in heard
        ]
    return value


def _read(value: JsonValue, on_delta: DeltaSink | None) -> ModelResponse:
    if not isinstance(value, Mapping):
        raise RunError("an answer of the recording is not an object")
    message = message_from_wire(value.get("message"))
    if on_delta is not None:
        pieces = value.get("pieces")
        if isinstance(pieces, Sequence) and not isinstance(pieces, str):
            for piece in pieces:
                if isinstance(piece, Sequence) and len(piece) == 2:
                    kind = TextDelta if piece[0] == _TEXT else ThinkingDelta
                    on_delta(kind(str(piece[1])))
        elif message.text:
            on_delta(TextDelta(message.text))
    notes = value.get("notes")
    if isinstance(notes, str) or not isinstance(notes, Sequence):
        notes = ()
    return ModelResponse(
        message, usage_from_json(value.get("usage")), notes=tuple(str(note) for note in notes)
    )


_COUNTS: Final = tuple(item.name for item in fields(Usage))
_TEXT: Final = "text"
_THINKING: Final = "thinking"
_OF_THE_LOOP: Final = frozenset(
    {
        "max_iterations",
        "parallel_tool_calls",
        "retries",
        "retry_seconds",
        "timeout_seconds",
        "tool_result_bytes",
        "usage_limits",
    }
)
