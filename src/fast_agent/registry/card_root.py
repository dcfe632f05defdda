"""Card roots: a file, directory or address cards were loaded from, checked for changes."""

from __future__ import annotations

import os
from types import MappingProxyType
from typing import TYPE_CHECKING, TypeAlias

from fast_agent.cards.card import CardLoad, FetchedText, FileLoad
from fast_agent.cards.card_files import Candidate, has_card_name, list_directory, stem
from fast_agent.config.home import is_foreign_place
from fast_agent.diagnostics.diagnostic import Diagnostic
from fast_agent.diagnostics.rules import NO_FRONTMATTER
from fast_agent.text.environment import VariableNames
from fast_agent.text.source import signature_at

if TYPE_CHECKING:
    from collections.abc import Callable, Container, Iterable, Mapping
    from pathlib import Path

    from fast_agent.cards.grant import CardGrant
    from fast_agent.cards.load import ForeignPlaces
    from fast_agent.text.source import Signature

_State: TypeAlias = tuple[bytes, int, int, int]
"""The name of a file, and its signature."""

_UNSEEN = (-1, -1, -1)
"""The signature of a file that could not be checked."""

_OPEN_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC


class CardReader:
    """Reads cards the same way each time.

    Args:
        cwd: The directory relative paths start from, absolute.
        environ: The variables for `${NAME}`.
        fetch: Gets the text behind an address.
        foreign: Returns what reads the directories of agents of other tools; None reads them like
            others.
    """

    def __init__(
        self,
        cwd: Path,
        environ: Mapping[str, str],
        fetch: Callable[[str], FetchedText],
        foreign: Callable[[], ForeignPlaces] | None = None,
    ) -> None:
        self.cwd = cwd
        self.environ = environ
        self._fetch = fetch
        self._foreign = foreign

    def key(self, path: str | os.PathLike[str]) -> str:
        """Return the key of a path or address: an absolute path, or the address itself."""
        text = os.fspath(path)
        return text if "://" in text else str((self.cwd / text).resolve())

    def read(
        self,
        paths: Iterable[str | os.PathLike[str] | Candidate],
        *,
        multi_card: bool,
        optional: bool = True,
        grant: CardGrant | None = None,
    ) -> CardLoad:
        """Load cards; see `load_cards`. Cards of a found set see only the names of variables.

        Args:
            paths: Files, directories, addresses and candidates.
            multi_card: Whether a file may hold several cards.
            optional: Whether directories may hold no card.
            grant: What their found set may do; None where a user named them.
        """
        from fast_agent.cards.load import load_cards

        shown = [one if isinstance(one, Candidate) else os.fspath(one) for one in paths]
        return load_cards(
            shown,
            environ=self.environ if grant is None else VariableNames(self.environ),
            cwd=self.cwd,
            multi_card=multi_card,
            fetch=self._fetch,
            optional=[one for one in shown if isinstance(one, str)] if optional else (),
            grant=grant,
            foreign=self._places_in(shown),
        )

    def _places_in(self, paths: Iterable[str | Candidate]) -> ForeignPlaces | None:
        named = (one for one in paths if isinstance(one, str) and "://" not in one)
        is_there = any(is_foreign_place(str(self.cwd / one)) for one in named)
        return self._foreign() if is_there and self._foreign is not None else None

    def foreign_states(self, path: str) -> tuple[tuple[str, Signature | None], ...] | None:
        """Return the files of a directory of agents of another tool, with their signatures.

        Args:
            path: The directory, absolute.

        Returns:
            Them; None if it is another directory.
        """
        places = self._places_in([path])
        files = None if places is None else places.files(path)
        return None if files is None else tuple([(one, signature_at(one)) for one in files])


