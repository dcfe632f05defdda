"""Installed skills: copies of directories, Git checkouts and archives, with their digests."""

from __future__ import annotations

import gzip
import json
import os
import shutil
import stat
import tarfile
import tempfile
import zipfile
import zlib
from contextlib import contextmanager
from dataclasses import asdict
from hashlib import sha256
from itertools import islice
from pathlib import Path, PurePosixPath
from typing import IO, TYPE_CHECKING, Final

from fast_agent.config.home import is_never_served
from fast_agent.errors import ResourceError, os_reason
from fast_agent.resources.skill.frontmatter import (
    SkillHead,
    is_name,
    read_head,
    unreadable_skill,
)
from fast_agent.text.frozen import frozen
from fast_agent.text.json_value import as_object
from fast_agent.text.safe_file import write_atomic

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Sequence

    from fast_agent.diagnostics.diagnostic import Diagnostic

SKILL_FILE: Final = "SKILL.md"
LEDGER: Final = ".installed-skills.json"
"""The file next to installed skills that records where each came from."""

MAX_FILES: Final = 512
MAX_BYTES: Final = 16 << 20
_MAX_FOLDERS: Final = 2_000
_ARCHIVES: Final = (".zip", ".tar", ".tar.gz", ".tgz")
_MAX_UNPACKED: Final = MAX_BYTES * 16
_UNREADABLE: Final = (
    OSError,
    EOFError,
    ValueError,  # a name with a zero byte
    RuntimeError,  # an encrypted file, or a compression that is not supported
    zipfile.BadZipFile,
    tarfile.TarError,
    zlib.error,
)


@frozen
class InstallOrigin:
    """Where an installed skill is from.

    Args:
        source: The directory or archive, absolute.
        path: The skill below it, with `/`; `.` for the source itself.
        digest: The digest of its files as they were copied.
        archive: The digest of the archive; None for a directory.
    """

    source: str
    path: str
    digest: str
    archive: str | None = None


class SkillFolder:
    """A directory of skills, and the ledger of those that were installed into it.

    Args:
        place: The directory; made when something is installed.
    """

    def __init__(self, place: Path) -> None:
        self.place = place

    def installed(self) -> dict[str, InstallOrigin]:
        """Return what the ledger says, by the names of skills."""
        try:
            data = as_object(json.loads((self.place / LEDGER).read_text("utf-8")))
        except (OSError, ValueError):
            return {}
        found: dict[str, InstallOrigin] = {}
        for name, value in data.items():
            facts = as_object(value)
            texts = [facts.get(key) for key in ("source", "path", "digest")]
            archive = facts.get("archive")
            if is_name(name) and all(isinstance(one, str) for one in texts):
                source, path, digest = map(str, texts)
                found[name] = InstallOrigin(source, path, digest, str(archive) if archive else None)
        return found

    def add(
        self,
        source: Path,
        wanted: tuple[str, ...],
        *,
        digest: str | None,
        force: bool,
        report: Callable[[Sequence[Diagnostic]], None],
    ) -> list[str]:
        """Copy the skills of a source.

        Args:
            source: A directory, such as a Git checkout, or an archive.
            wanted: Their names; empty for all.
            digest: The digest an archive must have, as `sha256:…`.
            force: Whether a skill that is there may be replaced.
            report: Given what is wrong with skills that are left out.

        Returns:
            The names of the skills, sorted.

        Raises:
            ResourceError: The source holds no such skill, an archive has another digest, or a skill
                is there already. Nothing was copied.
        """
        whole = Path(os.path.abspath(source))  # noqa: PTH100 - without `..`, links as they are
        archive = _check_archive(whole, digest)
        with _opened(whole) as root:
            found, problems = skills_below(root, str(source))
            names = sorted(set(wanted) or found)
            if problems and not (wanted and found.keys() >= set(wanted)):
                report(problems)
            if not names:
                if problems:
                    raise ResourceError(
                        f"`{source}` holds no skill that can be added",
                        hint="correct what is reported above",
                    )
                raise ResourceError(
                    f"`{source}` holds no skill", hint=f"a skill is a directory with a {SKILL_FILE}"
                )
            for name in names:
                if name not in found:
                    listed = ", ".join(f"`{one}`" for one in sorted(found)[:8]) or "no skill"
                    raise ResourceError(
                        f"`{source}` holds no skill `{name}`", hint=f"there are: {listed}"
                    )
                if (self.place / name).exists() and not force:
                    raise ResourceError(
                        f"the skill `{name}` is in `{self.place}` already",
                        hint="`--force` replaces it; `fast-agent skills update` takes changes",
                    )
            ledger = self.installed()
            for name in names:
                _copy(found[name].folder, self.place / name)
                inside = found[name].folder.relative_to(root).as_posix()
                copied = digest_of(self.place / name)
                ledger[name] = InstallOrigin(str(whole), inside, copied, archive)
        self._write(ledger)
        return names

    def update(self, name: str, entry: InstallOrigin, *, force: bool) -> bool:
        """Copy a skill again where its source changed; return whether it did.

        Raises:
            ResourceError: The source is gone, an archive has another digest than before, or the
                copy was edited.
        """
        source = Path(entry.source)
        _check_archive(source, entry.archive)
        with _opened(source) as root:
            folder = root if entry.path == "." else root / PurePosixPath(entry.path)
            if not (folder / SKILL_FILE).is_file():
                raise ResourceError(f"the skill `{name}` is no longer in `{source}`")
            new = digest_of(folder)
            if new == entry.digest:
                return False
            copy = self.place / name
            if copy.exists() and digest_of(copy) != entry.digest and not force:
                raise ResourceError(
                    f"the skill `{name}` was edited in `{self.place}`",
                    hint="`--force` replaces it with that of its source",
                )
            _copy(folder, copy)
        self._write(self.installed() | {name: InstallOrigin(entry.source, entry.path, new)})
        return True

    def remove(self, name: str) -> None:
        """Delete an installed skill.

        Raises:
            ResourceError: It was not installed here.
        """
        ledger = self.installed()
        if name not in ledger:
            raise ResourceError(
                f"the skill `{name}` was not installed into `{self.place}`",
                hint="`fast-agent skills list` names those that were; delete others yourself",
            )
        if (self.place / name).is_dir() and not (self.place / name).is_symlink():
            shutil.rmtree(self.place / name)
        del ledger[name]
        self._write(ledger)

    def _write(self, ledger: dict[str, InstallOrigin]) -> None:
        facts = {name: asdict(one) for name, one in sorted(ledger.items())}
        write_atomic(self.place / LEDGER, (json.dumps(facts, indent=2) + "\n").encode())


