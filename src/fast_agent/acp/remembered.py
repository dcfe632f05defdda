"""What outlives a process: what a user always allows or never does, and the state of a restart.

Permissions are kept in the home. The state is handed to the process that takes this one's place in
the same connection.
"""

from __future__ import annotations

import json
import os
from logging import getLogger
from typing import TYPE_CHECKING, Final, Literal, TypeAlias, cast

from fast_agent.text.frozen import frozen

if TYPE_CHECKING:
    from collections.abc import MutableMapping
    from pathlib import Path

    from fast_agent.text.json_value import JsonObject

Verdict: TypeAlias = Literal["allow", "reject"]
PERMISSIONS_FILE = "permissions.json"
_MAX_FILE_BYTES = 4 << 20
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
        from fast_agent.text.safe_file import FileLock, write_atomic

        lock = FileLock(self._path.with_suffix(".lock"))
        try:
            self._path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            if not lock.take(wait=_WAIT_SECONDS):
                log.warning("the permission is not saved: `%s` is in use", self._path)
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
            log.warning("the permission is not saved: %s", error)

    def _read(self) -> dict[str, dict[str, str]]:
        from fast_agent.text.safe_file import RefusedFileError, read_confined

        try:
            data = read_confined(self._path.parent, self._path.name, _MAX_FILE_BYTES).data
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


STATE_VARIABLE: Final = "FAST_AGENT_ACP_HANDOVER"
"""Names the descriptor it is read from, for the one process it is meant for."""


@frozen(kw_only=True)
class RestartState:
    """Everything the next process needs to continue with a client as if nothing had happened.

    Args:
        hello: The parameters of the client's `initialize`.
        sessions: Those of a `session/resume` for each session, with the `agent` it talks to.
        unread: The start of a message that has not arrived whole.
        asked: How many requests the client was sent; no number is used twice.
    """

    hello: JsonObject
    sessions: tuple[JsonObject, ...]
    unread: bytes = b""
    asked: int = 0

    def leave(self, environ: MutableMapping[str, str]) -> None:
        """Leave it to the program that this process runs next.

        It travels in a file without a name, because what clients send may contain secrets.

        Args:
            environ: The environment of that program.

        Raises:
            OSError: It cannot be written.
        """
        from base64 import b64encode
        from tempfile import mkstemp

        facts = {
            "hello": self.hello,
            "sessions": self.sessions,
            "unread": b64encode(self.unread).decode(),
            "asked": self.asked,
        }
        descriptor, path = mkstemp()
        os.unlink(path)  # noqa: PTH108
        with os.fdopen(os.dup(descriptor), "wb") as file:
            file.write(json.dumps(facts).encode())
        os.lseek(descriptor, 0, os.SEEK_SET)
        os.set_inheritable(descriptor, True)
        environ[STATE_VARIABLE] = str(descriptor)

    @classmethod
    def taken(cls, environ: MutableMapping[str, str]) -> RestartState | None:
        """Take what was left to this process; nothing of it stays in the environment.

        Args:
            environ: The environment.
        """
        named = environ.pop(STATE_VARIABLE, None)
        if named is None:
            return None
        from base64 import b64decode

        try:
            with os.fdopen(int(named), "rb") as file:
                facts = cast("dict[str, object]", json.loads(file.read()))
            return cls(
                hello=cast("JsonObject", facts["hello"]),
                sessions=tuple(cast("list[JsonObject]", facts["sessions"])),
                unread=b64decode(cast("str", facts["unread"])),
                asked=cast("int", facts["asked"]),
            )
        except (OSError, ValueError, KeyError, TypeError) as error:
            log.warning("what the previous process left cannot be read: %s", error)
            return None
