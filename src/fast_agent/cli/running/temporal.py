"""What commands on Temporal have in common: the server, the store of parts, and their runs."""

from __future__ import annotations

import os
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from fast_agent.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Awaitable, Callable
    from pathlib import Path

    from fast_agent.agents.live_agent import TurnCarrier
    from fast_agent.app import FastAgent
    from fast_agent.cli.card_options import CardOptions
    from fast_agent.config.settings import Settings
    from fast_agent.engine.edition import EditionChoices
    from fast_agent.engine.part_store import Cipher, PartStore
    from fast_agent.engine.temporal.connection import TemporalOptions
    from fast_agent.engine.temporal.runs import PinnedEdition, TemporalRuns
    from fast_agent.tools.human import Human

DEFAULT_ADDRESS: Final = "127.0.0.1:7233"
PARTS: Final = "parts"
"""The directory of long parts of runs, in the home directory of fast-agent."""
EDITIONS: Final = "editions"
"""The directory of unpacked editions, beside it."""


def import_engine() -> None:
    """Check that the extra is installed.

    Raises:
        ConfigError: It is not.
    """
    try:
        import temporalio.client as _client
    except ImportError as error:
        raise ConfigError(
            "runs on Temporal need the extra `temporal`",
            hint="install it: `pip install 'fast-agent[temporal]'`",
        ) from error
    del _client


def temporal_options(settings: Settings, address: str | None) -> TemporalOptions:
    """Return how the server is reached.

    Args:
        settings: The configuration.
        address: The address of the command line, before that of the configuration; or None.

    Raises:
        ConfigError: The file of the API key cannot be read, or is empty.
    """
    from fast_agent.engine.temporal.connection import (
        DEFAULT_NAMESPACE,
        DEFAULT_QUEUE,
        TemporalOptions,
    )

    section = replace(settings.temporal, **_connection())
    return TemporalOptions(
        address=section.address or DEFAULT_ADDRESS if address is None else address,
        namespace=section.namespace or DEFAULT_NAMESPACE,
        queue=section.queue or DEFAULT_QUEUE,
        tls=section.tls,
        server_ca=section.server_ca,
        client_certificate=section.client_certificate,
        client_key=section.client_key,
        api_key=section.api_key,
    )


def _connection() -> dict[str, Any]:
    """Return the options of the connection on the command line, as fields of the settings."""
    import click

    from fast_agent.cli.options import CONNECTION

    context = click.get_current_context(silent=True)
    meta = {} if context is None else context.meta
    found = {
        name.removeprefix(CONNECTION): value
        for name, value in meta.items()
        if name.startswith(CONNECTION)
    }
    path: Path | None = found.pop("api_key_file", None)
    if path is not None:
        try:
            found["api_key"] = path.read_text(encoding="utf-8").strip()
        except (OSError, UnicodeError) as error:
            raise ConfigError(f"the API key file `{path}` cannot be read: {error}") from error
        if not found["api_key"]:
            raise ConfigError(f"the API key file `{path}` is empty")
    return found


def part_store(settings: Settings) -> tuple[PartStore, Cipher | None]:
    """Open the store of parts, with the user's key where the configuration names one.

    Raises:
        ConfigError: It cannot be used.
    """
    from fast_agent.config.home import home_directory
    from fast_agent.engine.part_store import open_parts, read_cipher

    section = settings.temporal
    cipher = None if section.key_file is None else read_cipher(section.key_file)
    place = section.parts or str(home_directory(os.environ) / PARTS)
    return open_parts(place, cipher), cipher


def tool_paths(options: CardOptions, program: FastAgent) -> list[Path]:
    """Return the files and directories whose agents become tools of the receiver."""
    from fast_agent.cli.card_options import found_cards

    _, found, _ = found_cards(program, options.cards, options.card_tools)
    return [program.workspace / path for path in (*options.card_tools, *found)]


def choices_of(options: CardOptions, program: FastAgent, receiver: str | None) -> EditionChoices:
    """Return what a user chose over the cards.

    Args:
        options: The options of the command.
        program: The program.
        receiver: The agent that gets tools and servers; None is the default one.
    """
    from fast_agent.cli.card_options import known_servers
    from fast_agent.engine.edition import EditionChoices

    return EditionChoices(
        model=options.model,
        shell=options.shell,
        files=options.files,
        fetch=options.fetch,
        servers=tuple(known_servers(program, options.servers)),
        receiver=receiver,
        multi_card=options.multi_card,
    )


def carry_turns(program: FastAgent, options: CardOptions, address: str | None) -> None:
    """Run the turns of a program's agents on the workers of a Temporal server.

    Args:
        program: The program, with its cards loaded.
        options: The options of the command.
        address: The address of the command line, or None.

    Raises:
        ConfigError: The extra is not installed.
    """
    import_engine()
    choices = choices_of(options, program, options.receiver())
    tools = tool_paths(options, program)

    @asynccontextmanager
    async def new_carrier(human: Human | None) -> AsyncGenerator[TurnCarrier]:
        from fast_agent.engine.temporal.conversation import TemporalCarrier

        runs = await temporal_runs(program, address)
        cards = PinnedProgram(program, partial(pin_cards, runs, program, choices, tools))
        async with TemporalCarrier(runs, cards, human) as carrier:
            yield carrier

    program.new_carrier = new_carrier


async def pin_cards(
    runs: TemporalRuns, program: FastAgent, choices: EditionChoices, tools: list[Path]
) -> PinnedEdition:
    """Keep the cards of a program for workers, and name the queues without a worker.

    Args:
        runs: Keeps them.
        program: The program, with its cards loaded.
        choices: What the user chose over the cards.
        tools: Files and directories whose agents become tools of the receiver.

    Raises:
        FastAgentError: The cards cannot be run, or not by other machines.
    """
    from fast_agent.cli.output import report_note

    pinned = await runs.pin(program, choices, tools=tools)
    if not await runs.has_workers():
        queue, address = runs.options.queue, runs.options.address
        report_note(
            f"no worker serves the queue `{queue}`: its runs wait for"
            f" `fast-agent worker --temporal-address {address}`"
        )
    for name in await runs.unserved(pinned):
        report_note(
            f"no worker serves the queue `{name}`: steps of its agents wait for"
            f" `fast-agent worker --queue {name}`"
        )
    return pinned


@dataclass(frozen=True, slots=True)
class PinnedProgram:
    """The cards of a program, to be pinned; see `PinCards`."""

    program: FastAgent
    pin: Callable[[], Awaitable[PinnedEdition]]

    @property
    def version(self) -> object:
        """The version of the loaded cards."""
        return self.program.snapshot.version


async def temporal_runs(program: FastAgent, address: str | None) -> TemporalRuns:
    """Connect to the server.

    Args:
        program: The program, whose configuration says what else there is to know.
        address: The address of the command line, or None.

    Raises:
        ConfigError: The server does not answer, or the store cannot be used.
    """
    import_engine()
    from fast_agent.engine.temporal.connection import connect
    from fast_agent.engine.temporal.runs import HEARTBEAT_SECONDS, TemporalRuns
    from fast_agent.steps.parts import StepRedactor

    options = temporal_options(program.settings, address)
    store, cipher = part_store(program.settings)
    secrets = () if cipher is not None else program.secrets()
    redactor = StepRedactor(secrets, str(program.workspace))
    client = await connect(options, store, cipher)
    seconds = program.settings.temporal.heartbeat_seconds
    return TemporalRuns(
        client,
        options,
        store,
        redactor,
        heartbeat_seconds=HEARTBEAT_SECONDS if seconds is None else seconds,
    )
