"""Linux's inotify, through the C library: events of trees that come and go."""

from __future__ import annotations

import ctypes
import errno
import os
import select
import struct
from threading import Lock
from typing import NamedTuple

from fast_agent.config.home import is_never_served
from fast_agent.errors import ResourceError

_MODIFY, _ATTRIB, _CLOSE_WRITE = 0x2, 0x4, 0x8
_MOVED_FROM, _MOVED_TO, _CREATE, _DELETE = 0x40, 0x80, 0x100, 0x200
_DELETE_SELF, _MOVE_SELF = 0x400, 0x800
_OVERFLOW, _IGNORED, _IS_DIRECTORY = 0x4000, 0x8000, 0x40000000
_ONLY_DIRECTORY, _NO_FOLLOW = 0x1000000, 0x2000000
_CHANGES = (
    _MODIFY
    | _ATTRIB
    | _CLOSE_WRITE
    | _MOVED_FROM
    | _MOVED_TO
    | _CREATE
    | _DELETE
    | _DELETE_SELF
    | _MOVE_SELF
)
_HEAD = struct.Struct("iIII")
_BUFFER = 1 << 16
_MOST_FOLDERS = 50_000


class NoInotifyError(ResourceError):
    """The system has no inotify, or no more of it to give."""


class _Watched(NamedTuple):
    path: str
    names: frozenset[str]
    """The names that matter in it; empty for all, with the folders below."""


class Inotify:
    """Watches places until closed.

    Args:
        places: Directories, and files; missing ones are waited for.
        deep: Whether all below a directory counts, or only what is right in it.

    Raises:
        NoInotifyError: The system has none, no descriptors are left, or too many folders are below
            the places.
    """

    def __init__(self, places: tuple[str, ...], *, deep: bool = True) -> None:
        self._libc = ctypes.CDLL(None, use_errno=True)
        try:
            self._queue = int(self._libc.inotify_init1(os.O_CLOEXEC | os.O_NONBLOCK))
        except AttributeError as error:
            raise NoInotifyError("the C library has no inotify") from error
        if self._queue < 0:
            raise NoInotifyError(os.strerror(ctypes.get_errno()))
        try:
            self._pipe = os.pipe()
        except OSError as error:
            os.close(self._queue)
            raise NoInotifyError("no descriptors are left") from error
        self._deep = deep
        self._closed = False
        self._closing = Lock()
        self._watched: dict[int, _Watched] = {}
        self._parents: dict[str, set[str]] = {}
        for place in places:
            parent, name = os.path.split(os.path.abspath(place))  # noqa: PTH100
            self._parents.setdefault(parent, set()).add(name)
        self._places = tuple(os.path.abspath(place) for place in places)  # noqa: PTH100
        try:
            self._arm()
        except NoInotifyError:
            self.close()
            raise

    def wait(self, seconds: float | None) -> bool:
        """Wait for a change that matters.

        Args:
            seconds: At most; None for as long as it takes, or until `wake`.

        Returns:
            Whether there was one.

        Raises:
            NoInotifyError: New folders are more than the system can watch.
        """
        while True:
            poll = select.poll()
            poll.register(self._queue, select.POLLIN)
            poll.register(self._pipe[0], select.POLLIN)
            ready = poll.poll(None if seconds is None else seconds * 1000)
            if not any(descriptor == self._queue for descriptor, _ in ready):
                return False
            if self._take():
                return True
            if seconds is not None:
                return False

    def wake(self) -> None:
        """Make `wait` return, from any thread."""
        with self._closing:
            if not self._closed:
                os.write(self._pipe[1], b"!")

    def close(self) -> None:
        """Give everything back."""
        with self._closing:
            self._closed = True
            for descriptor in (self._queue, *self._pipe):
                os.close(descriptor)

    def _take(self) -> bool:
        """Read the events that wait; say whether any matters."""
        try:
            data = os.read(self._queue, _BUFFER)
        except BlockingIOError:
            return False
        matters = again = False
        offset = 0
        while offset < len(data):
            number, mask, _, length = _HEAD.unpack_from(data, offset)
            offset += _HEAD.size + length
            name = os.fsdecode(data[offset - length : offset].rstrip(b"\0"))
            if mask & _OVERFLOW:
                matters = again = True
                continue
            watched = self._watched.get(number)
            if mask & _IGNORED:
                self._watched.pop(number, None)
            if watched is None or is_never_served(name):
                continue
            if watched.names and name not in watched.names:
                again = again or not name
                continue
            matters = True
            if watched.names or (mask & _IS_DIRECTORY and mask & (_CREATE | _MOVED_TO)):
                again = True
        if again:
            self._arm()
        return matters

    def _arm(self) -> None:
        """Watch the parents of all places, and the folders there are at and below them."""
        for parent, names in self._parents.items():
            self._add(parent, frozenset(names))
        waiting = list(self._places)
        while waiting:
            folder = waiting.pop()
            if not self._add(folder, frozenset()) or not self._deep:
                continue
            try:
                with os.scandir(folder) as entries:
                    waiting.extend(
                        entry.path
                        for entry in entries
                        if entry.is_dir(follow_symlinks=False) and not is_never_served(entry.name)
                    )
            except OSError:
                continue  # gone again

    def _add(self, path: str, names: frozenset[str]) -> bool:
        mask = _CHANGES | _ONLY_DIRECTORY | (0 if path in self._parents else _NO_FOLLOW)
        number = int(self._libc.inotify_add_watch(self._queue, os.fsencode(path), mask))
        if number < 0:
            if ctypes.get_errno() == errno.ENOSPC:
                raise NoInotifyError("too many folders are watched")
            return False
        # A parent of one place may lie inside another, where all names matter.
        if not names or number not in self._watched:
            self._watched[number] = _Watched(path, names)
        if len(self._watched) > _MOST_FOLDERS:
            raise NoInotifyError("too many folders are watched")
        return True