class CardRoot:
    """A path cards were loaded from.

    Args:
        reader: Reads its cards.
        shown: The path or address, as the user named it.
        multi_card: Whether a file of it may hold several cards.
        optional: Whether a directory may hold no card the first time; later it always may, since
            the last card of a directory can be removed.
        grant: What may be read before anything is decided about its found set; None where a user
            named it.
    """

    def __init__(
        self,
        reader: CardReader,
        shown: str | os.PathLike[str],
        *,
        multi_card: bool,
        optional: bool = False,
        grant: CardGrant | None = None,
    ) -> None:
        self._reader = reader
        self.grant = grant
        self._shown = os.fspath(shown)
        self.multi_card = multi_card
        self.remote = "://" in self._shown
        self.path = self._shown if self.remote else os.path.join(reader.cwd, self._shown)  # noqa: PTH118
        self._listing: list[str] | None = None
        self._foreign = None if self.remote else reader.foreign_states(self.path)
        self.load = reader.read(
            [self._shown], multi_card=multi_card, optional=optional, grant=grant
        )
        self._names = _names_in_directory(self.load.files)
        self._states = [_state(name, self.load.files[at]) for name, at in self._names.items()]

    @property
    def is_directory(self) -> bool:
        """Whether it is a directory now."""
        return not self.remote and os.path.isdir(self.path)  # noqa: PTH112

    def scan(self) -> bool:
        """Read again what changed since it was last read; an address is not asked again.

        Returns:
            Whether anything changed; `load` then holds what there is now.
        """
        if self.remote:
            return False
        if self._foreign is not None:
            return self._look_at_foreign()
        try:
            changed = self._changed_files()
            if changed is None:
                load = self._read_changed(list_directory(self.path, self._shown))
            elif changed:
                return self._read_files(changed)
            else:
                return False
        except NotADirectoryError:
            return self._look_at_file()
        except OSError:
            load = self._read_all()
        return self._take(load)

    def _changed_files(self) -> list[Candidate] | None:
        """List the files of the directory that changed; None where some came or went.

        Every pass asks for it, so it is fast: files are checked relative to their directory,
        which spares the way to it.
        """
        if not self._names:
            return None
        changed: list[bytes] = []
        stat = os.stat
        folder = os.open(self.path, _OPEN_DIRECTORY)
        try:
            if not self._holds_the_same(folder, self._names):
                return None
            # Only `stat` is called for each file: one call more would cost a tenth of the pass.
            for name, time, size, inode in self._states:
                try:
                    now = stat(name, dir_fd=folder)
                except OSError:
                    if size >= 0:
                        changed.append(name)
                    continue
                if now.st_mtime_ns != time or now.st_size != size or now.st_ino != inode:
                    changed.append(name)
        finally:
            os.close(folder)
        files = [self.load.files[self._names[name]].candidate for name in changed]
        candidates = [one for one in files if one is not None]
        # A folder may have taken the place of a file.
        return None if any(os.path.isdir(one.path) for one in candidates) else candidates  # noqa: PTH112

    def _holds_the_same(self, folder: int, known: Mapping[bytes, int]) -> bool:
        """Whether the files in the directory that may be cards are those that were read."""
        names = os.listdir(folder)
        if names == self._listing:
            return True
        self._listing = None
        found = {_name_of(one.path) for one in list_directory(self.path, self._shown)}
        if found != set(known):
            return False
        # A directory named like a card may give way to a file of the same name.
        if sum(map(has_card_name, names)) == len(found):
            self._listing = names
        return True

    def _look_at_foreign(self) -> bool:
        # Agents of other tools refer to each other by what they are called there: all or none.
        now = self._reader.foreign_states(self.path)
        if now == self._foreign:
            return False
        self._foreign = now
        return self._take(self._read_all())

    def _look_at_file(self) -> bool:
        files = self.load.files
        known = files[0] if len(files) == 1 else None
        if known and known.candidate and signature_at(self.path) == known.signature:
            return False
        return self._take(
            self._reader.read([self._shown], multi_card=self.multi_card, grant=self.grant)
        )

    def _read_all(self) -> CardLoad:
        return self._reader.read([self._shown], multi_card=self.multi_card, grant=self.grant)

    def _read_changed(self, candidates: list[Candidate]) -> CardLoad:
        if not candidates:
            return self._read_all()
        files = self.load.files
        before = {name: files[at] for name, at in self._names.items()}
        kept: dict[str, FileLoad] = {}
        changed: list[Candidate] = []
        for one in candidates:
            known = before.get(_name_of(one.path))
            if known is not None and known.signature == signature_at(one.path):
                kept[one.path] = known
            else:
                changed.append(one)
        kept.update(self._read(changed))
        return CardLoad.of(kept[one.path] for one in candidates if one.path in kept)

    def _read_files(self, changed: list[Candidate]) -> bool:
        """Read some of the files that were read before, and take them."""
        before, fresh = self.load, self._read(changed)
        changes = {self._names[_name_of(path)]: file for path, file in fresh.items()}
        self.load = before.after(changes)
        for at, file in changes.items():
            self._states[at] = _state(self._states[at][0], file)
        return any(file != before.files[at] for at, file in changes.items())

    def _read(self, candidates: list[Candidate]) -> dict[str, FileLoad]:
        files: dict[str, FileLoad] = {}
        for file in self._reader.read(
            candidates, multi_card=self.multi_card, grant=self.grant
        ).files:
            if file.candidate is not None:
                had = self._had_cards(file.candidate.path)
                files[file.candidate.path] = _half_written(file) if had else file
        return files

    def _had_cards(self, path: str) -> bool:
        at = self._names.get(_name_of(path))
        return at is not None and bool(self.load.files[at].cards or self.load.files[at].unread)

    def _take(self, load: CardLoad) -> bool:
        changed = load.files != self.load.files
        self._names, self._listing = _names_in_directory(load.files), None
        self._states = [_state(name, load.files[at]) for name, at in self._names.items()]
        self.load = load
        return changed


