"""Record the examples once, then replay them many times, tasks in another order each time."""

from __future__ import annotations

import json
import os
import random
import sys
import time
from contextlib import chdir
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

import anyio
from anyio.lowlevel import checkpoint

from fast_agent import FastAgent
from fast_agent.cli.running.structured import answer_facts
from fast_agent.recording.cassette import Recorder, read_cassette
from fast_agent.recording.replayer import Replayer
from fast_agent.trust.gate import TrustOptions

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from fast_agent.agents.events import Event
    from fast_agent.recording.cassette import Cassette
    from fast_agent.steps.steps import Steps

EXAMPLES = Path(__file__).parents[2] / "examples"
RUNS = {
    "chain": "Search finds umlauts. Exports are twice as fast. The log uses less memory.",
    "parallel": "Our bridge is the longest in Europe, it has been said.",
    "router": "My train was an hour late. What do I get back?",
    "evaluator-optimizer": "The library lends tools now: drills, ladders, sewing machines.",
    "orchestrator": "A fair in our street on 6 June.",
    "iterative-planner": "Who wrote the letter on the lighthouse, of May 1911?",
    "maker": "A: 3 2 1, B: -, C: -. Move the smallest disk to C, then continue.",
    "project-reports": "The report, please.",
}
OUTSIDE = {"socket.connect", "socket.getaddrinfo", "subprocess.Popen", "os.posix_spawn"}


class Watch:
    """Counts what is opened to the outside while it is on."""

    def __init__(self) -> None:
        self.on = False
        self.opened = 0
        sys.addaudithook(self._hear)

    def _hear(self, event: str, _args: object) -> None:
        self.opened += self.on and event in OUTSIDE


class Example:
    """One example, loaded once.

    Args:
        name: Its directory.
    """

    def __init__(self, name: str) -> None:
        self._message = RUNS[name]
        trust = TrustOptions(everything=True)
        self._program = FastAgent(cwd=EXAMPLES / name, environ=os.environ, trust=trust)
        self._program.load_agents(".")

    async def run(self, steps: Steps) -> tuple[bytes, bytes]:
        """Return all of a run as bytes: what no order of tasks changes, and all of it."""
        events: list[str] = []
        model = "scripted?file=script.yaml"

        def hear(event: Event) -> None:
            events.append(repr(event))

        async with self._program.run(model=model, steps=steps, listener=hear) as app:
            agent = app[app.default_name]
            result = await agent.generate(self._message)
            reported = answer_facts(agent.name, result, app.usage)
            history = repr(list(agent.history))
        ordered = "\n".join(sorted(events))
        return f"{reported}\n{history}\n{ordered}".encode(), "\n".join(events).encode()


def shuffler(seed: int) -> Callable[[], Awaitable[None]]:
    """Return a wait of a random number of rounds of the event loop."""
    chance = random.Random(seed)

    async def pause() -> None:
        for _ in range(chance.randrange(6)):
            await checkpoint()

    return pause


async def main(replays: int) -> None:
    # The servers of the examples are programs beside this interpreter.
    os.environ["PATH"] = os.pathsep.join((str(Path(sys.executable).parent), os.environ["PATH"]))
    watch = Watch()
    examples = {name: Example(name) for name in RUNS}
    recorded: dict[str, tuple[Cassette, bytes]] = {}
    with TemporaryDirectory() as directory:
        for name, example in examples.items():
            path = Path(directory) / name
            recorder = Recorder(path)
            # The servers of an example start in its directory.
            with chdir(EXAMPLES / name):
                reported, _ = await example.run(recorder)
            recorder.close()
            recorded[name] = read_cassette(path), reported
    same = 0
    orders: set[bytes] = set()
    names = list(RUNS)
    watch.on = True
    start = time.process_time()
    for number in range(replays):
        cassette, before = recorded[names[number % len(names)]]
        player = Replayer(cassette, pause=shuffler(number))
        reported, order = await examples[names[number % len(names)]].run(player)
        same += reported == before and player.drift is None and not player.left()
        orders.add(order)
    seconds = time.process_time() - start
    watch.on = False
    print(
        json.dumps(
            {"same": same, "orders": len(orders), "opened": watch.opened, "seconds": seconds}
        )
    )


anyio.run(main, int(sys.argv[1]))
