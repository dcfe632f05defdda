"""Contents read lately, given again while their files stay as they were."""

from __future__ import annotations

from collections import OrderedDict
from threading import Lock
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Collection

    from fast_agent.resources.resource import ResourceContent
    from fast_agent.resources.skill.set import Skill
    from fast_agent.text.safe_file import FileStamp


class KeptReads:
    """A bounded memory of reads by URI; each is checked against the state of its file.

    Args:
        most: About how many bytes to keep.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._bytes = 0
        self._kept: OrderedDict[str, tuple[Skill, str, FileStamp, tuple[ResourceContent, ...]]] = (
            OrderedDict()
        )
        self._lock = Lock()

    def get(self, uri: str) -> tuple[ResourceContent, ...] | None:
        """Give what was read, unless the file is another now."""
        found = self._kept.get(uri)
        if found is None:
            return None
        skill, place, stamp, contents = found
        if skill.root.folder.stamp(place) == stamp:
            return contents
        self._drop(uri)
        return None

    def keep(
        self,
        uri: str,
        skill: Skill,
        place: str,
        stamp: FileStamp,
        contents: tuple[ResourceContent, ...],
    ) -> None:
        """Keep a read, and drop the oldest where there are too many."""
        if stamp.size * 8 > self._most:
            return
        self._drop(uri)
        with self._lock:
            self._kept[uri] = skill, place, stamp, contents
            self._bytes += stamp.size * 2 + 1000
            while self._bytes > self._most:
                _, old = self._kept.popitem(last=False)
                self._bytes -= old[2].size * 2 + 1000

    def keep_only(self, skills: Collection[Skill]) -> None:
        """Forget the files of all skills but these."""
        with self._lock:
            gone = [uri for uri, kept in self._kept.items() if kept[0] not in skills]
        for uri in gone:
            self._drop(uri)

    def _drop(self, uri: str) -> None:
        with self._lock:
            if (found := self._kept.pop(uri, None)) is not None:
                self._bytes -= found[2].size * 2 + 1000
