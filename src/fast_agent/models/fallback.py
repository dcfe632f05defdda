"""Models that stand in for each other: where one fails, the next answers."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from fast_agent.errors import ContextError, ModelError
from fast_agent.models.model import AnswerWatch, SkippingModel

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from fast_agent.models.model import DeltaSink, Model, ModelRequest, ModelResponse

_PAUSE_SECONDS: Final = 60.0
"""How long a model that failed is asked after the others."""


class FallbackModel:
    """A model, and those that answer where it fails.

    Args:
        models: Two or more, in the order they are asked.
        now: The time in seconds, from any start.
    """

    def __init__(
        self, models: Sequence[Model], *, now: Callable[[], float] = time.monotonic
    ) -> None:
        self._models = tuple(models)
        self._now = now
        self._failed_at: dict[int, float] = {}

    @property
    def name(self) -> str:
        """The specs they were made from, with commas between."""
        return ", ".join(model.name for model in self._models)

    async def request(
        self, request: ModelRequest, on_delta: DeltaSink | None = None
    ) -> ModelResponse:
        """Answer one request, by the first model that can.

        A model that failed is asked last for a minute. The next model is not asked once a piece of
        its text has been passed to `on_delta`, nor where the conversation is too long.

        Args:
            request: What to answer.
            on_delta: Called with each piece as it arrives; None asks for no streaming.

        Raises:
            ContextError: The conversation is too long for the model.
            ModelError: No model answered; the message says why of each.
        """
        watch = AnswerWatch(on_delta)
        failed: list[tuple[Model, ModelError]] = []
        for index in self._order():
            model = self._models[index]
            try:
                response = await model.request(request, watch.sink)
            except ContextError:
                raise
            except ModelError as error:
                self._failed_at[index] = self._now()
                if watch.is_shown:
                    raise
                failed.append((model, error))
            else:
                self._failed_at.pop(index, None)
                if not failed:
                    return response
                note = f"{_reasons(failed)}: `{model.name}` answers"
                return replace(response, notes=(note, *response.notes))
        first = failed[0][1]
        raise ModelError(f"no model answered: {_reasons(failed)}", hint=first.hint) from first

    def skip(self) -> bool:
        """Pass over a request of an earlier life of the run, in every model it reached.

        The models that come before the one that answered failed then, and are asked last again. A
        model that keeps no count of its requests is taken to have answered.

        Returns:
            Whether one of them answered.
        """
        for index in self._order():
            model = self._models[index]
            try:
                has_answered = not isinstance(model, SkippingModel) or model.skip()
            except ModelError:  # its script was used up, so the next model was asked
                has_answered = False
            if has_answered:
                self._failed_at.pop(index, None)
                return True
            self._failed_at[index] = self._now()
        return False

    async def aclose(self) -> None:
        """Release what the models hold; safe to call twice."""
        for model in self._models:
            await model.aclose()

    def _order(self) -> list[int]:
        since = self._now() - _PAUSE_SECONDS
        return sorted(
            range(len(self._models)),
            key=lambda index: self._failed_at.get(index, since) > since,
        )


def _reasons(failed: Sequence[tuple[Model, ModelError]]) -> str:
    return "; ".join(
        error.message if model.name in error.message else f"`{model.name}`: {error.message}"
        for model, error in failed
    )
