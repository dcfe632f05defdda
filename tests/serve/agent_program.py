"""A program that serves the cards of a directory and gives calls little time to end.

`agent_program.py CARDS SECONDS [stdio]`
"""

from __future__ import annotations

import sys
from functools import partial

import anyio

from fast_agent.app import FastAgent
from fast_agent.serve import agent_generation
from fast_agent.serve.agent_serving import ServeOptions, serve
from fast_agent.serve.http_access import HttpSettings


def main(cards: str, seconds: str, *rest: str) -> None:
    # However slow the machine is, calls that are called off can end.
    setattr(agent_generation, "CANCEL_GRACE_SECONDS", 60.0)  # noqa: B010
    program = FastAgent("impatient", ignore_config=True)
    program.load_agents(cards)
    options = ServeOptions(
        transport="stdio" if rest else "http",
        http=HttpSettings(port=0),
        grace_seconds=float(seconds),
    )
    ready = partial(print, "serving at ", sep="", file=sys.stderr, flush=True)
    anyio.run(partial(serve, program, options, ready=ready))


main(*sys.argv[1:])
