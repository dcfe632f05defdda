"""Towers of Hanoi by votes, one move a step: `python hanoi.py --disks 5`.

Twenty disks take 1,048,575 moves, and a single wrong one would spoil all: the task of the paper on
MAKER (arXiv 2511.09030). Without `--model`, a mover is asked that errs with a seeded probability,
so that the run is the same each time. With `--model`, the cards beside this file are asked.

`--checkpoint FILE` keeps how far the run is. Killed at any time, the same command goes on from
there, and ends with the same result.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import resource
import sys
import time
from contextlib import asynccontextmanager
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import anyio
from noisy_mover import NoisyMover
from towers import Towers, right_move

from fast_agent import Ballot, FastAgent, FastAgentError, vote_at_once, write_atomic

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Sequence

    from towers import Move

    from fast_agent import AgentApp, Sample

HERE = Path(__file__).parent
MAX_SAMPLES = 50


@dataclass(frozen=True, slots=True)
class Task:
    """What is run; a checkpoint belongs to one task only."""

    disks: int
    p: float
    valid: float
    k: int
    seed: int
    model: str | None

    @property
    def steps(self) -> int:
        """How many moves the task takes."""
        return 2**self.disks - 1


@dataclass(frozen=True, slots=True)
class Reached:
    """How far a run is.

    Args:
        step: Moves made.
        pegs: Where the disks lie.
        previous: The move made last, or None.
        draws: Answers asked for.
        discarded: Those with a red flag.
        errors: Moves that are not those of the shortest solution.
        digest: Digest of all moves.
    """

    step: int = 0
    pegs: list[list[int]] | None = None
    previous: Move | None = None
    draws: int = 0
    discarded: int = 0
    errors: int = 0
    digest: str = ""


@dataclass(frozen=True, slots=True)
class Voted:
    """The outcome of the vote on one move."""

    move: Move
    draws: int
    discarded: int


class Voter(Protocol):
    """Decides moves."""

    async def vote(self, question: str, step: int) -> Voted:
        """Decide one."""
        ...


class OfflineVoter:
    """Lets answers of the noisy mover vote."""

    def __init__(self, task: Task) -> None:
        self._mover = NoisyMover(task.p, task.valid, task.seed)
        self._ballot = Ballot("structured", max_length=200)
        self._k = task.k

    async def vote(self, question: str, step: int) -> Voted:
        """Decide one move; an answer that needs no waiting needs no task either."""
        answer, read = self._mover.answer, self._ballot.read

        def draw(number: int) -> Sample:
            return read(answer(question, step, number))

        verdict = vote_at_once(draw, k=self._k, max_samples=MAX_SAMPLES)
        if verdict.winner is None:
            sys.exit(f"step {step}: no answer could vote")
        return Voted(_move(verdict.winner.value), verdict.total_samples, verdict.discarded_samples)


class CardVoter:
    """Asks the card `step`, whose worker is a model."""

    def __init__(self, app: AgentApp) -> None:
        self._app = app

    async def vote(self, question: str, step: int) -> Voted:  # noqa: ARG002 (a model's own luck)
        """Decide one move, in a conversation of its own, so that memory does not grow."""
        async with self._app.new_conversation() as conversation:
            result = await self._app.agent("step", conversation).generate(question)
        record: Any = result.workflow
        move = _move(json.loads(record["winner"]))
        return Voted(move, record["total_samples"], record["discarded_samples"])


def _move(value: object) -> Move:
    match value:
        case {"move": [int(disk), int(start), int(end)]}:
            return disk, start, end
        case _:
            sys.exit(f"the winner is not a move: {value}")


async def play(task: Task, voter: Voter, checkpoint: Path | None, every: int) -> Reached:
    """Make the moves that are not yet made."""
    now = _read(checkpoint, task)
    towers = Towers(task.disks, now.pegs, now.previous)
    draws, discarded, errors = now.draws, now.discarded, now.errors
    moves: list[Move] = []
    for step in range(now.step + 1, task.steps + 1):
        voted = await voter.vote(towers.question(), step)
        draws += voted.draws
        discarded += voted.discarded
        errors += voted.move != right_move(step, task.disks)
        try:
            towers.make(voted.move)
        except ValueError as error:
            sys.exit(f"step {step}: the vote went to a move that is not allowed: {error}")
        moves.append(voted.move)
        if step % every == 0 or step == task.steps:
            # A chain of digests, so that it can be taken up again.
            digest = hashlib.sha256(f"{now.digest}{moves}".encode()).hexdigest()
            now = Reached(step, towers.pegs, towers.previous, draws, discarded, errors, digest)
            moves.clear()
            if checkpoint is not None:
                facts = {"task": asdict(task), "reached": asdict(now)}
                write_atomic(checkpoint, json.dumps(facts).encode())
            await anyio.lowlevel.checkpoint()  # lets Ctrl-C in
    if not towers.solved:
        sys.exit("the tower is not where it belongs")
    return now


def _read(checkpoint: Path | None, task: Task) -> Reached:
    if checkpoint is None or not checkpoint.exists():
        return Reached()
    try:
        kept = json.loads(checkpoint.read_bytes())
        of_task, reached = kept["task"], Reached(**kept["reached"])
    except (OSError, ValueError, TypeError, KeyError) as error:
        sys.exit(f"{checkpoint} is not a checkpoint: {error}")
    if of_task != asdict(task):
        sys.exit(f"{checkpoint} belongs to another task: {of_task}")
    return replace(reached, previous=reached.previous and tuple(reached.previous))


@asynccontextmanager
async def voter_of(task: Task) -> AsyncGenerator[Voter]:
    """Yield what decides the moves."""
    if task.model is None:
        yield OfflineVoter(task)
        return
    program = FastAgent("hanoi", cwd=HERE)
    program.load(cards=[HERE])
    async with program.run(model=task.model) as app:
        yield CardVoter(app)


async def main(options: argparse.Namespace) -> None:
    """Run the task, and print one JSON object about it."""
    task = Task(options.disks, options.p, options.valid, options.k, options.seed, options.model)
    before = _read(options.checkpoint, task)
    start, worked = time.perf_counter(), time.process_time()
    memory = _memory()
    async with voter_of(task) as voter:
        reached = await play(task, voter, options.checkpoint, options.every)
    seconds, worked = time.perf_counter() - start, time.process_time() - worked
    drawn = reached.draws - before.draws
    facts = {
        "steps": reached.step,
        "draws": reached.draws,
        "discarded": reached.discarded,
        "errors": reached.errors,
        "digest": reached.digest,
        "resumed_at": before.step,
        "draws_per_second": drawn / seconds if drawn else 0,
        "draws_per_processor_second": drawn / worked if drawn else 0,
        "memory_mib": [memory, _memory()],
    }
    print(json.dumps(facts))


def _memory() -> float:
    """Return the most memory the process held so far, in MiB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def _share(text: str) -> float:
    value = float(text)
    if not 0 < value <= 1:
        raise argparse.ArgumentTypeError("must be above 0, and 1 at most")
    return value


def _count(text: str) -> int:
    value = int(text)
    if value < 1:
        raise argparse.ArgumentTypeError("must be 1 at least")
    return value


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description="Towers of Hanoi by votes, one move a step.")
    parser.add_argument("--disks", type=int, default=3, choices=range(1, 31), metavar="N")
    parser.add_argument("--p", type=_share, default=0.9978, help="how often a move is right")
    parser.add_argument("--valid", type=_share, default=1.0, help="how often an answer is a move")
    parser.add_argument("--k", type=_count, default=3, help="votes the winner must be ahead by")
    parser.add_argument("--seed", type=int, default=0, help="seed of the errors")
    parser.add_argument("--model", metavar="SPEC", help="ask the cards with this model instead")
    parser.add_argument("--checkpoint", type=Path, metavar="FILE", help="where to keep the state")
    parser.add_argument("--every", type=_count, default=10_000, help="moves between checkpoints")
    return parser


def command(arguments: Sequence[str] | None = None) -> None:
    """Run the command line."""
    try:
        anyio.run(main, _parser().parse_args(arguments))
    except FastAgentError as error:
        sys.exit(f"the run failed: {error}")


if __name__ == "__main__":
    command()