@frozen
class SkillSource:
    """A skill that can be added.

    Args:
        folder: Its directory.
        description: What it does, on one line.
    """

    folder: Path
    description: str


def skills_below(root: Path, shown: str) -> tuple[dict[str, SkillSource], list[Diagnostic]]:
    """Find the skills of a directory; links are not followed.

    Args:
        root: The directory.
        shown: How problems name it.

    Returns:
        The skills by name, and what is wrong with those that are left out.
    """
    found: dict[str, SkillSource] = {}
    problems: list[Diagnostic] = []
    for place, folders, files in islice(os.walk(root), _MAX_FOLDERS):
        folders[:] = sorted(one for one in folders if not is_never_served(one))
        if SKILL_FILE not in files:
            continue
        folders.clear()  # a skill inside a skill is a file of it
        folder = Path(place)
        path = PurePosixPath(shown, folder.relative_to(root).as_posix(), SKILL_FILE)
        head = _head(folder / SKILL_FILE, str(path))
        if head.name is not None and is_name(head.name) and head.description is not None:
            about = " ".join(head.description.split())
            found.setdefault(head.name, SkillSource(folder, about))
        else:
            problems += head.problems
    return found, problems


def _head(file: Path, shown: str) -> SkillHead:
    try:
        facts = file.lstat()
        if stat.S_ISREG(facts.st_mode) and facts.st_size <= MAX_BYTES:
            return read_head(file.read_bytes(), shown, None)
        reason = f"it is not a file of at most {MAX_BYTES >> 20} MiB"
    except OSError as error:
        reason = os_reason(error)
    return SkillHead(None, problems=(unreadable_skill(shown, reason, None, None, None),))


def digest_of(folder: Path) -> str:
    """Return the digest of a skill: of the paths and bytes of its files.

    Raises:
        ResourceError: It has too many files, or is too large.
    """
    hashed = sha256()
    for name, file in _files(folder):
        hashed.update(f"{name}\0{sha256(file.read_bytes()).hexdigest()}\n".encode())
    return f"sha256:{hashed.hexdigest()}"


def _files(folder: Path) -> list[tuple[str, Path]]:
    found: list[tuple[str, Path]] = []
    size = 0
    for place, folders, files in os.walk(folder):
        folders[:] = sorted(one for one in folders if not is_never_served(one))
        for name in files:
            file = Path(place, name)
            facts = file.lstat()
            if is_never_served(name) or not stat.S_ISREG(facts.st_mode):
                continue
            size += facts.st_size
            found.append((file.relative_to(folder).as_posix(), file))
            if len(found) > MAX_FILES or size > MAX_BYTES:
                raise ResourceError(
                    f"the skill `{folder.name}` has more than {MAX_FILES} files or"
                    f" {MAX_BYTES >> 20} MiB"
                )
    return sorted(found)


