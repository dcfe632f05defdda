"""Remembered permissions: what a person always allows or never does, kept in the home."""

from __future__ import annotations

import json
from logging import getLogger
from typing import TYPE_CHECKING, Literal, TypeAlias, cast

if TYPE_CHECKING:
    from pathlib import Path

Verdict: TypeAlias = Literal["allow", "reject"]

FILE = "permissions.json"
_LARGEST = 4 << 20
_WAIT_SECONDS = 5.0

log = getLogger(__name__)


class RememberedPermissions:
    """Verdicts, by the directory they hold in and what they are about.

    The file is read on each use, because another process may have written it.

    Args:
        path: The file; it need not exist.
    """

    def __init__(self, path: Path) -> None:
        self._path = path

    @property
    def home(self) -> Path:
        """The home directory of the program, where the file is."""
        return self._path.parent

    def verdict(self, place: str, subject: str) -> Verdict | None:
        """Return the verdict, or None if there is none.

        Args:
            place: The directory of the session.
            subject: What it is about.
        """
        found = self._read().get(place, {}).get(subject)
        return cast("Verdict", found) if found in {"allow", "reject"} else None

    def all(self, place: str) -> dict[str, str]:
        """Return every verdict of a directory, by what it is about."""
        return dict(self._read().get(place, {}))

    def forget(self, place: str, subject: str) -> None:
        """Take a verdict back; where that cannot be, it is only logged."""
        self._change(place, subject, None)

    def keep(self, place: str, subject: str, verdict: Verdict) -> None:
        """Keep a verdict; where that cannot be, it is only logged, and asked about again."""
        self._change(place, subject, verdict)

    def _change(self, place: str, subject: str, verdict: Verdict | None) -> None:
        from fast_agent.text.atomic_file import FileLock, write_atomic

        lock = FileLock(self._path.with_suffix(".lock"))
        try:
            self._path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            if not lock.take(wait=_WAIT_SECONDS):
                log.warning("the permission is not kept: `%s` is in use", self._path)
                return
            try:
                known = self._read()
                here = known.setdefault(place, {})
                here.pop(subject, None)
                if verdict is not None:
                    here[subject] = verdict
                text = json.dumps(known, indent=2, sort_keys=True)
                write_atomic(self._path, text.encode(errors="replace") + b"\n")
            finally:
                lock.release()
        except OSError as error:
            log.warning("the permission is not kept: %s", error)

    def _read(self) -> dict[str, dict[str, str]]:
        from fast_agent.text.safe_file import RefusedFileError, read_confined

        try:
            data = read_confined(self._path.parent, self._path.name, _LARGEST).data
            value: object = json.loads(data)
        except RefusedFileError as refusal:
            if not refusal.missing:
                log.warning("`%s` %s; nothing is remembered", self._path, refusal.message)
            return {}
        except (ValueError, RecursionError):
            value = None
        if not _is_table(value):
            log.warning("`%s` holds no permissions; nothing is remembered", self._path)
            return {}
        return cast("dict[str, dict[str, str]]", value)


def _is_table(value: object) -> bool:
    if not isinstance(value, dict):
        return False
    inner = cast("dict[str, object]", value).values()
    return all(isinstance(one, dict) for one in inner)
