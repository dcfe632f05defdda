"""One server for the tests of a module."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from tests.temporal_server import TemporalServer, why_not

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path


class _SkippedModule(pytest.Module):
    """A module that is not imported: it imports what is not installed."""

    def collect(self) -> Iterable[pytest.Item | pytest.Collector]:
        pytest.skip(f"{why_not()}", allow_module_level=True)


def pytest_pycollect_makemodule(
    module_path: Path, parent: pytest.Collector
) -> pytest.Module | None:
    """Skip the modules of this directory where Temporal is not installed."""
    if why_not() is None:
        return None
    # pytest leaves the type of `from_parent` open.
    return _SkippedModule.from_parent(parent, path=module_path)  # pyright: ignore[reportUnknownMemberType]


@pytest.fixture(scope="module")
def server() -> Iterator[TemporalServer]:
    """A server that keeps its data in memory."""
    reason = why_not()
    if reason is not None:
        pytest.skip(reason)
    with TemporalServer(in_memory=True) as started:
        yield started
