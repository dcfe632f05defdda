"""What every test shares."""

from __future__ import annotations

import gc
import os
import signal

from hypothesis import HealthCheck, settings
from hypothesis.internal.conjecture import providers
from hypothesis.internal.constants_ast import Constants
from tests.runners import (
    pytest_addoption,
    pytest_configure,
    pytest_fixture_setup,
    pytest_pyfunc_call,
)

__all__ = ["pytest_addoption", "pytest_configure", "pytest_fixture_setup", "pytest_pyfunc_call"]

settings.register_profile(
    "repeatable",
    derandomize=True,
    deadline=None,
    print_blob=False,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.register_profile(
    "fuzz",  # `make fuzz`: longer, and another way each time
    max_examples=5_000,
    deadline=None,
    print_blob=True,
    suppress_health_check=[HealthCheck.too_slow],
)
PROFILE = os.environ.get("HYPOTHESIS_PROFILE", "repeatable")
settings.load_profile(PROFILE)
if PROFILE == "repeatable":
    # It also draws what it finds written in the modules that are loaded by then, which are others
    # in each process and order of tests.
    providers._get_local_constants = Constants

# A shell that runs the tests in the background has them, and every program they start, ignore
# interrupts; some tests interrupt programs.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)
if signal.getsignal(signal.SIGHUP) is signal.SIG_IGN:  # as under `nohup`
    signal.signal(signal.SIGHUP, signal.SIG_DFL)


_THRESHOLD = gc.get_threshold()
gc.set_threshold(100_000)  # collecting tests makes no garbage


def pytest_collection_finish() -> None:
    """Search for garbage as usual, but not among a million values of what was collected.

    It would take a tenth of the time of all tests.
    """
    gc.freeze()
    gc.set_threshold(*_THRESHOLD)
