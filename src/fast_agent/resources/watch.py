"""The change watcher: calls back soon after something changes below some places on disk.

It runs in a thread, so that an edge needs no event loop. It uses `watchfiles`; where the system has
more watches available, it polls, never for more than a tenth of the time.
"""

from __future__ import annotations

import atexit
import os
from threading import Event, Thread
from time import monotonic
from typing import TYPE_CHECKING, TypeAlias

from fast_agent.config.home import is_never_served

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

_BEGIN = 0.1
"""Seconds before the watcher starts, so that the answer it is started for goes out first."""
_QUIET = 0.015
_MAX_BURST = 0.06
_POLL = 0.04
_POLL_SHARE = 10
_MAX_SEEN = 200_000
_LAST_WAIT = 2
_MAX_FOLDERS = 50_000
_STEP_MS = 10
"""How often `watchfiles` looks: latency against load; idle, this takes 0.5 % of a processor."""
_ARMED_MS = 50
"""When it is certain to watch, after it was given the paths."""

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
    # A thread that keeps working while the interpreter shuts down would abort it; notified before
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

    def stop(self) -> None:
        self._stopped.set()

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
        if not self._run_watchfiles():
            self._run(_Poll(self._places, self._stopped, deep=self._deep).wait)

    def _run_watchfiles(self) -> bool:
        """Watch with `watchfiles`; False if it cannot be imported or has too few watches."""
        try:
            from watchfiles import watch
        except ImportError:
            return False
        while not self._stopped.is_set():
            watched = _Folders(self._places, deep=self._deep)
            if len(watched.folders) > _MAX_FOLDERS:
                return False
            # Never recursive: that would follow links, to the whole disk if they lead there.
            changing = watch(
                *watched.folders,
                watch_filter=watched.is_relevant,
                recursive=False,
                debounce=2 * _STEP_MS,
                step=_STEP_MS,
                stop_event=self._stopped,
                rust_timeout=_ARMED_MS,
                yield_on_timeout=True,
                raise_interrupt=False,
            )
            try:
                begun = False
                for changes in changing:
                    if changes or not begun:
                        begun = True
                        self._call()
                    if any(watched.is_outdated_by(path) for _, path in changes):
                        break
            except FileNotFoundError:
                self._stopped.wait(_POLL)  # a folder went away before it was watched
            except (OSError, RuntimeError):
                return False
        return True

    def _run(self, wait: Waiter) -> None:
        if not self._stopped.is_set():
            self._call()
        while not self._stopped.is_set():
            if wait(None) and not self._stopped.is_set():
                end = monotonic() + _MAX_BURST
                while monotonic() < end and wait(_QUIET):
                    pass
                if not self._stopped.is_set():
                    self._call()

    def _call(self) -> None:
        try:
            self._on_change()
        except Exception:  # a task boundary: the watcher outlives a bad refresh
            from logging import getLogger

            getLogger(__name__).exception("could not check what changed")


class _Folders:
    """The folders to watch for some places: those of the places, and the ones above them.

    Args:
        places: Directories and files. A missing one is waited for in the nearest folder above it.
        deep: Whether all below a directory is watched, or only what is right in it.
    """

    def __init__(self, places: tuple[str, ...], *, deep: bool) -> None:
        self._deep = deep
        self._inside: dict[str, None] = {}
        """Folders in which every name matters."""
        self._names: set[str] = set()
        """Paths that matter in the folders above places."""
        above: dict[str, None] = {}
        for place in places:
            path = os.path.abspath(place)  # noqa: PTH100
            self._names.add(path)
            parent = os.path.dirname(path)  # noqa: PTH120
            while not os.path.isdir(parent):  # noqa: PTH112
                self._names.add(parent)
                parent = os.path.dirname(parent)  # noqa: PTH120
            above[parent] = None
            if os.path.isdir(path):  # noqa: PTH112
                self._inside[path] = None
                if deep:
                    self._inside.update(dict.fromkeys(_folders_below(path)))
        self.folders = tuple({**self._inside, **above})

    def is_relevant(self, change: object, path: str) -> bool:
        """Return whether a change at a path is to be reported; see `watchfiles.watch`."""
        del change
        folder, name = os.path.split(path)
        return path in self._names or (folder in self._inside and not is_never_served(name))

    def is_outdated_by(self, path: str) -> bool:
        """Return whether other folders are to be watched since a change at a path."""
        if path in self._names:
            return True
        return path in self._inside or (self._deep and os.path.isdir(path))  # noqa: PTH112


def _folders_below(place: str) -> Iterator[str]:
    """Yield the folders below one; links are not followed."""
    waiting = [place]
    count = 0
    while waiting and count <= _MAX_FOLDERS:
        try:
            with os.scandir(waiting.pop()) as entries:
                for entry in entries:
                    if entry.is_dir(follow_symlinks=False) and not is_never_served(entry.name):
                        yield entry.path
                        waiting.append(entry.path)
                        count += 1
        except OSError:
            continue  # gone again


class _Poll:
    """Looks at the state of every file again and again."""

    def __init__(self, places: tuple[str, ...], stopped: Event, *, deep: bool) -> None:
        self._places = places
        self._deep = deep
        self._stopped = stopped
        self._pause = _POLL
        self._state = self._scan()

    def wait(self, seconds: float | None) -> bool:
        end = None if seconds is None else monotonic() + seconds
        while not self._stopped.wait(self._pause if seconds is None else min(self._pause, seconds)):
            state = self._scan()
            changed, self._state = state != self._state, state
            if changed:
                return True
            if end is not None and monotonic() >= end:
                return False
        return False

    def _scan(self) -> dict[str, tuple[int, int, int]]:
        begun = monotonic()
        state: dict[str, tuple[int, int, int]] = {}
        for path, status in _tree(self._places, deep=self._deep):
            state[path] = (status.st_mtime_ns, status.st_size, status.st_ino)
            if len(state) > _MAX_SEEN:
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
