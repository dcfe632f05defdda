"""What a program is made from: its configuration, servers and cards, and secrets no text may hold.

Each path is read once, with what its set may do where it was found.
"""

from __future__ import annotations

from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from fast_agent.config.home import home_directory, user_home, working_directory
from fast_agent.config.load import find_files, load_settings, shown_path
from fast_agent.config.settings import Settings
from fast_agent.errors import CardError, ConfigError
from fast_agent.text.json_value import as_object
from fast_agent.trust.origin import end_of, own_place, remote_root, root_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from fast_agent.cards.card import Card, FetchedText
    from fast_agent.cards.load import ForeignPlaces
    from fast_agent.mcp.oauth.authorization import Authorizations
    from fast_agent.mcp.server import ServerSpec
    from fast_agent.registry.admission import Admission
    from fast_agent.registry.card_root import CardReader, CardRoot
    from fast_agent.registry.registry import Snapshot
    from fast_agent.text.redaction import Redactor
    from fast_agent.trust.gate import Gate
    from fast_agent.trust.grant import Grant


class Configuration:
    """The configuration of a program, read when it is first asked for.

    Args:
        cwd: The directory the program works in.
        environ: The environment.
        path: The configuration file; None searches for one.
        gate: What decides about files that were found.
        admission: Returns what admits their parts.
        is_ignored: Whether no configuration file is used at all.
    """

    def __init__(
        self,
        cwd: Path,
        environ: Mapping[str, str],
        path: Path | None,
        gate: Gate,
        admission: Callable[[], Admission],
        *,
        is_ignored: bool,
    ) -> None:
        self._cwd = cwd
        self._environ = environ
        self._path = path
        self._gate = gate
        self._admission = admission
        self._is_ignored = is_ignored
        self.known: Settings | None = None
        """The settings, where they were read already."""

    @property
    def settings(self) -> Settings:
        """The settings.

        Raises:
            ConfigError: With every problem of every file and variable.
        """
        if self.known is None:
            self.known = Settings() if self._is_ignored else self._checked()
        return self.known

    def reread(self) -> bool:
        """Read the files again, and return whether the settings are others now.

        Raises:
            ConfigError: With every problem; then the settings stay as they were.
        """
        if self._is_ignored:
            return False
        settings = self._checked()
        is_new = settings != self.known
        self.known = settings if is_new else self.known
        return is_new

    def _checked(self) -> Settings:
        admission = self._admission()
        settings = load_settings(
            cwd=self._cwd,
            environ=self._environ,
            home=home_directory(self._environ),
            config_path=self._path,
            shown_from=working_directory(),
            decide=admission.decide_layers,
            home_is_own=self._gate.fault is None,
        )
        if self._gate.options.without_found and admission.hides_home:
            settings = self._user_settings()
        settings = admission.bounded(settings)
        if settings.default_model or settings.model_aliases:
            from fast_agent.models.check import check_settings

            # A program that only looks reads no file that a project names.
            may_read = (
                not self._gate.options.passive or settings.default_model == self.user.default_model
            )
            problems = check_settings(settings, self._environ, cwd=self._cwd, may_read=may_read)
            if problems:
                first = problems[0]
                raise ConfigError(first.message, hint=first.hint, diagnostics=problems)
        return settings

    @cached_property
    def user(self) -> Settings:
        """The configuration of the user alone: that of the home, and of the environment."""
        try:
            return self._user_settings()
        except ConfigError:
            return Settings()  # a file of this run is wrong, or one that this run does not read

    def _user_settings(self) -> Settings:
        if self._is_ignored or self._gate.fault is not None:
            return Settings()
        home = home_directory(self._environ)
        named = None if self._path is None else self._cwd / self._path
        # The search starts at the top, so that only the home is looked into.
        top = Path(home.anchor)
        return load_settings(cwd=top, environ=self._environ, home=home, config_path=named)

    def agents_in_place(self) -> ForeignPlaces:
        """Return what reads directories of agents of other tools, such as `.claude/agents`."""
        from fast_agent.config.layer import read_layer
        from fast_agent.formats.in_place import AgentsInPlace

        named = None if self._path is None else self._cwd / self._path
        file = find_files(self._cwd, home_directory(self._environ), named).config
        # Only names are taken: nothing is decided yet about a file that was found.
        layer = None if file is None or self._is_ignored else read_layer(file, str(file), [])
        written = as_object(None if layer is None else layer.document.value)
        there = as_object(as_object(written.get("mcp")).get("servers"))
        servers = (*self.user.mcp.servers, *there)
        return AgentsInPlace(self.user.foreign_agents or "none", servers)


