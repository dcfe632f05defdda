"""The change watcher: calls back soon after something changes below some places on disk.

It runs in a thread, so that an edge needs no event loop. It uses inotify on Linux, elsewhere the
`watchfiles` package where it is installed, and otherwise looks for itself, never for more than a
tenth of the time.
"""

from __future__ import annotations

import atexit
import os
import sys
from threading import Event, Thread
from time import monotonic
from typing import TYPE_CHECKING, TypeAlias

from fast_agent.config.home import is_never_served

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

_BEGIN = 0.1
"""Seconds before the watcher begins, so that the answer it is begun for goes out first."""
_QUIET = 0.015
_LONGEST_BURST = 0.06
_POLL = 0.04
_POLL_SHARE = 10
_MOST_SEEN = 200_000
_LAST_WAIT = 2

Waiter: TypeAlias = "Callable[[float | None], bool]"
"""Waits for a change: given seconds at most, or None; False where there was none in time."""


def start_watch(
    places: Sequence[str], on_change: Callable[[], None], *, deep: bool = True
) -> Callable[[], None]:
    """Watch places on disk.

    Args:
        places: Directories and files. They may be missing or come and go.
        on_change: Called in the watcher's thread once it watches, so that nothing done before is
            missed, and after each burst of changes. What it raises is logged.
        deep: Whether all below a directory is watched, or only what is right in it.

    Returns:
        A function that stops the watcher; it may be called from `on_change`, and does not wait.
    """
    watch = _Watch(tuple(places), on_change, deep=deep)
    # A thread that works on while the interpreter goes down would abort it; told before it is
    # begun, so that no end of the program can come between.
    atexit.register(watch.end)
    watch.start()
    return watch.stop


class _Watch(Thread):
    def __init__(
        self, places: tuple[str, ...], on_change: Callable[[], None], *, deep: bool
    ) -> None:
        super().__init__(name="watch", daemon=True)
        self._places = places
        self._deep = deep
        self._on_change = on_change
        self._stopped = Event()
        self._wake: Callable[[], None] = self._stopped.set

    def stop(self) -> None:
        self._stopped.set()
        self._wake()

    def run(self) -> None:
        try:
            if not self._stopped.wait(_BEGIN):
                self._watch()
        finally:
            atexit.unregister(self.end)

    def end(self) -> None:
        self.stop()
        self.join(_LAST_WAIT)

    def _watch(self) -> None:
        if sys.platform == "linux" and self._run_inotify():
            return
        if not self._run_watchfiles():
            self._run(_Poll(self._places, self._stopped, deep=self._deep).wait)

    def _run_inotify(self) -> bool:
        """Watch with inotify; False where the system gives too little of it."""
        from fast_agent.resources.inotify import Inotify, NoInotifyError

        try:
            notify = Inotify(self._places, deep=self._deep)
        except NoInotifyError:
            return False
        self._wake = notify.wake
        try:
            self._run(notify.wait)
        except NoInotifyError:
            return False
        finally:
            self._wake = self._stopped.set
            notify.close()
        return True

    def _run_watchfiles(self) -> bool:
        """Watch with the `watchfiles` package; False where it cannot serve."""
        try:
            from watchfiles import watch
        except ImportError:
            return False
        while not self._stopped.is_set():
            places = self._identities()
            if None in places:
                return False  # it cannot wait for a place to come
            begun = False
            changing = watch(
                *self._places,
                watch_filter=None,
                recursive=self._deep,
                debounce=30,
                step=15,
                stop_event=self._stopped,
                rust_timeout=200,
                yield_on_timeout=True,
                raise_interrupt=False,
            )
            # It does not see a place that came back in the place of another: then it begins again.
            while not begun or self._identities() == places:
                try:
                    changes = next(changing)
                except StopIteration:
                    return True
                except (OSError, RuntimeError):
                    return False  # the system gives too little
                if changes or not begun:
                    begun = True
                    self._call()
        return True

    def _identities(self) -> list[tuple[int, int] | None]:
        """Tell places from others that come under their names; None for what is not there."""
        found: list[tuple[int, int] | None] = []
        for place in self._places:
            try:
                status = os.stat(place)  # noqa: PTH116
            except OSError:
                found.append(None)
            else:
                found.append((status.st_dev, status.st_ino))
        return found

    def _run(self, wait: Waiter) -> None:
        if not self._stopped.is_set():
            self._call()
        while not self._stopped.is_set():
            if wait(None) and not self._stopped.is_set():
                end = monotonic() + _LONGEST_BURST
                while monotonic() < end and wait(_QUIET):
                    pass
                if not self._stopped.is_set():
                    self._call()

    def _call(self) -> None:
        try:
            self._on_change()
        except Exception:  # a task boundary: the watcher outlives a bad refresh
            from logging import getLogger

            getLogger(__name__).exception("could not look at what changed")


class _Poll:
    """Looks at the state of every file again and again."""

    def __init__(self, places: tuple[str, ...], stopped: Event, *, deep: bool) -> None:
        self._places = places
        self._deep = deep
        self._stopped = stopped
        self._pause = _POLL
        self._state = self._look()

    def wait(self, seconds: float | None) -> bool:
        end = None if seconds is None else monotonic() + seconds
        while not self._stopped.wait(self._pause if seconds is None else min(self._pause, seconds)):
            state = self._look()
            changed, self._state = state != self._state, state
            if changed:
                return True
            if end is not None and monotonic() >= end:
                return False
        return False

    def _look(self) -> dict[str, tuple[int, int, int]]:
        begun = monotonic()
        state: dict[str, tuple[int, int, int]] = {}
        for path, status in _tree(self._places, deep=self._deep):
            state[path] = (status.st_mtime_ns, status.st_size, status.st_ino)
            if len(state) > _MOST_SEEN:
                break
        self._pause = max(_POLL, (monotonic() - begun) * _POLL_SHARE)
        return state


def _tree(places: Sequence[str], *, deep: bool) -> Iterator[tuple[str, os.stat_result]]:
    """Every file and directory at and below some places; links below are not followed."""
    waiting: list[str] = []
    for place in places:
        try:
            yield place, os.stat(place)  # noqa: PTH116
        except OSError:
            continue
        waiting.append(place)
    while waiting:
        folder = waiting.pop()
        try:
            with os.scandir(folder) as entries:
                for entry in entries:
                    if is_never_served(entry.name):
                        continue
                    is_folder = entry.is_dir(follow_symlinks=False)
                    if deep or not is_folder:
                        yield entry.path, entry.stat(follow_symlinks=False)
                    if deep and is_folder:
                        waiting.append(entry.path)
        except OSError:
            continue  # gone, or a file
