"""ServerSpec: what is needed to reach one MCP server, wherever it was declared."""

from __future__ import annotations

import re
import shlex
from dataclasses import field, replace
from itertools import pairwise
from pathlib import Path, PurePath
from typing import TYPE_CHECKING, Literal, TypeAlias
from urllib.parse import urlsplit

from fast_agent.config.server import is_url, split_command
from fast_agent.config.settings import CALL_TIMEOUT_SECONDS, NO_OAUTH, SAMPLING_ANSWERS
from fast_agent.errors import ConfigError
from fast_agent.text.frozen import frozen
from fast_agent.text.redaction import is_secret_name, is_secret_value, is_unguessable

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping, Sequence

    from fast_agent.cards.agent_config import McpConnect
    from fast_agent.cards.grant import CardGrant
    from fast_agent.config.settings import McpSettings, OAuthSettings, Protocol, ServerSettings

DEFAULT_CONNECT_TIMEOUT = 30.0
DEFAULT_READ_TIMEOUT = 300.0
DEFAULT_LIST_TIMEOUT = 30.0
DEFAULT_RESULT_LIMIT = 1_000_000

_NO_TEXT: Mapping[str, str] = {}
_LAUNCHERS = frozenset(
    {
        "uvx",
        "uv",
        "npx",
        "npm",
        "pnpm",
        "bunx",
        "node",
        "deno",
        "docker",
        "podman",
        "run",
        "exec",
        "tool",
    }
)
_PYTHON = re.compile(r"(?:python|pypy)[0-9.]*\Z")
_OUTSIDE_NAME = re.compile(r"[^A-Za-z0-9-]+")


@frozen(kw_only=True)
class StdioTarget:
    """A server started as a process, spoken to over its standard input and output.

    Args:
        command: The program: an absolute path, or a name looked up on the `PATH`.
        args: Its arguments.
        env: Variables added to the small environment every server gets.
        cwd: Its working directory; None is the one of this process.
    """

    command: str
    args: tuple[str, ...] = field(default=(), repr=False)
    env: Mapping[str, str] = field(default_factory=lambda: _NO_TEXT, repr=False)
    cwd: Path | None = None

    def __str__(self) -> str:
        # Arguments may hold a secret.
        return f"{self.command} …" if self.args else self.command


@frozen(kw_only=True)
class HttpTarget:
    """A server spoken to over HTTP.

    Args:
        url: Its endpoint.
        headers: Headers sent with every request to it, and to no other host.
        transport: Streamable HTTP, or the older one of two endpoints with events.
        oauth: How this program is authorized there.
    """

    url: str = field(repr=False)
    headers: Mapping[str, str] = field(default_factory=lambda: _NO_TEXT, repr=False)
    transport: Literal["http", "sse"] = "http"
    oauth: OAuthSettings = NO_OAUTH

    def __str__(self) -> str:
        # The user part and the query may hold a secret, and so may words of the path.
        parts = urlsplit(self.url)
        path = "/".join(["…" if _hides(word) else word for word in parts.path.split("/")])
        host = parts.netloc.rpartition("@")[2]
        shown = parts._replace(netloc=host, path=path, query="", fragment="")
        return shown.geturl()


Target: TypeAlias = StdioTarget | HttpTarget


@frozen(kw_only=True)
class Root:
    """A directory or file that a server may know of: a `file:` URI and a name for people."""

    uri: str
    name: str | None = None


def read_root(text: str, *, directory: Path, name: str | None = None) -> Root:
    """Make a root of what a user wrote.

    Args:
        text: A path, relative to `directory`, or a `file:` URI.
        directory: Where a relative path starts.
        name: A name for people, or None.

    Raises:
        ConfigError: It is a URI of another scheme.
    """
    if text.lower().startswith("file://"):
        return Root(uri=text, name=name)
    if "://" in text:
        raise ConfigError(
            f"`{text}` cannot be a root", hint="write a path, or a URI that starts with `file://`"
        )
    return Root(uri=(directory / Path(text).expanduser()).absolute().as_uri(), name=name)