def _names_in_directory(files: Iterable[FileLoad]) -> dict[bytes, int]:
    """Return the index of each file name; empty if it was not a directory with files."""
    names: dict[bytes, int] = {}
    for at, file in enumerate(files):
        if file.candidate is None or file.candidate.named:
            return {}
        names[_name_of(file.candidate.path)] = at
    return names


def _state(name: bytes, file: FileLoad) -> _State:
    """Return the state of a file when it was read."""
    return (name, *_UNSEEN) if file.signature is None else (name, *file.signature[:3])


def _name_of(path: str) -> bytes:
    """Return a file name as the system takes it, so that no pass has to encode it."""
    return os.fsencode(path.rpartition(os.sep)[2])


def _half_written(file: FileLoad) -> FileLoad:
    """Report a file as invalid if it contained a card and would now be skipped.

    Many programs empty a file before they write it; its agents would else be gone for a moment,
    and what they remember with them.
    """
    if file.skipped is None or file.candidate is None:
        return file
    shown = file.candidate.shown
    problem = Diagnostic(
        NO_FRONTMATTER,
        "the file no longer holds a card",
        shown,
        hint="write its card again, or remove the file",
    )
    name = os.path.basename(shown)  # noqa: PTH119
    return FileLoad(file.candidate, file.signature, diagnostics=(problem,), unread=(stem(name),))


def read_roots(
    reader: CardReader,
    paths: Iterable[str | os.PathLike[str]],
    *,
    multi_card: bool,
    optional: Container[str] = (),
    found: Mapping[str, CardGrant] = MappingProxyType({}),
) -> dict[str, CardRoot]:
    """Read the cards of some paths, each once.

    Args:
        reader: Reads them.
        paths: Files, directories and addresses, in load order.
        multi_card: Whether a file may hold several cards.
        optional: Those of them that may be directories without a card, by what they are known by.
        found: Those of them that no user named, with what may be read of them.

    Returns:
        The roots, by what they are known by.
    """
    roots: dict[str, CardRoot] = {}
    for path in paths:
        key = reader.key(path)
        if key not in roots:
            roots[key] = CardRoot(
                reader,
                path,
                multi_card=multi_card,
                optional=key in optional,
                grant=found.get(key),
            )
    return roots
