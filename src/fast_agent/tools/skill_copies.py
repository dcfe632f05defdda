"""Copies of server skills on this machine, so that their scripts can be run by path.

Only a skill that a person approved is copied, file by file as it was verified, when it is loaded by
an agent that has a shell. The copies are in a directory of temporary files, where no skill is
searched for, and go with the run that made them. Nobody but the user may read them, and nothing is
executable: a script is run by its interpreter, as a command that is asked about like all others.
"""

from __future__ import annotations

import os
import re
import shutil
import tempfile
import unicodedata
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Final

from anyio import Lock

from fast_agent.resources.skill.frontmatter import is_name
from fast_agent.resources.skill.snapshot import digest_of
from fast_agent.resources.skill_client.entry import SkillError
from fast_agent.text.safe_file import RefusedFileError, confined_parts, write_confined

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable, Mapping

    from fast_agent.resources.skill_client.source import NamedSkill

_UNSAFE: Final = re.compile(
    r'[<>:"|?*\\]|[. ]$|^(?:con|prn|aux|nul|com\d|lpt\d)(?:\.|$)', re.IGNORECASE
)
"""Names that mean something else on some system."""

_MAX_NAME_BYTES: Final = 255


class SkillCopies:
    """The copies of one run, by server, skill and digest."""

    def __init__(self) -> None:
        self._root: Path | None = None
        self._places: dict[tuple[bool, str, str], Path] = {}
        self._lock = Lock()

    def place(self, skill: NamedSkill) -> str | None:
        """Return the directory of a skill that was copied; None where it was not."""
        place = self._places.get(skill.key)
        return None if place is None else str(place)

    async def copy(
        self, skill: NamedSkill, read: Callable[[], Awaitable[Mapping[str, bytes]]]
    ) -> str:
        """Copy a skill, unless its copy is there and holds what it should.

        Args:
            skill: The skill; a person approved it.
            read: Reads all its files, and verifies them.

        Returns:
            The directory of the copy.

        Raises:
            SkillError: Its files have no digests, a name is not safe, or they cannot be written.
            ToolError: Its server cannot be reached.
        """
        digest, files = skill.entry.fingerprint, skill.entry.files
        if digest is None or files is None:
            raise SkillError("its server makes its files as they are asked for")
        check_names(files)
        async with self._lock:
            name = skill.entry.name if is_name(skill.entry.name) else "skill"
            folder = sha256(f"{skill.label}\0{skill.entry.uri}\0{digest}".encode())
            place = self._opened() / folder.hexdigest()[:32] / name
            if not _holds(place, {path: one.digest for path, one in files.items()}):
                _write(place, await read())
            self._places[skill.key] = place
            return str(place)

    def close(self) -> None:
        """Remove all copies; safe to call twice."""
        root, self._root = self._root, None
        self._places.clear()
        if root is not None:
            _remove(root)

    def _opened(self) -> Path:
        if self._root is None:
            self._root = Path(tempfile.mkdtemp(prefix="fast-agent-skills-")).resolve()
        return self._root


def check_names(paths: Iterable[str]) -> None:
    """Check that files can be written under their names on any system.

    Args:
        paths: Their paths in the skill, with `/` between names.

    Raises:
        SkillError: One of them is not safe, or two would be the same file on some system.
    """
    seen: dict[str, str] = {}
    for path in paths:
        try:
            parts = confined_parts(path)
        except RefusedFileError as error:
            raise SkillError(f"the name of its file `{path!r}` {error}") from None
        if any(_UNSAFE.search(one) or len(os.fsencode(one)) > _MAX_NAME_BYTES for one in parts):
            raise SkillError(f"the name of its file `{path!r}` is not one on every system")
        for end in range(1, len(parts) + 1):
            inner = "/".join(parts[:end])
            other = seen.setdefault(_folded(inner), inner)
            if other != inner:
                raise SkillError(f"its files `{other}` and `{inner}` differ only in their spelling")


def _folded(path: str) -> str:
    return unicodedata.normalize("NFC", unicodedata.normalize("NFC", path).casefold())


def _holds(place: Path, digests: Mapping[str, str | None]) -> bool:
    """Return whether a copy has the files it should; a command may have changed them."""
    found = {
        str(file.relative_to(place)): file
        for file in place.rglob("*")
        if file.is_symlink() or not file.is_dir()
    }
    if found.keys() != digests.keys() or any(file.is_symlink() for file in found.values()):
        return False
    try:
        return all(digest_of(found[path].read_bytes()) == digests[path] for path in digests)
    except OSError:
        return False


def _write(place: Path, files: Mapping[str, bytes]) -> None:
    if place.exists():
        _remove(place)
    try:
        place.mkdir(parents=True, mode=0o700)
        for path, data in files.items():
            write_confined(str(place), confined_parts(path), data)
        for file in place.rglob("*"):
            file.chmod(0o500 if file.is_dir() else 0o400)
        place.chmod(0o500)
    except (OSError, RefusedFileError) as error:
        raise SkillError(f"its files cannot be written to `{place}`: {error}") from None


def _remove(place: Path) -> None:
    """Remove a directory whose directories may not be written."""
    for folder, _, _ in os.walk(place):
        Path(folder).chmod(0o700)
    shutil.rmtree(place, ignore_errors=True)
