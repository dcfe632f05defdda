"""Beginning again: the same process and arguments, fresh modules, the same session."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from fast_agent.commands.controller import resuming

ROOT = Path(__file__).parents[2]


@pytest.mark.spec("CMD-10")
def test_the_process_begins_again_and_the_conversation_goes_on(tmp_path: Path) -> None:
    cards = tmp_path / "cards"
    cards.mkdir()
    (cards / "ann.md").write_text(
        '---\nmodel: passthrough\nfunction_tools: ["count.py:count"]\n---\nHi.\n'
    )
    (cards / "count.py").write_text(
        "total = 0\ndef count(by: int) -> int:\n"
        "    global total\n    total += by\n    return total\n"
    )
    done = subprocess.run(
        [sys.executable, "-m", "tests.commands.restarting_program", tmp_path, "--session", "-x"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    first, second = (json.loads(line) for line in done.stdout.splitlines())
    assert first["pid"] == second["pid"]
    assert (first["starts"], second["starts"]) == (1, 1)
    assert (first["answer"], second["answer"]) == ("1", "1")
    assert second["said"] == ["1", "1"]
    assert first["session"] == second["session"]
    assert second["arguments"] == [str(tmp_path), "-x", "--resume", first["session"]]


@pytest.mark.spec("CMD-10")
@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("go --card a", "go --card a --resume S"),
        ("go --session --card a", "go --card a --resume S"),
        ("go --resume --card a", "go --card a --resume S"),
        ("go --resume old --card a", "go --card a --resume S"),
        ("go --card a --resume", "go --card a --resume S"),
        ("go --resume=old -q", "go -q --resume S"),
        ("go -- --resume x", "go --resume S -- --resume x"),
    ],
)
def test_arguments_name_the_session_to_go_on_with(before: str, after: str) -> None:
    assert resuming(before.split(), "S") == after.split()
    assert resuming(before.split(), None) == before.split()
