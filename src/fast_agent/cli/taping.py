"""Recording and replaying a run of the command line."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

from fast_agent.cli.report import report_note
from fast_agent.errors import FastAgentError
from fast_agent.version import __version__

if TYPE_CHECKING:
    from collections.abc import Generator
    from pathlib import Path

    from fast_agent.app import FastAgent
    from fast_agent.models.player import Player
    from fast_agent.models.tape import Tape

_MOST_LEFT = 5


@contextmanager
def taped(program: FastAgent, record: Path | None, replay: Path | None) -> Generator[Tape | None]:
    """Give the tape a run goes through; None where it is neither recorded nor replayed.

    Args:
        program: What is run.
        record: The file to record to, or None.
        replay: The recording to replay, or None.

    Raises:
        RunError: The file cannot be written or read, or the run was not the recorded one.
    """
    if record is None and replay is None:
        yield None
        return
    from fast_agent.models.cassette_parts import Veil

    veil = Veil(program.secrets(), str(program.workspace))
    if replay is not None:
        from fast_agent.models.cassette import read_cassette
        from fast_agent.models.player import Player

        player = Player(read_cassette(replay), veil)
        try:
            yield player
        finally:
            player.check()
        tell_left(player, replay)
    elif record is not None:
        from fast_agent.models.recorder import Recorder

        recorder = Recorder(record, veil, {"program": f"fast-agent {__version__}"})
        complete = False
        try:
            yield recorder
            complete = True
        except FastAgentError:
            complete = True  # a run that fails is over too
            raise
        finally:
            recorder.close(complete=complete)


def tell_left(player: Player, shown: Path) -> None:
    """Tell what of a recording was not asked for."""
    left = player.left()
    if left:
        names = [f"{key.kind} {key.name}".strip() + f" of `{key.agent}`" for key in left]
        more = f", and {len(left) - _MOST_LEFT} more" if len(left) > _MOST_LEFT else ""
        report_note(
            f"{len(left)} answers of the recording {shown} were not asked for: "
            + ", ".join(names[:_MOST_LEFT])
            + more
        )
