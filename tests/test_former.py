"""Names of the release before work, and say what they are called now."""

from __future__ import annotations

import subprocess
import sys
from importlib import import_module

import pytest

import fast_agent


@pytest.mark.parametrize(
    ("module", "name", "now"),
    [
        ("fast_agent", "Desk", "ConversationController"),
        ("fast_agent", "Player", "Replayer"),
        ("fast_agent.commands.desk", "Desk", "ConversationController"),
        ("fast_agent.models.cassette", "read_cassette", "read_cassette"),
        ("fast_agent.models.player", "Player", "Replayer"),
        ("fast_agent.models.recorder", "Recorder", "Recorder"),
        ("fast_agent.workflows.maker.ballot", "Ballot", "Ballot"),
        ("fast_agent.workflows.maker.sample", "Sample", "Sample"),
    ],
)
def test_a_former_name_is_the_present_one_and_warns(module: str, name: str, now: str) -> None:
    with pytest.warns(DeprecationWarning, match=f"^`{module}.{name}` is `fast_agent.{now}` now"):
        found = getattr(import_module(module), name)
    assert found is getattr(fast_agent, now)


@pytest.mark.parametrize("module", ["fast_agent", "fast_agent.models.player"])
def test_the_warning_names_the_line_of_the_program(module: str) -> None:
    program = f"\n\nfrom {module} import Player\n"
    done = subprocess.run(
        [sys.executable, "-W", "default", "-c", program], capture_output=True, text=True, check=True
    )
    assert done.stderr.startswith("<string>:3: DeprecationWarning: ")


@pytest.mark.parametrize(
    ("module", "name"),
    [("fast_agent", "nothing"), ("fast_agent.models.player", "nothing")],
)
def test_other_names_are_refused(module: str, name: str) -> None:
    with pytest.raises(AttributeError, match="has no attribute 'nothing'"):
        getattr(import_module(module), name)


def test_other_modules_are_not_found() -> None:
    with pytest.raises(ModuleNotFoundError):
        import_module("fast_agent.models.nowhere")
