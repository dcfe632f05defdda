"""Watching: a reload soon after something changes on disk."""

from __future__ import annotations

import os
from logging import getLogger
from threading import Lock
from typing import TYPE_CHECKING, Self

from fast_agent.resources.watch import start_watch

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import TracebackType

    from fast_agent.registry.reload import Reload, Reloader

log = getLogger(__name__)


class CardWatch:
    """Reloads when cards, or files they depend on, change: `with CardWatch(reloader, on_reload):`.

    Args:
        reloader: Makes the passes.
        on_reload: Called in the watcher's thread for each pass that changed something or was
            refused.
    """

    def __init__(self, reloader: Reloader, on_reload: Callable[[Reload], None]) -> None:
        self._reloader = reloader
        self._on_reload = on_reload
        self._lock = Lock()
        self._places: tuple[str, ...] = ()
        self._stop: Callable[[], None] | None = None
        self._closed = False

    def __enter__(self) -> Self:
        self.look_after()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        with self._lock:
            self._closed = True
            if self._stop is not None:
                self._stop()
                self._stop = None

    def look_after(self) -> None:
        """Watch the places there are now; called again when more roots were loaded."""
        places = watched_places(self._reloader)
        with self._lock:
            if self._closed or places == self._places:
                return
            stop, self._places = self._stop, places
            self._stop = start_watch(places, self._changed, deep=False) if places else None
        if stop is not None:
            stop()

    def _changed(self) -> None:
        try:
            done = self._reloader.run()
            if done.changed or done.refused or done.problems:
                self._on_reload(done)
        except Exception:  # a task boundary: a pass that fails is not the end of watching
            log.exception("cards could not be reloaded")
        self.look_after()


def watched_places(reloader: Reloader) -> tuple[str, ...]:
    """List what a change of may change the agents: roots, and the files cards stand on."""
    places: dict[str, None] = {}
    for root in reloader.roots:
        if not root.remote:
            places[os.path.abspath(root.path)] = None  # noqa: PTH100
            # A link is replaced in its own directory, its target changes in that one's.
            places[os.path.realpath(root.path)] = None
    for path in reloader.inputs:
        places.setdefault(path, None)
    return tuple(places)
