"""Card roots: a file, directory or address cards were loaded from, looked at again for changes."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from fast_agent.cards.card_files import Candidate, is_candidate, list_directory, stem
from fast_agent.cards.card_load import CardLoad, FileLoad
from fast_agent.cards.load import load_cards
from fast_agent.diagnostics.card_file_rules import NO_FRONTMATTER
from fast_agent.diagnostics.diagnostic import Diagnostic
from fast_agent.text.source import signature_at, signature_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from pathlib import Path


class CardReader:
    """Reads cards the same way each time.

    Args:
        cwd: The directory relative paths start from, absolute.
        environ: The variables for `${NAME}`.
        fetch: Gets the text behind an address.
    """

    def __init__(self, cwd: Path, environ: Mapping[str, str], fetch: Callable[[str], str]) -> None:
        self.cwd = cwd
        self._environ = environ
        self._fetch = fetch

    def key(self, path: str | os.PathLike[str]) -> str:
        """Give what a path or address is known by: an absolute path, or the address itself."""
        text = os.fspath(path)
        return text if "://" in text else str((self.cwd / text).resolve())

    def read(
        self, paths: Iterable[str | os.PathLike[str] | Candidate], *, multi_card: bool
    ) -> CardLoad:
        """Load cards; see `load_cards`."""
        return load_cards(
            [one if isinstance(one, Candidate) else os.fspath(one) for one in paths],
            environ=self._environ,
            cwd=self.cwd,
            multi_card=multi_card,
            fetch=self._fetch,
        )


class CardRoot:
    """A path cards were loaded from.

    Args:
        reader: Reads its cards.
        shown: The path or address, as the user named it.
        multi_card: Whether a file of it may hold several cards.
    """

    def __init__(
        self, reader: CardReader, shown: str | os.PathLike[str], *, multi_card: bool
    ) -> None:
        self._reader = reader
        self._shown = os.fspath(shown)
        self._multi_card = multi_card
        self.remote = "://" in self._shown
        self.path = self._shown if self.remote else os.path.join(reader.cwd, self._shown)  # noqa: PTH118
        self._known: dict[str, FileLoad] = {}
        self.load = self._keep(reader.read([self._shown], multi_card=multi_card))

    @property
    def is_directory(self) -> bool:
        """Whether it is a directory now."""
        return not self.remote and os.path.isdir(self.path)  # noqa: PTH112

    def look(self) -> bool:
        """Read again what changed since it was last read; an address is not asked again.

        Returns:
            Whether anything changed; `load` then holds what there is now.
        """
        if self.remote:
            return False
        try:
            changed = self._changed_files()
            if changed is None:
                load = self._read_changed(list_directory(self.path, self._shown))
            elif changed:
                load = self._read_files(changed)
            else:
                return False
        except NotADirectoryError:
            return self._look_at_file()
        except OSError:
            load = self._reader.read([self._shown], multi_card=self._multi_card)
        return self._take(load)

    def _changed_files(self) -> list[Candidate] | None:
        """List the files of the directory that changed; None where some came or went.

        It is asked at every pass, so it is kept quick.
        """
        known, seen = self._known, 0
        changed: list[Candidate] = []
        with os.scandir(self.path) as entries:
            for entry in entries:
                file = known.get(entry.path)
                if file is None:
                    if is_candidate(entry):
                        return None
                    continue
                seen += 1
                try:
                    signature = signature_of(entry.stat())
                except OSError:
                    signature = None
                if signature != file.signature and file.candidate is not None:
                    changed.append(file.candidate)
        return changed if seen == len(known) and self.load.files else None

    def _look_at_file(self) -> bool:
        known = self._known.get(os.path.abspath(self.path))  # noqa: PTH100
        if known is not None and signature_at(self.path) == known.signature:
            return False
        return self._take(self._reader.read([self._shown], multi_card=self._multi_card))

    def _read_changed(self, candidates: list[Candidate]) -> CardLoad:
        kept: dict[str, FileLoad] = {}
        changed: list[Candidate] = []
        for one in candidates:
            known = self._known.get(one.path)
            if known is not None and known.signature == signature_at(one.path):
                kept[one.path] = known
            else:
                changed.append(one)
        if not candidates:
            return self._reader.read([self._shown], multi_card=self._multi_card)
        kept.update(self._read(changed))
        return CardLoad.of(kept[one.path] for one in candidates if one.path in kept)

    def _read_files(self, changed: list[Candidate]) -> CardLoad:
        """Read some of the files that were read before."""
        files = {**self._known, **self._read(changed)}
        return CardLoad.of(files.values())

    def _read(self, candidates: list[Candidate]) -> dict[str, FileLoad]:
        files: dict[str, FileLoad] = {}
        for file in self._reader.read(candidates, multi_card=self._multi_card).files:
            if file.candidate is not None:
                path = file.candidate.path
                files[path] = _half_written(file) if self._had_cards(path) else file
        return files

    def _had_cards(self, path: str) -> bool:
        known = self._known.get(path)
        return known is not None and bool(known.cards or known.unread)

    def _take(self, load: CardLoad) -> bool:
        changed = load.files != self.load.files
        self._keep(load)
        return changed

    def _keep(self, load: CardLoad) -> CardLoad:
        self._known = {file.candidate.path: file for file in load.files if file.candidate}
        self.load = load
        return load


def _half_written(file: FileLoad) -> FileLoad:
    """Call a file that held a card and would now be passed over wrong.

    Many programs empty a file before they write it; its agents would else be gone for a moment,
    and what they remember with them.
    """
    if file.skipped is None or file.candidate is None:
        return file
    shown = file.candidate.shown
    problem = Diagnostic(
        NO_FRONTMATTER,
        "the file held a card and holds none now",
        shown,
        hint="write its card again, or remove the file",
    )
    name = os.path.basename(shown)  # noqa: PTH119
    return FileLoad(file.candidate, file.signature, diagnostics=(problem,), unread=(stem(name),))


def read_roots(
    reader: CardReader, paths: Iterable[str | os.PathLike[str]], *, multi_card: bool
) -> dict[str, CardRoot]:
    """Read the cards of some paths, each once.

    Args:
        reader: Reads them.
        paths: Files, directories and addresses, in load order.
        multi_card: Whether a file may hold several cards.

    Returns:
        The roots, by what they are known by.
    """
    roots: dict[str, CardRoot] = {}
    for path in paths:
        key = reader.key(path)
        if key not in roots:
            roots[key] = CardRoot(reader, path, multi_card=multi_card)
    return roots
