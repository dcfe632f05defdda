"""The terminal: how soon it prompts, and how it echoes keys while an answer streams.

The limit is a bare loop at a pseudo-terminal that echoes what it reads; while an answer streams,
the provider's library reads it in that loop. The peer is Codex.
"""

from __future__ import annotations

import json
import random
import re
import time
from contextlib import contextmanager
from statistics import quantiles
from typing import TYPE_CHECKING

from bench.comparison import compare
from bench.figure import Goal
from bench.setup import HERE
from bench.terminal_client import terminal
from bench.terminal_peer import PROMPT, READY, codex, codex_version

if TYPE_CHECKING:
    from collections.abc import Generator, Iterator
    from pathlib import Path

    from bench.comparison import Values
    from bench.figure import Figure
    from bench.setup import Setup
    from bench.terminal_client import TerminalClient

ROUNDS = 3
CARDS = 10
RATE, TOKENS = 200, 3_000
MESSAGES = 10_000
RESIZES = 20
_READY = "? for keys"
_MOVES = re.compile(r"\x1b\[[0-9]*[ABJ]")
_ESCAPES = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")
_CARD = "---\ntype: agent\nname: agent-NUMBER\n---\nYou are agent NUMBER. Answer in one line.\n"
_BARE = (
    "import os, tty; tty.setraw(0); os.write(1, b'> ')\nwhile True: os.write(1, os.read(0, 4096))\n"
)


def figures(setup: Setup) -> Iterator[Figure]:
    """Measure the first prompt, a streamed answer, and a long session."""
    cards = setup.work / "cards"
    cards.mkdir()
    for number in range(CARDS):
        (cards / f"agent-{number}.md").write_text(_CARD.replace("NUMBER", str(number)), "utf-8")
    tokens = 600 if setup.quick else TOKENS
    start = compare(
        setup,
        lambda: _start(setup, cards),
        limit=lambda: _bare_start(setup),
        peer=lambda _: _codex_start(setup),
        rounds=7,
    )
    yield start.figure("first", "first prompt drawn", "ms", Goal(250), note="Codex")
    yield start.figure("ready", f"{CARDS} cards loaded and ready", "ms", Goal(500))
    yield start.figure("memory", f"memory at start, {CARDS} cards", "MiB", Goal(70))
    with setup.served("model_server.py", RATE, tokens) as port:
        done = compare(
            setup,
            lambda: _stream(setup, port, tokens),
            limit=lambda: _bare_stream(setup, port),
            peer=lambda _: _codex_stream(setup, port, tokens),
            rounds=ROUNDS,
        )
        resized = compare(setup, lambda: _resized(setup, port), rounds=1)
    stream = f"while {RATE} tokens/s stream"
    version = f"Codex {codex_version()}" if setup.peers_asked and not done.peer_note else ""
    yield done.figure("half", f"key to echo {stream}, median", "ms", Goal(2), note=version)
    late = f"key to echo {stream}, 99 of 100 within"
    yield done.figure("late", late, "ms", Goal(12), note=version)
    typed = "bytes written for a token, keys typed"
    yield done.figure("bytes", typed, "", Goal(48), note=version)
    share = f"share of a processor {stream}, the provider's library"
    yield done.figure("share", f"{share} counted", "%", note=version)
    yield done.figure("own", f"{share} apart", "%", Goal(8))
    yield done.figure("grown", f"memory held by an answer of {tokens} tokens", "MiB")
    yield resized.figure("wrong", f"lines lost or doubled in {RESIZES} resizes", "", Goal(0))
    opened = compare(setup, lambda: _resume(setup, MESSAGES), rounds=ROUNDS)
    name = f"a session of {MESSAGES:,} messages opens, over a new one"
    yield opened.figure("more", name, "ms", Goal(300))


def _go(
    setup: Setup, *options: str | Path, **environ: str
) -> tuple[list[str | Path], dict[str, str]]:
    command: list[str | Path] = [setup.program, "go", *options]
    return command, {**setup.environ, **environ}


def _start(setup: Setup, cards: Path) -> Values:
    command, environ = _go(setup, "--model", "passthrough", "--card", cards)
    with terminal(command, cwd=setup.work, environ=environ) as client:
        first = client.wait_for("> ")
        ready = client.wait_for(_READY)
        client.settle()
        return {"first": first * 1e3, "ready": ready * 1e3, "memory": client.resident()}