@frozen(kw_only=True)
class ServerSpec:
    """One server.

    Args:
        name: Its name; holds no `__`.
        target: How to reach it.
        include_instructions: Whether its instructions are part of those of agents.
        load_on_start: Whether it is connected to when the program starts.
        roots: Roots reported to it; without any, it learns that there are none to ask for.
        read_timeout_seconds: Longest wait for an answer. Progress restarts it, and it stops
            still while a user or a model is asked on the server's behalf.
        connect_timeout_seconds: Longest wait for a connection.
        list_timeout_seconds: Longest wait for a page of a list.
        call_timeout_seconds: Longest time of one request in all, whatever progress the server
            reports; at least `read_timeout_seconds`.
        sampling: Whether it may ask for model answers.
        sampling_model: The model that answers it; None is the agent's own.
        sampling_limit: Most model answers for one call without a question to the user.
        elicitation: Whether it may ask the user questions.
        result_limit: Most characters of text kept of one result; base64 may be 16 times as long.
        protocol: Which protocol to speak: `auto` asks the server, `legacy` is the handshake of
            2025-11-25 and before.
        declared: Where it was declared, for messages: a configuration key, an option, a card.
        grant: What the found set that brings it may do; None where a user named it.
        is_moved: Whether it starts in the home, as launchers do, and not in the workspace.
        brought_by: What is asked about at each start: the card that brings it, or the server.
    """

    name: str
    target: Target
    include_instructions: bool = True
    load_on_start: bool = False
    roots: tuple[Root, ...] = ()
    read_timeout_seconds: float = DEFAULT_READ_TIMEOUT
    connect_timeout_seconds: float = DEFAULT_CONNECT_TIMEOUT
    list_timeout_seconds: float = DEFAULT_LIST_TIMEOUT
    call_timeout_seconds: float = CALL_TIMEOUT_SECONDS
    sampling: bool = True
    sampling_model: str | None = None
    sampling_limit: int = SAMPLING_ANSWERS
    elicitation: bool = True
    result_limit: int = DEFAULT_RESULT_LIMIT
    protocol: Protocol = "auto"
    declared: str = ""
    grant: CardGrant | None = field(default=None, compare=False, repr=False)
    is_moved: bool = field(default=False, compare=False, repr=False)
    brought_by: tuple[Literal["card", "server"], str] = field(default=("server", ""), compare=False)

    def as_option(self) -> str:
        """Return the option that names it, as approvals of what it reaches do: `--url docs`."""
        target = self.target
        if isinstance(target, HttpTarget):
            return f"{self.declared or 'server'} {derived_name(target.url)}"
        line = shlex.join((target.command, *target.args))
        return f"{self.declared or 'server'} {derived_name(line)}"

    @property
    def lacks_oauth(self) -> bool:
        """Whether it gets no token since it came with a project whose settings name no `oauth`.

        A project may use what the user granted only where that is a part of what was approved.
        """
        target = self.target
        is_unnamed = isinstance(target, HttpTarget) and target.oauth.enabled is None
        return is_unnamed and self.grant is not None

    def login_command(self) -> str:
        """Return the command with which a user authorizes this program at the server."""
        if self.declared.startswith("mcp.servers."):
            return f"fast-agent auth login {shlex.quote(self.name)}"
        return f"fast-agent auth login {shlex.quote(str(self.target))}"

    def program(self, target: StdioTarget) -> str:
        """Return what is started: of a server that came with a project, what its approval names."""
        if self.grant is None:
            return target.command
        return self.grant.program(target.command, Path(target.cwd or Path.cwd()))

    def check_start(self) -> None:
        """Ask, at this very moment, whether it may be started or connected to.

        Raises:
            TrustError: It came with a project, and what it is now was not approved.
        """
        if self.grant is None:
            return
        if isinstance(self.target, HttpTarget):
            self.grant.check_connect(self.target.url)
        else:
            self.grant.check_start(*self.brought_by)

    def __post_init__(self) -> None:
        problem = name_problem(self.name)
        if problem is not None:
            raise ConfigError(
                f"`{self.name}` cannot be the name of an MCP server: {problem}",
                hint="use letters, digits, `-` and single `_`",
            )

    def same_server(self, other: ServerSpec) -> bool:
        """Whether both denote one server, wherever they were declared."""
        return replace(self, declared="") == replace(other, declared="")


def name_problem(name: str) -> str | None:
    """Return what is wrong with a server's name, or None."""
    if not name.strip():
        return "it is empty"
    if "__" in name:
        return "it holds `__`, which separates server and tool"
    if any(not character.isprintable() for character in name):
        return "it holds a control character"
    return None


def launched(
    spec: ServerSpec, *, home: Path, workspace: Path, is_trusted: Callable[[], bool]
) -> ServerSpec:
    """Choose the directory in which a launcher starts that names none: the home.

    In the workspace a project's `node_modules`, `.npmrc` or modules would decide what runs. In the
    configuration of the home `cwd: .` is the workspace.

    Args:
        spec: A server.
        home: The home.
        workspace: The directory the program works in.
        is_trusted: Whether the project of the workspace is approved, or the user's own.

    Returns:
        The server; unchanged where it is found, names another directory, or is not a launcher.
    """
    from fast_agent.trust.programs import is_launcher

    target = spec.target
    if spec.grant is not None or not isinstance(target, StdioTarget):
        return spec
    if target.cwd not in {None, home} or not is_launcher(target.command, target.args):
        return spec
    stays = target.cwd == home or is_trusted()
    target = replace(target, cwd=workspace if stays else home)
    return replace(spec, target=target, is_moved=not stays)


