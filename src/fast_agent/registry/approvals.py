"""Approvals: which card files a person allowed to run code, each bound to what it was then."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal, TypeAlias, cast

from fast_agent.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Mapping
    from pathlib import Path

    from fast_agent.registry.card_code import CardCode

Standing: TypeAlias = Literal["new", "approved", "changed"]
"""`changed` was approved as something else than it is now."""

FILE: Final = "card-approvals.json"
"""Where approvals are in the home directory."""

_MAX_FILE = 4 << 20
_WAIT = 10.0

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Approval:
    """One approval.

    Args:
        fingerprint: Of the card file and all it runs.
        files: Names of the files it runs, for people.
    """

    fingerprint: str
    files: tuple[str, ...]


class CardApprovals:
    """Approvals, kept in a file of the home directory that only its owner may read.

    Args:
        home: The home directory; what is missing is made when something is approved.
    """

    def __init__(self, home: Path) -> None:
        self.path = home / FILE

    def standing(self, code: CardCode) -> Standing:
        """Say how a card file stands."""
        approval = self.all().get(code.path)
        if approval is None:
            return "new"
        return "approved" if approval.fingerprint == code.fingerprint else "changed"

    def approve(self, codes: Iterable[CardCode]) -> None:
        """Keep approvals of card files as they were looked at.

        Raises:
            ConfigError: They cannot be written.
        """
        fresh = {code.path: Approval(code.fingerprint, tuple(code.files)) for code in codes}
        self._change(lambda known: {**known, **fresh})

    def revoke(self, paths: Collection[str]) -> tuple[str, ...]:
        """Forget approvals.

        Args:
            paths: Card files, absolute.

        Returns:
            Those that had one.

        Raises:
            ConfigError: The rest cannot be written.
        """
        gone: list[str] = []

        def without(known: Mapping[str, Approval]) -> dict[str, Approval]:
            gone.extend(path for path in known if path in paths)
            return {path: one for path, one in known.items() if path not in paths}

        self._change(without)
        return tuple(gone)

    def all(self) -> dict[str, Approval]:
        """Read all approvals, by card file; a file that is none holds none, and is warned of."""
        import json

        from fast_agent.text.safe_file import RefusedFileError, read_confined

        try:
            data = read_confined(self.path.parent, self.path.name, _MAX_FILE).data
        except RefusedFileError as refusal:
            if not refusal.missing:
                log.warning("`%s` %s; no card counts as approved", self.path, refusal.message)
            return {}
        try:
            found = _approvals(json.loads(data))
        except (ValueError, RecursionError):
            found = None
        if found is None:
            log.warning("`%s` is no file of approvals; no card counts as approved", self.path)
        return found or {}

    def _change(self, change: Callable[[Mapping[str, Approval]], Mapping[str, Approval]]) -> None:
        """Change the file, with no other process between reading and writing."""
        import json

        from fast_agent.text.atomic_file import write_atomic
        from fast_agent.text.file_lock import FileLock

        try:
            self.path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            lock = FileLock(self.path.with_suffix(".lock"))
            if not lock.take(wait=_WAIT):
                raise ConfigError(
                    "the approval cannot be kept: another process is writing approvals"
                )
            try:
                known = change(self.all())
                facts = {
                    path: {"fingerprint": one.fingerprint, "files": list(one.files)}
                    for path, one in known.items()
                }
                text = json.dumps(facts, indent=2, sort_keys=True) + "\n"
                write_atomic(self.path, text.encode("utf-8", "replace"))
            finally:
                lock.release()
        except OSError as error:
            reason = (error.strerror or str(error)).lower()
            raise ConfigError(f"the approval cannot be kept: {reason}") from error


def _approvals(value: object) -> dict[str, Approval] | None:
    """Read what the file holds; None where it is something else."""
    if not isinstance(value, dict):
        return None
    found: dict[str, Approval] = {}
    for path, one in cast("dict[str, object]", value).items():
        facts = cast("dict[str, object]", one) if isinstance(one, dict) else {}
        fingerprint, files = facts.get("fingerprint"), facts.get("files")
        if not isinstance(fingerprint, str) or not isinstance(files, list):
            return None
        found[path] = Approval(fingerprint, tuple(map(str, cast("list[object]", files))))
    return found
