"""Authorizations: the OAuth tokens of remote MCP servers, and where they are kept.

What identifies an authorization is kept in `authorizations.json` of the home, a file for its owner
alone. Its secrets are in the keyring of the system where there is one, else in that file.
"""

from __future__ import annotations

import json
import os
import stat
import time
from contextlib import contextmanager
from dataclasses import asdict, field, replace
from importlib import import_module
from typing import TYPE_CHECKING, Final, Literal, Protocol, TypeAlias, cast
from urllib.parse import urlsplit, urlunsplit

from fast_agent.errors import ConfigError, os_reason
from fast_agent.text.frozen import frozen
from fast_agent.text.safe_file import FileLock, write_atomic

if TYPE_CHECKING:
    from collections.abc import Callable, Generator
    from pathlib import Path

    from fast_agent.text.json_value import JsonObject

FILE: Final = "authorizations.json"
"""The file of the home that lists authorizations."""

SERVICE: Final = "fast-agent"
"""What authorizations are filed under in a keyring."""

EXPIRY_MARGIN_SECONDS: Final = 30.0
"""A token that expires within this time is renewed before it is used."""

Place: TypeAlias = Literal["keyring", "file"]

_MAX_FILE_BYTES: Final = 4 << 20
_LOCK_SECONDS: Final = 20.0
_SECRETS: Final = ("access_token", "refresh_token", "client_secret")


@frozen(kw_only=True)
class Authorization:
    """What an authorization server granted for one MCP server.

    Args:
        server: The address of the MCP server, as `canonical` returns it.
        issuer: The authorization server.
        token_endpoint: Where tokens are renewed.
        revocation_endpoint: Where they are revoked; None where it offers no such thing.
        resource: What requests for tokens name as the resource; None names none.
        client_id: What this program is registered as.
        client_secret: The secret of that registration, or None.
        auth_method: How the secret is sent to the token endpoint, or None.
        access_token: What requests to the server carry.
        refresh_token: What renews it, or None.
        scope: The scopes that were granted, separated by spaces, or None.
        expires_at: When the access token expires, in seconds since 1970, or None.
        granted_at: When the user granted it, in seconds since 1970.
        place: Where its secrets are kept.
    """

    server: str
    issuer: str
    token_endpoint: str
    revocation_endpoint: str | None = None
    resource: str | None = None
    client_id: str
    client_secret: str | None = field(default=None, repr=False)
    auth_method: str | None = None
    access_token: str = field(default="", repr=False)
    refresh_token: str | None = field(default=None, repr=False)
    scope: str | None = None
    expires_at: float | None = None
    granted_at: float = 0.0
    place: Place = "file"

    @property
    def secrets(self) -> tuple[str, ...]:
        """Its secrets, which no log, error, session or recording may hold."""
        return tuple(
            filter(None, (self.access_token, self.refresh_token or "", self.client_secret or ""))
        )


class Keyring(Protocol):
    """The functions of the package `keyring` that are used."""

    def get_password(self, service_name: str, username: str) -> str | None:
        """Return a secret, or None."""
        ...

    def set_password(self, service_name: str, username: str, password: str) -> None:
        """Keep a secret."""
        ...

    def delete_password(self, service_name: str, username: str) -> None:
        """Forget a secret."""
        ...


def system_keyring() -> Keyring | None:
    """Return the keyring of the system; None without the package `keyring` or a usable one."""
    try:
        keyring = import_module("keyring")
        backend: object = keyring.get_keyring()
    except Exception:  # noqa: BLE001 - backends fail in many ways where there is no desktop
        return None
    # The backends `fail` and `null` of the package, which keep nothing, have no priority.
    priority = cast("float", getattr(backend, "priority", 0))
    return cast("Keyring", backend) if priority > 0 else None


