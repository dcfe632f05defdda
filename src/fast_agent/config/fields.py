"""The table of the configuration: every key, once.

The loader, the environment overrides and the JSON Schema are made from `SETTINGS`.
"""

from __future__ import annotations

from typing import Final, get_args

from fast_agent.cards.kinds import AnyOf, Entry, Flag, ListOf, MapOf, Number, OneOf, Record, Text
from fast_agent.cards.records import COUNT, REQUEST_PARAMS
from fast_agent.config.guide import GUIDE
from fast_agent.config.kinds import PathText, SecretText
from fast_agent.config.providers import PROVIDERS
from fast_agent.config.settings import (
    LocalSettings,
    Protocol,
    ProviderSettings,
    RootSettings,
    SessionSettings,
    ShellSettings,
    SkillsSettings,
    Transport,
)
from fast_agent.config.trust import TRUST

_SECONDS = Number(above=0)
_SECRETS = MapOf(SecretText(blank=True))

ROOT: Final = Record(
    entries=(
        Entry("uri", PathText(), "a path, or a `file:` URI", required=True),
        Entry("name", Text(), "a name for people"),
    ),
    build=RootSettings,
)
"""One item of `roots`, where it is more than a path."""

SAMPLING: Final = Record(
    (
        Entry("model", Text(), "the model that answers; the agent's own without it"),
        Entry("max_answers", COUNT, "most answers for one call before the person is asked"),
    ),
    build=dict,
)
ELICITATION: Final = Record(
    (Entry("mode", OneOf(("forms", "none")), "`none` refuses them", required=True),), build=dict
)
SERVER: Final = Record(
    entries=(
        Entry("transport", OneOf(get_args(Transport)), "how to reach it; may be left out"),
        Entry("command", PathText(program=True), "the program, for `stdio`"),
        Entry("args", ListOf(Text(blank=True)), "arguments of the program"),
        Entry("env", _SECRETS, "environment variables added for the program"),
        Entry("cwd", PathText(), "the directory the program runs in"),
        Entry("url", Text(), "the address, for `http`"),
        Entry("headers", _SECRETS, "HTTP headers sent to the address"),
        Entry("roots", ListOf(AnyOf((PathText(), ROOT))), "what it is told it may work on"),
        Entry("read_timeout_seconds", _SECONDS, "longest wait for an answer, in seconds"),
        Entry("connect_timeout_seconds", _SECONDS, "longest wait for a connection, in seconds"),
        Entry("list_timeout_seconds", _SECONDS, "longest wait for a page of a list, in seconds"),
        Entry("call_timeout_seconds", _SECONDS, "longest time of one call in all, in seconds"),
        Entry(
            "sampling",
            AnyOf((Flag(), SAMPLING)),
            "whether it may ask for model answers, or how they are given",
        ),
        Entry(
            "elicitation",
            AnyOf((Flag(), ELICITATION)),
            "whether it may ask the person questions",
        ),
        Entry("protocol", OneOf(get_args(Protocol)), "which version of MCP to speak"),
        Entry("enabled", Flag(), "whether it can be used at all"),
    ),
    build=dict,
)
"""One MCP server."""

SERVERS: Final = MapOf(SERVER)
"""MCP servers by name."""

_PROVIDERS = tuple(
    Entry(
        provider.name,
        Record(
            entries=(
                Entry(
                    "api_key",
                    SecretText(),
                    f"API key; `{provider.key_variables[0]}` is used without it",
                ),
                Entry(
                    "base_url",
                    Text(),
                    f"address; `{provider.base_url_variable}` is used without it",
                ),
            ),
            build=ProviderSettings,
        ),
        f"models of {provider.label}",
    )
    for provider in PROVIDERS.values()
)

SETTINGS: Final = Record(
    entries=(
        Entry("default_model", Text(), "model of cards that name none"),
        Entry("request_params", REQUEST_PARAMS, "request parameters under those of cards"),
        Entry("model_aliases", MapOf(Text()), "short names of models"),
        Entry(
            "mcp",
            Record((Entry("servers", SERVERS, "the servers by name"),), build=dict),
            "MCP servers",
        ),
        *_PROVIDERS,
        Entry(
            "local",
            Record(
                entries=(
                    Entry("path", PathText(), "the GGUF file of the model `local`"),
                    Entry("threads", COUNT, "threads to compute with"),
                    Entry("context", COUNT, "context length in tokens"),
                    Entry("models", MapOf(PathText()), "GGUF files by name, for `local.NAME`"),
                ),
                build=LocalSettings,
            ),
            "models that run in this process",
        ),
        Entry(
            "shell",
            Record(
                entries=(
                    Entry("timeout_seconds", _SECONDS, "longest run of one command, in seconds"),
                    Entry("max_output_bytes", COUNT, "most bytes of output given to the model"),
                    Entry(
                        "variables",
                        ListOf(Text()),
                        "variables that commands get although they look like secrets",
                    ),
                ),
                build=ShellSettings,
            ),
            "bounds of the tool `execute`",
        ),
        Entry(
            "sessions",
            Record(
                (
                    Entry(
                        "disk_seconds",
                        Number(minimum=0),
                        "longest time between turns that wait for the disk; 0 for every turn",
                    ),
                ),
                build=SessionSettings,
            ),
            "conversations that are kept",
        ),
        Entry(
            "skills",
            Record(
                (Entry("directories", ListOf(PathText()), "directories that hold skills"),),
                build=SkillsSettings,
            ),
            "skills agents may use",
        ),
        Entry("guide", GUIDE, "documents served as `guide://`"),
        Entry("trust", TRUST, "what found projects may do; counts in the home only"),
    ),
    build=dict,
)
"""The whole configuration."""
