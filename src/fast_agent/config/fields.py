"""The table of the configuration: every key, once.

The loader, the environment overrides and the JSON Schema are made from `SETTINGS`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field
from types import MappingProxyType
from typing import TYPE_CHECKING, Final, get_args

from fast_agent.cards.records import COMPACTION, COUNT, REQUEST_PARAMS
from fast_agent.config.providers import PROVIDERS
from fast_agent.config.settings import (
    GUIDE,
    TUI,
    ForeignTools,
    LocalSettings,
    ModelLimits,
    OAuthSettings,
    Protocol,
    ProviderSettings,
    RootSettings,
    ServiceTier,
    SessionSettings,
    ShellSettings,
    SkillsSettings,
    StatedFacts,
    TemporalSettings,
    Transport,
)
from fast_agent.schema.kinds import (
    SCHEMA_DIALECT,
    AnyOf,
    Entry,
    Flag,
    Integer,
    ListOf,
    MapOf,
    Number,
    OneOf,
    PathText,
    Record,
    SecretText,
    Text,
    kind_schema,
)
from fast_agent.text.frozen import frozen

if TYPE_CHECKING:
    from pathlib import Path

    from fast_agent.text.json_value import JsonObject, JsonValue


def _none() -> Mapping[str, str]:
    return MappingProxyType({})


@frozen(kw_only=True)
class DenySettings:
    """What no user may allow.

    Args:
        hosts: Host names, exact or `*.name`.
        commands: Whole command lines.
        variables: Names of variables that are never sent.
    """

    hosts: tuple[str, ...] = ()
    commands: tuple[str, ...] = ()
    variables: tuple[str, ...] = ()


@frozen(kw_only=True)
class TrustSettings:
    """The section `trust`.

    Args:
        own: Directories whose contents count as given.
        hosts: Hosts that may be connected to over https, exact or `*.name`.
        commands: Whole command lines that may be run, compared word by word.
        variables: The host each variable may be sent to, by its name.
        deny: What no user may allow.
        ask: Whether a user may be asked at all.
    """

    own: tuple[Path, ...] = ()
    hosts: tuple[str, ...] = ()
    commands: tuple[str, ...] = ()
    variables: Mapping[str, str] = field(default_factory=_none, hash=False)
    deny: DenySettings = DenySettings()
    ask: bool = True


NO_TRUST: Final = TrustSettings()
"""The section of someone who has none."""

_NAMES: Final = ListOf(Text())
TRUST: Final = Record(
    entries=(
        Entry("own", ListOf(PathText()), "directories whose contents count as yours", effects=()),
        Entry(
            "hosts",
            _NAMES,
            "hosts found sets may connect to, exact or `*.name`, over https",
            effects=(),
        ),
        Entry(
            "commands",
            _NAMES,
            "command lines found sets may run, compared word by word",
            effects=(),
        ),
        Entry("variables", MapOf(Text()), "the host each variable may be sent to", effects=()),
        Entry(
            "deny",
            Record(
                entries=(
                    Entry("hosts", _NAMES, "hosts that may never be allowed", effects=()),
                    Entry(
                        "commands", _NAMES, "command lines that may never be allowed", effects=()
                    ),
                    Entry("variables", _NAMES, "variables that may never be sent", effects=()),
                ),
                build=DenySettings,
            ),
            "what may never be allowed, not even by `--trust`",
            effects=(),
        ),
        Entry("ask", Flag(), "whether the user may be asked; `false` answers no", effects=()),
    ),
    build=TrustSettings,
)
"""The section `trust`; it counts in the home and in `/etc/fast-agent/trust.yaml` only."""


_SECONDS = Number(above=0)
_SECRETS = MapOf(SecretText(blank=True))

ROOT: Final = Record(
    entries=(
        Entry("uri", PathText(), "a path, or a `file:` URI", effects=("read",), required=True),
        Entry("name", Text(), "a name for people", effects=()),
    ),
    build=RootSettings,
)
"""One item of `roots`, where it is more than a path."""

SAMPLING: Final = Record(
    (
        Entry(
            "model",
            Text(),
            "the model that answers; default: the agent's own",
            effects=("run", "read"),
        ),
        Entry(
            "max_answers",
            COUNT,
            "maximum number of answers for one call before the user is asked",
            effects=("ease",),
        ),
    ),
    build=dict,
)
ELICITATION: Final = Record(
    (Entry("mode", OneOf(("forms", "none")), "`none` refuses them", effects=(), required=True),),
    build=dict,
)
OAUTH: Final = Record(
    (
        Entry("enabled", Flag(), "`false` sends no token", effects=()),
        Entry(
            "issuer",
            Text(),
            "address of the only authorization server to use",
            effects=("connect",),
        ),
        Entry("client_id", Text(), "client ID this program is registered as", effects=()),
        Entry(
            "client_secret",
            SecretText(),
            "client secret of that registration; needs `issuer`",
            effects=("send",),
        ),
        Entry("scopes", ListOf(Text()), "the scopes to ask for", effects=()),
        Entry(
            "callback_port",
            Integer(minimum=1, maximum=65535),
            "loopback port that the browser is redirected to",
            effects=(),
        ),
    ),
    build=OAuthSettings,
)
"""How this program is authorized at a server, where it is more than yes or no."""

SERVER: Final = Record(
    entries=(
        Entry("transport", OneOf(get_args(Transport)), "transport; optional", effects=()),
        Entry("command", PathText(program=True), "the program, for `stdio`", effects=("run",)),
        Entry("args", ListOf(Text(blank=True)), "arguments of the program", effects=("run",)),
        Entry("env", _SECRETS, "environment variables added for the program", effects=("run",)),
        Entry("cwd", PathText(), "the directory the program runs in", effects=("run",)),
        Entry("url", Text(), "the address, for `http`", effects=("connect",)),
        Entry("headers", _SECRETS, "HTTP headers sent to the address", effects=("send",)),
        Entry(
            "oauth",
            AnyOf((Flag(), OAUTH)),
            "whether and how this program is authorized there by OAuth",
            effects=("send",),
        ),
        Entry(
            "include_instructions",
            Flag(),
            "whether its instructions are added to those of agents",
            effects=(),
        ),
        Entry(
            "load_on_start",
            Flag(),
            "whether to connect when the program starts",
            effects=(),
        ),
        Entry(
            "roots",
            ListOf(AnyOf((PathText(), ROOT))),
            "directories the server may work on",
            effects=("read",),
        ),
        Entry("read_timeout_seconds", _SECONDS, "timeout of a request, in seconds", effects=()),
        Entry(
            "connect_timeout_seconds",
            _SECONDS,
            "timeout of connecting, in seconds",
            effects=(),
        ),
        Entry(
            "list_timeout_seconds",
            _SECONDS,
            "timeout of one page of a list, in seconds",
            effects=(),
        ),
        Entry(
            "call_timeout_seconds",
            _SECONDS,
            "timeout of one whole call, in seconds",
            effects=("ease",),
        ),
        Entry(
            "sampling",
            AnyOf((Flag(), SAMPLING)),
            "whether it may request model answers (sampling), or how they are given",
            effects=(),
        ),
        Entry(
            "elicitation",
            AnyOf((Flag(), ELICITATION)),
            "whether it may ask the user questions (elicitation)",
            effects=(),
        ),
        Entry("protocol", OneOf(get_args(Protocol)), "which version of MCP to speak", effects=()),
        Entry("enabled", Flag(), "whether it is enabled", effects=()),
    ),
    build=dict,
)
"""One MCP server."""

SERVERS: Final = MapOf(SERVER)
"""MCP servers by name."""

_HEADERS = Entry("headers", _SECRETS, "HTTP headers sent with each request", effects=("send",))
_ORGANIZATION = Entry(
    "organization", Text(), "organization that requests are billed to", effects=()
)
_SERVICE_TIER = Entry(
    "service_tier",
    OneOf(get_args(ServiceTier)),
    "how requests are served and billed",
    effects=(),
)

_PROVIDERS = tuple(
    Entry(
        provider.name,
        Record(
            entries=(
                Entry(
                    "api_key",
                    SecretText(),
                    f"API key; `{provider.key_variables[0]}` is used without it",
                    effects=("send",),
                ),
                Entry(
                    "base_url",
                    Text(),
                    f"address; `{provider.base_url_variable}` is used without it",
                    effects=("connect", "send"),
                ),
                _HEADERS,
                *((_ORGANIZATION,) if provider.name == "openai" else ()),
                _SERVICE_TIER,
            ),
            build=ProviderSettings,
        ),
        f"models of {provider.label}",
        effects=(),
    )
    for provider in PROVIDERS.values()
)

ENDPOINT: Final = Record(
    entries=(
        Entry("base_url", Text(), "its address", effects=("connect", "send"), required=True),
        Entry("api_key", SecretText(), "its API key", effects=("send",)),
        _HEADERS,
        _SERVICE_TIER,
    ),
    build=ProviderSettings,
)
"""One endpoint that speaks the OpenAI protocol."""

SETTINGS: Final = Record(
    entries=(
        Entry(
            "default_model",
            AnyOf((Text(), ListOf(Text()))),
            "model of cards without `model`; in a list, the next answers if one fails",
            effects=("run", "read"),
        ),
        Entry("request_params", REQUEST_PARAMS, "default request parameters of cards", effects=()),
        Entry(
            "compaction",
            COMPACTION,
            "when conversations are summarized to fit the context window, by default",
            effects=(),
        ),
        Entry("model_aliases", MapOf(Text()), "short names of models", effects=("run", "read")),
        Entry(
            "model_facts",
            MapOf(
                Record(
                    (
                        Entry(
                            "context_window",
                            COUNT,
                            "size of its context window in tokens",
                            effects=(),
                        ),
                        Entry(
                            "input_cost",
                            Number(minimum=0),
                            "US dollars per million input tokens",
                            effects=(),
                        ),
                        Entry(
                            "output_cost",
                            Number(minimum=0),
                            "US dollars per million output tokens",
                            effects=(),
                        ),
                        Entry(
                            "cached_input_cost",
                            Number(minimum=0),
                            "US dollars per million input tokens read from a cache",
                            effects=(),
                        ),
                    ),
                    build=StatedFacts,
                )
            ),
            "context windows and prices by model, in place of the built-in ones",
            effects=(),
        ),
        Entry(
            "model_limits",
            MapOf(
                Record(
                    (
                        Entry("in_flight", COUNT, "concurrent requests", effects=()),
                        Entry("requests_per_minute", COUNT, "requests per minute", effects=()),
                        Entry(
                            "tokens_per_minute",
                            COUNT,
                            "input and output tokens per minute",
                            effects=(),
                        ),
                    ),
                    build=ModelLimits,
                )
            ),
            "rate limits of requests, by model, provider or endpoint; requests beyond them wait",
            effects=(),
        ),
        Entry(
            "mcp",
            Record((Entry("servers", SERVERS, "the servers by name", effects=()),), build=dict),
            "MCP servers",
            effects=(),
        ),
        *_PROVIDERS,
        Entry(
            "endpoints",
            MapOf(ENDPOINT),
            "OpenAI-compatible endpoints by name, for models `NAME.MODEL`",
            effects=(),
        ),
        Entry(
            "local",
            Record(
                entries=(
                    Entry(
                        "path", PathText(), "the GGUF file of the model `local`", effects=("run",)
                    ),
                    Entry("threads", COUNT, "number of threads", effects=()),
                    Entry("context", COUNT, "context length in tokens", effects=()),
                    Entry(
                        "models",
                        MapOf(PathText()),
                        "GGUF files by name, for `local.NAME`",
                        effects=("run",),
                    ),
                ),
                build=LocalSettings,
            ),
            "models that run in this process",
            effects=(),
        ),
        Entry(
            "shell",
            Record(
                entries=(
                    Entry(
                        "timeout_seconds",
                        _SECONDS,
                        "timeout of one command, in seconds",
                        effects=("ease",),
                    ),
                    Entry(
                        "max_output_bytes",
                        COUNT,
                        "maximum output given to the model, in bytes",
                        effects=("ease",),
                    ),
                    Entry(
                        "variables",
                        ListOf(Text()),
                        "variables passed to commands although they look like secrets",
                        effects=("send",),
                    ),
                ),
                build=ShellSettings,
            ),
            "limits of the tool `execute`",
            effects=(),
        ),
        Entry(
            "sessions",
            Record(
                (
                    Entry(
                        "disk_seconds",
                        Number(minimum=0),
                        "maximum time between turns that wait for the disk, in seconds; 0 for"
                        " every turn",
                        effects=("ease",),
                    ),
                    Entry(
                        "url",
                        SecretText(),
                        "PostgreSQL database for sessions, instead of files in the home",
                        effects=("connect", "send"),
                    ),
                    Entry(
                        "lease_seconds",
                        Number(minimum=1),
                        "after how many seconds a server that stopped answering loses its"
                        " sessions in a database",
                        effects=("ease",),
                    ),
                ),
                build=SessionSettings,
            ),
            "saved conversations",
            effects=(),
        ),
        Entry(
            "temporal",
            Record(
                (
                    Entry(
                        "address",
                        Text(),
                        "host and port of the server",
                        effects=("connect", "send"),
                    ),
                    Entry("namespace", Text(), "namespace of the runs", effects=("send",)),
                    Entry("queue", Text(), "task queue of the runs", effects=("send",)),
                    Entry("tls", Flag(), "whether the connection is encrypted", effects=("ease",)),
                    Entry(
                        "server_ca",
                        PathText(),
                        "certificates to check the server's with, instead of the system's",
                        effects=("ease", "read"),
                    ),
                    Entry(
                        "client_certificate",
                        PathText(),
                        "certificate of the client",
                        effects=("read",),
                    ),
                    Entry(
                        "client_key",
                        PathText(),
                        "key of the client's certificate",
                        effects=("read",),
                    ),
                    Entry("api_key", SecretText(), "API key of the server", effects=("send",)),
                    Entry(
                        "key_file",
                        PathText(),
                        "key that encrypts what the server and the store receive",
                        effects=("ease", "read"),
                    ),
                    Entry(
                        "parts",
                        SecretText(),
                        "directory or PostgreSQL database for the long parts of runs",
                        effects=("connect", "send"),
                    ),
                    Entry(
                        "heartbeat_seconds",
                        Number(minimum=1),
                        "after how many seconds of silence another worker takes over its steps",
                        effects=("ease",),
                    ),
                ),
                build=TemporalSettings,
            ),
            "runs on a Temporal server",
            effects=(),
        ),
        Entry(
            "skills",
            Record(
                (
                    Entry(
                        "directories",
                        ListOf(PathText()),
                        "directories that hold skills",
                        effects=("read", "run"),
                    ),
                ),
                build=SkillsSettings,
            ),
            "skills agents may use",
            effects=(),
        ),
        Entry("guide", GUIDE, "documents served as `guide://`", effects=()),
        Entry("tui", TUI, "appearance and keys of the terminal", effects=()),
        Entry(
            "foreign_agents",
            OneOf(get_args(ForeignTools)),
            "load `.claude/agents` and its like in place, with these tools for agents that name"
            " none; allowed in your own configuration only",
            effects=(),  # a found file that has it is refused
        ),
        Entry(
            "trust",
            TRUST,
            "what found projects may do; allowed in the configuration of your home only",
            effects=(),
        ),
    ),
    build=dict,
)
"""The whole configuration."""


_FROM_TEXT = frozenset({"integer", "number", "boolean", "array"})
_VARIABLE: JsonObject = {"type": "string", "pattern": r"\$\{"}


def config_schema() -> JsonObject:
    """Describe `fastagent.config.yaml` as JSON Schema, draft 2020-12.

    Returns:
        The schema, complete in itself; secrets files have the same one.
    """
    described = _with_variables(kind_schema(SETTINGS))
    if not isinstance(described, Mapping):
        raise TypeError("the schema of a record is a mapping")
    return {"$schema": SCHEMA_DIALECT, "title": "fastagent.config.yaml", **described}


def _with_variables(node: JsonValue) -> JsonValue:
    """Allow `${NAME}` wherever the loader makes another value of its text."""
    if isinstance(node, Mapping):
        walked: JsonObject = {key: _with_variables(value) for key, value in node.items()}
        from_text = node.get("type") in _FROM_TEXT or "enum" in node
        return {"anyOf": [walked, _VARIABLE]} if from_text else walked
    if isinstance(node, Sequence) and not isinstance(node, str):
        return [_with_variables(item) for item in node]
    return node
