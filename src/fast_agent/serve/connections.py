"""The open connections of an HTTP server: how many, how long each may be silent, what they hold.

This knows no HTTP. A protocol reports when its connection waits for the client and when it is
being answered; here it is decided which connections end.
"""

from __future__ import annotations

import sys
from collections import OrderedDict
from typing import TYPE_CHECKING, Final, NamedTuple, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable

_MIN_CONNECTIONS = 16
_MAX_CONNECTIONS = 4096
_OWN_DESCRIPTORS = 64
"""Descriptors of the process itself: standard streams, event loop, watchers, databases."""
_REFUSED_PER_SECOND = 250
"""Requests that are read a second, over all connections, where one was refused before. A refusal
takes 0.1 ms of a processor, and hostile connections are many."""
_DESCRIPTORS = 8192
"""Enough for `_MAX_CONNECTIONS` connections, and as much again for sessions and child processes."""


DEPARTURE: Final = "fast_agent.departure"
"""The extension of an ASGI scope that holds the `DisconnectMonitor` of the client."""


class ConnectionLimits(NamedTuple):
    """What clients may take before they are cut off.

    Args:
        connections: Maximum number of open connections.
        head_seconds: Maximum time for the head of a request, in seconds.
        body_seconds: Maximum time without progress of a body or of an answer, in seconds.
        idle_seconds: Maximum time between two requests of a connection, in seconds. Longer than
            clients keep an unused connection, often 5 s: else one may ask as it is closed.
        head_bytes: Maximum size of a head.
        headers: Maximum number of headers.
        body_bytes: Maximum size of a body.
        bodies_bytes: Maximum size of all bodies whose requests are not yet answered.
    """

    connections: int = _MAX_CONNECTIONS
    head_seconds: float = 10.0
    body_seconds: float = 30.0
    idle_seconds: float = 30.0
    head_bytes: int = 1 << 14
    headers: int = 100
    body_bytes: int = 4 << 20
    bodies_bytes: int = 64 << 20

    @classmethod
    def of_process(cls) -> ConnectionLimits:
        """Return limits that fit the descriptors this process may open.

        Half of the descriptors stay free for sessions and child processes.
        """
        descriptors = spare_descriptors()
        if descriptors is None:
            return cls()
        return cls(connections=max(_MIN_CONNECTIONS, min(_MAX_CONNECTIONS, descriptors // 2)))


def spare_descriptors() -> int | None:
    """Return how many more descriptors this process may open; None without a limit."""
    if sys.platform == "win32":  # which has no such limit
        return None
    import resource

    descriptors, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    if descriptors == resource.RLIM_INFINITY:
        return None
    return max(0, descriptors - _OWN_DESCRIPTORS)


def raise_descriptor_limit() -> None:
    """Allow this process more open files, as far as the system lets it.

    Many systems start programs with 1,024 although they allow many more. The new limit is not
    higher than needed, since some child processes try to close every descriptor they might have.
    """
    if sys.platform != "win32":
        import resource

        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        most = _DESCRIPTORS if hard == resource.RLIM_INFINITY else min(hard, _DESCRIPTORS)
        if resource.RLIM_INFINITY != soft < most:
            resource.setrlimit(resource.RLIMIT_NOFILE, (most, hard))


class Connection(Protocol):
    """A connection as seen from here.

    Attributes:
        is_known: Whether a request of it has passed the access checks.
    """

    is_known: bool

    def check(self, now: float) -> None:
        """End the connection if it has been silent for too long."""
        ...

    def end(self) -> None:
        """End the connection at once, dropping what was not yet written."""
        ...

    def leave(self) -> None:
        """End the connection when the request it has is answered."""
        ...


class Connections:
    """The open connections, those that have been silent longest first.

    Args:
        limits: What clients may take.
        has_token: Whether clients must send a token. Then connections whose client has not shown
            it take at most half of all.
    """

    def __init__(self, limits: ConnectionLimits, *, has_token: bool) -> None:
        self.limits = limits
        self._max_strangers = limits.connections // 2 if has_token else limits.connections
        self._all: set[Connection] = set()
        self._strangers: OrderedDict[Connection, None] = OrderedDict()
        """Connections that wait for a client who has not passed the access checks."""
        self._idle: OrderedDict[Connection, None] = OrderedDict()
        """Connections that wait for a client who has."""
        self._busy: OrderedDict[Connection, None] = OrderedDict()
        """Connections whose request is being answered, and that may stay after it."""
        self._bodies: dict[Connection, int] = {}
        self._next_turn = 0.0

    def __len__(self) -> int:
        return len(self._all)

    def add(self, connection: Connection) -> bool:
        """Add a new connection, ending the most silent one if there are too many.

        Where all others are being answered, one of them has to leave after its answer. Else
        clients that ask again and again would keep all others out.

        Returns:
            Whether there was room.
        """
        if len(self._strangers) >= self._max_strangers:
            self._end_first(self._strangers)
        if len(self._all) >= self.limits.connections and not self.end_most_silent():
            if len(self._all) >= self.limits.connections * 5 // 4:
                return False
            if self._busy:
                self._busy.popitem(last=False)[0].leave()
        self._all.add(connection)
        self.wait(connection)
        return True

    def remove(self, connection: Connection) -> None:
        """Forget a connection that has ended."""
        self._all.discard(connection)
        for some in (self._strangers, self._idle, self._busy):
            some.pop(connection, None)
        self.release(connection)

    def wait(self, connection: Connection) -> None:
        """Record that a connection waits for its client, which was active just now."""
        if connection not in self._all:
            return
        self._busy.pop(connection, None)
        waiting = self._strangers
        if connection.is_known:
            self._strangers.pop(connection, None)
            waiting = self._idle
        waiting[connection] = None
        waiting.move_to_end(connection)

    def answer(self, connection: Connection) -> None:
        """Record that a connection is being answered, and so does not wait for its client."""
        if connection in self._all:
            self._strangers.pop(connection, None)
            self._idle.pop(connection, None)
            self._busy[connection] = None

    def turn_after_refusal(self, now: float) -> float:
        """Return when a connection whose request was rejected may continue.

        However many there are, only so many continue each second, one after another. Otherwise they
        would take most of the processor, and answers would wait.

        Args:
            now: Seconds, by the clock of the event loop.
        """
        self._next_turn = max(now, self._next_turn + 1 / _REFUSED_PER_SECOND)
        return self._next_turn

    def end_most_silent(self) -> bool:
        """End the connection that has waited longest for its client; strangers first.

        Returns:
            Whether there was one.
        """
        return self._end_first(self._strangers) or self._end_first(self._idle)

    def hold(self, connection: Connection, size: int) -> bool:
        """Count more bytes of a body, ending other bodies that have stalled if there is no room.

        Returns:
            Whether there was room: False if the requests that are being answered take it all.
        """
        while sum(self._bodies.values()) + size > self.limits.bodies_bytes:
            waiting = (*self._strangers, *self._idle)
            stalled = next(
                (one for one in waiting if one in self._bodies and one is not connection), None
            )
            if stalled is None:
                return False
            self._end(stalled)
        self._bodies[connection] = self._bodies.get(connection, 0) + size
        return True

    def release(self, connection: Connection) -> None:
        """Stop counting the body of a connection."""
        self._bodies.pop(connection, None)

    def check(self, now: float) -> None:
        """End the connections that have been silent for too long.

        Args:
            now: Seconds, by the clock of the event loop.
        """
        for connection in tuple(self._all):
            connection.check(now)

    def _end_first(self, waiting: OrderedDict[Connection, None]) -> bool:
        if not waiting:
            return False
        self._end(next(iter(waiting)))
        return True

    def _end(self, connection: Connection) -> None:
        self.remove(connection)
        connection.end()


class DisconnectMonitor:
    """The end of a connection, reported to the answer that is on its way to the client.

    A task that waited for it would be cancelled after each answer. Its traceback would keep 54
    objects of the request until the garbage collector finds them, which then stops the server for
    1.4 ms every 75 requests.
    """

    __slots__ = ("_has_come", "_notify")

    def __init__(self) -> None:
        self._has_come = False
        self._notify: Callable[[], None] | None = None

    def notify(self, callback: Callable[[], None] | None) -> None:
        """Call a function when the client leaves, or at once if it has; None calls none."""
        self._notify = callback
        if callback is not None and self._has_come:
            callback()

    def come(self) -> None:
        """Record that the client has left."""
        self._has_come = True
        if self._notify is not None:
            self._notify()


class LimitedLog:
    """Logs at most one line a second, and counts what it leaves out.

    Args:
        log: Writes a line.
        clock: Seconds that never go back.
    """

    def __init__(self, log: Callable[[str], None], clock: Callable[[], float]) -> None:
        self._log = log
        self._clock = clock
        self._next = 0.0
        self._left_out = 0

    def __call__(self, line: str) -> None:
        """Log a line, unless one was logged within the last second."""
        now = self._clock()
        if now < self._next:
            self._left_out += 1
            return
        more = f" (and {self._left_out:,} more since the last line)" if self._left_out else ""
        self._left_out = 0
        self._next = now + 1.0
        self._log(line + more)
