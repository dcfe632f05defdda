"""Part stores: where runs on several machines keep what their steps name by digest."""

from __future__ import annotations

import os
from hashlib import sha256
from pathlib import Path
from secrets import token_hex
from threading import Lock
from typing import TYPE_CHECKING, Final, Protocol

from fast_agent.errors import ConfigError, FastAgentError, RunError, os_reason
from fast_agent.sessions.postgres import SCHEMES, open_database
from fast_agent.text.safe_file import sync_to_disk

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping


KEY_BYTES: Final = 32
"""The length of a key, for AES-256."""

_NONCE_BYTES: Final = 12
_MAX_CACHED_BYTES: Final = 64 * 1024 * 1024
_MAX_SETTLED_ALONE: Final = 16
"""How many files are written to the disk one by one; more, and the whole disk is."""

_KEY_HINT: Final = "write a key with `openssl rand -hex 32 > FILE`"


class PartStore(Protocol):
    """Keeps values by their digest; a value never changes, so keeping it twice does nothing."""

    def get(self, digests: Iterable[str]) -> dict[str, bytes]:
        """Return values by their digests; missing ones are left out.

        Raises:
            RunError: The store cannot be read.
        """
        ...

    def put(self, values: Mapping[str, bytes]) -> None:
        """Keep values by their digests.

        Raises:
            RunError: The store cannot be written.
        """
        ...


class DirectoryParts:
    """Values in files of a directory, which several machines may share.

    Args:
        directory: The directory; it is created when the first value is kept.
    """

    def __init__(self, directory: Path) -> None:
        self._directory = directory

    def get(self, digests: Iterable[str]) -> dict[str, bytes]:
        """Return values; see `PartStore.get`."""
        found: dict[str, bytes] = {}
        for digest in digests:
            path = self._path(digest)
            try:
                found[digest] = path.read_bytes()
            except FileNotFoundError:
                continue
            except OSError as error:
                raise self._problem(path, error) from error
        return found

    def put(self, values: Mapping[str, bytes]) -> None:
        """Keep values on the disk itself, before any history names them; see `PartStore.put`."""
        fresh: dict[Path, Path] = {}
        path = self._directory
        try:
            for digest, value in values.items():
                path = self._path(digest)
                if path.exists():
                    continue
                # Another worker may write the same value: each has its own file until the rename.
                fresh[path] = path.with_name(f"{path.name}.{token_hex(4)}")
                path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
                fresh[path].write_bytes(value)
            _settle(fresh.values())
            for path, written in fresh.items():
                written.replace(path)
            _settle({self._directory, *(path.parent for path in fresh)} if fresh else ())
        except OSError as error:
            for written in fresh.values():
                written.unlink(missing_ok=True)
            raise self._problem(path, error) from error

    def _path(self, digest: str) -> Path:
        if not digest.isalnum():
            raise RunError(f"`{digest}` is not a digest")
        return self._directory / digest[:2] / digest

    def _problem(self, path: Path, error: OSError) -> RunError:
        return RunError(
            f"the parts of runs cannot be stored in {path.parent}: {os_reason(error)}",
            hint="every worker and client needs the same directory, with the right to write there",
        )


def _settle(paths: Collection[Path]) -> None:
    """Write files and directories to the disk itself."""
    if len(paths) > _MAX_SETTLED_ALONE:
        os.sync()
        return
    for path in paths:
        sync_to_disk(path)


class PostgresParts:
    """Values in a table of a PostgreSQL database.

    Args:
        url: Its address, with user and password.

    Raises:
        ConfigError: The extra `postgres` is not installed, or the address is wrong.
    """

    def __init__(self, url: str) -> None:
        self._database = open_database(url, "temporal.parts")
        self._is_ready = False

    def get(self, digests: Iterable[str]) -> dict[str, bytes]:
        """Return values; see `PartStore.get`."""
        self._upgrade_schema()
        rows = self._database.query(
            "SELECT digest, value FROM run_part WHERE digest = ANY(%s)", [list(digests)]
        )
        return {str(digest): bytes(value) for digest, value in rows}

    def put(self, values: Mapping[str, bytes]) -> None:
        """Keep values; see `PartStore.put`."""
        self._upgrade_schema()
        self._database.query(
            "INSERT INTO run_part SELECT * FROM unnest(%s::text[], %s::bytea[])"
            " ON CONFLICT DO NOTHING",
            [list(values), list(values.values())],
        )

    def _upgrade_schema(self) -> None:
        if not self._is_ready:
            self._database.query(
                "CREATE TABLE IF NOT EXISTS run_part"
                " (digest text PRIMARY KEY, value bytea NOT NULL)"
            )
            self._is_ready = True


