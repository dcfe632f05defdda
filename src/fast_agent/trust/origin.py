"""Origin: where the parts of a found set come from, whose they are, and what is inside its root."""

from __future__ import annotations

import os
import re
import stat
from fnmatch import translate
from functools import lru_cache
from pathlib import Path, PurePath
from typing import TYPE_CHECKING, Final
from unicodedata import normalize
from urllib.parse import quote, unquote

from fast_agent.config.home import is_foreign_place
from fast_agent.text.frozen import frozen
from fast_agent.text.source import signature_at

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from fast_agent.text.source import Signature

OWN_FOLDERS: Final = frozenset({".fast-agent", ".claude", ".agents"})
"""Hidden directories of a project that hold cards and skills; what is in them is not hidden."""

_SECRET_NAMES: Final = (
    "id_*",
    "*secrets*",
    "*.pem",
    "*.key",
    "*.p12",
    "*.pfx",
    "*.kdbx",
    "*.keystore",
    "credentials*",
)
_SECRET_NAME: Final = re.compile("|".join(map(translate, _SECRET_NAMES)))
_SECRET_PLACES: Final = frozenset({".ssh", ".gnupg", ".aws", ".kube", ".azure"})
_SOURCE_SUFFIXES: Final = frozenset(
    {".py", ".js", ".jsx", ".ts", ".tsx", ".go", ".rs", ".java", ".kt", ".c", ".h", ".cpp", ".cs",
     ".rb", ".php", ".swift", ".md", ".rst", ".html", ".css"}
)  # fmt: skip
_TEMPORARY: Final = ("/tmp", "/var/tmp", "/dev/shm")  # noqa: S108 - never written to

FileKey = tuple[int, int]
"""Device and inode: what a file is, however its path is spelled."""


@frozen
class Root:
    """The directory of a found set, and what counts as inside it.

    Args:
        path: The directory, absolute and without links.
        is_wide: Whether it is a home, a directory above one, `/`, or one for temporary files or
            downloads. Only the files of the set itself count as inside then.
        own: The files of the set, by device and inode.
    """

    path: Path
    is_wide: bool = False
    own: frozenset[FileKey] = frozenset()

    @classmethod
    def of(cls, path: Path, environ: Mapping[str, str], own: Iterable[Path | str] = ()) -> Root:
        """Examine a root.

        Args:
            path: A directory.
            environ: The environment, for the places of homes, temporary files and downloads.
            own: The files of the set.
        """
        real = Path(os.path.realpath(path))
        wide = is_wide(real, environ)
        # What is plainly inside is free anyway: saves a check of the disk for each of 1,000 cards.
        start = str(real)
        special = [file for file in own if wide or not _is_plainly_inside(str(file), start)]
        keys = map(key_of, special)
        return cls(real, wide, frozenset(key for key in keys if key is not None))

    def holds(self, path: Path) -> bool:
        """Return whether a path ends inside the root, hidden or not.

        Args:
            path: Absolute; it need not exist, and links in it are followed.
        """
        return self._holds_end(os.path.realpath(path))

    def _holds_end(self, real: str) -> bool:
        if self.is_wide:
            return key_of(real) in self.own
        return (
            _relative_path(real, str(self.path)) is not None or self._root_above(real) is not None
        )

    def is_free(self, path: Path) -> bool:
        """Return whether a file may be read without approval.

        That is a file of the set, or one inside the root that is neither hidden nor looks secret.

        Args:
            path: Absolute; links in it are followed.
        """
        return self.is_free_end(os.path.realpath(path))

    def is_free_end(self, real: str) -> bool:
        """Return whether a file may be read without approval, given where its path ends.

        Args:
            real: Absolute and without links, so that the disk is not asked about them again.
        """
        below = None if self.is_wide else _relative_path(real, str(self.path))
        if below is not None and not looks_secret(below):
            return True
        if self.own and key_of(real) in self.own:
            return True
        return below is None and self._holds_end(real) and not looks_secret(self._name_of_end(real))

    def name(self, path: Path) -> str:
        """Return how approvals name a path: relative to the root inside it, else absolute.

        Args:
            path: Absolute; links in it are followed.
        """
        return self._name_of_end(os.path.realpath(path))

    def file_name(self, path: str) -> str:
        """Return how approvals name a file of the set: as it was found, links in it not followed.

        Args:
            path: Absolute.
        """
        below = _relative_path(path, str(self.path))
        return self.name(Path(path)) if below is None else below

    def _name_of_end(self, real: str) -> str:
        below = _relative_path(real, str(self.path))
        if below is None and not self.is_wide:
            above = self._root_above(real)
            below = None if above is None else _relative_path(real, str(above))
        return real if below is None else below or "."

    def _root_above(self, text: str) -> Path | None:
        """Return the directory above a path that is the root in another spelling; None without one.

        File systems may ignore case or Unicode's composition, which `realpath` leaves as written.
        """
        real = Path(text)
        if real.anchor != self.path.anchor:
            return None
        # Only a path as deep as the root can go through it; spelling alone cannot differ in depth.
        depth = len(self.path.parts)
        if len(real.parts) < depth:
            return None
        above = Path(*real.parts[:depth])
        if _folded(str(above)) != _folded(str(self.path)):
            return None
        key = key_of(self.path)
        return above if key is not None and key_of(above) == key else None


