"""Walk a directory tree and search its files as ripgrep does.

`main` runs as a separate process: a pattern that never ends can be stopped then, other agents do
not wait for the search, and it uses every processor. Only the standard library is imported, and
directories are opened one below the other without following
links, so that a link put there in between leads nowhere.
"""

from __future__ import annotations

import json
import os
import re
from itertools import chain, islice
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from fast_agent.text.json_value import JsonObject

IGNORE_FILES = (".gitignore", ".ignore")
"""The files of a directory that list what is ignored in it; the later one decides."""


class IgnoreRules:
    """The patterns of one ignore file.

    Args:
        text: The content of the file.
    """

    __slots__ = ("_any_name", "_any_path", "_rules")

    def __init__(self, text: str) -> None:
        self._rules = [rule for line in text.splitlines() if (rule := _rule(line)) is not None]
        # One expression for all patterns: nearly every file matches none of them.
        self._any_name = _any_of(source for source, on_name, _, _ in self._rules if on_name)
        self._any_path = _any_of(source for source, on_name, _, _ in self._rules if not on_name)

    def verdict(self, path: str, name: str, *, is_directory: bool) -> bool | None:
        """Return whether a file is ignored; None if no pattern matches it.

        Args:
            path: Its path relative to the directory of the ignore file.
            name: Its name.
            is_directory: Whether it is a directory.
        """
        by_name = self._any_name is not None and self._any_name.fullmatch(name)
        by_path = self._any_path is not None and self._any_path.fullmatch(path)
        if not by_name and not by_path:
            return None
        for source, on_name, is_negated, only_directories in reversed(self._rules):
            if only_directories and not is_directory:
                continue
            if re.fullmatch(source, name if on_name else path, re.DOTALL):
                return not is_negated
        return None


def glob_pattern(glob: str) -> re.Pattern[str]:
    """Compile a glob for paths with `/`: `*`, `**`, `?`, `[…]`, `{a,b}`.

    Args:
        glob: The pattern. Without a `/` in it, it is about names at any depth.

    Raises:
        re.error: It cannot be compiled.
    """
    text = glob.removeprefix("./")
    inner = text.strip("/")
    source = _translate(inner, braces=True)
    return re.compile(source if "/" in text.rstrip("/") else f"(?:.*/)?{source}", re.DOTALL)


def _any_of(sources: Iterable[str]) -> re.Pattern[str] | None:
    alternatives = [f"(?:{one})" for one in sources]
    return re.compile("|".join(alternatives), re.DOTALL) if alternatives else None


def _rule(line: str) -> tuple[str, bool, bool, bool] | None:
    """Read a line: the expression, whether it is about names, negated, of directories only."""
    text = line.rstrip() if not line.endswith("\\ ") else line
    if not text or text.startswith("#"):
        return None
    is_negated = text.startswith("!")
    text = text[1:] if is_negated else text
    only_directories = text.endswith("/")
    text = text.rstrip("/")
    if not text:
        return None
    on_name = "/" not in text
    source = _translate(text.lstrip("/"))
    try:
        re.compile(source)
    except re.error:
        return None
    return source, on_name, is_negated, only_directories


def _translate(glob: str, *, braces: bool = False) -> str:
    source, at, depth = "", 0, 0
    while at < len(glob):
        if glob.startswith("**/", at) and (at == 0 or glob[at - 1] == "/"):
            source, at = source + "(?:.*/)?", at + 3
            continue
        if glob.startswith("/**", at) and at + 3 == len(glob):
            return source + "/.+"
        one = glob[at]
        if one == "*":
            stars = len(glob[at:]) - len(glob[at:].lstrip("*"))
            source, at = source + (".*" if glob == "**" else "[^/]*"), at + stars
            continue
        end = glob.find("]", at + 2) if one == "[" else -1
        if end > 0:
            source, at = source + _set_of(glob[at + 1 : end]), end + 1
            continue
        if one == "\\" and at + 1 < len(glob):
            source, at = source + re.escape(glob[at + 1]), at + 2
            continue
        if braces and one in "{,}" and (one == "{" or depth):
            depth += {"{": 1, ",": 0, "}": -1}[one]
            source += {"{": "(?:", ",": "|", "}": ")"}[one]
        else:
            source += "[^/]" if one == "?" else re.escape(one)
        at += 1
    return source


