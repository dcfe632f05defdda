"""Grants: what a found set may do in this run, asked at the moment it does it."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Final, Literal

from fast_agent.errors import TrustError
from fast_agent.trust.effect import Holder

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from pathlib import PurePath

    from fast_agent.trust.effect import Effect, EffectKind

_OWN_FOLDERS: Final = frozenset({".fast-agent", ".claude", ".agents"})
_SECRETS: Final = (".env*", "*.pem", "*.key", "id_*", "*secret*", "*.p12", "*.pfx")


@dataclass(frozen=True, slots=True)
class Grant:
    """What the set of one root may do.

    Args:
        root: The root, absolute and without links.
        effects: The effects that are allowed.
        everything: Whether `--trust` was given: all but writing outside the root is allowed.
        examine: Works out the effects of a holder as they are at that moment; None where there is
            nothing to examine.
    """

    root: Path
    effects: frozenset[Effect] = frozenset()
    everything: bool = False
    examine: Callable[[Holder], Iterable[Effect]] | None = field(
        default=None, repr=False, compare=False
    )

    def allows(self, effect: Effect) -> bool:
        """Return whether an effect is allowed."""
        return effect in self.effects or (self.everything and effect.refusal is None)

    def check_read(self, path: Path) -> Path:
        """Return where a file that is about to be read ends.

        The root is free, but for what is hidden or looks secret in it.

        Raises:
            TrustError: It ends outside the root or in a secret, and nobody allowed that.
        """
        real = Path(os.path.realpath(path))
        if self.everything or self._is_free(real) or str(real) in self._subjects("read"):
            return real
        raise TrustError(
            f"`{path}` may not be read: the project that names it was not allowed to",
            hint=f"name a file below `{self.root}`, or read the project and `fast-agent trust` it",
        )

    def check_write(self, path: Path) -> Path:
        """Return where a file that is about to be written ends.

        Raises:
            TrustError: It ends outside the root, or in what is hidden there.
        """
        real = Path(os.path.realpath(path))
        if self._is_free(real):
            return real
        raise TrustError(
            f"`{path}` may not be written: it is outside the project that names it",
            hint=f"name a file below `{self.root}`",
        )

    def check_import(self, file: Path, text: str) -> None:
        """Check a Python file that is about to be compiled.

        Raises:
            TrustError: The file is not what was allowed.
        """
        if self.everything:
            return
        digest = f"sha256:{sha256(text.encode('utf-8', 'surrogatepass')).hexdigest()}"
        real = Path(os.path.realpath(file))
        inside = real.is_relative_to(self.root)
        name = real.relative_to(self.root).as_posix() if inside else str(real)
        runs = (effect for effect in self.effects if effect.kind == "run")
        if not any(effect.files.get(name) == digest for effect in runs):
            raise TrustError(
                f"`{file}` is not what was approved, and is not run",
                hint="read it, then approve it as it is now with `fast-agent trust`",
            )

    def check_start(self, kind: Literal["card", "server"], name: str) -> None:
        """Check the program of a server or card that is about to be started, at each start.

        Raises:
            TrustError: It, or a file it runs, is not what was allowed.
        """
        if self.everything or self.examine is None:
            return
        holder = Holder(kind, name)
        runs = [effect for effect in self.examine(holder) if effect.kind == "run"]
        if not runs or not all(effect in self.effects for effect in runs):
            raise TrustError(
                f"{holder} is not started: what it runs changed since it was approved",
                hint=f"read it, then `fast-agent trust {self.root}`",
            )

    def check_connect(self, url: str) -> None:
        """Check an address that is about to be connected to, also by a redirect.

        Raises:
            TrustError: Nobody allowed a connection to its host.
        """
        if self.everything:
            return
        place = origin_of(url)
        if not any(effect.kind == "connect" and effect.terms == place for effect in self.effects):
            scheme, host, port = place
            raise TrustError(
                f"no connection to `{scheme}://{host}:{port}`: it was not approved",
                hint=f"read the project, then `fast-agent trust {self.root}`",
            )

    def _subjects(self, kind: EffectKind) -> frozenset[str]:
        return frozenset(one.subject for one in self.effects if one.kind == kind)

    def _is_free(self, real: Path) -> bool:
        if not real.is_relative_to(self.root):
            return False
        return not looks_secret(real.relative_to(self.root))


def root_of(path: Path) -> Path:
    """Return the root of the set a path belongs to that no person named.

    Args:
        path: A card or a directory of cards, absolute.
    """
    real = Path(os.path.realpath(path))
    folder = real if real.is_dir() else real.parent
    for one in (folder, *folder.parents):
        if one.name in _OWN_FOLDERS:
            return one.parent
    return folder


def origin_of(url: str) -> tuple[str, str, str]:
    """Return scheme, host and port of an address, as effects have them in `terms`.

    Raises:
        TrustError: It is not an address.
    """
    from urllib.parse import urlsplit

    try:
        parts = urlsplit(url)
        scheme, host, port = parts.scheme.lower(), (parts.hostname or "").lower(), parts.port
    except ValueError:
        scheme, host, port = "", "", None
    usual = {"http": 80, "https": 443}.get(scheme)
    if usual is None or not host:
        raise TrustError("no connection: it is not an `http` or `https` address")
    return scheme, host.rstrip("."), str(port or usual)


def looks_secret(place: PurePath) -> bool:
    """Return whether a path below a root is hidden, or named as secrets are.

    The folders of the product itself are not hidden.
    """
    for part in place.parts:
        if part.startswith(".") and part not in _OWN_FOLDERS:
            return True
    name = place.name.lower()
    return any(fnmatchcase(name, one) for one in _SECRETS)
