"""Structured answers: requests for forty schemas on four wires, held against their types."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

import anyio
from tests.models.conftest import Wire
from tests.models.schemas import BAD, GOOD
from tests.models.test_structured import WIRES, asked, check_body

from bench.figure import Figure, Goal
from bench.samples import Samples
from fast_agent.agents.output import JsonOutput
from fast_agent.errors import RunError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.models.conftest import Reply

    from bench.setup import Setup


def figures(setup: Setup) -> Iterator[Figure]:
    """Count the requests that are accepted, and the bad schemas that are refused."""
    del setup
    accepted = anyio.run(_accepted)
    yield Figure(
        name=f"structured answers: requests accepted, {len(GOOD)} schemas on {len(WIRES)} wires",
        unit="",
        ours=Samples.of([accepted]),
        goal=Goal(len(GOOD) * len(WIRES), at_least=True),
    )
    yield Figure(
        name=f"structured answers: bad schemas refused, of {len(BAD)}",
        unit="",
        ours=Samples.of([sum(map(_is_refused, BAD))]),
        goal=Goal(len(BAD), at_least=True),
    )


async def _accepted() -> int:
    accepted = 0
    for schema, _ in GOOD.values():
        for provider in WIRES:
            servers: list[Wire] = []

            def start(*script: Reply, servers: list[Wire] = servers) -> Wire:
                server = Wire(script)
                threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
                servers.append(server)
                return server

            try:
                check_body(provider, await asked(start, provider, schema))
            except (AssertionError, ValueError, KeyError):  # pydantic's error is a ValueError
                pass
            else:
                accepted += 1
            finally:
                for server in servers:
                    server.shutdown()
                    server.server_close()
    return accepted


def _is_refused(name: str) -> bool:
    try:
        JsonOutput(BAD[name])
    except RunError:
        return True
    return False