def _set_of(inner: str) -> str:
    negated = inner[:1] in {"!", "^"}
    body = (inner[1:] if negated else inner).replace("\\", "\\\\").replace("[", "\\[")
    return f"(?!/)[{'^' if negated else ''}{body}]"


_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_MAX_DEPTH = 64
_MAX_BYTES = 64 * 1024 * 1024
_LINE = 500
_BATCH = 512
_PARALLEL_FROM = 2000
# These see beyond their line: a file without a match as a whole may have one in a line.
_BEYOND = re.compile(r"\\[AZz]|\(\?<?!|\(\?<?=")


class Folder(NamedTuple):
    """A directory of the tree, with the files in it that are not ignored."""

    path: str
    files: list[str]


def walk(root: str, start: str, *, everything: bool, glob: str | None = None) -> Iterator[Folder]:
    """Yield the directories of a tree that hold files, sorted by path.

    Args:
        root: The top, absolute, without links.
        start: Where to start, relative to it; empty for the top.
        everything: Whether hidden and ignored files belong to it, too; `.git` never does.
        glob: Only files it fits, also ignored ones in directories that are not; None for all.
    """
    wanted = None if glob is None else glob_pattern(glob)
    rules = [] if everything else _rules_above(root, start)
    try:
        directory = open_below(root, start)
    except OSError:
        return
    yield from _walk(directory, start, rules, everything, wanted, _MAX_DEPTH)