class SecretSources(NamedTuple):
    """Where a program's secrets may be, as far as it was read.

    Args:
        settings: Its configuration, or None.
        snapshot: Its agents, or None.
        servers: Its servers beyond those of the configuration.
        authorizations: Its tokens, or None.
    """

    settings: Settings | None
    snapshot: Snapshot | None
    servers: Sequence[ServerSpec]
    authorizations: Authorizations | None


def card_origin(card: Card, cwd: Path) -> str | None:
    """Return the file of a card, as people are shown it; None where it has none."""
    source = card.config.source
    return None if source is None else shown_path(source, cwd)


class ProgramServers:
    """The MCP servers of a program: where they are declared and started, and their tokens.

    Args:
        cwd: The directory the program works in, absolute.
        home: The home of the program.
        environ: The environment.
        configuration: Declares most of them.
        gate: Knows what is the user's own.

    Attributes:
        added: Those of options and of Python.
        tokens: What keeps the tokens of remote ones, where it was asked for already.
    """

    def __init__(
        self,
        cwd: Path,
        home: Path,
        environ: Mapping[str, str],
        configuration: Configuration,
        gate: Gate,
    ) -> None:
        self._cwd = cwd
        self._home = home
        self._environ = environ
        self._configuration = configuration
        self._gate = gate
        self.added: list[ServerSpec] = []
        self.tokens: Authorizations | None = None

    def names(self) -> tuple[str, ...]:
        """Name the servers cards may use."""
        return (*self._configuration.settings.mcp.servers, *(one.name for one in self.added))

    def origin(self, name: str, cards: Iterable[Card]) -> str | None:
        """Return where a server is declared: a file and line, a variable, an option, a card.

        Args:
            name: The server's name; None is returned for one that is not known.
            cards: The cards of the program.
        """
        place = self._configuration.settings.place_of("mcp", "servers", name)
        if place is not None:
            line = "" if place.span is None else f":{place.span.start.line}"
            return place.variable or f"{place.path}{line}"
        for server in self.added:
            if server.name == name:
                return server.declared
        from fast_agent.mcp.server import connect_name

        for card in cards:
            for connect in card.config.mcp_connect:
                if name == connect_name(connect):
                    return card_origin(card, self._cwd)
        return None

    def placed(
        self, spec: ServerSpec, *, workspace: Path, is_trusted: Callable[[], bool]
    ) -> ServerSpec:
        """Choose the directory a server starts in: the home, for a launcher that names none.

        Args:
            spec: The server.
            workspace: The directory its agents work in; a launcher starts there where the project
                around it is approved or the user's own.
            is_trusted: Returns whether it is.
        """
        from fast_agent.mcp.server import launched
        from fast_agent.trust.origin import account_home

        home = self._home
        if self._gate.fault is not None:
            home = account_home() or user_home(self._environ)
        elif not home.is_dir():
            home = user_home(self._environ)
        return launched(spec, home=home, workspace=workspace, is_trusted=is_trusted)

    def authorizations(self) -> Authorizations | None:
        """Return what keeps the tokens of remote servers; None where the home is not one's own.

        It is the same at every call, and reads nothing before it is asked for a token.
        """
        if self._gate.fault is not None:
            return None
        if self.tokens is None:
            from fast_agent.mcp.oauth.authorization import Authorizations

            self.tokens = Authorizations(self._home)
        return self.tokens


class ProgramSecrets:
    """The secrets a program knows so far; nothing is read for them.

    Args:
        environ: The environment.
        sources: Returns where the others are.
    """

    def __init__(self, environ: Mapping[str, str], sources: Callable[[], SecretSources]) -> None:
        self._environ = environ
        self._sources = sources
        self._hidden: set[str] = set()
        self._redactor: tuple[object, Redactor] | None = None

    def redact(self, text: str) -> str:
        """Return text with a mark instead of each secret.

        These are keys, headers, values of `${NAME}` in configuration and cards, and variables that
        look like secrets.
        """
        from fast_agent.text.redaction import Redactor

        settings, snapshot, servers, authorizations = self._sources()
        tokens = 0 if authorizations is None else len(authorizations.secrets)
        version = None if snapshot is None else snapshot.version
        stand = (version, id(settings), len(servers), len(self._hidden), tokens)
        if self._redactor is None or self._redactor[0] != stand:
            self._redactor = stand, Redactor(self.all())
        return self._redactor[1].redact(text)

    def also_hide(self, servers: Iterable[ServerSpec]) -> None:
        """Hide the secrets of servers that a client gave, too."""
        from fast_agent.runtime.known_secrets import known_secrets

        self._hidden.update(known_secrets(Settings(), {}, servers=servers))

    def hide_values_of(self, cards: Iterable[Card]) -> None:
        """Hide what cards interpolate, which were read and are not loaded."""
        from fast_agent.runtime.known_secrets import known_secrets

        self._hidden.update(known_secrets(Settings(), self._environ, cards))

    def all(self) -> frozenset[str]:
        """Return the secrets."""
        from fast_agent.runtime.known_secrets import known_secrets

        settings, snapshot, servers, authorizations = self._sources()
        cards = () if snapshot is None else snapshot.load_set.cards.values()
        known = known_secrets(settings or Settings(), self._environ, cards, servers)
        tokens = () if authorizations is None else authorizations.secrets
        return frozenset((*known, *self._hidden, *tokens))


