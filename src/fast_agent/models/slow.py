"""`slow`: passthrough after a delay, for time-outs, cancellation and concurrency."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from fast_agent.models.passthrough import PassthroughModel

if TYPE_CHECKING:
    from collections.abc import Callable

    from fast_agent.models.model import DeltaSink, ModelRequest, ModelResponse

DEFAULT_SECONDS: Final = 3.0
"""How long `slow` waits when its spec does not say."""


class SlowModel:
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
        self._seconds = seconds
        self._name = name
        self._passthrough = PassthroughModel(name, new_call_id)

    @property
    def name(self) -> str:
        """The spec it was made from."""
        return self._name

    async def request(
        self, request: ModelRequest, on_delta: DeltaSink | None = None
    ) -> ModelResponse:
        """Wait, then answer as passthrough does.

        Raises:
            ModelError: As passthrough.
        """
        import anyio

        await anyio.sleep(self._seconds)
        return self._passthrough.answer(request, on_delta)

    async def aclose(self) -> None:
        """Do nothing; nothing is held."""