def from_settings(settings: McpSettings) -> tuple[ServerSpec, ...]:
    """Make the specs of the servers of the configuration that are enabled, in its order.

    Raises:
        ConfigError: An address is none, or a name cannot be.
    """
    return tuple(_configured(server) for server in settings.servers.values() if server.enabled)


def _configured(server: ServerSettings) -> ServerSpec:
    declared = f"mcp.servers.{server.name}"
    target: Target
    if server.transport != "stdio":
        target = HttpTarget(
            url=checked_url(server.url or "", f"{declared}.url"),
            headers=server.headers,
            transport=server.transport,
            oauth=server.oauth,
        )
    else:
        target = StdioTarget(
            command=server.command or "", args=server.args, env=server.env, cwd=server.cwd
        )
    return ServerSpec(
        name=server.name,
        target=target,
        include_instructions=server.include_instructions,
        load_on_start=server.load_on_start,
        roots=tuple(
            read_root(root.uri, directory=server.cwd or Path(), name=root.name)
            for root in server.roots
        ),
        read_timeout_seconds=server.read_timeout_seconds or DEFAULT_READ_TIMEOUT,
        connect_timeout_seconds=server.connect_timeout_seconds or DEFAULT_CONNECT_TIMEOUT,
        list_timeout_seconds=server.list_timeout_seconds or DEFAULT_LIST_TIMEOUT,
        call_timeout_seconds=server.call_timeout_seconds or CALL_TIMEOUT_SECONDS,
        sampling=server.sampling,
        sampling_model=server.sampling_model,
        sampling_limit=server.sampling_limit or SAMPLING_ANSWERS,
        elicitation=server.elicitation,
        protocol=server.protocol,
        declared=declared,
        grant=server.grant,
        brought_by=("server", server.name),
    )


def from_command_line(
    command_line: str, *, directory: Path, taken: Collection[str] = (), declared: str = "--stdio"
) -> ServerSpec:
    """Make the spec of `--stdio "command args"`.

    Args:
        command_line: Program and arguments, quoted as a POSIX shell would want it.
        directory: Where a relative path to the program starts.
        taken: Names already in use.
        declared: Where it comes from, for messages.

    Raises:
        ConfigError: The line is empty or its quotes do not match.
    """
    command, args = split_command(command_line, declared)
    target = StdioTarget(command=resolve_command(command, directory), args=args)
    return ServerSpec(
        name=unique_name(derived_name(command_line), taken), target=target, declared=declared
    )


def from_url(
    url: str,
    *,
    headers: Mapping[str, str] = _NO_TEXT,
    taken: Collection[str] = (),
    declared: str = "--url",
) -> ServerSpec:
    """Make the spec of `--url URL`.

    Raises:
        ConfigError: It is not an `http` or `https` address.
    """
    return ServerSpec(
        name=unique_name(derived_name(url), taken),
        target=HttpTarget(url=checked_url(url, declared), headers=headers),
        declared=declared,
    )


def from_connect(
    connect: McpConnect, *, directory: Path, declared: str = "mcp_connect"
) -> ServerSpec:
    """Make the spec of one `mcp_connect` entry of a card.

    Args:
        connect: The entry.
        directory: The card's directory, where a relative path to a program starts and the
            server runs.
        declared: Where it comes from, for messages.

    Raises:
        ConfigError: The target is neither an address nor a command line, or the name cannot be.
    """
    name = connect_name(connect)
    target: Target
    if is_url(connect.target):
        target = HttpTarget(
            url=checked_url(connect.target, declared), headers=connect.headers or _NO_TEXT
        )
    else:
        command, args = split_command(connect.target, declared)
        target = StdioTarget(
            command=resolve_command(command, directory),
            args=args,
            env=connect.env or _NO_TEXT,
            cwd=directory,
        )
    return ServerSpec(name=name, target=target, declared=declared)


