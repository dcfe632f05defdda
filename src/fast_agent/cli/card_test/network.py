"""Keeping a case off the network."""

from __future__ import annotations

import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Generator

_EVENTS = frozenset({"socket.connect", "socket.getaddrinfo", "socket.sendto"})


class NetworkGuard:
    """Refuses connections of this process while it is closed.

    The interpreter keeps the hook for good, so a program makes one guard.
    """

    def __init__(self) -> None:
        self._tried: list[str] | None = None
        sys.addaudithook(self._hear)

    @contextmanager
    def closed(self, *, closed: bool) -> Generator[list[str]]:
        """Refuse connections inside; yields the attempts.

        Args:
            closed: Whether to refuse; else nothing is done.
        """
        tried: list[str] = []
        self._tried = tried if closed else None
        try:
            yield tried
        finally:
            self._tried = None

    def _hear(self, event: str, args: tuple[object, ...]) -> None:
        if self._tried is None or event not in _EVENTS:
            return
        target = args[0] if event == "socket.getaddrinfo" else args[-1]
        if isinstance(target, str) and target.startswith("/"):
            return  # a socket of this machine's file system
        self._tried.append(str(target))
        raise PermissionError(f"a test may not reach the network: {target}")
