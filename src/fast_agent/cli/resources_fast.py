"""`fast-agent resources serve` over stdio, begun with as few imports as it can be.

A host starts this server at every launch and waits for it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from fast_agent.cli.resource_options import SERVE, read_plainly, roots_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

SERVER_NAME = "fast-agent-resources"


def serve_plainly(arguments: Sequence[str]) -> bool:
    """Serve over stdio, where the arguments plainly ask for that.

    Args:
        arguments: What follows `resources serve`.

    Returns:
        Whether it served, which then is over.
    """
    values = read_plainly(SERVE, arguments)
    if values is None or values["transport"] != "stdio":
        return False
    serve_values(values)
    return True


def serve_values(values: Mapping[str, object]) -> None:
    """Serve over stdio what the values of the command name."""
    import gc

    gc.disable()  # nothing made while starting is garbage, and looking for some takes a tenth of it
    from fast_agent.resources.stdio import serve_stdio
    from fast_agent.version import __version__

    try:
        service = roots_of(values).open().service(SERVER_NAME, __version__)
        gc.freeze()
    finally:
        gc.enable()
    serve_stdio(service)
