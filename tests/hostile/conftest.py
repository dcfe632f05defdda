from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from tests.hostile.canary import canary_server
from tests.hostile.scene import Scene

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.hostile.canary import Canary


@pytest.fixture(name="canary")
def _canary() -> Iterator[Canary]:
    with canary_server() as canary:
        yield canary


@pytest.fixture(name="scene")
def _scene(tmp_path: Path, canary: Canary) -> Scene:
    return Scene.made(tmp_path, canary)
