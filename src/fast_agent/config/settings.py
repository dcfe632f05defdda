"""Settings: what the configuration files and the environment say, as values.

A file `.guide.yaml` next to documents has the keys of the section `guide`. The default bounds of a
run hold where neither a card nor a configuration says otherwise; they stand below the rooms that
keep them, since a found file that weakens one is an effect.
"""

from __future__ import annotations

from dataclasses import field
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias, get_args

from fast_agent.cards.agent_config import NO_PARAMS, RequestParams
from fast_agent.schema.kinds import (
    Entry,
    Flag,
    Integer,
    ListOf,
    MapOf,
    OneOf,
    PathText,
    Record,
    Text,
)
from fast_agent.text.frozen import frozen

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from fast_agent.cards.agent_config import Compaction
    from fast_agent.cards.grant import CardGrant
    from fast_agent.config.layer import Layer, Place
    from fast_agent.diagnostics.diagnostic import Diagnostic

MAX_ITERATIONS: Final = 99
"""Model requests of one turn."""

SHELL_TIMEOUT_SECONDS: Final = 120.0
"""Longest run of one shell command."""

SHELL_OUTPUT_BYTES: Final = 32 * 1024
"""Output of one shell command that a model gets."""

TOOL_RESULT_BYTES: Final = 32 * 1024
"""Text of one tool result that a model gets; the rest is read with `read_result`."""

TOKEN_CHARACTERS: Final = 4
"""Characters that count as one token where no model has counted."""

COMPACTION_SHARE: Final = 0.85
"""The part of a context window at which a conversation is summarized."""

FULL_START_SHARE: Final = 0.5
"""Share of a context window that may be taken before a conversation starts without a warning."""

CALL_TIMEOUT_SECONDS: Final = 3600.0
"""Longest time of one call of an MCP server, whatever progress it reports."""

SAMPLING_ANSWERS: Final = 20
"""Model answers a server gets for one call before the user is asked."""

DISK_SECONDS: Final = 1.0
"""Longest time between turns of a session that wait for the disk."""

LEASE_SECONDS: Final = 30.0
"""How long a process that stopped answering keeps a session in a database to itself."""

CALIBRATION_SAMPLES: Final = 100
"""Answers `k: auto` measures on at most."""


ThemeName: TypeAlias = Literal["auto", "ansi", "dark", "light", "high-contrast", "colour-blind"]
Wrap: TypeAlias = Literal["words", "terminal"]
Thinking: TypeAlias = Literal["line", "show", "hide"]
EditingKeys: TypeAlias = Literal["emacs", "vi"]
ImageDrawing: TypeAlias = Literal["auto", "kitty", "iterm", "sixel", "off"]
Notify: TypeAlias = Literal["auto", "bell", "off"]
BusyEnter: TypeAlias = Literal["queue", "steer"]
StatusField: TypeAlias = Literal["agent", "model", "context", "cost", "mode", "session", "hint"]


def _no_bindings() -> Mapping[str, str]:
    return MappingProxyType({})


@frozen(kw_only=True)
class TuiSettings:
    """The section `tui`.

    Args:
        theme: The colours; `auto` takes the sixteen of the terminal.
        width: Most columns of text.
        wrap: Who wraps prose: this program at words, or the terminal.
        markdown: Whether answers are drawn as Markdown; else as they were written.
        images: How images of answers are drawn; `auto` goes by what the terminal is known for.
        motion: Whether the spinner moves.
        thinking: Whether reasoning is one line, shown whole, or hidden.
        plain: Whether lines are read and written, and nothing is drawn.
        keys: Which keys edit the text.
        busy_enter: What Enter does while a turn works.
        bind: Actions by key, over the table of keys.
        status: What the status row shows, in its order.
        status_command: A command line that draws the status row; empty for none.
        notify: How a terminal without focus is notified of the end of a turn or a question.
        notify_seconds: How long a turn must have worked for that.
    """

    theme: ThemeName = "auto"
    width: int = 100
    wrap: Wrap = "words"
    markdown: bool = True
    images: ImageDrawing = "auto"
    motion: bool = True
    thinking: Thinking = "line"
    plain: bool = False
    keys: EditingKeys = "emacs"
    busy_enter: BusyEnter = "queue"
    bind: Mapping[str, str] = field(default_factory=_no_bindings, hash=False)
    status: tuple[StatusField, ...] = ("agent", "model", "context", "cost", "mode", "hint")
    status_command: str = ""
    notify: Notify = "auto"
    notify_seconds: int = 20


