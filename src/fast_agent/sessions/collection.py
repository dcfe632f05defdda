"""Pausing the collection of garbage while a long session is read."""

from __future__ import annotations

import gc
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Generator


@contextmanager
def collection_paused() -> Generator[None]:
    """Make no search for garbage within.

    Reading a session makes hundreds of thousands of values and no garbage; the collector would
    look through all of them again and again, which takes longer than reading them.
    """
    if not gc.isenabled():
        yield
        return
    gc.disable()
    try:
        yield
    finally:
        if not gc.get_freeze_count():
            # What was made counts as old, else the next search, which is near, looks through it.
            gc.freeze()
            gc.unfreeze()
        gc.enable()
