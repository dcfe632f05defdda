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
        self.left = opening(kind, port)
        self.dripped = time.monotonic()

    def write(self, port: int) -> bool:
        """Send what can be sent; return whether there is more."""
        while self.left:
            sent = self.socket.send(self.left)
            self.left = self.left[sent:]
            if self.kind == PIPELINE and not self.left:
                self.left = opening(PIPELINE, port)
        return False

    def drip(self, now: float) -> None:
        if self.kind == SLOW_BODY and now - self.dripped > _DRIP_SECONDS:
            self.dripped = now
            self.socket.send(b" ")


def _run(port: int, kinds: Sequence[str], count: int) -> None:
    selector = selectors.DefaultSelector()
    selector.register(sys.stdin, selectors.EVENT_READ)
    here: dict[int, _Hostile] = {}
    made = 0

    def leave(one: _Hostile) -> None:
        selector.unregister(one.socket)
        del here[one.socket.fileno()]
        one.socket.close()

    said = False
    while True:
        while len(here) < count:
            one = _Hostile(kinds[made % len(kinds)], port)
            here[one.socket.fileno()] = one
            selector.register(one.socket, selectors.EVENT_WRITE, one)
            made += 1
        for key, _ in selector.select(0.2):
            if key.fileobj is sys.stdin:
                return
            one = key.data
            try:
                one.write(port)
                # Ended by the server: a pipeline does not read what it is answered.
                watched = 0 if one.kind == PIPELINE else selectors.EVENT_READ
                if watched and key.events == watched and not one.socket.recv(1 << 16):
                    leave(one)
                elif watched:
                    selector.modify(one.socket, watched, one)
            except BlockingIOError:
                pass
            except OSError as error:
                if error.errno not in {errno.EAGAIN, errno.ENOTCONN}:
                    leave(one)
        now = time.monotonic()
        for one in tuple(here.values()):
            try:
                one.drip(now)
            except BlockingIOError:
                pass
            except OSError:
                leave(one)
        if not said and made >= count and all(
            not one.left or one.kind == PIPELINE for one in here.values()
        ):
            said = True
            print("up", flush=True)


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
    _run(int(sys.argv[1]), sys.argv[3:], int(sys.argv[2]))
