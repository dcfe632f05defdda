from __future__ import annotations

import io
import logging
import sys
import warnings
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


@pytest.mark.parametrize(
    ("module", "shown"),
    [("google.genai._common", False), ("pydantic_ai.models", False), ("tools", True)],
)
def test_warnings_of_the_libraries_of_models_are_not_shown(
    module: str, shown: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "warnoptions", [])
    with warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("always")
        show_log(quiet=False)
        warnings.warn_explicit("a new reason", UserWarning, "x.py", 1, module=module)
    assert bool(heard) == shown
