"""Server tools: what approved servers of projects offered, so that a change is reported once."""

from __future__ import annotations

import json
import logging
from typing import TYPE_CHECKING, Final, TypeAlias, cast

from fast_agent.errors import os_reason
from fast_agent.text.visible import visible

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

Digests: TypeAlias = "Mapping[str, str]"

FILE: Final = "server-tools.json"
"""Where they are in the home."""

_MAX_FILE: Final = 16 << 20
_WAIT: Final = 5.0
_SHOWN: Final = 5
_NAME: Final = 100

log = logging.getLogger(__name__)


class ServerTools:
    """The tools of servers by digest, by root and server, in a file only its owner may read.

    Args:
        path: The file; it need not exist.
    """

    def __init__(self, path: Path) -> None:
        self._path = path

    def change(self, root: Path, server: str, tools: Digests) -> str | None:
        """Remember the tools of a server.

        Args:
            root: The root of the set that brings it.
            server: Its name.
            tools: Digests of what it lists, by name.

        Returns:
            What is different from the last time, in words; None where nothing is, or where the
            server is new. What cannot be stored is logged, and reported again.
        """
        from fast_agent.text.safe_file import FileLock

        lock = FileLock(self._path.with_suffix(".lock"))
        try:
            self._path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            if not lock.take(wait=_WAIT):
                log.warning("the tools of servers are not kept: `%s` is in use", self._path)
                return None
            try:
                known = self._read()
                before = known.get(str(root), {}).get(server)
                if before != tools:
                    known.setdefault(str(root), {})[server] = tools
                    self._write(known)
            finally:
                lock.release()
        except OSError as error:
            log.warning("the tools of servers are not kept: %s", os_reason(error))
            return None
        return None if before is None or before == tools else _difference(before, tools)

    def _read(self) -> dict[str, dict[str, Digests]]:
        from fast_agent.text.safe_file import RefusedFileError, read_confined

        try:
            value: object = json.loads(
                read_confined(self._path.parent, self._path.name, _MAX_FILE).data
            )
        except RefusedFileError as refusal:
            if not refusal.missing:
                log.warning("`%s` %s; no tools are remembered", self._path, refusal.message)
            return {}
        except (ValueError, RecursionError):
            value = None
        if not _is_table(value, depth=3):
            log.warning("`%s` holds no tools of servers; none are remembered", self._path)
            return {}
        return cast("dict[str, dict[str, Digests]]", value)

    def _write(self, known: Mapping[str, Mapping[str, Digests]]) -> None:
        from fast_agent.text.safe_file import write_atomic

        text = json.dumps(known, sort_keys=True, indent=0)
        write_atomic(self._path, text.encode("utf-8", "surrogatepass"))
        self._path.chmod(0o600)


def _difference(before: Digests, now: Digests) -> str:
    parts = {
        "new": [name for name in now if name not in before],
        "changed": [name for name in now if name in before and before[name] != now[name]],
        "gone": [name for name in before if name not in now],
    }
    return "; ".join(f"{kind} {_listed(names)}" for kind, names in parts.items() if names)


def _listed(names: Sequence[str]) -> str:
    shown = ", ".join(f"`{visible(name[:_NAME])}`" for name in names[:_SHOWN])
    rest = len(names) - _SHOWN
    return f"{shown} and {rest} more" if rest > 0 else shown


def _is_table(value: object, *, depth: int) -> bool:
    if not isinstance(value, dict):
        return depth == 0 and isinstance(value, str)
    return depth > 0 and all(
        _is_table(one, depth=depth - 1) for one in cast("dict[str, object]", value).values()
    )