class CachedParts:
    """Values of another store, the newest of them in memory.

    Args:
        store: The store.
    """

    def __init__(self, store: PartStore) -> None:
        self._store = store
        self._cached: dict[str, bytes] = {}
        self._size = 0
        self._lock = Lock()

    def get(self, digests: Iterable[str]) -> dict[str, bytes]:
        """Return values; see `PartStore.get`."""
        wanted = list(digests)
        with self._lock:
            found = {one: self._cached[one] for one in wanted if one in self._cached}
        missing = [one for one in wanted if one not in found]
        if missing:
            read = self._store.get(missing)
            self._remember(read)
            found |= read
        return found

    def put(self, values: Mapping[str, bytes]) -> None:
        """Keep values; see `PartStore.put`."""
        with self._lock:
            fresh = {one: value for one, value in values.items() if one not in self._cached}
        if fresh:
            self._store.put(fresh)
            self._remember(fresh)

    def _remember(self, values: Mapping[str, bytes]) -> None:
        with self._lock:
            for digest, value in values.items():
                if digest not in self._cached:
                    self._cached[digest] = value
                    self._size += len(value)
            while self._size > _MAX_CACHED_BYTES:
                oldest = next(iter(self._cached))
                self._size -= len(self._cached.pop(oldest))


class Cipher:
    """Encrypts what leaves the machine, with AES-256-GCM and a key that only its owner has.

    Args:
        key: 32 bytes.
    """

    def __init__(self, key: bytes) -> None:
        from cryptography.hazmat.primitives.ciphers.aead import AESGCM

        self._aead = AESGCM(key)
        self.key_id = sha256(b"fast-agent key\0" + key).hexdigest()[:12]
        """Names the key without giving it away."""

    def seal(self, value: bytes, context: bytes = b"") -> bytes:
        """Encrypt a value.

        Args:
            value: The value.
            context: What it is opened with again, such as its name.
        """
        nonce = os.urandom(_NONCE_BYTES)
        return nonce + self._aead.encrypt(nonce, value, context)

    def open(self, sealed: bytes, context: bytes = b"") -> bytes:
        """Decrypt a value.

        Raises:
            RunError: It was encrypted with another key, or changed since.
        """
        from cryptography.exceptions import InvalidTag

        try:
            return self._aead.decrypt(sealed[:_NONCE_BYTES], sealed[_NONCE_BYTES:], context)
        except (InvalidTag, ValueError) as error:
            raise RunError(
                "a part of a run was encrypted with another key, or was changed",
                hint="every worker and client needs the same key file",
            ) from error


class SealedParts:
    """Values of another store, encrypted: what is stored under a name opens under no other.

    Args:
        store: The store.
        cipher: Encrypts them.
    """

    def __init__(self, store: PartStore, cipher: Cipher) -> None:
        self._store = store
        self._cipher = cipher

    def get(self, digests: Iterable[str]) -> dict[str, bytes]:
        """Return values; see `PartStore.get`."""
        found = self._store.get(digests)
        return {one: self._cipher.open(value, one.encode()) for one, value in found.items()}

    def put(self, values: Mapping[str, bytes]) -> None:
        """Keep values; see `PartStore.put`."""
        self._store.put(
            {one: self._cipher.seal(value, one.encode()) for one, value in values.items()}
        )


def open_parts(place: str, cipher: Cipher | None = None) -> PartStore:
    """Open the store at a place.

    Args:
        place: A directory, or the address of a PostgreSQL database.
        cipher: Encrypts the values; None keeps them readable.

    Raises:
        ConfigError: It cannot be used.
    """
    is_database = place.startswith(SCHEMES)
    store: PartStore = PostgresParts(place) if is_database else DirectoryParts(Path(place))
    if cipher is not None:
        store = SealedParts(store, cipher)
    return CachedParts(store)


def read_cipher(path: Path) -> Cipher:
    """Read a key file: 32 bytes as 64 hexadecimal digits.

    Raises:
        ConfigError: It cannot be read, others may read it, or it does not hold a key.
    """
    try:
        state = path.stat()
        text = path.read_text(encoding="ascii", errors="replace").strip()
    except OSError as error:
        raise ConfigError(
            f"key file `{path}` cannot be read: {os_reason(error)}", hint=_KEY_HINT
        ) from error
    if state.st_mode & 0o077:
        raise ConfigError(
            f"key file `{path}` can be read by other users", hint=f"run `chmod 600 {path}`"
        )
    try:
        key = bytes.fromhex(text)
    except ValueError:
        key = b""
    if len(key) != KEY_BYTES:
        raise ConfigError(
            f"key file `{path}` does not hold a key of {KEY_BYTES * 2} hexadecimal digits",
            hint=_KEY_HINT,
        )
    return Cipher(key)


def missing_part(digest: str) -> FastAgentError:
    """Return the error of a part that is in no store."""
    return RunError(
        f"part `{digest}` of a run is missing from the store of parts",
        hint="check that every worker and client uses the same `--parts`",
    )
