"""One server for the tests of a module."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from tests.temporal_server import TemporalServer, why_not

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture(scope="module")
def server() -> Iterator[TemporalServer]:
    """A server that keeps its data in memory."""
    reason = why_not()
    if reason is not None:
        pytest.skip(reason)
    with TemporalServer(in_memory=True) as started:
        yield started
