"""Standard input and output as a connection to the client that started this process."""

from __future__ import annotations

import os
import signal
import sys
from asyncio import get_running_loop
from contextlib import ExitStack
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Final

import anyio

from fast_agent.acp.server import AcpServer
from fast_agent.rpc.lines import take_stdio
from fast_agent.rpc.peer import Peer

if TYPE_CHECKING:
    from fast_agent.acp.handover import Handover
    from fast_agent.acp.opening import SessionOpening
    from fast_agent.registry.reload import Reload

MAX_MESSAGE_BYTES: Final = 32 << 20
"""Maximum size of a message: pictures in prompts are long."""


def serve_stdio(
    opening: SessionOpening, *, watch: bool = False, handover: Handover | None = None
) -> None:
    """Serve the client until it hangs up, or SIGTERM or SIGINT comes.

    Where the program is to begin again, it does so in this process, and goes on with the client.

    What anything else prints meanwhile goes to standard error, since standard output carries
    messages only.

    Args:
        opening: Opens sessions.
        watch: Take changed cards as soon as they change.
        handover: What the program left when it began again; None where it did not.
    """
    own_input, own_output = take_stdio()
    left = anyio.run(partial(serve, opening, own_input, own_output, watch=watch, handover=handover))
    if left is not None:
        from fast_agent.commands.restart import restart

        sys.stdout.flush()
        os.dup2(own_input, 0)
        os.dup2(own_output, 1)
        left.leave(os.environ)
        restart()


async def serve(
    opening: SessionOpening,
    input_fd: int,
    output_fd: int,
    *,
    watch: bool = False,
    handover: Handover | None = None,
) -> Handover | None:
    """Serve a client over two descriptors until it hangs up, or a signal comes.

    Args:
        opening: Opens sessions.
        input_fd: Where messages come from.
        output_fd: Where messages go.
        watch: Take changed cards as soon as they change.
        handover: What the process before left that served the client; None where none did.

    Returns:
        What the next process needs, where the program is to begin again.
    """
    loop = get_running_loop()
    server: AcpServer | None = None

    def told(done: Reload) -> None:
        """Pass a reload on from the watcher's thread."""
        if server is not None:
            loop.call_soon_threadsafe(server.reloaded, done)

    with ExitStack() as stack:
        if watch:
            cards = stack.enter_context(opening.program.watch(told))
            opening = replace(opening, watch=cards)
        begun, asked = (b"", 0) if handover is None else (handover.unread, handover.asked)
        peer = Peer(
            input_fd,
            output_fd,
            cancel_method="$/cancel_request",
            max_bytes=MAX_MESSAGE_BYTES,
            begun=begun,
            asked=asked,
            redact=opening.program.redact,
        )
        server = AcpServer(peer, opening, handover)
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(_end_at_signal, tasks.cancel_scope)
            await server.serve()
            tasks.cancel_scope.cancel()
        return server.left


async def _end_at_signal(scope: anyio.CancelScope) -> None:
    with anyio.open_signal_receiver(signal.SIGTERM, signal.SIGINT) as signals:
        async for _ in signals:
            scope.cancel()
            return
