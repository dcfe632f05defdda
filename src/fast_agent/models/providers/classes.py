"""Which classes of the provider library speak to which provider, and how they are made.

The library and the SDK of a provider are imported here and in the modules beside that
`ProviderLink` pulls in; nothing imports them before a model of a provider is first asked.
"""

from __future__ import annotations

import os
from functools import partial
from importlib import import_module
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlsplit

from fast_agent.config.providers import PROVIDERS
from fast_agent.errors import FastAgentError, ModelError
from fast_agent.models.http_client import certificates, client_options
from fast_agent.models.model import TextDelta, ThinkingDelta
from fast_agent.text.frozen import frozen
from fast_agent.text.web_failure import PROXY_HINT

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping

    from httpx2 import AsyncClient
    from pydantic_ai.models import Model as LibraryModel

    from fast_agent.config.providers import Provider
    from fast_agent.models.check import Endpoint
    from fast_agent.models.model import DeltaSink

THINKING_IN_TEXT: Final = frozenset({"generic", "ollama", "azure", "groq", "hf"})
"""Providers that serve models of others, some of which think aloud at the start of their answer."""
_OPEN: Final = "<think>"
_CLOSE: Final = "</think>"


def split_thinking(text: str) -> tuple[str, str]:
    """Split a whole answer into its reasoning, empty where it has none, and the rest."""
    start = text.lstrip()
    if not start.startswith(_OPEN):
        return "", text
    thinking, closed, rest = start.removeprefix(_OPEN).partition(_CLOSE)
    return (thinking.strip(), rest.lstrip()) if closed else (thinking.strip(), "")


class ThinkingSplitter:
    """Splits the text of an answer as it arrives, in pieces of any size.

    Args:
        sink: Given the pieces.
    """

    def __init__(self, sink: DeltaSink) -> None:
        self._sink = sink
        self._held = ""
        self._state = "start"

    def add(self, text: str) -> None:
        """Take the next piece."""
        self._held += text
        if self._state == "start":
            self._open()
        if self._state == "thinking":
            self._think()
        if self._state == "after":
            self._held = self._held.lstrip()
            self._state = "text" if self._held else "after"
        if self._state == "text":
            self._pass_piece(TextDelta, len(self._held))

    def end(self) -> None:
        """Emit what was held back as a possible start of a mark."""
        self._pass_piece(ThinkingDelta if self._state == "thinking" else TextDelta, len(self._held))

    def _open(self) -> None:
        start = self._held.lstrip()
        if start.startswith(_OPEN):
            self._held, self._state = start.removeprefix(_OPEN), "thinking"
        elif not _OPEN.startswith(start):
            self._state = "text"

    def _think(self) -> None:
        thinking, closed, rest = self._held.partition(_CLOSE)
        if closed:
            self._pass_piece(ThinkingDelta, len(thinking))
            self._held, self._state = rest, "after"
            return
        # The end of it may be the start of the mark.
        kept = next(
            size for size in range(len(_CLOSE) - 1, -1, -1) if self._held.endswith(_CLOSE[:size])
        )
        self._pass_piece(ThinkingDelta, len(self._held) - kept)

    def _pass_piece(self, kind: type[TextDelta | ThinkingDelta], size: int) -> None:
        piece, self._held = self._held[:size], self._held[size:]
        if piece:
            self._sink(kind(piece))


@frozen
class Adapter:
    """The classes for one provider.

    Args:
        model: `module:class` of the model.
        provider: `module:class` of the provider.
        address: The provider's argument that takes the address; None where it takes a client of
            the OpenAI SDK instead.
        path: Where under the address the API is, added to an address that does not end with it.
        named: The provider's first argument is its name.
        strict_end: A streamed answer without a finish reason is a broken one.
        sdk: The SDK whose HTTP client is made here, to share what checks certificates; None leaves
            it to the library.
        grpc: It speaks gRPC: its client is made in the event loop, and its address has no path.
    """

    model: str
    provider: str
    address: str | None = "base_url"
    path: str = ""
    named: bool = False
    strict_end: bool = False
    sdk: str | None = "openai"
    grpc: bool = False


