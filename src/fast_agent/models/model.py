"""The Model protocol: one request in, one message out, deltas on the way; counts of its use."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import field
from typing import TYPE_CHECKING, Protocol, TypeAlias, runtime_checkable

from fast_agent.cards.agent_config import NO_PARAMS, RequestParams
from fast_agent.config.settings import TOKEN_CHARACTERS
from fast_agent.text.frozen import frozen

if TYPE_CHECKING:
    from fast_agent.messages.message import Message
    from fast_agent.text.json_value import JsonObject


@frozen
class Usage:
    """Counts; `+` adds them.

    Args:
        input_tokens: Tokens sent, cached ones included.
        output_tokens: Tokens generated.
        cache_read_tokens: Input tokens the provider read from its cache.
        cache_write_tokens: Input tokens the provider wrote to its cache.
        requests: Model requests.
        tool_calls: Tool calls made.
        nanodollars: Price of the requests whose price is known, in billionths of a US dollar.
        priced: Model requests whose price is known.
    """

    input_tokens: int = 0
    output_tokens: int = 0
    cache_read_tokens: int = 0
    cache_write_tokens: int = 0
    requests: int = 0
    tool_calls: int = 0
    nanodollars: int = 0
    priced: int = 0

    @property
    def cost(self) -> float | None:
        """Price in US dollars; None where the price of some request is not known."""
        return self.nanodollars / 1e9 if self.priced and self.priced == self.requests else None

    @property
    def total_tokens(self) -> int:
        """Input and output tokens together."""
        return self.input_tokens + self.output_tokens

    def __add__(self, other: Usage) -> Usage:
        return Usage(
            self.input_tokens + other.input_tokens,
            self.output_tokens + other.output_tokens,
            self.cache_read_tokens + other.cache_read_tokens,
            self.cache_write_tokens + other.cache_write_tokens,
            self.requests + other.requests,
            self.tool_calls + other.tool_calls,
            self.nanodollars + other.nanodollars,
            self.priced + other.priced,
        )


@frozen
class ContextUse:
    """How full the context window of a model was at its last answer.

    Args:
        used: Tokens of the request and its answer together, as the model counted them.
        window: Tokens the window holds, or None where that is not known.
    """

    used: int
    window: int | None = None

    @property
    def share(self) -> float | None:
        """The part of the window that is used, from 0 to 1; None where the window is not known."""
        return None if not self.window else self.used / self.window

    def to_json(self) -> JsonObject:
        """Return it as a JSON object."""
        share = self.share
        return {
            "used": self.used,
            "window": self.window,
            "share": None if share is None else round(share, 4),
        }


ONE_REQUEST = Usage(requests=1)
"""A request whose tokens were not counted."""


def size_of_text(text: str) -> int:
    """Return roughly how many tokens a string takes."""
    return (len(text) + TOKEN_CHARACTERS - 1) // TOKEN_CHARACTERS


@frozen
class ToolSpec:
    """A tool as the model sees it.

    Args:
        name: At most 64 characters of letters, digits, `_` and `-`.
        description: What it does, for the model.
        input_schema: JSON Schema of the arguments object.
        output_schema: JSON Schema of structured results, or None.
        title: Name for people, or None.
    """

    name: str
    description: str
    input_schema: JsonObject
    output_schema: JsonObject | None = None
    title: str | None = None


@frozen
class OutputSchema:
    """The shape a structured answer must have; the answer's text is then JSON."""

    name: str
    schema: JsonObject


@frozen
class ModelRequest:
    """All a model needs for one answer.

    Args:
        system: The rendered system prompt; empty for none.
        messages: The conversation, the message to answer last.
        tools: Tools offered.
        params: Request parameters.
        output_schema: Ask for a structured answer; None for free text.
        compaction: Ask for the messages in the provider's compact form instead of an answer, and
            for this to be kept in it above all; None asks for an answer. Only for a model that
            `compacts`.
        notify: Called with what a user should know while the answer is awaited, a line each.
    """

    system: str
    messages: Sequence[Message]
    tools: Sequence[ToolSpec] = ()
    params: RequestParams = NO_PARAMS
    output_schema: OutputSchema | None = None
    compaction: str | None = None
    notify: Callable[[str], None] | None = field(default=None, repr=False, compare=False)


@frozen
class ModelResponse:
    """An answer: an assistant message whose `stop_reason` is set, and what it used.

    Args:
        message: The answer.
        usage: What the request used.
        window: Tokens the model's context window holds; None where that is not known.
        notes: What a user is to know of how it came about, such as a setting that was left out.
    """

    message: Message
    usage: Usage = ONE_REQUEST
    window: int | None = None
    notes: tuple[str, ...] = ()


@frozen
class TextDelta:
    """A piece of the answer's text."""

    text: str


@frozen
class ThinkingDelta:
    """A piece of the model's reasoning."""

    text: str


Delta: TypeAlias = TextDelta | ThinkingDelta
DeltaSink: TypeAlias = Callable[[Delta], None]


class AnswerWatch:
    """A sink that passes deltas on, and notes whether a piece of the answer's text was among them.

    After one was, no request is sent again: a second answer would restart the text.

    Args:
        on_delta: Where they go.
    """

    __slots__ = ("_on_delta", "is_shown")

    def __init__(self, on_delta: DeltaSink | None) -> None:
        self._on_delta = on_delta
        self.is_shown = False

    @property
    def sink(self) -> DeltaSink | None:
        """The sink to pass; None without a listener, which requests no streaming."""
        return None if self._on_delta is None else self._take

    def _take(self, delta: Delta) -> None:
        self.is_shown = self.is_shown or isinstance(delta, TextDelta)
        if self._on_delta is not None:
            self._on_delta(delta)


class Model(Protocol):
    """A model bound to one agent instance; it may keep state from request to request."""

    @property
    def name(self) -> str:
        """The spec it was made from, such as `anthropic.claude-sonnet-5`."""
        ...

    async def request(
        self, request: ModelRequest, on_delta: DeltaSink | None = None
    ) -> ModelResponse:
        """Answer one request.

        Args:
            request: What to answer.
            on_delta: Called with each piece as it arrives; None asks for no streaming.

        Raises:
            ModelError: The model cannot be reached, refused the request, or answered nonsense.
        """
        ...

    async def aclose(self) -> None:
        """Release what the model holds; safe to call twice."""
        ...


@runtime_checkable
class CompactingModel(Protocol):
    """A model whose provider may have a compact form of conversations."""

    @property
    def compacts(self) -> bool:
        """Whether `ModelRequest.compaction` may be asked of it; it may still refuse."""
        ...


def compacts(model: Model) -> bool:
    """Return whether a model may be asked for the compact form of a conversation."""
    return isinstance(model, CompactingModel) and model.compacts


@runtime_checkable
class SkippingModel(Protocol):
    """A model whose answers depend on how often it was asked, such as a script."""

    def skip(self) -> bool:
        """Pass over a request of an earlier life of the run.

        Returns:
            Whether the model answered it; False where it failed.
        """
        ...
