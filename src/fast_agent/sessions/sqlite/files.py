"""Session files: the SQLite files of the sessions in a home directory.

A file for each session limits what can go wrong: a damaged file is one session lost, writers of
different sessions never wait for each other, and a session is deleted or copied as a file is. A
session is written by one process at a time, which holds the lock file next to it; any number of
processes may read it at the same time.

What a list shows of the sessions is kept in one file beside them, so that it opens only those that
changed since: opening 10,000 takes seconds.
"""

from __future__ import annotations

import json
import os
from contextlib import suppress
from dataclasses import asdict, replace
from typing import TYPE_CHECKING, Any, Final, TypeAlias, cast

from fast_agent.errors import SessionError, SessionInUseError, os_reason
from fast_agent.sessions.facts import SessionSummary
from fast_agent.sessions.log import SESSION_ID, summary_of
from fast_agent.sessions.sqlite.log import SqliteLog, remove_files
from fast_agent.text.safe_file import FileLock, write_atomic

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

DIRECTORY: Final = "sessions"
"""Where the sessions are in the home directory."""

_SUFFIX = ".sqlite"
_SUMMARIES: Final = "summaries.json"
_SETTLED_NS: Final = 2_000_000_000
"""A file that changed this recently may change again without another time."""

_Stamp: TypeAlias = "tuple[int, ...]"
"""When a session's files changed last, in nanoseconds, and their sizes."""


class SessionFiles:
    """The session files of a home directory.

    Args:
        home: The home directory; missing directories are made with the first session.
        now: The clock, in seconds since the epoch.
        disk_seconds: How long the end of a turn may stay in the system's memory, in seconds.
    """

    is_shared = False

    def __init__(self, home: Path, now: Callable[[], float], disk_seconds: float) -> None:
        self._directory = home / DIRECTORY
        self._now = now
        self._disk_seconds = disk_seconds

    def create(self, facts: Mapping[str, str]) -> SqliteLog:
        """Make the file of a new session.

        Args:
            facts: What is to be known of the session without its events; `id` among them, and
                `alias` where it is to be found by one.

        Raises:
            SessionError: It cannot be made.
        """
        session_id = facts["id"]
        try:
            self._directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        except OSError as error:
            msg = f"cannot keep sessions in `{self._directory}`: {os_reason(error)}"
            hint = "set `FAST_AGENT_HOME` to a directory you can write to, or use `--no-session`"
            raise SessionError(msg, hint=hint) from error
        lock = self._locked(session_id)
        try:
            log = SqliteLog.create(self._path(session_id), facts, self._now, self._disk_seconds)
        except BaseException:
            lock.release()
            self._lock_path(session_id).unlink(missing_ok=True)
            raise
        log.lock = lock
        if "alias" in facts:
            try:
                path = self._alias_path(facts["alias"])
                descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
                with os.fdopen(descriptor, "w", encoding="ascii") as file:
                    file.write(session_id)
            except OSError as error:
                log.close()
                remove_files(self._path(session_id))
                self._lock_path(session_id).unlink(missing_ok=True)
                msg = f"the session cannot get its alias: {os_reason(error)}"
                raise SessionError(msg) from error
        return log

    def open(self, session_id: str) -> SqliteLog:
        """Open a session's file for writing.

        Raises:
            SessionError: It is missing, in use, damaged, or of a newer version.
        """
        lock = self._locked(session_id)
        try:
            log = SqliteLog.open(self._path(session_id), self._now, self._disk_seconds)
        except BaseException:
            lock.release()
            raise
        log.lock = lock
        return log

    def read(self, session_id: str) -> SqliteLog:
        """Open a session's file for reading; another process may be writing it.

        Raises:
            SessionError: It is missing, damaged, or of a newer version.
        """
        return SqliteLog.open(self._path(session_id), self._now, read_only=True)

    def has(self, session_id: str) -> bool:
        """Whether there is a session of this id."""
        return self._path(session_id).exists()

    def aliased(self, alias: str, idle_seconds: float) -> str | None:
        """Return the id of the session with an alias; None without one.

        Args:
            alias: The alias.
            idle_seconds: A session that nothing happened in for longer is not found.

        Raises:
            SessionError: The file of the alias cannot be read.
        """
        try:
            session_id = self._alias_path(alias).read_text("ascii")
        except FileNotFoundError:
            return None
        except (OSError, ValueError) as error:
            raise SessionError(f"the alias of a session cannot be read: {error}") from error
        if not SESSION_ID.fullmatch(session_id):
            return None
        changed = 0.0
        for ending in ("", "-wal"):
            with suppress(OSError):
                path = self._path(session_id)
                status = path.with_name(f"{path.name}{ending}").stat()
                changed = max(changed, status.st_mtime)
        return session_id if self._now() - changed <= idle_seconds else None

    def ids(self) -> list[str]:
        """List the ids of all sessions, in order."""
        try:
            stems = [path.stem for path in sorted(self._directory.glob(f"*{_SUFFIX}"))]
        except OSError:
            return []
        return [stem for stem in stems if SESSION_ID.fullmatch(stem)]

    def list(self, *, check: bool = False) -> list[SessionSummary]:
        """Describe every session, in the order of their ids; damaged ones too.

        Args:
            check: Read every event of each to find damage.
        """
        if check:
            return [self._summary(session_id, check=True) for session_id in self.ids()]
        return _Summaries(self._directory).list(lambda one: self._summary(one, check=False))

    def remove(self, session_id: str) -> None:
        """Delete the files of a session.

        Raises:
            SessionError: It is in use, or cannot be deleted.
        """
        lock = self._locked(session_id)
        try:
            with suppress(SessionError):  # without facts, its alias leads nowhere from now on
                log = self.read(session_id)
                alias = log.read_facts().get("alias")
                log.close()
                if alias is not None:
                    self._alias_path(alias).unlink(missing_ok=True)
            remove_files(self._path(session_id))
            for path in self._directory.glob(f"{session_id}.steps*"):
                path.unlink(missing_ok=True)
            _Summaries(self._directory).forget(session_id)
            # A process that waits for this lock finds no session behind it.
            self._lock_path(session_id).unlink(missing_ok=True)
        finally:
            lock.release()

    def _summary(self, session_id: str, *, check: bool) -> SessionSummary:
        try:
            log = self.read(session_id)
            try:
                if check:
                    log.check()
                return replace(summary_of(log), id=session_id)
            finally:
                log.close()
        except SessionError as error:
            try:
                changed = self._path(session_id).stat().st_mtime
            except OSError:
                changed = 0.0
            return SessionSummary(id=session_id, changed=changed, problem=error.message)

    def _path(self, session_id: str) -> Path:
        return self._directory / f"{session_id}{_SUFFIX}"

    def _alias_path(self, alias: str) -> Path:
        return self._directory / f"{alias}.alias"

    def _lock_path(self, session_id: str) -> Path:
        return self._directory / f"{session_id}.lock"

    def _locked(self, session_id: str) -> FileLock:
        lock = FileLock(self._lock_path(session_id))
        try:
            taken = lock.take()
        except OSError as error:
            reason = os_reason(error)
            raise SessionError(f"session `{session_id}` cannot be opened: {reason}") from error
        if not taken:
            raise SessionInUseError(
                f"session `{session_id}` is in use by process {lock.holder() or '?'}",
                hint=f"end it there, or continue a copy: `fast-agent session fork {session_id}`",
            )
        return lock