def open_below(root: str, path: str) -> int:
    """Open a directory below `root`, following no link on the way."""
    directory = os.open(root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    for part in path.split("/") if path else ():
        try:
            inner = os.open(part, _DIRECTORY, dir_fd=directory)
        finally:
            os.close(directory)
        directory = inner
    return directory


_Rules = list[tuple[str, IgnoreRules]]


def _walk(
    directory: int,
    path: str,
    rules: _Rules,
    everything: bool,
    wanted: re.Pattern[str] | None,
    depth: int,
) -> Iterator[Folder]:
    """Walk an open directory, and close it."""
    try:
        entries = _entries(directory)
        if not everything:
            names = {name for name, _ in entries}
            own = [(path, rule) for name in IGNORE_FILES if name in names
                   if (rule := _read_rules(directory, name)) is not None]  # fmt: skip
            rules = [*rules, *own]
        files: list[str] = []
        folders: list[str] = []
        for name, is_directory in entries:
            place = f"{path}/{name}" if path else name
            if is_directory:
                if name != ".git" and (everything or not _passed(place, name, rules, True)):
                    folders.append(name)
            elif _is_wanted(place, name, rules, everything, wanted):
                files.append(name)
        if files:
            yield Folder(path, files)
        for name in folders if depth else ():
            try:
                inner = os.open(name, _DIRECTORY, dir_fd=directory)
            except OSError:
                continue
            below = f"{path}/{name}" if path else name
            yield from _walk(inner, below, rules, everything, wanted, depth - 1)
    finally:
        os.close(directory)


def _is_wanted(
    place: str, name: str, rules: _Rules, everything: bool, wanted: re.Pattern[str] | None
) -> bool:
    if wanted is not None:
        return wanted.fullmatch(place) is not None
    return everything or not _passed(place, name, rules, False)


def _entries(directory: int) -> list[tuple[str, bool]]:
    found: list[tuple[str, bool]] = []
    try:
        with os.scandir(directory) as entries:
            for entry in entries:
                if entry.is_dir(follow_symlinks=False):
                    found.append((entry.name, True))
                elif entry.is_file(follow_symlinks=False):
                    found.append((entry.name, False))
    except OSError:
        return []
    found.sort()
    return found


def _passed(place: str, name: str, rules: _Rules, is_directory: bool) -> bool:
    if name.startswith("."):
        return True
    for base, rule in reversed(rules):
        inner = _relative(place, base)
        verdict = rule.verdict(inner, name, is_directory=is_directory)
        if verdict is not None:
            return verdict
    return False


def _relative(place: str, base: str) -> str:
    """Return a path relative to the base of rules; those above the root end with NUL."""
    if base.endswith("\0"):
        return base[:-1] + place
    return place[len(base) + 1 :] if base else place


def _rules_above(root: str, start: str) -> _Rules:
    """Read the ignore files of the directories above the start, up to the repository's top."""
    found: _Rules = []
    top = Path(root)
    for above in top.parents if not (top / ".git").exists() else ():
        if (above / ".git").exists():
            between = [above, *reversed([one for one in top.parents if above in one.parents])]
            for one in between:
                prefix = top.relative_to(one).as_posix() + "/\0"
                found += [(prefix, rule) for name in IGNORE_FILES
                          if (rule := _file_rules(one / name)) is not None]  # fmt: skip
            break
    parts = start.split("/") if start else []
    for count in range(len(parts)):
        base = "/".join(parts[:count])
        found += [(base, rule) for name in IGNORE_FILES
                  if (rule := _file_rules(top / base / name)) is not None]  # fmt: skip
    return found


def not_ignored(
    root: str, path: str, entries: Iterable[tuple[str, bool]]
) -> list[tuple[str, bool]]:
    """Return the entries of one directory that no ignore file names; hidden ones stay.

    Args:
        root: The top, absolute, without links.
        path: The directory relative to it; empty for the top.
        entries: Names, and whether each is a directory.
    """
    rules = [*_rules_above(root, path)]
    rules += [(path, rule) for name in IGNORE_FILES
              if (rule := _file_rules(Path(root, path, name))) is not None]  # fmt: skip
    return [
        (name, is_directory)
        for name, is_directory in entries
        if name.startswith(".")
        or not _passed(f"{path}/{name}" if path else name, name, rules, is_directory)
    ]


def _file_rules(file: Path) -> IgnoreRules | None:
    try:
        return IgnoreRules(file.read_text("utf-8", "replace"))
    except OSError:
        return None


def _read_rules(directory: int, name: str) -> IgnoreRules | None:
    data = read_file(directory, name)
    return None if data is None else IgnoreRules(data.decode("utf-8", "replace"))


def read_file(directory: int, name: str) -> bytes | None:
    """Read a file of an open directory; None where that is not possible or it is too large."""
    try:
        descriptor = os.open(name, _FILE, dir_fd=directory)
    except OSError:
        return None
    try:
        data = os.read(descriptor, 1 << 16)
        if len(data) < 1 << 16:
            return data
        blocks, size = [data], len(data)
        if b"\0" in data:
            return data  # binary: the rest is not needed
        while block := os.read(descriptor, 1 << 20):
            blocks.append(block)
            size += len(block)
            if size > _MAX_BYTES:
                return None
        return b"".join(blocks)
    except OSError:
        return None
    finally:
        os.close(descriptor)


class Search:
    """One search.

    Args:
        pattern: A regular expression, matched line by line.
        ignore_case: Whether case does not count.
        context: Lines shown around each match.
        only: `files` lists files with a match, `count` counts lines, `content` shows them.

    Raises:
        re.error: The pattern cannot be compiled.
    """

    def __init__(self, pattern: str, *, ignore_case: bool, context: int, only: str) -> None:
        flags = re.MULTILINE | (re.IGNORECASE if ignore_case else 0)
        self._pattern = re.compile(pattern, flags)
        is_plain = not ignore_case and pattern and not re.search(r"[\\.^$*+?{}\[\]|()]", pattern)
        self._needle = pattern.encode() if is_plain else None
        self._whole = not _BEYOND.search(pattern)
        self._context = context
        self._only = only

    def of(self, place: str, data: bytes) -> str:
        """Return the lines of a file that fit, each as `path NUL number : text`."""
        if self._needle is not None and self._needle not in data:
            return ""
        if b"\0" in data:
            return ""
        text = data.decode("utf-8", "replace")
        if self._whole and not self._pattern.search(text):
            return ""
        lines = text.split("\n")
        if lines and not lines[-1]:
            lines.pop()
        hits = [number for number, line in enumerate(lines) if self._pattern.search(line)]
        if not hits:
            return ""
        if self._only == "files":
            return f"{place}\n"
        if self._only == "count":
            return f"{place}\0{len(hits)}\n"
        return "".join(self._shown(place, lines, hits))

    def _shown(self, place: str, lines: Sequence[str], hits: Sequence[int]) -> Iterator[str]:
        marks = set(hits)
        last = -1
        for hit in hits:
            first = max(last + 1, hit - self._context)
            if last >= 0 and first > last + 1 and self._context:
                yield "--\n"
            for number in range(first, min(len(lines), hit + self._context + 1)):
                sign = ":" if number in marks else "-"
                line = lines[number].removesuffix("\r")
                shown = line if len(line) <= _LINE else f"{line[:_LINE]} […]"
                yield f"{place}\0{number + 1}{sign}{shown}\n"
                last = number


def search_folder(search: Search, root: str, folder: Folder) -> str:
    """Search the files of one directory."""
    try:
        directory = open_below(root, folder.path)
    except OSError:
        return ""
    found: list[str] = []
    try:
        for name in folder.files:
            data = read_file(directory, name)
            if data:
                place = f"{folder.path}/{name}" if folder.path else name
                found.append(search.of(place, data))
    finally:
        os.close(directory)
    return "".join(found)


def _batches(folders: Iterator[Folder]) -> Iterator[list[Folder]]:
    batch: list[Folder] = []
    size = 0
    for folder in folders:
        for at in range(0, len(folder.files), _BATCH):
            part = Folder(folder.path, folder.files[at : at + _BATCH])
            batch.append(part)
            size += len(part.files)
            if size >= _BATCH:
                yield batch
                batch, size = [], 0
    if batch:
        yield batch


class _Job:
    """The search of a process of the pool."""

    search: Search
    root: str

    @classmethod
    def work(cls, batch: list[Folder]) -> str:
        return "".join([search_folder(cls.search, cls.root, one) for one in batch])


def main(arguments: str) -> int:
    """Run the search of the command line, and write the lines to standard output.

    Args:
        arguments: JSON with `root`, `start`, `pattern`, `ignore_case`, `context`, `only`,
            `everything` and `glob`; `start` may be a file.
    """
    query: JsonObject = json.loads(arguments)
    # Names that are not UTF-8 pass as they are.
    with open(1, "w", encoding="utf-8", errors="surrogateescape", closefd=False) as output:
        try:
            _Job.search = Search(
                str(query["pattern"]),
                ignore_case=query["ignore_case"] is True,
                context=int(str(query["context"])),
                only=str(query["only"]),
            )
            output.writelines(_found(query))
        except re.error as error:
            output.write(f"regex parse error: {error}\n")
            return 2
    return 0


def _found(query: JsonObject) -> Iterator[str]:
    """Yield what is found, batch by batch; in several processes where the tree is large."""
    root, start, glob = str(query["root"]), str(query["start"]), query["glob"]
    _Job.root = root
    if start and (Path(root) / start).is_file():
        parent, _, name = start.rpartition("/")
        yield _Job.work([Folder(parent, [name])])
        return
    wanted = glob if isinstance(glob, str) else None
    batches = _batches(walk(root, start, everything=query["everything"] is True, glob=wanted))
    first = list(islice(batches, _PARALLEL_FROM // _BATCH))
    processors = os.cpu_count() or 1
    if len(first) * _BATCH < _PARALLEL_FROM - _BATCH or processors < 2:
        yield from map(_Job.work, chain(first, batches))
        return
    from multiprocessing import get_context

    with get_context("fork").Pool(min(processors, 8)) as pool:
        yield from pool.imap(_Job.work, chain(first, batches))