class Authorizations:
    """The authorizations of a user, shared with other processes of theirs.

    Args:
        home: The home directory of the program.
        keyring: Returns the keyring of the system, or None.
        now: Seconds since 1970.
    """

    def __init__(
        self,
        home: Path,
        *,
        keyring: Callable[[], Keyring | None] = system_keyring,
        now: Callable[[], float] = time.time,
    ) -> None:
        self.path = home / FILE
        self.now = now
        self._find_keyring = keyring
        self._read: tuple[object, dict[str, Authorization]] = (None, {})
        self._opened: dict[str, Authorization] = {}
        self.secrets: set[str] = set()
        """Every secret that was read or kept in this run."""

    def all(self) -> tuple[Authorization, ...]:
        """Return what is known without its secrets, by address of the server.

        Raises:
            ConfigError: The file cannot be read, or is not for its owner alone.
        """
        known = self._entries()
        return tuple([_bare(known[server]) for server in sorted(known)])

    def get(self, address: str) -> Authorization | None:
        """Return the authorization for a server, or None.

        Raises:
            ConfigError: It cannot be read, or the keyring stays locked.
        """
        known = self._entries().get(canonical(address))
        if known is None or known.place == "file":
            return known
        opened = self._opened.get(known.server)
        # The entry of the file changes with every renewal, so that the keyring is asked then only.
        if opened is not None and _bare(opened) == known:
            return opened
        opened = self._with_secrets(known)
        self._opened[known.server] = opened
        self.secrets.update(opened.secrets)
        return opened

    def put(self, authorization: Authorization) -> None:
        """Keep an authorization in its `place`, in place of another for the same server.

        Raises:
            ConfigError: It cannot be written.
        """
        self.secrets.update(authorization.secrets)
        if authorization.place == "keyring":
            secrets = {name: getattr(authorization, name) for name in _SECRETS}
            with _keyring_errors():
                self._keyring().set_password(SERVICE, authorization.server, json.dumps(secrets))
            self._opened[authorization.server] = authorization
            authorization = _bare(authorization)
        self._write({**self._entries(), authorization.server: authorization})

    def remove(self, address: str) -> bool:
        """Forget the authorization for a server.

        Returns:
            Whether there was one.

        Raises:
            ConfigError: It cannot be written.
        """
        known = self._entries()
        server = canonical(address)
        found = known.get(server)
        if found is None:
            return False
        if found.place == "keyring":
            with _keyring_errors():
                self._keyring().delete_password(SERVICE, server)
        self._opened.pop(server, None)
        self._write({name: one for name, one in known.items() if name != server})
        return True

    def default_place(self) -> Place:
        """Return the default place of secrets: the keyring, if there is one."""
        return "file" if self._find_keyring() is None else "keyring"

    @contextmanager
    def exclusive(self) -> Generator[None]:
        """Keep other processes from changing authorizations; blocks while one does.

        Raises:
            ConfigError: The lock cannot be had.
        """
        self._make_home()
        lock = FileLock(self.path.with_name(f"{FILE}.lock"))
        try:
            taken = lock.take(wait=_LOCK_SECONDS)
        except OSError as error:
            raise ConfigError(f"`{self.path}` cannot be locked: {os_reason(error)}") from error
        if not taken:
            raise ConfigError(
                f"`{self.path}` is locked by process {lock.holder()}",
                hint="wait until it has ended, and try again",
            )
        try:
            yield
        finally:
            lock.release()

    def _keyring(self) -> Keyring:
        keyring = self._find_keyring()
        if keyring is None:
            raise ConfigError(
                "there is no usable keyring",
                hint="install `fast-agent[keyring]`, or use `fast-agent auth login --store file`",
            )
        return keyring

    def _with_secrets(self, known: Authorization) -> Authorization:
        with _keyring_errors():
            text = self._keyring().get_password(SERVICE, known.server)
        try:
            secrets = cast("object", json.loads(text or ""))
        except ValueError:
            secrets = None
        if not isinstance(secrets, dict):
            raise ConfigError(
                f"the keyring has no authorization for `{known.server}`",
                hint="`fast-agent auth login` authorizes this program again",
            )
        held = cast("dict[str, object]", secrets)
        return replace(
            known,
            access_token=str(held.get("access_token") or ""),
            refresh_token=_text(held.get("refresh_token")),
            client_secret=_text(held.get("client_secret")),
        )

    def _entries(self) -> dict[str, Authorization]:
        try:
            signature, text = self._file(self._read[0])
        except FileNotFoundError:
            return {}
        except OSError as error:
            raise ConfigError(
                f"`{self.path}` cannot be read: {os_reason(error)}",
                hint="it must be your own file, readable by you only",
            ) from error
        if text is not None:
            entries = _parsed(text, self.path)
            self._read = signature, entries
            for one in entries.values():
                self.secrets.update(one.secrets)
        return self._read[1]

    def _file(self, known: object) -> tuple[object, str | None]:
        """Return the signature of the file, and its text where that is another than `known`."""
        # One that others could write would have this program send tokens of theirs.
        descriptor = os.open(self.path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
        with os.fdopen(descriptor, encoding="utf-8") as file:
            found = os.fstat(file.fileno())
            if not stat.S_ISREG(found.st_mode) or found.st_uid != os.geteuid():
                raise ConfigError(f"`{self.path}` is not a file of yours", hint="remove it")
            if found.st_mode & 0o077:
                raise ConfigError(
                    f"`{self.path}` can be read by others", hint=f"`chmod 600 {self.path}`"
                )
            signature = found.st_mtime_ns, found.st_size, found.st_ino
            if signature == known:
                return signature, None
            try:
                return signature, file.read(_MAX_FILE_BYTES)
            except UnicodeDecodeError:
                return signature, ""

    def _write(self, entries: dict[str, Authorization]) -> None:
        self._make_home()
        servers = {one.server: _as_json(one) for one in entries.values()}
        text = json.dumps({"version": 1, "servers": servers}, indent=2)
        try:
            write_atomic(self.path, f"{text}\n".encode())
        except OSError as error:
            raise ConfigError(f"`{self.path}` cannot be written: {os_reason(error)}") from error

    def _make_home(self) -> None:
        try:
            self.path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        except OSError as error:
            raise ConfigError(f"`{self.path}` cannot be written: {os_reason(error)}") from error


def canonical(address: str) -> str:
    """Return the address of a server as authorizations are found by: RFC 8707, section 2."""
    parts = urlsplit(address)
    return urlunsplit(
        parts._replace(scheme=parts.scheme.lower(), netloc=parts.netloc.lower(), fragment="")
    )


def same_origin(address: str, other: str) -> bool:
    """Return whether two addresses have the same scheme, host and port."""
    try:
        one, two = urlsplit(address), urlsplit(other)
        ports = [parts.port or {"http": 80, "https": 443}.get(parts.scheme) for parts in (one, two)]
    except ValueError:
        return False
    return (one.scheme, one.hostname, ports[0]) == (two.scheme, two.hostname, ports[1])


@contextmanager
def _keyring_errors() -> Generator[None]:
    try:
        yield
    except ConfigError:
        raise
    except Exception as error:  # backends raise errors of many libraries
        raise ConfigError(
            f"the keyring cannot be used: {type(error).__name__}",
            hint="unlock it, or use `fast-agent auth login --store file`",
        ) from error


def _bare(authorization: Authorization) -> Authorization:
    return replace(authorization, access_token="", refresh_token=None, client_secret=None)


def _as_json(authorization: Authorization) -> JsonObject:
    values = cast("JsonObject", asdict(authorization))
    return {key: value for key, value in values.items() if value not in (None, "")}


def _parsed(text: str, path: Path) -> dict[str, Authorization]:
    try:
        held = cast("dict[str, dict[str, dict[str, object]]]", json.loads(text))
        return {server: _entry(server, values) for server, values in held["servers"].items()}
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        raise ConfigError(
            f"`{path}` is damaged", hint="remove it, and authorize the servers again"
        ) from error


def _entry(server: str, values: dict[str, object]) -> Authorization:
    at, expires = values.get("granted_at"), values.get("expires_at")
    return Authorization(
        server=server,
        issuer=str(values["issuer"]),
        token_endpoint=str(values["token_endpoint"]),
        revocation_endpoint=_text(values.get("revocation_endpoint")),
        resource=_text(values.get("resource")),
        client_id=str(values["client_id"]),
        client_secret=_text(values.get("client_secret")),
        auth_method=_text(values.get("auth_method")),
        access_token=str(values.get("access_token", "")),
        refresh_token=_text(values.get("refresh_token")),
        scope=_text(values.get("scope")),
        expires_at=float(expires) if isinstance(expires, int | float) else None,
        granted_at=float(at) if isinstance(at, int | float) else 0.0,
        place="keyring" if values.get("place") == "keyring" else "file",
    )


def _text(value: object) -> str | None:
    return value if isinstance(value, str) and value else None