def declared_server(
    name: str,
    *,
    workspace: Path,
    command: str | None = None,
    args: Sequence[str | Path] | None = None,
    url: str | None = None,
    env: Mapping[str, str] | None = None,
    cwd: str | Path | None = None,
    headers: Mapping[str, str] | None = None,
    roots: Sequence[str | Path] = (),
    read_timeout_seconds: float | None = None,
    connect_timeout_seconds: float | None = None,
) -> ServerSpec:
    """Make the spec of a server declared in Python; `FastAgent.server` says what the arguments are.

    Relative paths start at `workspace`, the program's directory.

    Raises:
        ConfigError: It has not one of command and address, or names what the other needs.
    """
    what = f"the server `{name}`"
    if (command is None) == (url is None):
        both = "neither `command` nor `url`" if url is None else "both `command` and `url`"
        raise ConfigError(f"{what} has {both}", hint="give it one of the two")
    foreign = {"headers": headers} if url is None else {"args": args, "env": env, "cwd": cwd}
    for option, value in foreign.items():
        if value is not None:
            has = "command" if url is None else "url"
            raise ConfigError(f"`{option}` does not apply to {what}, which has a `{has}`")
    if isinstance(args, str):
        raise ConfigError(f"`args` of {what} must be a list of strings", hint=f"write `[{args!r}]`")
    for option, seconds in (
        ("read_timeout_seconds", read_timeout_seconds),
        ("connect_timeout_seconds", connect_timeout_seconds),
    ):
        if seconds is not None and seconds <= 0:
            raise ConfigError(f"`{option}` of {what} must be more than 0")
    target: Target
    if url is not None:
        target = HttpTarget(url=checked_url(url, "`url`"), headers=headers or _NO_TEXT)
    else:
        directory = workspace if cwd is None else workspace / Path(cwd).expanduser()
        program = command or ""
        if args is None:
            program, words = split_command(program, "`command`")
        else:
            words = tuple(map(str, args))
        target = StdioTarget(
            command=resolve_command(program, directory),
            args=words,
            env=env or _NO_TEXT,
            cwd=directory,
        )
    return ServerSpec(
        name=name,
        target=target,
        roots=tuple([read_root(str(root), directory=workspace) for root in roots]),
        read_timeout_seconds=read_timeout_seconds or DEFAULT_READ_TIMEOUT,
        connect_timeout_seconds=connect_timeout_seconds or DEFAULT_CONNECT_TIMEOUT,
        declared="`fast.server`",
        brought_by=("server", name),
    )


def resolve_command(command: str, directory: Path) -> str:
    """Make a path to a program absolute; a bare name stays, for the `PATH`."""
    if command.startswith("~"):
        return str(Path(command).expanduser())
    if "/" not in command:
        return command
    return str(directory / command)


def checked_url(url: str, declared: str) -> str:
    """Return `url` if it is an `http` or `https` address.

    Raises:
        ConfigError: It is not.
    """
    try:
        parts = urlsplit(url)
        usable = parts.scheme in ("http", "https") and bool(parts.hostname)
    except ValueError:
        usable = False
    if not usable:
        raise ConfigError(
            f"`{url}` is not the address of an MCP server",
            hint=f"give {declared} an address that starts with `http://` or `https://`",
        )
    return url


def derived_name(target: str) -> str:
    """Derive a server name from an address, or from a command line: what it runs in the end.

    Words that may be secrets are left out, since a name is shown everywhere.
    """
    if is_url(target):
        try:
            parts = urlsplit(target)
            words = [
                parts.hostname or "",
                *(w for w in parts.path.split("/") if w not in ("", "mcp") and not _hides(w)),
            ]
        except ValueError:
            words = []
        return _slug("-".join(words))
    try:
        words = shlex.split(target)
    except ValueError:
        words = target.split()
    for before, word in pairwise(["", *words]):
        stem = PurePath(word).name
        if word.startswith("-") or stem in _LAUNCHERS or _PYTHON.match(stem):
            continue
        if is_secret_value(word) or (before.startswith("-") and is_secret_name(before)):
            continue
        return _slug(stem.split("@")[0].removesuffix(PurePath(stem).suffix) or stem)
    return _slug(PurePath(words[0]).name if words else "")


def connect_name(connect: McpConnect) -> str:
    """Return the name of the server of a `mcp_connect` entry: the given or a derived one."""
    return connect.name or derived_name(connect.target)


def unique_name(name: str, taken: Collection[str]) -> str:
    """Return `name`, or it with the first free number behind it."""
    if name not in taken:
        return name
    number = 2
    while f"{name}-{number}" in taken:
        number += 1
    return f"{name}-{number}"


def _hides(word: str) -> bool:
    """Whether a word of an address may be a secret, which a name must not show."""
    return is_unguessable(word) or is_secret_value(word)


def _slug(text: str) -> str:
    return _OUTSIDE_NAME.sub("-", text).strip("-").lower() or "server"