NO_TUI: Final = TuiSettings()
"""The section of someone who has none."""

TUI: Final = Record(
    entries=(
        Entry("theme", OneOf(get_args(ThemeName)), "the colours", effects=()),
        Entry("width", Integer(minimum=20), "maximum columns of text", effects=()),
        Entry("wrap", OneOf(get_args(Wrap)), "who wraps prose", effects=()),
        Entry("markdown", Flag(), "whether answers are drawn as Markdown", effects=()),
        Entry(
            "images", OneOf(get_args(ImageDrawing)), "how images of answers are drawn", effects=()
        ),
        Entry("motion", Flag(), "whether the spinner is animated", effects=()),
        Entry("thinking", OneOf(get_args(Thinking)), "how reasoning is shown", effects=()),
        Entry("plain", Flag(), "whether lines are written and nothing is drawn", effects=()),
        Entry("keys", OneOf(get_args(EditingKeys)), "which keys edit the text", effects=()),
        Entry(
            "busy_enter",
            OneOf(get_args(BusyEnter)),
            "what Enter does while a turn is running",
            effects=(),
        ),
        Entry("bind", MapOf(Text()), "actions by key, such as `ctrl-s: steer`", effects=()),
        Entry(
            "status",
            ListOf(OneOf(get_args(StatusField))),
            "what the status row shows, in its order",
            effects=(),
        ),
        Entry(
            "status_command",
            Text(blank=True),
            "a command line that draws the status row; allowed in your own configuration only",
            effects=(),  # a found file that has it is refused
        ),
        Entry(
            "notify",
            OneOf(get_args(Notify)),
            "how a terminal without focus is notified of the end of a turn or a question",
            effects=(),
        ),
        Entry(
            "notify_seconds",
            Integer(minimum=0),
            "minimum length of a turn for a notification, in seconds",
            effects=(),
        ),
    ),
    build=TuiSettings,
)
"""How the terminal looks and which keys it takes."""


_NONE: Final[Mapping[str, Any]] = MappingProxyType({})


def _none() -> Mapping[str, Any]:
    return _NONE


@frozen(kw_only=True)
class CategorySettings:
    """One of `guide.categories`.

    Args:
        dir: Its directory, relative to the docroot; None is the category's name.
        patterns: Which documents of it, or None for all.
        description: What it is about, or None.
    """

    dir: str | None = None
    patterns: tuple[str, ...] | None = None
    description: str | None = None


@frozen(kw_only=True)
class CollectionSettings:
    """One of `guide.collections`.

    Args:
        members: Categories, `category/pattern`, and other collections.
        description: What it is about, or None.
    """

    members: tuple[str, ...]
    description: str | None = None


@frozen(kw_only=True)
class GuideSettings:
    """The section `guide`, or a file `.guide.yaml`.

    Args:
        docroot: The directory all documents are below, absolute; None where it is not given.
        categories: By name, in the order of the file.
        collections: By name, in the order of the file.
    """

    docroot: Path | None = None
    categories: Mapping[str, CategorySettings] = field(default_factory=_none)
    collections: Mapping[str, CollectionSettings] = field(default_factory=_none)


NO_GUIDE: Final = GuideSettings()
"""The section of someone who has none."""
GUIDE_CATEGORY: Final = Record(
    entries=(
        Entry("dir", Text(), "its directory below the docroot; default: its name", effects=()),
        Entry("patterns", ListOf(Text()), "which of its documents; default: all", effects=()),
        Entry("description", Text(), "what it is about", effects=()),
    ),
    build=CategorySettings,
)
GUIDE_COLLECTION: Final = Record(
    entries=(
        Entry(
            "members",
            ListOf(Text()),
            "categories, `category/pattern`, and other collections",
            effects=(),
            required=True,
        ),
        Entry("description", Text(), "what it is about", effects=()),
    ),
    build=CollectionSettings,
)
GUIDE: Final = Record(
    entries=(
        Entry("docroot", PathText(), "the directory all documents are below", effects=("read",)),
        Entry("categories", MapOf(GUIDE_CATEGORY), "directories of documents by name", effects=()),
        Entry("collections", MapOf(GUIDE_COLLECTION), "choices of documents by name", effects=()),
    ),
    build=GuideSettings,
)
"""The section, and a whole `.guide.yaml`."""

