"""The known model providers: where their keys are searched for and what they need.

Facts only. The configuration has one section for each, model specs start with their names and take
the keys of a table here after `?`, and the provider adapter makes the connection.
"""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING, Final, Literal, TypeAlias, get_args

from fast_agent.cards.records import COUNT, REQUEST_PARAMS
from fast_agent.schema.kinds import Entry, Integer, Number, OneOf, Text
from fast_agent.text.frozen import frozen

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping


@frozen(kw_only=True)
class Provider:
    """What is known of one provider.

    Args:
        name: First part of a model spec, and the name of its configuration section.
        label: Its name for people.
        key_variables: Environment variables that may hold the key, the preferred one first.
        base_url_variable: Environment variable that may hold the address.
        key_required: Whether requests fail without a key.
        base_url_required: Whether there is no address to fall back to.
        default_base_url: The address where none is set; None leaves it to the provider's SDK.
        modules: Modules that must be importable to use it.
        requirement: What to install when one of `modules` is missing.
        hosts: Its own hosts, exact or with `*` for one part of the name; a key goes to no other
            unasked. None where each user has another one, which anybody can have.
        default_model: The default model of a user with a key for it; None if there is no
            such model.
    """

    name: str
    label: str
    key_variables: tuple[str, ...]
    base_url_variable: str
    key_required: bool = True
    base_url_required: bool = False
    default_base_url: str | None = None
    modules: tuple[str, ...] = ("pydantic_ai", "openai")
    requirement: str = "fast-agent[openai]"
    hosts: tuple[str, ...] = ()
    default_model: str | None = None

    @property
    def api_key_setting(self) -> str:
        """The configuration key of the API key, such as `openai.api_key`."""
        return f"{self.name}.api_key"


_LOCAL_ADDRESS: Final = "http://localhost:11434/v1"
"""Where Ollama listens, and most who run models on their own machine."""
_ALL = (
    Provider(
        name="anthropic",
        label="Anthropic",
        key_variables=("ANTHROPIC_API_KEY",),
        base_url_variable="ANTHROPIC_BASE_URL",
        hosts=("api.anthropic.com",),
        default_model="sonnet",
        modules=("pydantic_ai", "anthropic"),
        requirement="fast-agent[anthropic]",
    ),
    Provider(
        name="openai",
        label="OpenAI",
        key_variables=("OPENAI_API_KEY",),
        base_url_variable="OPENAI_BASE_URL",
        hosts=("api.openai.com",),
        default_model="gpt",
    ),
    Provider(
        name="google",
        label="Google Gemini",
        key_variables=("GOOGLE_API_KEY", "GEMINI_API_KEY"),
        base_url_variable="GOOGLE_BASE_URL",
        hosts=("generativelanguage.googleapis.com",),
        default_model="gemini",
        modules=("pydantic_ai", "google.genai"),
        requirement="fast-agent[google]",
    ),
    Provider(
        name="generic",
        label="any OpenAI-compatible endpoint",
        key_variables=("GENERIC_API_KEY",),
        base_url_variable="GENERIC_BASE_URL",
        hosts=("localhost", "127.0.0.1"),
        key_required=False,
        default_base_url=_LOCAL_ADDRESS,
    ),
    Provider(
        name="ollama",
        label="Ollama",
        key_variables=("OLLAMA_API_KEY",),
        base_url_variable="OLLAMA_BASE_URL",
        hosts=("localhost", "127.0.0.1"),
        key_required=False,
        default_base_url=_LOCAL_ADDRESS,
    ),
    Provider(
        name="openrouter",
        label="OpenRouter",
        key_variables=("OPENROUTER_API_KEY",),
        base_url_variable="OPENROUTER_BASE_URL",
        hosts=("openrouter.ai",),
    ),
    Provider(
        name="deepseek",
        label="DeepSeek",
        key_variables=("DEEPSEEK_API_KEY",),
        base_url_variable="DEEPSEEK_BASE_URL",
        hosts=("api.deepseek.com",),
        default_model="deepseek",
    ),
    Provider(
        name="azure",
        label="Azure OpenAI",
        key_variables=("AZURE_OPENAI_API_KEY",),
        base_url_variable="AZURE_OPENAI_ENDPOINT",
        base_url_required=True,
    ),
    Provider(
        name="groq",
        label="Groq",
        key_variables=("GROQ_API_KEY",),
        base_url_variable="GROQ_BASE_URL",
        hosts=("api.groq.com",),
        default_model="gpt-oss",
        modules=("pydantic_ai", "groq"),
        requirement="fast-agent[groq]",
    ),
    Provider(
        name="mistral",
        label="Mistral",
        key_variables=("MISTRAL_API_KEY",),
        base_url_variable="MISTRAL_BASE_URL",
        hosts=("api.mistral.ai",),
        default_model="mistral",
        modules=("pydantic_ai", "mistralai"),
        requirement="fast-agent[mistral]",
    ),
    Provider(
        name="xai",
        label="xAI",
        key_variables=("XAI_API_KEY",),
        base_url_variable="XAI_BASE_URL",
        hosts=("api.x.ai",),
        default_model="grok",
        modules=("pydantic_ai", "xai_sdk"),
        requirement="fast-agent[xai]",
    ),
    Provider(
        name="hf",
        label="Hugging Face",
        key_variables=("HF_TOKEN", "HUGGING_FACE_HUB_TOKEN"),
        base_url_variable="HF_BASE_URL",
        hosts=("router.huggingface.co",),
        default_base_url="https://router.huggingface.co/v1",
    ),
    Provider(
        name="vertex",
        label="Google Vertex AI",
        key_variables=("VERTEX_API_KEY",),
        base_url_variable="VERTEX_BASE_URL",
        hosts=("aiplatform.googleapis.com", "*-aiplatform.googleapis.com"),
        key_required=False,
        modules=("pydantic_ai", "google.genai"),
        requirement="fast-agent[google]",
    ),
    Provider(
        name="bedrock",
        label="Amazon Bedrock",
        key_variables=("AWS_BEARER_TOKEN_BEDROCK",),
        base_url_variable="AWS_ENDPOINT_URL_BEDROCK_RUNTIME",
        hosts=("bedrock-runtime.*.amazonaws.com",),
        key_required=False,
        modules=("pydantic_ai", "boto3"),
        requirement="fast-agent[bedrock]",
    ),
)
PROVIDERS: Final[Mapping[str, Provider]] = MappingProxyType({item.name: item for item in _ALL})
"""Every provider by name; the first with a key answers those who name no model."""
COMPACTING: Final = frozenset({"anthropic", "openai"})
"""Providers with a compact form of conversations of their own."""


