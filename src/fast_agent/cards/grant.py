"""The grant a found card carries: what it may touch, asked again at the moment it touches it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, Protocol

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path


class CardGrant(Protocol):
    """What the found set of a card may do; the room `trust` makes it.

    Each method raises `TrustError` for anything not approved. A card a user named has no grant.
    """

    @property
    def root(self) -> Path:
        """The root of the set, absolute and without links."""
        ...

    @property
    def is_approved(self) -> bool:
        """Whether a user approved the set as it is; else its turns are bounded."""
        ...

    def check_read(self, path: Path) -> Path:
        """Return where a file that is about to be read ends."""
        ...

    def check_end(self, path: str, real: str) -> None:
        """Check a file that is about to be read, given its path without links."""
        ...

    def check_write(self, path: Path) -> Path:
        """Return where a file that is about to be written ends."""
        ...

    def check_import(self, file: Path, text: str) -> None:
        """Check a Python file that is about to be compiled."""
        ...

    def check_connect(self, url: str) -> None:
        """Check an address that is about to be connected to."""
        ...

    def tools_change(self, server: str, tools: Mapping[str, str]) -> str | None:
        """Remember the tools of a server by digest; return what changed, in words."""
        ...

    def check_start(self, kind: Literal["card", "server"], name: str) -> None:
        """Check the program of a server or card that is about to be started."""
        ...

    def program(self, command: str, cwd: Path) -> str:
        """Return the program that a command is, as its approval names it."""
        ...
