"""Recording and replaying a run of the command line."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

from fast_agent.cli.report import report_note
from fast_agent.errors import FastAgentError
from fast_agent.steps.steps import NULL_STEPS
from fast_agent.version import __version__

if TYPE_CHECKING:
    from collections.abc import Generator
    from pathlib import Path

    from fast_agent.app import FastAgent
    from fast_agent.recording.replayer import Replayer
    from fast_agent.steps.steps import Steps

_MOST_LEFT = 5


@contextmanager
def recorded_run(program: FastAgent, record: Path | None, replay: Path | None) -> Generator[Steps]:
    """Return the steps a run goes through: a recording, a replay, or neither.

    Args:
        program: What is run.
        record: The file to record to, or None.
        replay: The recording to replay, or None.

    Raises:
        RunError: The file cannot be written or read, or the run was not the recorded one.
    """
    if record is None and replay is None:
        yield NULL_STEPS
        return
    from fast_agent.steps.parts import StepRedactor

    redactor = StepRedactor(program.secrets(), str(program.workspace))
    if replay is not None:
        from fast_agent.recording.cassette import read_cassette
        from fast_agent.recording.replayer import Replayer

        replayer = Replayer(read_cassette(replay), redactor)
        try:
            yield replayer
        finally:
            replayer.check()
        tell_left(replayer, replay)
    elif record is not None:
        from fast_agent.recording.recorder import Recorder

        recorder = Recorder(record, redactor, {"program": f"fast-agent {__version__}"})
        complete = False
        try:
            yield recorder
            complete = True
        except FastAgentError:
            complete = True  # a run that fails is over too
            raise
        finally:
            recorder.close(complete=complete)


def tell_left(replayer: Replayer, shown: Path) -> None:
    """Report the recorded answers that were not asked for."""
    left = replayer.left()
    if left:
        names = [f"{key.kind} {key.name}".strip() + f" of `{key.agent}`" for key in left]
        more = f", and {len(left) - _MOST_LEFT} more" if len(left) > _MOST_LEFT else ""
        report_note(
            f"{len(left)} answers of the recording {shown} were not asked for: "
            + ", ".join(names[:_MOST_LEFT])
            + more
        )
