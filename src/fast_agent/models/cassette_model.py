"""Models on a tape: what they are asked and answer is recorded, or comes from a recording."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import fields
from typing import TYPE_CHECKING, Final

from fast_agent.errors import RunError
from fast_agent.messages.json_message import message_from_wire, message_to_wire
from fast_agent.models.model import ModelResponse, TextDelta, ThinkingDelta
from fast_agent.models.spec import parse_model_spec
from fast_agent.models.tape import Codec
from fast_agent.models.usage import Usage

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from fast_agent.models.create import Models
    from fast_agent.models.model import Delta, DeltaSink, Model, ModelRequest
    from fast_agent.models.tape import Tape
    from fast_agent.text.json_value import JsonValue


class TapedModels:
    """Makes models whose requests go through a tape; a replay makes none.

    Args:
        models: Makes the models themselves.
        tape: The tape.
        aliases: `model_aliases` of the configuration.
    """

    def __init__(self, models: Models, tape: Tape, aliases: Mapping[str, str]) -> None:
        self._models = models
        self._tape = tape
        self._aliases = aliases

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
            ModelError: The spec is wrong; where the world is asked, also as `ModelFactory.create`.
        """
        if self._tape.replays:
            return TapedModel(parse_model_spec(text, self._aliases).text, None, self._tape)
        model = self._models.create(
            text, agent=agent, api_key=api_key, directory=directory, new_call_id=new_call_id
        )
        return TapedModel(model.name, model, self._tape)

    def finish(self) -> None:
        """See that the scripts in use were used up.

        Raises:
            ModelError: Steps were left over.
        """
        self._models.finish()


class TapedModel:
    """A model whose requests go through a tape.

    Args:
        name: Its spec.
        model: What is asked; None where answers come from a recording.
        tape: The tape.
    """

    def __init__(self, name: str, model: Model | None, tape: Tape) -> None:
        self._name = name
        self._model = model
        self._tape = tape

    @property
    def name(self) -> str:
        """The spec it was made from."""
        return self._name

    async def request(
        self, request: ModelRequest, on_delta: DeltaSink | None = None
    ) -> ModelResponse:
        """Answer a request.

        Raises:
            ModelError: As the model itself, now or when it was recorded.
            RunError: The request is not the recorded one.
        """
        heard: list[Delta] = []
        answer = Codec(lambda given: _written(given, heard), lambda value: _read(value, on_delta))

        def hear(delta: Delta) -> None:
            heard.append(delta)
            if on_delta is not None:
                on_delta(delta)

        async def work() -> ModelResponse:
            if self._model is None:
                raise RunError(f"model `{self._name}` is not asked in a replay")
            return await self._model.request(request, None if on_delta is None else hear)

        asked = self._tape.parts.question(self._name, request)
        return await self._tape.ask("model", "", asked, work, answer)

    async def aclose(self) -> None:
        """Release what the model holds; safe to call twice."""
        if self._model is not None:
            await self._model.aclose()


def usage_to_json(usage: Usage) -> dict[str, JsonValue]:
    """Write counts; those that are 0 are left out."""
    return {name: count for name in _COUNTS if (count := getattr(usage, name))}


def usage_from_json(value: JsonValue) -> Usage:
    """Read counts.

    Raises:
        ValueError: It is no object of numbers.
    """
    if not isinstance(value, Mapping):
        raise ValueError("the usage of an answer is no object")  # noqa: TRY004
    counts = {name: count for name, count in value.items() if isinstance(count, int)}
    return Usage(**counts)


def _written(response: ModelResponse, heard: Sequence[Delta]) -> JsonValue:
    message = response.message
    value: dict[str, JsonValue] = {
        "message": message_to_wire(message),
        "usage": usage_to_json(response.usage),
    }
    if len(heard) > 1 or (heard and heard[0] != TextDelta(message.text)):
        value["pieces"] = [
            [_TEXT if isinstance(delta, TextDelta) else _THINKING, delta.text] for delta in heard
        ]
    return value


def _read(value: JsonValue, on_delta: DeltaSink | None) -> ModelResponse:
    if not isinstance(value, Mapping):
        raise RunError("an answer of the recording is no object")
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
    return ModelResponse(message, usage_from_json(value.get("usage")))


_COUNTS: Final = tuple(item.name for item in fields(Usage))
_TEXT: Final = "text"
_THINKING: Final = "thinking"
