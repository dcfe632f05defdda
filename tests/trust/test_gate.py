"""The gate: what it decides about found sets, without the files of a whole program."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from fast_agent.trust.effect import ANY_COMMAND, Effect, Holder
from fast_agent.trust.found_set import FoundSet
from fast_agent.trust.gate import Gate, TrustOptions

if TYPE_CHECKING:
    from pathlib import Path

    from fast_agent.trust.approvals import Approvals
    from fast_agent.trust.question import Asker

CONFIG = "fastagent.config.yaml"


def gate(folder: Path, options: TrustOptions) -> Gate:
    for name in ("home", "desk"):
        (folder / name).mkdir(mode=0o700, exist_ok=True)
    return Gate(folder / "home", folder / "desk", os.environ, options)


def run(
    subject: str, holder: Holder | None = None, keys: tuple[str | int, ...] = ("command",)
) -> Effect:
    return Effect("run", subject, holder or Holder("server", "time"), CONFIG, keys=keys)


def asked(approvals: Approvals) -> Asker:
    del approvals
    return lambda found, standing: "no"


def test_a_no_holds_where_it_cannot_be_kept(tmp_path: Path) -> None:
    one = gate(tmp_path, TrustOptions(asker=asked))
    found = FoundSet(tmp_path / "desk", {CONFIG: "sha256:1"}, (run("/bin/time"),))
    assert one.can_ask(found)
    one.approvals.path.mkdir(parents=True)
    one.answer(found, "no")
    assert not one.can_ask(found)
    one.approvals.path.rmdir()
    assert gate(tmp_path, TrustOptions(asker=asked)).can_ask(found)


@pytest.mark.parametrize("replays", [False, True])
def test_a_replay_needs_no_approval_for_what_it_does_not_start(
    tmp_path: Path, replays: bool
) -> None:
    card = Holder("card", "ann")
    started = (
        run("/bin/time"),
        run("/bin/time", card, ("mcp_connect", 0)),
        run(ANY_COMMAND, card, ("shell",)),
    )
    read = (run("tools.py:f", card, ("function_tools", 0)),)
    found = FoundSet(tmp_path / "desk", {CONFIG: "sha256:1"}, (*started, *read))
    allowed = gate(tmp_path, TrustOptions(replays=replays)).allowed(found)
    assert allowed == (set(started) if replays else set())