def _copy(source: Path, target: Path) -> None:
    """Copy the files of a skill next to their destination, then move them into it at once."""
    target.parent.mkdir(parents=True, exist_ok=True)
    staged = Path(tempfile.mkdtemp(prefix=".skill-", dir=target.parent))
    try:
        for name, file in _files(source):
            place = staged / name
            place.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(file, place)
            if file.stat().st_mode & stat.S_IXUSR:
                place.chmod(0o755)
        staged.chmod(0o755)
        if target.is_symlink() or target.is_file():
            raise ResourceError(f"`{target}` is not a directory of a skill")
        if target.exists():
            shutil.rmtree(target)
        staged.rename(target)
    finally:
        shutil.rmtree(staged, ignore_errors=True)


def _check_archive(source: Path, digest: str | None) -> str | None:
    """Return the digest of an archive, which must be the one that was named.

    Raises:
        ResourceError: The source is missing, or its digest is another one.
    """
    if source.is_dir():
        return None
    if not source.is_file() or not source.name.lower().endswith(_ARCHIVES):
        raise ResourceError(
            f"`{source}` is neither a directory nor an archive",
            hint=f"archives end in {', '.join(_ARCHIVES)}; clone a Git repository first",
        )
    found = f"sha256:{sha256(source.read_bytes()).hexdigest()}"
    if digest is None:
        raise ResourceError(
            f"an archive needs the digest of who made it: `{source}` has `{found}`",
            hint=f"where that is the right one, add `--digest {found}`",
        )
    if digest != found:
        raise ResourceError(f"`{source}` has the digest `{found}`, not `{digest}`")
    return found


@contextmanager
def _opened(source: Path) -> Generator[Path]:
    """Yield the directory of a source; an archive is unpacked while the context is open."""
    if source.is_dir():
        yield source
        return
    with tempfile.TemporaryDirectory() as scratch:
        try:
            if source.name.lower().endswith(".zip"):
                _unzip(source, Path(scratch))
            else:
                _untar(source, Path(scratch))
        except _UNREADABLE as error:
            raise ResourceError(f"the archive `{source}` cannot be unpacked: {error}") from error
        yield Path(scratch)


def _unzip(source: Path, target: Path) -> None:
    with zipfile.ZipFile(source) as archive:
        _check_size(source, [one.file_size for one in archive.infolist()])
        for one in archive.infolist():
            is_link = stat.S_ISLNK(one.external_attr >> 16)
            if not one.is_dir() and not is_link:
                place = _inside(target, one.filename, source)
                place.parent.mkdir(parents=True, exist_ok=True)
                place.write_bytes(archive.read(one))


def _untar(source: Path, target: Path) -> None:
    with tempfile.TemporaryFile() as flat:
        _inflate(source, flat)
        with tarfile.open(fileobj=flat, mode="r:") as archive:
            members = list(islice(archive, MAX_FILES * 16 + 1))
            _check_size(source, [one.size for one in members])
            for one in members:
                data = archive.extractfile(one) if one.isreg() else None
                if data is not None:
                    place = _inside(target, one.name, source)
                    place.parent.mkdir(parents=True, exist_ok=True)
                    place.write_bytes(data.read())
                    place.chmod(0o755 if one.mode & stat.S_IXUSR else 0o644)


def _inflate(source: Path, flat: IO[bytes]) -> None:
    """Write the tar without its compression, at most as much as may be unpacked.

    The list of files cannot be read without it, and a header may claim any size.
    """
    is_plain = source.name.lower().endswith(".tar")
    with source.open("rb") if is_plain else gzip.open(source) as stream:
        while chunk := stream.read(1 << 20):
            _check_size(source, [flat.tell(), len(chunk)])
            flat.write(chunk)
    flat.seek(0)


def _check_size(source: Path, sizes: list[int]) -> None:
    if len(sizes) > MAX_FILES * 16 or sum(sizes) > _MAX_UNPACKED:
        raise ResourceError(f"the archive `{source}` is too large to be unpacked")


def _inside(target: Path, name: str, source: Path) -> Path:
    path = PurePosixPath(name.replace("\\", "/"))
    if path.is_absolute() or ".." in path.parts or ":" in name:
        raise ResourceError(f"the archive `{source}` has the file `{name}`, which leads out of it")
    return target / path