Transport: TypeAlias = Literal["stdio", "http", "sse"]
Protocol: TypeAlias = Literal["auto", "legacy", "2026-07-28"]
ForeignTools: TypeAlias = Literal["none", "files", "all"]
"""The tools of an agent of another tool that names none, and so had every tool there."""
ServiceTier: TypeAlias = Literal["auto", "default", "flex", "priority"]
_EMPTY: Final[Mapping[str, Any]] = MappingProxyType({})


def _empty() -> Mapping[str, Any]:
    return _EMPTY


@frozen(kw_only=True)
class RootSettings:
    """A directory or file reported to an MCP server.

    Args:
        uri: An absolute path or a `file:` URI.
        name: A name for people, or None.
    """

    uri: str
    name: str | None = None


@frozen(kw_only=True)
class OAuthSettings:
    """How this program is authorized at a remote MCP server.

    Args:
        enabled: Whether tokens are sent; None sends those of a server a user named, but not of one
            that a project brings.
        issuer: The only authorization server that is used; None takes the one the server names.
        client_id: What this program is registered as; None registers it.
        client_secret: The secret of that registration, or None.
        scopes: The scopes to ask for; none leaves them to the server.
        callback_port: The loopback port the browser is sent back to; None takes any.
    """

    enabled: bool | None = None
    issuer: str | None = None
    client_id: str | None = None
    client_secret: str | None = field(default=None, repr=False)
    scopes: tuple[str, ...] = ()
    callback_port: int | None = None


NO_OAUTH: Final = OAuthSettings()
"""Nothing is said."""


@frozen(kw_only=True)
class ServerSettings:
    """One MCP server of `mcp.servers`; what may hold a secret is not in its `repr`.

    Args:
        name: Its key; holds no `__`.
        transport: `stdio` has a `command`; `http` and `sse` have a `url`.
        command: The program: an absolute path, or a name for the `PATH`; None for `http`.
        args: Its arguments.
        env: Environment variables added for it.
        cwd: Its working directory, absolute; None is the one of this process.
        url: Its address; None for `stdio`.
        headers: HTTP headers.
        oauth: How this program is authorized there.
        include_instructions: Whether its instructions are part of those of agents.
        load_on_start: Whether it is connected to when the program starts.
        roots: What the server may work on.
        read_timeout_seconds: Longest wait for an answer, or None for the default.
        connect_timeout_seconds: Longest wait for a connection, or None for the default.
        list_timeout_seconds: Longest wait for a page of a list, or None for the default.
        call_timeout_seconds: Longest time of one request in all, or None for the default.
        sampling: Whether it may ask for model answers.
        sampling_model: The model it is answered by; None is the agent's own.
        sampling_limit: Most model answers for one call without a question to the user, or None
            for the default.
        elicitation: Whether it may ask the user questions.
        protocol: Which protocol to speak.
        enabled: Whether it can be used at all.
        grant: What the found set that brings it may do; None where a user named it.
    """

    name: str
    transport: Transport
    command: str | None = None
    args: tuple[str, ...] = field(default=(), repr=False)
    env: Mapping[str, str] = field(default_factory=_empty, repr=False)
    cwd: Path | None = None
    url: str | None = field(default=None, repr=False)
    headers: Mapping[str, str] = field(default_factory=_empty, repr=False)
    oauth: OAuthSettings = NO_OAUTH
    include_instructions: bool = True
    load_on_start: bool = False
    roots: tuple[RootSettings, ...] = ()
    read_timeout_seconds: float | None = None
    connect_timeout_seconds: float | None = None
    list_timeout_seconds: float | None = None
    call_timeout_seconds: float | None = None
    sampling: bool = True
    sampling_model: str | None = None
    sampling_limit: int | None = None
    elicitation: bool = True
    protocol: Protocol = "auto"
    enabled: bool = True
    grant: CardGrant | None = field(default=None, repr=False, compare=False)


