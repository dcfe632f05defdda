from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from tests.hostile.canary import canary_server

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.hostile.canary import Canary


@pytest.fixture(name="canary")
def _canary() -> Iterator[Canary]:
    with canary_server() as canary:
        yield canary