class RootReader:
    """Reads paths with cards; what was read is kept until it is loaded.

    Args:
        cwd: The directory relative paths start from, absolute.
        environ: The variables for `${NAME}`.
        gate: Knows what is the user's own.
        foreign: Returns what reads directories of agents of other tools.
    """

    def __init__(
        self,
        cwd: Path,
        environ: Mapping[str, str],
        gate: Gate,
        foreign: Callable[[], ForeignPlaces],
    ) -> None:
        self._cwd = cwd
        self._environ = environ
        self._gate = gate
        self._foreign = foreign
        self._read: dict[str, CardRoot] = {}

    @cached_property
    def _reader(self) -> CardReader:
        from fast_agent.registry.card_root import CardReader

        return CardReader(self._cwd, self._environ, self._fetch, self._foreign)

    def key(self, path: str | Path) -> str:
        """Return what a path or address is known by: an absolute path, or the address itself."""
        return self._reader.key(path)

    def forget(self) -> None:
        """Read every path again from now on."""
        self._read = {}

    def read(
        self,
        paths: Iterable[str | Path],
        *,
        multi_card: bool,
        found: Iterable[str | Path],
        root: Path | None,
        optional: Iterable[str | Path],
    ) -> dict[str, CardRoot]:
        """Read paths, unless they were read since what is known was forgotten.

        Args:
            paths: Files, directories and addresses.
            multi_card: Whether a file may hold several cards.
            found: Those of the paths that were found, not named by a user.
            root: The root of the set they belong to; None for the project each is in.
            optional: Those of the paths that may be directories without a card.

        Returns:
            The roots, by what they are known by.
        """
        paths = tuple(paths)
        if not paths:
            return {}
        from fast_agent.registry.card_root import read_roots

        self._read |= read_roots(
            self._reader,
            [path for path in paths if self.key(path) not in self._read],
            multi_card=multi_card,
            optional=set(map(self.key, optional)),
            found=dict(self._grants(paths, found, root)),
        )
        return {self.key(path): self._read[self.key(path)] for path in paths}

    def _grants(
        self, paths: Iterable[str | Path], found: Iterable[str | Path], root: Path | None
    ) -> Iterator[tuple[str, Grant]]:
        """Yield the grants of paths that no user named, by what the paths are known by."""
        for path in found:
            from fast_agent.trust.grant import Grant

            place = own_place(self._cwd / path, self._environ)
            own = root_of(self._cwd / path)
            # What a set names outside of its root is a separate set.
            inside = root is not None and end_of(self._cwd / path).is_relative_to(root)
            grant = Grant(root if root is not None and inside else own, place=place)
            if not self._gate.owns(grant.root):
                yield self.key(path), grant
        for address in filter(_is_address, map(self.key, paths)):
            from fast_agent.trust.grant import Grant

            yield address, Grant(remote_root(address))

    def _fetch(self, address: str) -> FetchedText:
        """Fetch a card from an address a user typed; redirects lead to its host only.

        What came is found, as everything with an address is: only to fetch it was the user's act.
        """
        from fast_agent.mcp.web_page import fetch_card

        if self._gate.options.without_found:
            raise CardError(
                "a card from a web address counts as found, and `--no-found` loads nothing found",
                hint="save the card and name the file",
            )
        if self._gate.options.passive and not self._gate.options.fetches:
            raise CardError(
                "cards from web addresses are not fetched only to be inspected",
                hint="save the card and name the file",
            )
        from fast_agent.trust.grant import origin_of

        place = origin_of(address)

        def check(url: str) -> None:
            if origin_of(url) != place:
                raise CardError(f"`{address}` leads to another host, which was not named")

        return fetch_card(address, check)


def _is_address(key: str) -> bool:
    return key.lower().startswith(("http://", "https://"))