def _bare_start(setup: Setup) -> Values:
    command = [setup.python, "-c", _BARE]
    with terminal(command, cwd=setup.work, environ=setup.environ) as client:
        first = client.wait_for("> ") * 1e3
        return {"first": first, "ready": first, "memory": client.resident()}


def _stream(setup: Setup, port: int, tokens: int) -> Values:
    library = setup.ours("sdk_stream.py", port, 4)["share"]
    with _talking(setup, port) as client:
        values = _streamed(client, tokens)
        return {**values, "own": values["share"] - library}


def _streamed(client: TerminalClient, tokens: int) -> dict[str, float]:
    memory, before, written = client.resident(), client.processor_seconds(), len(client.written)
    began = time.perf_counter()
    client.send("\r")
    times = client.echoes("THE-END", 10_000)
    spent = time.perf_counter() - began
    client.settle()
    return {
        **_spread(times),
        "bytes": (len(client.written) - written) / tokens,
        "share": 100 * (client.processor_seconds() - before) / spent,
        "grown": client.resident() - memory,
    }


def _bare_stream(setup: Setup, port: int) -> Values:
    command = [setup.python, "-P", HERE / "ours" / "bare_terminal.py", str(port)]
    with terminal(command, cwd=setup.work, environ=setup.environ) as client:
        client.wait_for("> ")
        values = _streamed(client, 1)
        return {name: values[name] for name in ("half", "late", "share")}


def _codex_start(setup: Setup) -> Values:
    with codex(setup, 9) as client:
        first = client.wait_for(PROMPT) * 1e3
        client.settle()
        return {"first": first, "memory": client.resident()}


def _codex_stream(setup: Setup, port: int, tokens: int) -> Values:
    with codex(setup, port) as client:
        client.wait_for(READY)
        client.send("go on")
        client.settle(2.5)  # as for ours
        return _streamed(client, tokens)


def _spread(times: list[float]) -> Values:
    return {"half": quantiles(times, n=2)[0], "late": quantiles(times, n=100)[-1]}


def _resized(setup: Setup, port: int) -> Values:
    """Count the headings of the answer that stand in what was written not exactly once."""
    chance = random.Random(11)
    with _talking(setup, port) as client:
        client.send("\r")
        client.wait_for("Part 1 of")
        for _ in range(RESIZES):
            client.settle(chance.uniform(0.05, 0.2))
            client.resize(chance.randint(60, 200), chance.randint(20, 50))
        client.wait_for("THE-END")
        client.settle()
        seen = bytes(client.written).decode("utf-8", "replace")
        headings = 0
        while f"Part {headings + 1} of" in seen:
            headings += 1
        wrong = sum(
            _committed(seen, f"## Part {number} of the answer") != 1
            for number in range(1, headings)
        )
        return {"wrong": wrong}


def _committed(written: str, text: str) -> int:
    """Count the lines of the scrollback that are a text; the moving tail shows its source."""
    lines = _ESCAPES.sub("", _MOVES.sub("\n", written)).replace("\r", "").split("\n")
    return sum(line.strip() == text for line in lines)


@contextmanager
def _talking(setup: Setup, port: int) -> Generator[TerminalClient]:
    address = f"http://127.0.0.1:{port}/v1"
    command, environ = _go(
        setup,
        "--model",
        "generic.m",
        "--no-session",
        GENERIC_BASE_URL=address,
        GENERIC_API_KEY="none",
    )
    with terminal(command, cwd=setup.work, environ=environ) as client:
        client.wait_for(_READY)
        client.send("go on")
        client.settle(2.5)  # as a user takes to write a message; the model is imported meanwhile
        yield client


def _resume(setup: Setup, messages: int) -> Values:
    history = setup.work / "history.json"
    if not history.exists():
        said = [
            {"role": role, "content": [{"type": "text", "text": f"Message {number} of many."}]}
            for number in range(messages // 2)
            for role in ("user", "assistant")
        ]
        history.write_text(json.dumps({"messages": said}), "utf-8")
        go = (setup.program, "go", "--model", "passthrough", "--session")
        setup.run(*go, "-p", history, "-m", "the last one", expect="the last one")
    old = _ready(setup, "--resume", "continues;")
    return {"more": old - _ready(setup, "--no-session", _READY)}


def _ready(setup: Setup, option: str, text: str) -> float:
    command, environ = _go(setup, "--model", "passthrough", option)
    with terminal(command, cwd=setup.work, environ=environ) as client:
        return client.wait_for(text) * 1e3
