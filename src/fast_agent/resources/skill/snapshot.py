"""One skill at one moment: its files with sizes and hashes, and every inventory made of them."""

from __future__ import annotations

from functools import partial
from threading import Lock
from typing import TYPE_CHECKING

from fast_agent.resources.skill.files import HEAD
from fast_agent.resources.skill.frontmatter import read_head
from fast_agent.rpc.message import encode
from fast_agent.text.frozen import frozen
from fast_agent.text.safe_file import RefusedFileError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from fast_agent.resources.skill.files import SkillLimits, SkillRoot
    from fast_agent.resources.skill.set import Skill
    from fast_agent.text.json_value import JsonObject, JsonValue
    from fast_agent.text.safe_file import FileStamp


class StaleError(Exception):
    """The disk no longer is as the skill says; look again."""


@frozen
class SkillFile:
    """A file of a snapshot.

    Args:
        path: In the skill.
        uri: Its canonical URI.
        size: Bytes.
        digest: `sha256:` and 64 hexadecimal digits, of its bytes; None where they cannot be read.
        readable: Whether a read answers it; False where it cannot be read or is too large.
    """

    path: str
    uri: str
    size: int
    digest: str | None
    readable: bool


@frozen
class SkillSnapshot:
    """A skill's files at one moment.

    Args:
        skill: The skill.
        files: `SKILL.md` first, then by path.
        entry: What `skills/list` and `skills/get` say of it, as JSON.
        stamps: The state of each file, in the skill's own order; empty where one of them
            may be another at the next look, though its state is the same.
    """

    skill: Skill
    files: tuple[SkillFile, ...]
    entry: bytes
    stamps: Sequence[FileStamp] = ()

    @property
    def head(self) -> SkillFile:
        """Its `SKILL.md`."""
        return self.files[0]

    def manifest(self) -> bytes:
        """Write the inventory that `_manifest` answers."""
        files: list[JsonValue] = []
        for file in self.files:
            entry: dict[str, JsonValue] = {"path": file.path, "size": file.size}
            if file.digest is None:
                entry["unreadable"] = True
            else:
                entry["hash"] = file.digest
                if not file.readable:
                    entry["tooLarge"] = True
            files.append(entry)
        return encode({"skill": self.skill.name, "files": files})

    def index_entry(self) -> JsonObject:
        """Describe the skill for `index.json`, for readers of every earlier dialect at once."""
        uri = self.head.uri
        return {
            "name": self.skill.name,
            "type": "skill-md",
            "description": self.skill.description,
            "url": uri,
            "uri": uri,
            "digest": self.head.digest,
            "frontmatter": self.skill.head.frontmatter,
            "resources": _resources(self.files),
        }


class Hashes:
    """Hashes of files, each made once for a state of the file."""

    def __init__(self) -> None:
        self._known: dict[tuple[str, str], tuple[FileStamp, str]] = {}
        self._lock = Lock()

    def of(self, root: SkillRoot, place: str, stamp: FileStamp, limit: int) -> str | None:
        """Hash a file.

        Args:
            root: Where it is.
            place: Its path below the root.
            stamp: The state in which it is to be hashed.
            limit: Most bytes it may hold.

        Returns:
            The hash; None where the file is there and may not be read.

        Raises:
            StaleError: It is in another state, or gone.
        """
        key = root.path, place
        known = self._known.get(key)
        if known is not None and known[0] == stamp:
            return known[1]
        try:
            read = root.folder.read(place, limit)
        except RefusedFileError:
            if root.folder.stamp(place) == stamp:
                return None
            raise StaleError from None
        if len(read.data) != stamp.size:
            raise StaleError
        digest = digest_of(read.data)
        with self._lock:
            self._known[key] = read.stamp, digest
        return digest

    def sure(self, root: SkillRoot, place: str, stamp: FileStamp) -> bool:
        """Whether the hash of a file in a state is known, and cannot be another in that state."""
        known = self._known.get((root.path, place))
        return known is not None and known[0] == stamp

    def keep(self, places: set[tuple[str, str]]) -> None:
        """Forget all files but these."""
        with self._lock:
            self._known = {key: one for key, one in self._known.items() if key in places}


def digest_of(data: bytes) -> str:
    """Hash bytes as skills' inventories name them."""
    from hashlib import sha256

    return f"sha256:{sha256(data).hexdigest()}"


def take(
    skill: Skill, before: SkillSnapshot | None, hashes: Hashes, limits: SkillLimits
) -> SkillSnapshot:
    """Take a snapshot of a skill as it is on disk now.

    Args:
        skill: From a fresh look.
        before: The last snapshot of this skill, given back where nothing changed; or None.
        hashes: Known hashes.
        limits: Bounds.

    Raises:
        StaleError: The skill changed since the last check, or exceeds a bound now.
    """
    root = skill.root
    stamps: list[FileStamp] = []
    for place in skill.files.values():
        stamp = root.folder.stamp(place)
        if stamp is None:
            raise StaleError
        stamps.append(stamp)
    if before is not None and before.stamps == stamps:
        return before
    if sum(stamp.size for stamp in stamps) > limits.skill_bytes:
        root.watch_sizes(skill.folder)
        raise StaleError
    digests = tuple(
        hashes.of(root, place, stamp, limits.skill_bytes)
        for place, stamp in zip(skill.files.values(), stamps, strict=True)
    )
    if before is not None and digests == tuple(file.digest for file in before.files):
        return before
    if digests[0] is None:
        raise StaleError
    head = root.heads.get(skill.folder)  # None where another thread sees the skill gone
    if head is None or stamps[0] != head.stamp:
        _check_head(skill, digests[0], limits)
    most = limits.core.file_bytes
    files = tuple(
        SkillFile(
            path,
            skill.file_uri(path).text,
            stamp.size,
            digest,
            digest is not None and stamp.size <= most,
        )
        for path, stamp, digest in zip(skill.files, stamps, digests, strict=True)
    )
    entry = encode(
        {
            "uri": files[0].uri,
            "frontmatter": skill.head.frontmatter,
            "resources": _resources(files),
        }
    )
    sure = all(map(partial(hashes.sure, root), skill.files.values(), stamps))
    return SkillSnapshot(skill, files, entry, stamps if sure else ())


def _check_head(skill: Skill, digest: str, limits: SkillLimits) -> None:
    """Check that a `SKILL.md` too young to be trusted still matches its skill."""
    try:
        read = skill.root.folder.read(skill.files[HEAD], limits.head_bytes)
    except RefusedFileError:
        raise StaleError from None
    if digest_of(read.data) != digest:
        raise StaleError
    if read_head(read.data, "", None).frontmatter != skill.head.frontmatter:
        raise StaleError


def _resources(files: tuple[SkillFile, ...]) -> list[JsonValue]:
    return [
        {"uri": file.uri, "digest": file.digest, "size": file.size}
        for file in files
        if file.readable
    ]
