"""The benchmark of the terminal times real programs at a pseudo-terminal."""

from __future__ import annotations

import sys

import pytest
from bench.terminal_client import terminal
from bench.tui import _BARE, _committed
from tests.patience import PATIENCE

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.spec("T-F1.1")
def test_echoes_of_a_bare_terminal_are_timed(tmp_path: Path) -> None:
    with terminal([sys.executable, "-c", _BARE], cwd=tmp_path, environ={}) as client:
        assert 0 < client.wait_for("> ") < PATIENCE
        times = client.echoes(None, 3)
        assert len(times) == 3
        assert min(times) > 0
        assert client.resident() > 1


def test_a_line_that_was_drawn_again_is_counted_twice() -> None:
    once = "  status\x1b[1A\r\x1b[K## Part 1\r\r\n> "
    assert _committed(once, "## Part 1") == 1
    assert _committed(once * 2, "## Part 1") == 2
    assert _committed("\u2506 ## Part 1\r\n", "## Part 1") == 0
