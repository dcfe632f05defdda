"""Plugin for pytest: which functions each test enters, and how long it takes.

`ENTERED_SOURCE` names the directory whose files count, and `ENTERED_FILE` what is written at the
end: by test, its seconds and the places of functions. What runs in another process is not seen.
"""

from __future__ import annotations

import json
import os
import sys
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING, TypedDict

import pytest

if TYPE_CHECKING:
    from collections.abc import Generator
    from types import CodeType, FrameType


class Entered(TypedDict):
    """What a test entered.

    Args:
        seconds: How long it took.
        places: The functions, as `PATH:LINE`; the line is that of its first decorator, if any.
    """

    seconds: float
    places: list[str]


_SOURCE = os.environ["ENTERED_SOURCE"] + os.sep
_tests: dict[str, Entered] = {}


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, object, object]:
    """Note the functions that a test enters, with its fixtures."""
    entered: set[CodeType] = set()

    def note(frame: FrameType, event: str, argument: object) -> None:
        del argument
        if event == "call":
            entered.add(frame.f_code)

    start = time.perf_counter()
    threading.setprofile(note)
    sys.setprofile(note)
    try:
        return (yield)
    finally:
        sys.setprofile(None)
        threading.setprofile(None)
        places = {
            f"{code.co_filename.removeprefix(_SOURCE)}:{code.co_firstlineno}"
            for code in tuple(entered)
            if code.co_filename.startswith(_SOURCE)
        }
        seconds = time.perf_counter() - start
        _tests[item.nodeid] = {"seconds": seconds, "places": sorted(places)}


def pytest_sessionfinish() -> None:
    """Write what was noted."""
    Path(os.environ["ENTERED_FILE"]).write_text(json.dumps(_tests), "utf-8")
