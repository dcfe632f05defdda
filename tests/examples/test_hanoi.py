"""The towers of Hanoi by votes: without an error, and through being killed."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from tests.patience import PATIENCE

HANOI = Path(__file__).parents[2] / "examples" / "hanoi"


def command(*options: str | float | Path) -> list[str]:
    return [sys.executable, str(HANOI / "hanoi.py"), *map(str, options)]


def play(*options: str | float | Path) -> dict[str, Any]:
    done = subprocess.run(command(*options), capture_output=True, text=True, cwd=HANOI)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.mark.parametrize("disks", [3, 8])
def test_a_noisy_mover_makes_no_error_when_it_is_voted_on(disks: int) -> None:
    facts = play("--disks", disks, "--p", 0.8, "--valid", 0.9, "--k", 10)
    assert (facts["steps"], facts["errors"]) == (2**disks - 1, 0)
    assert facts["draws"] >= 10 * facts["steps"]
    assert facts["discarded"] > 0


def test_the_same_seed_gives_the_same_run_and_another_another() -> None:
    first, again = (play("--disks", 7, "--p", 0.9, "--k", 6) for _ in range(2))
    assert first["draws"] == again["draws"]
    other = play("--disks", 7, "--p", 0.9, "--k", 6, "--seed", 1)
    assert (other["digest"], other["errors"]) == (first["digest"], 0)
    assert other["draws"] != first["draws"]


def test_one_vote_is_not_enough() -> None:
    """The mover does err: with k of 1 the run goes wrong."""
    done = subprocess.run(
        command("--disks", 7, "--p", 0.9, "--k", 1), capture_output=True, text=True
    )
    assert done.returncode == 1
    assert "the vote went to a move that is not allowed" in done.stderr


@pytest.mark.parametrize(
    ("options", "code", "message"),
    [
        (("--k", 0), 2, "argument --k: must be 1 at least"),
        (("--p", 2), 2, "argument --p: must be above 0, and 1 at most"),
        (("--checkpoint", "damaged.json"), 1, "damaged.json is not a checkpoint: "),
        (("--model", "scripted?file=none.yaml"), 1, "none.yaml"),
    ],
)
def test_what_is_wrong_is_reported_in_short(
    options: tuple[str | float, ...], code: int, message: str, tmp_path: Path
) -> None:
    (tmp_path / "damaged.json").write_text('{"task": {}}')
    done = subprocess.run(command(*options), capture_output=True, text=True, cwd=tmp_path)
    assert (done.returncode, done.stdout) == (code, "")
    assert message in done.stderr
    assert "Traceback" not in done.stderr


def test_killed_twice_it_ends_with_the_same_result(tmp_path: Path) -> None:
    task = ("--disks", 13, "--p", 0.99, "--k", 5, "--every", 100)
    whole = play(*task)
    kept = tmp_path / "kept.json"
    reached = 0
    for share in (0.2, 0.5):
        process = subprocess.Popen(command(*task, "--checkpoint", kept), stdout=subprocess.DEVNULL)
        reached = step_of(kept, process, share * whole["steps"])
        process.send_signal(signal.SIGKILL)
        assert process.wait() == -signal.SIGKILL
    resumed = play(*task, "--checkpoint", kept)
    assert resumed["resumed_at"] >= reached > 0.5 * whole["steps"]
    for fact in ("steps", "draws", "discarded", "errors", "digest"):
        assert resumed[fact] == whole[fact], fact
    assert resumed["errors"] == 0


def step_of(kept: Path, process: subprocess.Popen[bytes], least: float) -> int:
    """Wait until a checkpoint of at least this step is there, and give its step."""
    deadline = time.monotonic() + PATIENCE
    while time.monotonic() < deadline:
        assert process.poll() is None, "the run ended before it was killed"
        if kept.exists():
            step = json.loads(kept.read_bytes())["reached"]["step"]
            if step >= least:
                return step
        time.sleep(0.002)
    raise TimeoutError


def test_the_checkpoint_of_another_task_is_refused(tmp_path: Path) -> None:
    kept = tmp_path / "kept.json"
    play("--disks", 4, "--checkpoint", kept)
    done = subprocess.run(
        command("--disks", 5, "--checkpoint", kept), capture_output=True, text=True
    )
    assert done.returncode == 1
    assert "belongs to another task" in done.stderr


def test_the_cards_are_asked_with_a_model() -> None:
    facts = play("--disks", 2, "--model", "scripted?file=script.yaml")
    assert (facts["steps"], facts["errors"]) == (3, 0)
    assert (facts["draws"], facts["discarded"]) == (12, 1)
