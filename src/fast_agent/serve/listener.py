"""Accepts connections, whatever happens, and ends those that are silent for too long.

The event loop's own way to accept stops for a second when no descriptors are left, and logs each
attempt, thousands a second. Here a connection that is silent makes room for the one that comes.
"""

from __future__ import annotations

import errno
import logging
import os
import socket
from asyncio import get_running_loop
from contextlib import suppress
from typing import TYPE_CHECKING

import anyio
from anyio.lowlevel import checkpoint

from fast_agent.serve.connections import Connections, LimitedLog

if TYPE_CHECKING:
    from asyncio import BaseProtocol
    from collections.abc import Callable

    from fast_agent.serve.connections import ConnectionLimits

_BACKLOG = 4096
"""Clients that may wait to be accepted; one that finds no room tries again after a second."""
_CHECK_SECONDS = 1.0
_PAUSE_SECONDS = 0.05
_MAX_UNSENT = 1 << 14
_NO_ROOM = frozenset({errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM})
"""What the system says when it is out of descriptors or memory."""


class Listener:
    """Accepts the connections of a listening socket.

    Args:
        listening: The socket, which stays the caller's.
        limits: What clients may take.
        has_token: Whether clients must send a token.

    Attributes:
        connections: The open connections.
        log: Logs what goes wrong on the network, at most a line a second.
    """

    def __init__(
        self, listening: socket.socket, limits: ConnectionLimits, *, has_token: bool
    ) -> None:
        self.connections = Connections(limits, has_token=has_token)
        self.log = LimitedLog(
            logging.getLogger(__name__).warning, lambda: get_running_loop().time()
        )
        self._listening = listening
        self._scope = anyio.CancelScope()
        self._reserve: int | None = None

    async def run(self, new_protocol: Callable[[], BaseProtocol]) -> None:
        """Accept connections until `close`, and check them until cancelled.

        Args:
            new_protocol: Creates the protocol of a connection.
        """
        self._listening.setblocking(False)
        self._listening.listen(_BACKLOG)
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self._check)
            with self._scope:
                try:
                    while True:
                        await self._accept(new_protocol)
                finally:
                    self._drop_reserve()

    def close(self) -> None:
        """Accept no more connections; those that are open stay."""
        self._scope.cancel()
        self._listening.close()

    async def wait_closed(self) -> None:
        """Return at once: nothing is left to wait for."""

    async def _accept(self, new_protocol: Callable[[], BaseProtocol]) -> None:
        loop = get_running_loop()
        self._take_reserve()
        try:
            connection, _ = await loop.sock_accept(self._listening)
        except ConnectionError:
            return  # the client left before it was accepted
        except OSError as error:
            self.log(f"cannot accept a connection: {os.strerror(error.errno or 0).lower()}")
            if error.errno not in _NO_ROOM:
                await anyio.sleep(_PAUSE_SECONDS)
            elif not self.connections.end_most_silent():
                await self._turn_away()
            await checkpoint()  # an ended connection gives its descriptor back in a later step
            return
        _keep_little_unsent(connection)
        try:
            await loop.connect_accepted_socket(new_protocol, connection)
        except OSError:
            connection.close()

    async def _turn_away(self) -> None:
        """Accept a connection with the reserved descriptor and close it: nobody waits in vain."""
        if self._reserve is None:
            await anyio.sleep(_PAUSE_SECONDS)
            return
        self._drop_reserve()
        with suppress(OSError):
            connection, _ = self._listening.accept()
            connection.close()

    def _take_reserve(self) -> None:
        if self._reserve is None:
            with suppress(OSError):
                self._reserve = os.open(os.devnull, os.O_RDONLY)

    def _drop_reserve(self) -> None:
        if self._reserve is not None:
            os.close(self._reserve)
            self._reserve = None

    async def _check(self) -> None:
        """End connections that are silent for too long, once a second."""
        while True:
            await anyio.sleep(_CHECK_SECONDS)
            self.connections.check(get_running_loop().time())


def _keep_little_unsent(connection: socket.socket) -> None:
    """Have the system take no more of an answer than the client is about to read.

    It would take megabytes of answers to a client that reads none.
    """
    option = getattr(socket, "TCP_NOTSENT_LOWAT", None)
    if option is not None:
        with suppress(OSError):
            connection.setsockopt(socket.IPPROTO_TCP, option, _MAX_UNSENT)
