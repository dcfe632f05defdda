"""Sessions in PostgreSQL, so that several processes and machines answer any of them."""

from __future__ import annotations

from typing import TYPE_CHECKING
from urllib.parse import parse_qsl, urlsplit

from fast_agent.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Callable

    from fast_agent.sessions.postgres.database import Database
    from fast_agent.sessions.postgres.logs import PostgresLogs

SCHEMES = ("postgres://", "postgresql://")
"""How the address of a PostgreSQL database starts."""

_OPTIONS = frozenset({"sslmode", "channel_binding", "target_session_attrs"})


def postgres_logs(
    url: str,
    now: Callable[[], float],
    *,
    lease_seconds: float | None = None,
    wait_seconds: float = 0.0,
) -> PostgresLogs:
    """Return the logs in a database; nothing is connected before the first is used.

    Args:
        url: The address of the database, with user and password.
        now: The clock for the times of events, in seconds since the epoch.
        lease_seconds: How long a process that stopped answering keeps a session to itself; None is
            30 seconds.
        wait_seconds: How long to wait for a session that another process is using.

    Raises:
        ConfigError: The extra `postgres` is not installed, or this is not the address of a
            PostgreSQL database.
    """
    _check(url, "sessions.url")
    try:
        from fast_agent.sessions.postgres.logs import PostgresLogs
    except ImportError as error:
        raise _missing("sessions.url") from error
    return PostgresLogs(url, now, lease_seconds=lease_seconds, wait_seconds=wait_seconds)


def open_database(url: str, setting: str) -> Database:
    """Return a database; nothing is connected before it is asked.

    Args:
        url: Its address, with user and password.
        setting: The setting that has the address.

    Raises:
        ConfigError: The extra `postgres` is not installed, or this is not the address of a
            PostgreSQL database.
    """
    _check(url, setting)
    try:
        from fast_agent.sessions.postgres.database import Database
    except ImportError as error:
        raise _missing(setting) from error
    return Database(url)


def _check(url: str, setting: str) -> None:
    if not url.startswith(SCHEMES):
        raise ConfigError(
            f"`{setting}` is not the address of a PostgreSQL database",
            hint="write it as `postgres://user:${PASSWORD}@host/database`",
        )
    foreign = {name for name, _ in parse_qsl(urlsplit(url).query, keep_blank_values=True)}
    if foreign := foreign - _OPTIONS:
        # Such as `host`, which would lead elsewhere than what was approved.
        raise ConfigError(
            f"`{setting}` may not set `{min(foreign)}`",
            hint=f"after `?` there may be {', '.join(sorted(_OPTIONS))}; set others as variables,"
            " such as `PGSSLROOTCERT`",
        )


def _missing(setting: str) -> ConfigError:
    return ConfigError(
        f"`{setting}` needs the extra `postgres`",
        hint="install it: `pip install 'fast-agent[postgres]'`",
    )