@frozen(kw_only=True)
class McpSettings:
    """The section `mcp`; `servers` are by name, in the order of the files."""

    servers: Mapping[str, ServerSettings] = field(default_factory=_empty)


@frozen(kw_only=True)
class ProviderSettings:
    """The section of one model provider.

    Args:
        api_key: Its key, or None; never shown.
        base_url: Its address, or None for the provider's own.
        headers: HTTP headers sent with each request.
        organization: The organization requests are billed to, or None for that of the key.
        service_tier: How requests are served and billed, or None for the provider's choice.
    """

    api_key: str | None = field(default=None, repr=False)
    base_url: str | None = None
    headers: Mapping[str, str] = field(default_factory=_empty, repr=False)
    organization: str | None = None
    service_tier: ServiceTier | None = None


@frozen(kw_only=True)
class StatedFacts:
    """What `model_facts` says of one model; None is not said.

    Args:
        context_window: Tokens its context window holds.
        input_cost: US dollars for a million input tokens.
        output_cost: The same for output tokens; a price needs both.
        cached_input_cost: The same for input tokens read from a cache; None is that of others.
    """

    context_window: int | None = None
    input_cost: float | None = None
    output_cost: float | None = None
    cached_input_cost: float | None = None

    @property
    def is_priced(self) -> bool:
        """Whether the price of a request is stated."""
        return self.input_cost is not None and self.output_cost is not None


@frozen(kw_only=True)
class ModelLimits:
    """What `model_limits` says of a model, a provider or an endpoint; None means no limit.

    Args:
        in_flight: Requests at the same time.
        requests_per_minute: Requests within a minute.
        tokens_per_minute: Input and output tokens within a minute.
    """

    in_flight: int | None = None
    requests_per_minute: int | None = None
    tokens_per_minute: int | None = None


NO_FACTS: Final = StatedFacts()
"""Facts of which none is stated."""


@frozen(kw_only=True)
class LocalSettings:
    """The section `local`: models that run in this process.

    Args:
        path: The GGUF file of the model `local`, absolute, or None for the one that was pulled.
        threads: Threads to compute with, or None.
        context: Context length in tokens, or None.
        models: GGUF files by name; `local.NAME` uses one.
    """

    path: Path | None = None
    threads: int | None = None
    context: int | None = None
    models: Mapping[str, Path] = field(default_factory=_empty)


@frozen(kw_only=True)
class ShellSettings:
    """The section `shell`: bounds of the tool `execute`; None leaves the tool's own.

    Args:
        timeout_seconds: Longest run of one command.
        max_output_bytes: Most bytes of output given to the model.
        variables: Names of variables that commands get although they look like secrets.
    """

    timeout_seconds: float | None = None
    max_output_bytes: int | None = None
    variables: tuple[str, ...] = ()


@frozen(kw_only=True)
class SessionSettings:
    """The section `sessions`: how conversations are kept.

    Args:
        disk_seconds: How long a turn that ended may stand in the system's memory alone while others
            follow it; 0 brings each to the disk first, None leaves it to the sessions.
        url: The address of the PostgreSQL database they are kept in; None keeps them in the home.
        lease_seconds: How long a process that stopped answering keeps a session in a database to
            itself; None leaves it to the sessions.
    """

    disk_seconds: float | None = None
    url: str | None = field(default=None, repr=False)
    lease_seconds: float | None = None


