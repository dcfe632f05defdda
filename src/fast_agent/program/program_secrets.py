"""Program secrets: what no text that leaves a program may hold."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from fast_agent.config.settings import Settings

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from fast_agent.cards.card import Card
    from fast_agent.mcp.oauth.authorization import Authorizations
    from fast_agent.mcp.server import ServerSpec
    from fast_agent.registry.registry import Snapshot
    from fast_agent.text.redaction import Redactor


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
