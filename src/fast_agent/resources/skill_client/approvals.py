"""Which skills of servers a person approved, each bound to the very files it had then."""

from __future__ import annotations

import json
import logging
from typing import TYPE_CHECKING, Literal, TypeAlias, cast

from fast_agent.errors import ResourceError, os_reason

if TYPE_CHECKING:
    from pathlib import Path

    from fast_agent.resources.skill_client.entry import SkillEntry

Standing: TypeAlias = Literal["new", "approved", "changed"]
"""`changed` was approved with other files than it has now."""

FILE = "skill-approvals.json"
MAX_FILE = 4 << 20

_log = logging.getLogger(__name__)


class SkillApprovals:
    """Approvals, kept in a file that only its owner may read.

    Args:
        path: The file; it need not exist.
    """

    def __init__(self, path: Path) -> None:
        self._path = path

    def standing(self, label: str, entry: SkillEntry) -> Standing:
        """Return the approval state of a skill of a server.

        Args:
            label: The server's name.
            entry: The current state of the skill.
        """
        approved = self._read().get(label, {}).get(entry.uri)
        if approved is None:
            return "new"
        return "approved" if approved == entry.fingerprint else "changed"

    def approve(self, label: str, entry: SkillEntry) -> None:
        """Store an approval; one of a skill without a file list cannot be bound, and is not stored.

        Raises:
            ResourceError: The file cannot be written.
        """
        if entry.fingerprint is None:
            return
        known = self._read()
        known.setdefault(label, {})[entry.uri] = entry.fingerprint
        self._write(known)

    def revoke(self, label: str, entry: SkillEntry) -> None:
        """Forget an approval.

        Raises:
            ResourceError: The file cannot be written.
        """
        known = self._read()
        if known.get(label, {}).pop(entry.uri, None) is not None:
            self._write(known)

    def _read(self) -> dict[str, dict[str, str]]:
        """Read the file again: another process may have written it."""
        from fast_agent.text.safe_file import RefusedFileError, read_confined

        try:
            data = read_confined(self._path.parent, self._path.name, MAX_FILE).data
        except RefusedFileError as refusal:
            if not refusal.missing:
                _log.warning("`%s` %s; no skill counts as approved", self._path, refusal.message)
            return {}
        try:
            value = json.loads(data)
        except ValueError:
            value = None
        if not _is_table(value):
            _log.warning("`%s` is not a file of approvals; no skill counts as approved", self._path)
            return {}
        return cast("dict[str, dict[str, str]]", value)

    def _write(self, known: dict[str, dict[str, str]]) -> None:
        from fast_agent.text.atomic_file import write_atomic

        try:
            self._path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            write_atomic(self._path, json.dumps(known, indent=2, sort_keys=True).encode() + b"\n")
        except OSError as error:
            reason = os_reason(error)
            raise ResourceError(f"the approval cannot be kept: {reason.lower()}") from error


def _is_table(value: object) -> bool:
    if not isinstance(value, dict):
        return False
    inner = cast("dict[str, object]", value).values()
    return all(
        isinstance(one, dict)
        and all(isinstance(text, str) for text in cast("dict[str, object]", one).values())
        for one in inner
    )
