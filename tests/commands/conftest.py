from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from tests.commands.controller_world import DeskWorld

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture(name="world")
def _world(tmp_path: Path) -> DeskWorld:
    """An empty directory to write cards in."""
    return DeskWorld(tmp_path)
