"""A crowd of hostile connections at one server: `python -m tests.hostile.crowd PORT COUNT`.

It prints `up` once every connection has done its worst, replaces those that the server ends, and
leaves when its standard input does. In a process of its own it takes no time from an honest client.
"""

from __future__ import annotations

import errno
import os
import selectors
import socket
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Self

from tests.patience import PATIENCE

if TYPE_CHECKING:
    from collections.abc import Sequence

_ROOT = Path(__file__).parents[2]
_HEAD = b"POST /mcp HTTP/1.1\r\nHost: 127.0.0.1:%d\r\n"
_DRIP_SECONDS = 1.0

SILENT, HALF_HEAD, SLOW_BODY, PIPELINE = KINDS = ("silent", "half head", "slow body", "pipeline")
"""What a connection does: nothing, a head without an end, a body drop by drop, or requests without
reading the answers."""


def opening(kind: str, port: int) -> bytes:
    """Return what a connection sends first."""
    head = _HEAD % port
    if kind == HALF_HEAD:
        return head + b"X-Padding: " + b"x" * 12_000
    if kind == SLOW_BODY:
        return head + b"Content-Type: application/json\r\nContent-Length: 1000000\r\n\r\n{"
    if kind == PIPELINE:
        return (head + b"Content-Length: 2\r\n\r\n{}") * 200
    return b""


class _Hostile:
    """One connection."""

    def __init__(self, kind: str, port: int) -> None:
        self.kind = kind
        self.socket = socket.socket()
        self.socket.setblocking(False)
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        self.socket.connect_ex(("127.0.0.1", port))
        self._opening = self._left = opening(kind, port)
        self._dripped = time.monotonic()

    @property
    def is_up(self) -> bool:
        """Whether it has sent what it sends first; a pipeline is up once the server is busy."""
        return not self._left or self.kind == PIPELINE

    @property
    def waits_for(self) -> int:
        """What a selector should wait for."""
        if self.kind == PIPELINE:
            return selectors.EVENT_WRITE  # it reads no answers, and so does not see its end
        return selectors.EVENT_READ if self.is_up else selectors.EVENT_WRITE

    def go_on(self, events: int) -> bool:
        """Send what can be sent; return whether the server has ended the connection."""
        try:
            if events & selectors.EVENT_READ and not self.socket.recv(1 << 16):
                return True
            while self._left:
                self._left = self._left[self.socket.send(self._left) :]
                if self.kind == PIPELINE and not self._left:
                    self._left = self._opening
        except BlockingIOError:
            return False
        except OSError as error:
            return error.errno != errno.ENOTCONN
        return False

    def drip(self, now: float) -> bool:
        """Send a byte of a body if it is time; return whether the server ended the connection."""
        if self.kind != SLOW_BODY or now - self._dripped < _DRIP_SECONDS or not self.is_up:
            return False
        self._dripped = now
        try:
            self.socket.send(b" ")
        except BlockingIOError:
            return False
        except OSError:
            return True
        return False


class _Crowd:
    """Connections that are kept up."""

    def __init__(self, port: int, count: int, kinds: Sequence[str]) -> None:
        self._port = port
        self._count = count
        self._kinds = kinds
        self._made = 0
        self._selector = selectors.DefaultSelector()
        self._here: set[_Hostile] = set()

    def run(self) -> None:
        self._selector.register(sys.stdin, selectors.EVENT_READ)
        said = False
        while self._step():
            for one in tuple(self._here):
                if one.drip(time.monotonic()):
                    self._drop(one)
            if not said and all(one.is_up for one in self._here):
                said = True
                print("up", flush=True)

    def _step(self) -> bool:
        while len(self._here) < self._count:
            self._add(_Hostile(self._kinds[self._made % len(self._kinds)], self._port))
        for key, events in self._selector.select(0.2):
            one: _Hostile | None = key.data
            if one is None:
                return False
            if one.go_on(events):
                self._drop(one)
            else:
                self._selector.modify(one.socket, one.waits_for, one)
        return True

    def _add(self, one: _Hostile) -> None:
        self._made += 1
        self._here.add(one)
        self._selector.register(one.socket, selectors.EVENT_WRITE, one)

    def _drop(self, one: _Hostile) -> None:
        self._selector.unregister(one.socket)
        self._here.discard(one)
        one.socket.close()


class HostileCrowd:
    """A crowd in a process of its own, as long as the block lasts.

    Args:
        port: Where the server listens on this machine.
        count: Number of connections that are kept up.
        kinds: What they do, in turn.
    """

    def __init__(self, port: int, count: int, kinds: Sequence[str] = KINDS) -> None:
        command = [sys.executable, "-m", "tests.hostile.crowd", str(port), str(count), *kinds]
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=_ROOT
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *problem: object) -> None:
        try:
            self._process.communicate(timeout=PATIENCE)
        finally:
            self._process.kill()
            self._process.wait()

    def wait_until_up(self) -> None:
        """Wait until every connection has sent what it sends first."""
        assert self._process.stdout is not None
        assert self._process.stdout.readline() == b"up\n"


if __name__ == "__main__":
    os.set_blocking(sys.stdin.fileno(), False)
    _Crowd(int(sys.argv[1]), int(sys.argv[2]), sys.argv[3:]).run()