def is_own_host(provider: str, host: str) -> bool:
    """Return whether a host is a provider's own.

    Args:
        provider: A name of `PROVIDERS`.
        host: The name of a host, in any case.
    """
    from fnmatch import fnmatchcase

    name = host.lower().rstrip(".")
    return any(
        fnmatchcase(name, own) and name.count(".") == own.count(".")
        for own in PROVIDERS[provider].hosts
    )


Effort: TypeAlias = Literal["none", "minimal", "low", "medium", "high", "xhigh", "max"]
EFFORTS: Final[tuple[Effort, ...]] = get_args(Effort)
"""Levels of reasoning effort, the least first."""
LARGE_CONTEXT: Final = 1_000_000
"""Tokens of the window that `?context=1m` asks for."""
LARGE_WINDOW: Final = OneOf(("1m", str(LARGE_CONTEXT)))
"""How a query asks for that window."""
_REQUEST: Final = (
    "temperature",
    "top_p",
    "top_k",
    "seed",
    "max_tokens",
    "presence_penalty",
    "frequency_penalty",
    "timeout_seconds",
)
_SERVER_TOOLS: Final = ("web_search", "web_fetch", "code_execution")


def _parameters(names: Iterable[str]) -> list[Entry]:
    by_name = {entry.name: entry for entry in REQUEST_PARAMS.entries}
    return [by_name[name] for name in names]


def _keys(*entries: Entry) -> Mapping[str, Entry]:
    return {entry.name: entry for entry in entries}


_CLOUD: Final = _keys(
    Entry("reasoning", OneOf(EFFORTS), "the reasoning effort", effects=()),
    *_parameters((*_REQUEST, *_SERVER_TOOLS)),
)
QUERY_KEYS: Final[Mapping[str, Mapping[str, Entry]]] = {
    **dict.fromkeys(PROVIDERS, _CLOUD),
    "anthropic": {
        **_CLOUD,
        **_keys(Entry("context", LARGE_WINDOW, "the context window in tokens", effects=())),
    },
    "local": _keys(
        Entry("path", Text(), "the GGUF file", effects=("run",)),
        Entry("threads", COUNT, "threads to compute with", effects=()),
        Entry("context", Integer(minimum=64), "the context window in tokens", effects=()),
        *_parameters(_REQUEST),
    ),
    "passthrough": {},
    "slow": _keys(Entry("seconds", Number(minimum=0), "seconds until it answers", effects=())),
    "playback": _keys(Entry("file", Text(), "the history", effects=("read",))),
    "scripted": _keys(
        Entry("file", Text(), "the script", effects=("read",)),
        Entry("seed", Integer(), "seed of what is random in the script", effects=()),
    ),
}
"""The keys each provider and offline model takes."""


def is_parameter(entry: Entry) -> bool:
    """Return whether a key is a parameter of each request; else the model is made with it."""
    return any(entry is one for one in REQUEST_PARAMS.entries)


def split_models(text: str) -> tuple[str, ...]:
    """Return the specs in a string of a model and those that answer if it fails.

    Args:
        text: Specs with commas between; a comma in a value is written as `%2C`.
    """
    return tuple(one.strip() for one in text.split(","))