_OPENAI_CHAT: Final = "models.openai:OpenAIChatModel"
ADAPTERS: Final[Mapping[str, Adapter]] = MappingProxyType(
    {
        "openai": Adapter("models.openai:OpenAIResponsesModel", "providers.openai:OpenAIProvider"),
        "anthropic": Adapter(
            "models.anthropic:AnthropicModel",
            "providers.anthropic:AnthropicProvider",
            sdk="anthropic",
        ),
        "google": Adapter("models.google:GoogleModel", "providers.google:GoogleProvider", sdk=None),
        "generic": Adapter(
            _OPENAI_CHAT,
            "providers.openai_compatible:OpenAICompatibleProvider",
            named=True,
            strict_end=True,
        ),
        "ollama": Adapter(
            _OPENAI_CHAT,
            "providers.openai_compatible:OpenAICompatibleProvider",
            named=True,
            strict_end=True,
        ),
        "openrouter": Adapter(
            "models.openrouter:OpenRouterModel",
            "providers.openrouter:OpenRouterProvider",
            address=None,
            strict_end=True,
        ),
        "deepseek": Adapter(
            _OPENAI_CHAT, "providers.deepseek:DeepSeekProvider", address=None, strict_end=True
        ),
        "azure": Adapter(
            _OPENAI_CHAT,
            "providers.azure:AzureProvider",
            address="azure_endpoint",
            path="/openai/v1",
            strict_end=True,
        ),
        "groq": Adapter("models.groq:GroqModel", "providers.groq:GroqProvider", sdk=None),
        "mistral": Adapter(
            "models.mistral:MistralModel", "providers.mistral:MistralProvider", sdk=None
        ),
        "xai": Adapter(
            "models.xai:XaiModel",
            "providers.xai:XaiProvider",
            address="api_host",
            sdk=None,
            grpc=True,
        ),
        "hf": Adapter(
            _OPENAI_CHAT,
            "providers.openai_compatible:OpenAICompatibleProvider",
            named=True,
            strict_end=True,
        ),
        "vertex": Adapter(
            "models.google:GoogleModel", "providers.google_cloud:GoogleCloudProvider", sdk=None
        ),
        "bedrock": Adapter(
            "models.bedrock:BedrockConverseModel", "providers.bedrock:BedrockProvider", sdk=None
        ),
    }
)
"""The classes for every provider of `PROVIDERS`."""


def connect(endpoint: Endpoint) -> LibraryModel[Any]:
    """Make the library's model for an endpoint. Opens no connection.

    Raises:
        ModelError: The key or the address is missing, or what the provider needs is not installed.
    """
    facts = PROVIDERS[endpoint.provider]
    adapter = ADAPTERS[endpoint.provider]
    if facts.key_required and not endpoint.api_key:
        raise ModelError(
            f"no API key for {facts.label}",
            hint=f"set `{facts.key_variables[0]}`, or `{facts.api_key_setting}` in the secrets",
        )
    if endpoint.provider == "vertex" and not endpoint.api_key:
        _check_project(facts)
    if facts.base_url_required and not endpoint.base_url:
        raise ModelError(
            f"no address for {facts.label}",
            hint=f"set `{facts.base_url_variable}`, or `{facts.name}.base_url` in the settings",
        )
    try:
        model_class = _load(adapter.model)
        provider_class = _load(adapter.provider)
    except ImportError as error:
        raise ModelError(
            f"{facts.label} needs packages that are not installed",
            hint=f"install them with `pip install '{facts.requirement}'`",
        ) from error
    try:
        provider = provider_class(*_names(adapter, endpoint), **_arguments(adapter, endpoint))
        return _model_of(model_class, provider, endpoint)
    except FastAgentError:
        raise
    except Exception as error:  # each SDK has its own
        if isinstance(error, OSError):
            certificates()  # which says so if it cannot read them either
        if type(error.__cause__).__name__ == "NoRegionError":
            raise ModelError(
                f"no region for {facts.label}",
                hint=f"set `{_REGION}`, or the region of your profile in `~/.aws/config`",
            ) from error
        section = f"check the section `{endpoint.provider}` of the configuration"
        raise ModelError(
            f"`{endpoint.provider}` cannot be set up: {error}",
            hint=PROXY_HINT if "proxy" in str(error) else section,
        ) from error


