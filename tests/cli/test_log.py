from __future__ import annotations

import io
import logging
from typing import TYPE_CHECKING, cast

import pytest

from fast_agent.cli.process import show_log

if TYPE_CHECKING:
    from collections.abc import Iterator


class _Closed(io.StringIO):
    def whole(self) -> io.StringIO:
        return self


@pytest.fixture(autouse=True)
def _no_handler_stays() -> Iterator[None]:
    root = logging.getLogger()
    before = [*root.handlers]
    yield
    root.handlers[:] = before


@pytest.mark.parametrize("extra", [{}, {"is_whole": True}])
def test_a_stream_that_is_closed_stops_nobody_who_logs(
    extra: dict[str, bool], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(logging, "raiseExceptions", False)
    show_log(quiet=False)
    handler = cast("logging.StreamHandler[io.StringIO]", logging.getLogger().handlers[-1])
    closed = _Closed()
    closed.close()
    handler.setStream(closed)
    logging.getLogger("fast_agent").warning("written nowhere", extra=extra)
