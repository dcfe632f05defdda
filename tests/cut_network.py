"""A proxy on loopback that tests cut, one way or both, as a network fails."""

from __future__ import annotations

import socket
import threading
from contextlib import suppress
from typing import Self


class Proxy:
    """A proxy on loopback that can stop forwarding, as a network that is cut.

    Args:
        port: Where it forwards to.
    """

    def __init__(self, port: int) -> None:
        self._target = port
        self._listening = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listening.getsockname()[1]
        self._open = {"to": threading.Event(), "from": threading.Event()}
        self._sockets: list[socket.socket] = [self._listening]

    def __enter__(self) -> Self:
        self.heal()
        threading.Thread(target=self._accept, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self.heal()
        for one in self._sockets:
            one.close()

    def cut(self, *ways: str) -> None:
        """Hold what goes `to` the server, what comes `from` it, or both; connections stay."""
        for way in ways:
            self._open[way].clear()

    def heal(self) -> None:
        """Forward everything again, also what was held."""
        for way in self._open.values():
            way.set()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                client, _ = self._listening.accept()
                server = socket.create_connection(("127.0.0.1", self._target))
                self._sockets += [client, server]
                for source, target, way in ((client, server, "to"), (server, client, "from")):
                    pumped = (source, target, self._open[way])
                    threading.Thread(target=self._pump, args=pumped, daemon=True).start()

    def _pump(self, source: socket.socket, target: socket.socket, is_open: threading.Event) -> None:
        with suppress(OSError):
            while data := source.recv(65536):
                is_open.wait()
                target.sendall(data)
        with suppress(OSError):
            target.shutdown(socket.SHUT_WR)
