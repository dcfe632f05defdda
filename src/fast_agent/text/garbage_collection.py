"""The garbage collector, where it would only slow work down."""

from __future__ import annotations

import gc
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Generator

_MANY_VALUES: Final = 10_000
"""How many new values a search for garbage should not look through."""


@contextmanager
def collection_paused() -> Generator[None]:
    """Make no search for garbage within.

    Reading a session or importing an SDK makes hundreds of thousands of values and no garbage; the
    collector would look through all of them again and again. That takes longer than reading a
    session, and a fifth of an import.
    """
    if not gc.isenabled():
        yield
        return
    gc.disable()
    try:
        yield
    finally:
        # Counting what is frozen walks through all of it, a million values in a large process.
        if gc.get_count()[0] > _MANY_VALUES and not gc.get_freeze_count():
            # What was made counts as old, else the next search, which is near, looks through it.
            gc.freeze()
            gc.unfreeze()
        gc.enable()
