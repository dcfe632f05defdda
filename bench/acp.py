"""Agents in an editor: how soon they answer, how many prompts a second, what a session costs."""

from __future__ import annotations

import sys
import time
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from bench.acp_client import AcpClient
from bench.comparison import compare
from bench.figure import Goal

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from bench.comparison import Values
    from bench.figure import Figure
    from bench.setup import Setup

ROUNDS = 5
PROMPTS, QUICK_PROMPTS = 1_000, 100
_ECHO = Path(__file__).with_name("acp_echo.py")
_CARD = "---\ntype: agent\nname: ann\nmodel: passthrough\n---\nSay it back.\n"


def figures(setup: Setup) -> Iterator[Figure]:
    """Measure the start and the prompts, in memory and kept as a session.

    The limit of the prompts is a program that does nothing but answer: what the client and the
    pipes cost.
    """
    card = setup.work / "ann.md"
    card.write_text(_CARD, "utf-8")
    prompts = QUICK_PROMPTS if setup.quick else PROMPTS
    ours = (setup.program, "acp", "--card", card)
    echo = partial(_rate, setup, (sys.executable, "-S", "-E", _ECHO), prompts)
    done = compare(
        setup,
        partial(_measured, setup, (*ours, "--no-session"), prompts),
        limit=echo,
        peer=lambda peer: _measured(setup, (peer.program, "acp", "--card", card), prompts),
        rounds=ROUNDS,
    )
    yield done.figure("initialize", "an editor's agent: initialized", "s", Goal(0.5))
    yield done.figure("ready", "the same until a session is open", "s")
    yield done.figure(
        "prompts", "prompts, passthrough, in memory", "/s", Goal(1_500, at_least=True)
    )
    kept = compare(setup, partial(_measured, setup, ours, prompts), limit=echo, rounds=ROUNDS)
    yield kept.figure(
        "prompts", "prompts, passthrough, kept as a session", "/s", Goal(1_500, at_least=True)
    )


def _measured(setup: Setup, command: Sequence[str | Path], prompts: int) -> Values:
    start = time.perf_counter()
    with AcpClient(command, cwd=setup.work, environ=setup.environ) as client:
        client.initialize()
        initialized = time.perf_counter() - start
        session = client.open()
        ready = time.perf_counter() - start
        client.rate(session, 20)
        rate = client.rate(session, prompts)
    return {"initialize": initialized, "ready": ready, "prompts": rate}


def _rate(setup: Setup, command: Sequence[str | Path], prompts: int) -> Values:
    return {"prompts": _measured(setup, command, prompts)["prompts"]}