@frozen(kw_only=True)
class TemporalSettings:
    """The section `temporal`: how runs on a Temporal server are reached, and what it may read.

    Args:
        address: Its host and port; None is 127.0.0.1:7233.
        namespace: The namespace of the runs; None is `default`.
        queue: The task queue of the runs; None is `fast-agent`.
        tls: Whether the connection is encrypted.
        server_ca: A file of certificates to check the server's with; None takes the system's.
        client_certificate: The client's certificate, or None.
        client_key: The key of that certificate, or None.
        api_key: The API key, or None.
        key_file: The file of the key that encrypts what the server is given; None for no
            encryption.
        parts: Where editions and long parts of runs are kept: a directory, or the address of a
            PostgreSQL database; None is a directory in the home.
        heartbeat_seconds: How long a worker may be silent about a step before another one executes
            it; None is 10.
    """

    address: str | None = None
    namespace: str | None = None
    queue: str | None = None
    tls: bool = False
    server_ca: Path | None = None
    client_certificate: Path | None = None
    client_key: Path | None = None
    api_key: str | None = field(default=None, repr=False)
    key_file: Path | None = None
    parts: str | None = field(default=None, repr=False)
    heartbeat_seconds: float | None = None


@frozen(kw_only=True)
class SkillsSettings:
    """The section `skills`; `directories` are absolute, None means the default ones."""

    directories: tuple[Path, ...] | None = None


@frozen(kw_only=True)
class Settings:
    """The whole configuration.

    Args:
        default_model: Model of cards that name none, or None.
        request_params: Request parameters under those of cards.
        compaction: When conversations are summarized, under what cards say; False is never.
        model_aliases: Short names of models, over those of the program.
        model_facts: What is known of models, over what the price list says.
        model_limits: How often models are asked, by model, provider or endpoint.
        mcp: MCP servers.
        providers: Settings of every known provider, by its name.
        endpoints: Endpoints that speak the OpenAI protocol, by the prefix of their specs.
        local: Local models.
        shell: The shell tool.
        sessions: Conversations that are kept.
        temporal: Runs on a Temporal server.
        skills: Skill directories.
        guide: Documents served as `guide://`.
        tui: How the terminal looks and which keys it takes.
        foreign_agents: The tools of agents of other tools that name none, where such agents are
            loaded in place; None loads none.
        layers: Where all this comes from, the weakest first.
        warnings: Doubtful findings, such as a file that was skipped.
    """

    default_model: str | None = None
    request_params: RequestParams = NO_PARAMS
    compaction: Compaction | bool | None = None
    model_aliases: Mapping[str, str] = field(default_factory=_empty)
    model_facts: Mapping[str, StatedFacts] = field(default_factory=_empty)
    model_limits: Mapping[str, ModelLimits] = field(default_factory=_empty)
    mcp: McpSettings = McpSettings()
    providers: Mapping[str, ProviderSettings] = field(default_factory=_empty)
    endpoints: Mapping[str, ProviderSettings] = field(default_factory=_empty)
    local: LocalSettings = LocalSettings()
    shell: ShellSettings = ShellSettings()
    sessions: SessionSettings = SessionSettings()
    temporal: TemporalSettings = TemporalSettings()
    skills: SkillsSettings = SkillsSettings()
    guide: GuideSettings = NO_GUIDE
    tui: TuiSettings = NO_TUI
    foreign_agents: ForeignTools | None = None
    layers: tuple[Layer, ...] = field(default=(), repr=False, compare=False)
    warnings: tuple[Diagnostic, ...] = field(default=(), repr=False, compare=False)

    @property
    def sources(self) -> tuple[str, ...]:
        """The files that were read, the weakest first, as they are shown to people."""
        return tuple(layer.path for layer in self.layers if layer.path)

    def provider(self, name: str) -> ProviderSettings:
        """Return the section of a provider; an empty one if it is not configured."""
        return self.providers.get(name, _NO_PROVIDER)

    def place_of(self, *keys: str | int, key: bool = False) -> Place | None:
        """Find where a setting comes from.

        Args:
            keys: Such as `"mcp", "servers", "time"`.
            key: Whether to return the place of the last key instead of its value.

        Returns:
            The place in the strongest layer that has it; None where it is a default.
        """
        for layer in reversed(self.layers):
            if layer.has(keys):
                return layer.place(keys, key=key)
        # Parts of it may come from variables alone.
        places = (layer.place(keys, key=key) for layer in self.layers if not layer.path)
        return next((place for place in places if place.variable is not None), None)


_NO_PROVIDER: Final = ProviderSettings()
NO_SETTINGS: Final = Settings()
"""The configuration of someone who has none."""
