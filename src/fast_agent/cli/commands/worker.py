"""`fast-agent worker`: a process that executes the runs of a Temporal server."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import click

from fast_agent.cli import options
from fast_agent.cli.output import hide_in_errors, report_note
from fast_agent.cli.process import show_log

if TYPE_CHECKING:
    from pathlib import Path

    from fast_agent.app import FastAgent
    from fast_agent.engine.temporal.connection import TemporalOptions
    from fast_agent.engine.temporal.worker import WorkerOptions


@click.command()
@click.option(
    "--engine", type=click.Choice(["temporal"]), default="temporal", show_default=True,
    help="The engine that gives the worker its work.",
)  # fmt: skip
@options.TEMPORAL_ADDRESS
@click.option(
    "--queue", "queues", multiple=True, metavar="MODEL|QUEUE",
    help="Only ask this model, or run the steps of cards with this `queue`, for the runs of all"
    " workers; may be repeated.",
)  # fmt: skip
@click.option(
    "--slots", type=click.IntRange(min=1), default=40, show_default=True,
    help="Maximum number of steps at a time, of each --queue.",
)  # fmt: skip
@click.option(
    "--rate", type=click.FloatRange(min=0, min_open=True), metavar="N",
    help="Maximum number of steps a second of each --queue, over all its workers.",
)  # fmt: skip
@click.option(
    "--drain", "drain_seconds", type=click.FloatRange(min=0), default=30.0, show_default=True,
    metavar="SECONDS", help="How long running steps may take when the worker is asked to stop.",
)  # fmt: skip
@options.CONFIG_PATH
@options.quiet("Print nothing but errors.")
def command(
    engine: str,
    temporal_address: str | None,
    queues: tuple[str, ...],
    slots: int,
    rate: float | None,
    drain_seconds: float,
    config_path: Path | None,
    quiet: bool,
) -> None:
    """Execute the runs that `batch` and `go` start with `--engine temporal`.

    The cards of a run come with it. The configuration is the one of this machine: it has to agree
    with that of the clients but for keys and addresses. Tools run in the working directory. On
    SIGTERM or an interrupt the worker takes nothing more, lets running steps finish, and ends;
    what is cut off is executed by another worker.
    """
    del engine
    from fast_agent.app import FastAgent

    show_log(quiet=quiet)
    if rate is not None and not queues:
        raise click.UsageError("--rate bounds the steps of a --queue; name one")
    program = FastAgent(config_path=config_path)
    hide_in_errors(program.redact)
    from fast_agent.cli.running.temporal import import_engine, temporal_options

    import_engine()
    from functools import partial

    from fast_agent.cli import process as event_loop
    from fast_agent.engine.temporal.worker import WorkerOptions

    given = WorkerOptions(
        queues=queues, slots=slots, requests_per_second=rate, drain_seconds=drain_seconds
    )
    address = temporal_options(program.settings, temporal_address)
    event_loop.run(partial(_serve, program, config_path, address, given, quiet=quiet))
    # Threads of the SDK may still hold the interpreter while it ends, and crash it.
    os._exit(0)


async def _serve(
    program: FastAgent,
    config_path: Path | None,
    address: TemporalOptions,
    given: WorkerOptions,
    *,
    quiet: bool,
) -> None:
    import asyncio
    import signal

    from fast_agent.app import FastAgent
    from fast_agent.cli.running.temporal import EDITIONS, part_store
    from fast_agent.config.home import home_directory
    from fast_agent.engine.temporal.connection import connect
    from fast_agent.engine.temporal.worker import EditionHost, run_worker

    store, cipher = part_store(program.settings)
    client = await connect(address, store, cipher)
    stop = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)

    def new_program(workspace: Path | None) -> FastAgent:
        path = None if config_path is None else program.workspace / config_path
        if workspace is not None and path is None and program.settings.sources:
            path = program.workspace / program.settings.sources[-1]
        return FastAgent(config_path=path, cwd=workspace)

    home = home_directory(os.environ) / EDITIONS
    is_sealed = cipher is not None

    def report() -> None:
        if not quiet:
            served = ", ".join(given.queues) or "everything"
            report_note(f"worker of {served} at {address.address}, {given.slots} slots")

    async with EditionHost(store, home, new_program, is_sealed=is_sealed) as host:
        await run_worker(client, address, given, host, store, stop, on_start=report)
