"""Grants: what a found set may do in this run, asked at the moment it does it."""

from __future__ import annotations

import os
from dataclasses import field
from hashlib import sha256
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Final, Literal

from fast_agent.errors import TrustError
from fast_agent.text.environment import UnsetVariableError, expand, has_variable
from fast_agent.text.frozen import frozen
from fast_agent.trust.address import origin_in
from fast_agent.trust.effect import MODEL_FILE, Effect, Holder
from fast_agent.trust.origin import Root, address_of_root
from fast_agent.trust.site import placed

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from fast_agent.trust.server_tools import ServerTools


_NO_VARIABLES: Final[Mapping[str, str]] = MappingProxyType({})


@frozen
class Grant:
    """What the set of one root may do.

    Args:
        root: The root, absolute and without links.
        effects: The effects that are allowed.
        place: What counts as inside the root; None for all below it.
        everything: Whether `--trust` was given: all is allowed but writing outside the root and
            what is denied.
        examine: Works out the effects of a holder as they are at that moment; None where there is
            nothing to examine.
        current: Returns the effects that are allowed at that moment, since approvals can be
            revoked; None keeps to `effects`.
        approved: Returns whether the set is approved at that moment; None where it is not.
        tools: What its servers offered; None where that is not remembered.
        denied: Returns whether a policy denies an effect, also over `--trust`; None denies nothing.
        environ: The environment, for addresses and paths that were approved as `${NAME}`.
    """

    root: Path
    effects: frozenset[Effect] = frozenset()
    place: Root | None = field(default=None, repr=False, compare=False)
    everything: bool = False
    examine: Callable[[Holder], Iterable[Effect]] | None = field(
        default=None, repr=False, compare=False
    )
    current: Callable[[], frozenset[Effect]] | None = field(default=None, repr=False, compare=False)
    approved: Callable[[], bool] | None = field(default=None, repr=False, compare=False)
    tools: ServerTools | None = field(default=None, repr=False, compare=False)
    denied: Callable[[Effect], bool] | None = field(default=None, repr=False, compare=False)
    environ: Mapping[str, str] = field(
        default_factory=lambda: _NO_VARIABLES, repr=False, compare=False
    )

    def __post_init__(self) -> None:
        """Take all below the root as inside, where nothing else is said."""
        if self.place is None:
            object.__setattr__(self, "place", Root(self.root))

    @property
    def is_approved(self) -> bool:
        """Whether a user approved the set as it is; else its turns are bounded."""
        return self.everything or (self.approved is not None and self.approved())

    def allows(self, effect: Effect) -> bool:
        """Return whether an effect is allowed."""
        return effect in self._current_effects() or self._trusts(effect)

    def not_allowed(self, effects: Iterable[Effect]) -> list[Effect]:
        """Return those of the effects that are not allowed, comparing with approvals once."""
        now = self._current_effects()
        return [one for one in effects if one not in now and not self._trusts(one)]

    def _trusts(self, effect: Effect) -> bool:
        """Return whether `--trust` lets an effect happen."""
        return self.everything and effect.refusal is None and not self._denies(effect)

    def _denies(self, effect: Effect) -> bool:
        return self.denied is not None and self.denied(effect)

    def _current_effects(self) -> frozenset[Effect]:
        current = self.effects if self.current is None else self.current()
        return current if current is self.effects else self.effects & current

    def check_read(self, path: Path) -> Path:
        """Return where a file that is about to be read ends.

        The root is free, but for what is hidden or looks secret in it.

        Raises:
            TrustError: It ends outside the root or in a secret, and that is not approved.
        """
        real = os.path.realpath(path)
        self.check_end(str(path), real)
        return Path(real)

    def check_end(self, path: str, real: str) -> None:
        """Check a file that is about to be read, given where it ends.

        Args:
            path: The file, as it is named.
            real: Its path without links.

        Raises:
            TrustError: It ends outside the root or in a secret, and that is not approved.
        """
        if self.everything or self._inside.is_free_end(real) or self._may_read(Path(real)):
            return
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
        if self._inside.is_free_end(str(real)) or self._may_write(real):
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
        name = self._inside.name(real)
        runs = (effect for effect in self._current_effects() if effect.kind == "run")
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
        if self.examine is None or (self.everything and self.denied is None):
            return
        holder = Holder(kind, name)
        runs = [effect for effect in self.examine(holder) if effect.kind == "run"]
        if not runs or self.not_allowed(runs):
            raise TrustError(
                f"{holder} is not started: what it runs changed since it was approved",
                hint=f"read it, then `fast-agent trust {self.root}`",
            )

    def program(self, command: str, cwd: Path) -> str:
        """Return the program that a command is, as its approval names it: an absolute path.

        The `PATH` a program is started with may lead elsewhere: into the project.

        Args:
            command: A path, or a name.
            cwd: Where it starts.
        """
        from fast_agent.trust.programs import find_program

        path = self.environ.get("PATH", os.defpath)
        return find_program(command, cwd=cwd, root=self.root, path=path) or command

    def tools_change(self, server: str, tools: Mapping[str, str]) -> str | None:
        """Remember the tools of a server; one that `--trust` let act was not approved.

        Args:
            server: Its name.
            tools: Digests of what it lists, by name.

        Returns:
            What is different from the last time, in words; None where nothing is.
        """
        if self.everything or self.tools is None:
            return None
        return self.tools.change(self.root, server, tools)

    def check_connect(self, url: str) -> None:
        """Check an address that is about to be connected to, also by a redirect.

        Raises:
            TrustError: No connection to its host was allowed.
        """
        if self.everything and self.denied is None:
            return
        place = origin_of(url)
        if self._trusts(Effect("connect", url, Holder("setting", ""), "", terms=place)):
            return
        connects = (effect for effect in self._current_effects() if effect.kind == "connect")
        if not any(origin_in(effect, self.environ) == place for effect in connects):
            scheme, host, port = place
            raise TrustError(
                f"no connection to `{scheme}://{host}:{port}`: it was not approved",
                hint=f"read it, then `fast-agent trust {address_of_root(self.root) or self.root}`",
            )

    def _may_read(self, real: Path) -> bool:
        allowed = {
            self._subject(one) for one in self._current_effects() if one.kind in {"read", "run"}
        }
        return any(self._inside.name(one) in allowed for one in (real, *real.parents))

    def _may_write(self, real: Path) -> bool:
        """Return whether a file next to the set was approved, if its root is a wide one."""
        inside = self._inside
        writes = (one.subject for one in self._current_effects() if one.kind == "write")
        return inside.is_wide and any(inside.name(real) == subject for subject in writes)

    def _subject(self, effect: Effect) -> str:
        """Return the path an effect reads, with variables looked up now; empty for a program."""
        subject = effect.subject
        if effect.kind == "run":
            if not subject.startswith(MODEL_FILE):
                return ""
            subject = subject.removeprefix(MODEL_FILE)
        if not has_variable(subject):
            return subject
        try:
            text = expand(subject, self.environ)
        except UnsetVariableError:
            return ""
        place = placed(text, self.root)
        return "" if place is None else self._inside.name(place)

    @property
    def _inside(self) -> Root:
        return Root(self.root) if self.place is None else self.place


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