class _Summaries:
    """Summaries of the sessions of a directory, kept until their files change."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._path = directory / _SUMMARIES

    def list(self, read: Callable[[str], SessionSummary]) -> list[SessionSummary]:
        """Describe every session, in the order of their ids; `read` describes a changed one."""
        kept, stamps = self._read_index(), self._stamps()
        if any(name not in kept or kept[name][0] != stamp for name, stamp in stamps.items()):
            settled = self._now_ns() - _SETTLED_NS
        else:
            settled = None
        found: list[SessionSummary] = []
        fresh: dict[str, tuple[_Stamp, SessionSummary]] = {}
        for session_id in sorted(stamps):
            stamp = stamps[session_id]
            before = kept.get(session_id)
            is_same = before is not None and before[0] == stamp
            summary = before[1] if before is not None and is_same else read(session_id)
            found.append(summary)
            if summary.problem is None and (settled is None or max(stamp[::2]) < settled):
                fresh[session_id] = stamp, summary
        if fresh != kept:
            self._keep(fresh)
        return found

    def forget(self, session_id: str) -> None:
        """Forget a deleted session: its title is a part of what was said in it."""
        kept = self._read_index()
        if kept.pop(session_id, None) is not None:
            self._keep(kept)

    def _stamps(self) -> dict[str, _Stamp]:
        """Look at the files, and at what was written beside them since."""
        found: dict[str, dict[str, tuple[int, int]]] = {}
        try:
            with os.scandir(self._directory) as entries:
                for entry in entries:
                    name, suffix, rest = entry.name.partition(_SUFFIX)
                    if suffix and rest in {"", "-wal"} and SESSION_ID.fullmatch(name):
                        with suppress(OSError):  # it was deleted just now
                            facts = entry.stat()
                            if facts.st_size:  # reading alone leaves an empty one behind
                                found.setdefault(name, {})[rest] = facts.st_mtime_ns, facts.st_size
        except OSError:
            return {}
        return {
            name: (*files[""], *files.get("-wal", ()))
            for name, files in found.items()
            if "" in files
        }

    def _now_ns(self) -> int:
        """Return the time by the clock that stamps files, which may be another machine's."""
        try:
            probe = self._directory / f".{_SUMMARIES}.{os.getpid()}"
            probe.touch()
            now = probe.stat().st_mtime_ns
            probe.unlink()
        except OSError:
            return 0
        return now

    def _read_index(self) -> dict[str, tuple[_Stamp, SessionSummary]]:
        try:
            value: object = json.loads(self._path.read_bytes())
            entries = cast("dict[str, Any]", value)
            return {
                name: (tuple(stamp), SessionSummary(**facts))
                for name, (stamp, facts) in entries.items()
            }
        except (OSError, ValueError, TypeError, AttributeError):
            return {}

    def _keep(self, kept: Mapping[str, tuple[_Stamp, SessionSummary]]) -> None:
        entries = {name: (stamp, asdict(summary)) for name, (stamp, summary) in kept.items()}
        with suppress(OSError):  # without it, the next list opens the sessions again
            write_atomic(self._path, json.dumps(entries).encode())