def _relative_path(path: str, folder: str) -> str | None:
    """Return a path relative to a directory by spelling alone; None where it is not below it."""
    if path == folder:
        return ""
    start = folder if folder.endswith(os.sep) else folder + os.sep
    if not path.startswith(start):
        return None
    below = path[len(start) :]
    return below if os.sep == "/" else below.replace(os.sep, "/")


def _is_plainly_inside(path: str, root: str) -> bool:
    below = _relative_path(path, root)
    return below is not None and not looks_secret(below)


def root_of(path: Path) -> Path:
    """Return the root of the set that a file or directory belongs to.

    It is the directory that brings it in `.fast-agent/…`, else the directory it is in.

    Args:
        path: A card, a configuration, a skill, or a directory of them; absolute.
    """
    real = Path(os.path.realpath(path))
    folder = real if real.is_dir() else real.parent
    for one in (folder, *folder.parents):
        if one.name in OWN_FOLDERS:
            return one.parent
        if is_foreign_place(str(one)):
            return one.parent.parent
    return folder


def remote_root(address: str) -> Path:
    """Return the root of an address's set: a path below which nothing exists."""
    return Path("/") / quote(address, safe="")


def address_of_root(root: Path | str) -> str | None:
    """Return the address a root denotes; None for a directory."""
    text = unquote(os.path.basename(root))  # noqa: PTH119 - fast
    return text if text.startswith(("http://", "https://")) else None


def own_place(path: Path, environ: Mapping[str, str]) -> Root | None:
    """Return what may be read of a found set before its files are known.

    Where the root is wide, that is what lies in the directory of its cards; where this is wide too,
    only the files in it that are not links.

    Args:
        path: A card, or a directory of them; absolute.
        environ: The environment.

    Returns:
        The place; None where all below the root is.
    """
    if not is_wide(root_of(path), environ):
        return None
    folder = end_of(path) if path.is_dir() else end_of(path.parent)
    if not is_wide(folder, environ):
        return Root(folder)
    files = (one for one in folder.iterdir() if not one.is_symlink())
    return Root.of(folder, environ, files)


def is_wide(real: Path, environ: Mapping[str, str]) -> bool:
    """Return whether a root is too wide for its other files to belong to the set.

    Args:
        real: The root, absolute and without links.
        environ: The environment.
    """
    homes = [*_homes(environ)]
    if any(home.is_relative_to(real) for home in homes):
        return True
    shared = [*_TEMPORARY, *_folders(environ, "TMPDIR", "TEMP", "TMP", "XDG_DOWNLOAD_DIR")]
    downloads = [home / "Downloads" for home in homes]
    return any(Path(os.path.realpath(one)) == real for one in (*shared, *downloads))


def looks_secret(place: str) -> bool:
    """Return whether a path below a root is hidden, or named as secrets are.

    Args:
        place: The path relative to the root, with `/`. `.fast-agent`, `.claude` and `.agents` are
            not hidden.
    """
    folder, _, name = place.rpartition("/")
    return _is_secret_name(name) or (folder != "" and _is_secret_folder(folder))


def names_secret(place: PurePath) -> bool:
    """Return whether a path is named as files with secrets are; hidden files need not be.

    Args:
        place: The path relative to a workspace. A file of source code is not one by its name.
    """
    if not _SECRET_PLACES.isdisjoint(map(_folded, place.parts)):
        return True
    name = _folded(place.name)
    if name.startswith(".env") or name in {".netrc", ".npmrc", ".pypirc", ".git-credentials"}:
        return name not in {".env.example", ".env.sample", ".env.template"}
    if place.suffix.lower() in _SOURCE_SUFFIXES:
        return False
    return _SECRET_NAME.match(name) is not None


@lru_cache(maxsize=1024)
def _is_secret_folder(place: str) -> bool:
    parts = place.split("/")
    # Agents of other tools belong to the set; the rest of such a hidden directory stays hidden.
    return any(map(_is_secret_name, parts[1:] if is_foreign_place("/".join(parts[:2])) else parts))