def _model_of(model_class: Any, provider: Any, endpoint: Endpoint) -> LibraryModel[Any]:
    adapter = ADAPTERS[endpoint.provider]
    profile: dict[str, Any] = {}
    if adapter.strict_end:
        profile["openai_chat_streaming_requires_finish_reason"] = True
    if adapter.named:
        profile["supports_thinking"] = True  # the library knows no model of these by its name
    if endpoint.provider in THINKING_IN_TEXT:
        # The library finds a mark only if it is a separate piece.
        profile["thinking_tags"] = ("\0", "\0")
    model = model_class(endpoint.model, provider=provider, profile=profile or None)
    client: Any = None if adapter.grpc else getattr(model, "client", None)
    if hasattr(client, "max_retries"):
        # Our retries know of `Retry-After` and of the turn. Said with each request, the library
        # copies the client each time, and the copy asks for the platform in a thread.
        client.max_retries = 0
    if adapter.sdk == "openai":
        _send_as_is(model, adapter)
    return model


def _send_as_is(model: LibraryModel[Any], adapter: Adapter) -> None:
    """Make the SDK send messages as the library wrote them.

    It would search every value of every message for names and dates to write another way, of which
    a message has none: 0.4 ms of processor time a message, with each request. It does not search
    what is in `extra_body`.
    """
    client: Any = getattr(model, "client", None)
    if adapter.model.endswith("ResponsesModel"):
        resource, field = client.responses, "input"
    else:
        resource, field = client.chat.completions, "messages"
    resource.create = partial(_create, resource.create, field)


async def _create(create: Callable[..., Awaitable[Any]], field: str, **given: Any) -> Any:
    body: dict[str, Any] = {field: given[field], **(given.pop("extra_body", None) or {})}
    return await create(**{**given, field: (), "extra_body": body})


def _check_project(facts: Provider) -> None:
    """Check that a project is named, before the SDK asks the network for one."""
    if not os.environ.get("GOOGLE_CLOUD_PROJECT"):
        raise ModelError(
            f"no project and no API key for {facts.label}",
            hint="set `GOOGLE_CLOUD_PROJECT` and `GOOGLE_APPLICATION_CREDENTIALS`, or "
            f"`{facts.key_variables[0]}`",
        )


def _load(path: str) -> Any:
    module, _, name = path.partition(":")
    return getattr(import_module(f"pydantic_ai.{module}"), name)


def _names(adapter: Adapter, endpoint: Endpoint) -> tuple[str, ...]:
    return (endpoint.name or endpoint.provider,) if adapter.named else ()


def has_own_client(endpoint: Endpoint) -> bool:
    """Return whether the HTTP client is made here, and so is closed by who asked for it."""
    return ADAPTERS[endpoint.provider].sdk is not None


def _arguments(adapter: Adapter, endpoint: Endpoint) -> dict[str, Any]:
    given: dict[str, Any] = {"api_key": endpoint.api_key}
    if adapter.sdk is not None:
        given["http_client"] = _http_client(adapter.sdk)
    if endpoint.provider == "bedrock":
        given["region_name"] = os.environ.get(_REGION)  # its SDK knows `AWS_DEFAULT_REGION` only
    if endpoint.base_url is None:
        return given
    if adapter.address is not None:
        address = f"{endpoint.base_url.rstrip('/').removesuffix(adapter.path)}{adapter.path}"
        host = urlsplit(address).netloc if adapter.grpc else None
        return {**given, adapter.address: host or address}
    from openai import AsyncOpenAI

    return {"openai_client": AsyncOpenAI(base_url=endpoint.base_url, **given)}


def _http_client(sdk: str) -> AsyncClient:
    """Return a client with the limits and time-outs of an SDK."""
    from fast_agent.models.providers.backlog import join_backlog
    from fast_agent.models.providers.errors import refuse_page

    given: dict[str, Any] = {
        **client_options(),
        "event_hooks": {"response": [refuse_page, join_backlog]},
    }
    if sdk == "anthropic":
        import anthropic

        return anthropic.DefaultAsyncHttpxClient(**given)
    import openai

    return openai.DefaultAsyncHttpxClient(**given)


_REGION: Final = "AWS_REGION"