@lru_cache(maxsize=4096)  # each file of a set is asked about where it is read, and in its survey
def _is_secret_name(part: str) -> bool:
    name = _folded(part)
    if name.startswith(".") and name != "." and name not in OWN_FOLDERS:
        return True
    return _SECRET_NAME.match(name) is not None


def end_of(path: Path) -> Path:
    """Return where a path ends, with every link followed; it need not exist."""
    return Path(os.path.realpath(path))


def key_of(path: Path | str) -> FileKey | None:
    """Return the device and inode of a file, links followed; None where there is none."""
    try:
        found = os.stat(path)  # noqa: PTH116 - fast
    except (OSError, ValueError):
        return None
    return found.st_dev, found.st_ino


@frozen
class Ownership:
    """Whose the files of a set are.

    Args:
        owner: The other user some of them belong to, by name; None where there is none.
        open_path: One that everyone may write to, absolute; None where there is none.
    """

    owner: str | None = None
    open_path: str | None = None

    @property
    def is_strange(self) -> bool:
        """Whether the set is ignored until it is approved, even plain cards."""
        return self.owner is not None or self.open_path is not None


def ownership_of(
    files: Mapping[str, Signature | None], root: Path | str, *, user: int | None = None
) -> Ownership:
    """Look whose files are, and the directories from the root down to them.

    Files of root count as the user's: root could change anything anyway.

    Args:
        files: Absolute paths, which need not exist, with their signatures when they were read;
            None looks now.
        root: The root of the set, without links.
        user: The user id; None is that of the process.
    """
    if os.name != "posix":
        return Ownership()
    trusted = {0, os.geteuid() if user is None else user}
    owner: int | None = None
    open_path: str | None = None
    for path in _with_folders(files, str(root)):
        found = files.get(path) or signature_at(path)
        if found is None:
            continue
        *_, its_owner, mode = found
        if its_owner not in trusted and owner is None:
            owner = its_owner
        if mode & stat.S_IWOTH and open_path is None:
            open_path = path
    return Ownership(None if owner is None else _user_name(owner), open_path)


def home_fault(
    home: Path, *, cwd: Path, roots: Iterable[Path] = (), account: Path | None = None
) -> str | None:
    """Return why the home of the program is not the user's own (TR-F3).

    Its configuration counts as found then, and its approvals are not read.

    Args:
        home: The home of the program; it need not exist.
        cwd: The working directory.
        roots: The roots of the sets that were found.
        account: The account's home; None asks the user database.

    Returns:
        Words that follow its path, such as "is in the project"; None where it is their own.
    """
    real = end_of(home)
    if os.name == "posix":
        try:
            found = real.stat()
        except OSError:
            found = None
        if found is not None and found.st_uid != os.geteuid():
            return f"belongs to the user `{_user_name(found.st_uid)}`"
        if found is not None and found.st_mode & stat.S_IWOTH:
            return "may be written to by everyone"
    own = account_home() if account is None else end_of(account)
    repository = repository_above(end_of(cwd))
    for place in (*map(end_of, roots), *(() if repository is None else (repository,))):
        if real.is_relative_to(place) and place != own:
            return f"is in the project `{place}`"
    return None


def repository_above(folder: Path) -> Path | None:
    """Return the directory of the repository a directory is in; None where it is in none."""
    for one in (folder, *folder.parents):
        if os.path.lexists(one / ".git"):
            return one
    return None


@lru_cache(maxsize=1)
def account_home() -> Path | None:
    """Return the home of the account by the user database; None where there is none."""
    try:
        import pwd

        return end_of(Path(pwd.getpwuid(os.geteuid()).pw_dir))
    except (ImportError, KeyError):
        return None


def _homes(environ: Mapping[str, str]) -> Iterable[Path]:
    yield from map(end_of, map(Path, _folders(environ, "HOME", "USERPROFILE")))
    account = account_home()
    if account is not None:
        yield account


def _folders(environ: Mapping[str, str], *names: str) -> Iterable[str]:
    return [environ[name] for name in names if environ.get(name)]


def _with_folders(files: Iterable[str], root: str) -> Iterable[str]:
    """Yield files, and each directory between them and the root once."""
    seen: set[str] = {root}
    yield root
    for file in files:
        yield file
        folder = file.rpartition(os.sep)[0]
        while folder not in seen and folder.startswith(root):
            seen.add(folder)
            yield folder
            folder = folder.rpartition(os.sep)[0]


def _user_name(user: int) -> str:
    try:
        import pwd

        return pwd.getpwuid(user).pw_name
    except (ImportError, KeyError):
        return str(user)


def _folded(name: str) -> str:
    """Return a name as a file system that ignores case and composition compares it."""
    return name.casefold() if name.isascii() else normalize("NFC", name).casefold()
