"""Programs: what a command line of a found set would run, and digests of the files it covers."""

from __future__ import annotations

import os
import re
from contextlib import suppress
from dataclasses import field
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from fast_agent.text.frozen import frozen
from fast_agent.trust.digest import (
    ABSENT,
    MAX_BYTES,
    MAX_FILES,
    PRESENT,
    file_digest,
    importable_files,
    module_names,
)
from fast_agent.trust.effect import no_files
from fast_agent.trust.launchers import FILES_OF, PROJECT_FILES, downloads_package, names_package

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

ONLY_LINE: Final = "only this command line is approved"
DOWNLOADS: Final = "downloads and runs whatever is newest at every start"

FIRST_VARIABLES: Final = re.compile(
    r"PATH|LD_.*|DYLD_.*|PYTHON.*|NODE_OPTIONS|NODE_PATH|BASH_ENV|ZDOTDIR|GIT_.*|.*_PROXY|UV_.*"
    r"|NPM_CONFIG_.*|PERL5.*|RUBY.*|LUA_.*|PHP.*|CLASSPATH|.*JAVA.*_OPTIONS|DOTNET_STARTUP_HOOKS",
    re.IGNORECASE,
)
"""Variables that change which code runs, shown before the others (TR-P4)."""

_NODE: Final = frozenset({".js", ".mjs", ".cjs", ".ts", ".mts", ".cts", ".jsx", ".tsx", ".node"})
_FAMILIES: Final = (
    _NODE,
    frozenset({".rb"}),
    frozenset({".php"}),
    frozenset({".pl", ".pm"}),
    frozenset({".lua"}),
)
"""How scripts end that load one another from their directory and those below."""

_PYTHON: Final = re.compile(r"(?:python|pypy)[0-9.]*w?(?:\.exe)?\Z")
_SPLIT: Final = re.compile(r"[\s;&|()<>'\"`]+")
_PARTS: Final = re.compile(r"[=:]")
_MODULE: Final = re.compile(r"-[bBdEiIOPqRsSuvx]*m(.*)")


@frozen
class Program:
    """What a command line runs.

    Args:
        path: The program found, absolute; None where there is none.
        line: The canonical command line: the path found, the arguments, the directory and the
            variables, as an approval names it.
        files: Digests of the files it covers, by path: relative to the root inside it, else
            absolute. `ABSENT` is the digest of a file that does not exist.
        notes: Lines for people, such as what a launcher downloads.
        refusal: Why it cannot be approved; None if it can.
    """

    path: str | None
    line: str
    files: Mapping[str, str] = field(default_factory=no_files, hash=False)
    notes: tuple[str, ...] = ()
    refusal: str | None = None


class _TooMuch(Exception):  # noqa: N818 - a signal inside this file
    """More files or bytes than a user could have read."""


def examine_program(
    command: str,
    args: Sequence[str],
    *,
    cwd: Path,
    root: Path,
    env: Mapping[str, str],
    path: str,
) -> Program:
    """Work out what a command line would run; nothing of it is run.

    Args:
        command: The program: a path, or a name looked up in `path`.
        args: Its arguments, as written: `${NAME}` stays as it is.
        cwd: The directory it would start in, absolute.
        root: The directory of the set that brings it, absolute and without links.
        env: Variables the set adds for it, as written.
        path: The `PATH` of the user.

    Returns:
        What it is; `refusal` says why it cannot be approved.
    """
    found = find_program(command, cwd=cwd, root=root, path=path)
    line = command_line(found or command, args, cwd=cwd, root=root, env=env)
    if found is None:
        missing = f"`{command}` is not on `PATH` outside the project; install it or write its path"
        return Program(None, line, notes=(missing,), refusal=missing)
    cover = _Cover(root)
    try:
        _cover_line(cover, found, args, cwd, env)
        _cover_launcher(cover, found, args, cwd)
    except _TooMuch:
        refusal = (
            f"it covers more than {MAX_FILES:,} files or {MAX_BYTES >> 20} MiB, "
            "which cannot have been reviewed; move the program to a separate directory"
        )
        return Program(found, line, refusal=refusal)
    return Program(found, line, MappingProxyType(cover.files), tuple(_notes(found, args, cover)))


def find_program(command: str, *, cwd: Path, root: Path, path: str) -> str | None:
    """Find a program without what the project could have put in the way.

    Empty and relative entries of `path`, and entries below the root, are skipped.

    Args:
        command: A path, or a name.
        cwd: Where a relative path starts.
        root: The directory of the set, absolute and without links.
        path: Directories, separated as in `PATH`.

    Returns:
        Its absolute path; None where there is no such program.
    """
    if os.sep in command or (os.altsep is not None and os.altsep in command):
        file = os.path.normpath(cwd / command)
        return file if os.access(file, os.X_OK) and Path(file).is_file() else None
    for entry in path.split(os.pathsep):
        if not entry or not Path(entry).is_absolute() or _is_inside(Path(entry), root):
            continue
        file = Path(entry) / command
        if file.is_file() and os.access(file, os.X_OK) and not _is_inside(file, root):
            return str(file)
    return None


def command_line(
    program: str, args: Sequence[str], *, cwd: Path, root: Path, env: Mapping[str, str]
) -> str:
    """Write a command line as an approval names it and a user reads it.

    Variables that change which code runs come first, then the others by name. A program inside the
    root is written relative to it, so that a linked worktree has the same line. The directory is
    shown where it is not the root.
    """
    import shlex

    def order(name: str) -> tuple[bool, str]:
        return FIRST_VARIABLES.fullmatch(name) is None, name

    variables = [f"{name}={shlex.quote(env[name])}" for name in sorted(env, key=order)]
    place = Path(program)
    if place.is_absolute() and place.is_relative_to(root):
        program = f"./{place.relative_to(root).as_posix()}"
    words = [shlex.quote(word) for word in (program, *args)]
    where = "" if cwd == root else f"   in {_shown_directory(cwd, root)}"
    return " ".join((*variables, *words)) + where


class _Cover:
    """Collects digests, bounded in number and size.

    Args:
        root: The directory of the set, without links.
    """

    def __init__(self, root: Path) -> None:
        self.root = root
        self.files: dict[str, str] = {}
        self.named = False
        self.seen: set[Path] = set()
        self._left = MAX_BYTES

    def add(self, file: Path) -> None:
        """Cover a file; one that is missing counts as absent."""
        name = self._name(file)
        if self.files.get(name, PRESENT) != PRESENT:
            return
        if len(self.files) >= MAX_FILES:
            raise _TooMuch
        try:
            size = file.stat().st_size
        except OSError:
            self.files[name] = ABSENT
            return
        digest = file_digest(file, self._left)
        if digest is None:
            raise _TooMuch
        self._left -= size
        self.files[name] = digest

    def note(self, file: Path) -> None:
        """Cover that there is a file, whatever it contains."""
        if len(self.files) >= MAX_FILES:
            raise _TooMuch
        self.files.setdefault(self._name(file), PRESENT)

    def add_all(self, files: Iterable[Path]) -> None:
        """Cover several files."""
        for file in files:
            self.add(file)

    def _name(self, file: Path) -> str:
        place = Path(os.path.realpath(file))
        return place.relative_to(self.root).as_posix() if self.holds(place) else str(place)

    def holds(self, place: Path) -> bool:
        """Return whether a path without links is inside the root."""
        return place.is_relative_to(self.root)


def _cover_line(
    cover: _Cover, program: str, args: Sequence[str], cwd: Path, env: Mapping[str, str]
) -> None:
    """Cover what the words of a line, and variables that change which code runs, would load."""
    loads = [env[name] for name in sorted(env) if FIRST_VARIABLES.fullmatch(name)]
    loads += [one for value in loads for one in value.split(os.pathsep)]
    searched = list(_directories(cover, loads, cwd))
    for place in searched:
        with suppress(OSError):
            cover.add_all(one for one in sorted(place.iterdir()) if one.is_file())
    module = _module_in(program, args)
    for place in (cwd, *searched, *_directories(cover, _words(args), cwd)):
        _cover_words(cover, program, (*args, *loads), place)
        if module is not None:
            _cover_module(cover, module, place)


def _directories(cover: _Cover, words: Iterable[str], cwd: Path) -> Iterator[Path]:
    """Yield directories of the root that words name: `uv --directory srv run server.py`."""
    for word in filter(None, words):
        with suppress(OSError, ValueError):
            place = Path(os.path.realpath(cwd / word))
            if cover.holds(place) and place.is_dir():
                yield place


def _cover_words(cover: _Cover, program: str, args: Sequence[str], cwd: Path) -> None:
    """Cover each word that names a file of the root, with what that file loads."""
    is_python = any(map(_is_python, (program, *args)))
    for word in (program, *_words(args)):
        try:
            file = Path(os.path.realpath(cwd / word))
            if not cover.holds(file) or file in cover.seen:
                continue
            cover.seen.add(file)
            if file.is_file():
                cover.named = True
                _cover_script(cover, file, is_python=is_python)
            elif file.is_dir() and file != cover.root:
                _cover_directory(cover, file)
        except (OSError, ValueError):
            continue


def named_files(words: Sequence[str], cwd: Path) -> Iterator[str]:
    """Yield the files that a command line may name, whether or not they are there.

    Args:
        words: The line: a program and its arguments.
        cwd: The directory it starts in; a word may also start in one that another word names.
    """
    parts = list(_words(words))
    places = [cwd, *(cwd / part for part in parts if os.path.isdir(cwd / part))]  # noqa: PTH112
    yield from (str(place / part) for place in places for part in parts)


def _words(args: Sequence[str]) -> Iterator[str]:
    """Yield what may name a file: words, their parts, the words of a shell's line or of code.

    Servers of Python take `server.py:app` and `package.server:app`.
    """
    for arg in args:
        words = [one for one in _SPLIT.split(arg) if one != arg]
        yield from (f"{word.replace('.', '/')}.py" for word in words if word)
        for word in (arg, *words):
            yield word
            if word[:1] == "-" and word[2:]:
                yield word[2:]  # `-r./hook` of Ruby, `-Ilib` of Perl
            first, *others = _PARTS.split(word)
            if others:
                yield from filter(None, (first, f"{first.replace('.', '/')}.py", *others))


def _cover_script(cover: _Cover, file: Path, *, is_python: bool) -> None:
    cover.add(file)
    if file.suffix == ".py" or (not file.suffix and (is_python or _starts_python(file))):
        # A script finds neighbouring modules first.
        cover.add_all(importable_files(file.parent))
        return
    for family in _FAMILIES:
        if file.suffix in family:
            cover.add_all(_scripts_below(file.parent, family))


def _starts_python(file: Path) -> bool:
    with file.open("rb") as opened:
        return re.match(rb"#!.*python", opened.readline(256)) is not None


def _scripts_below(folder: Path, family: frozenset[str] = _NODE) -> Iterator[Path]:
    for place, folders, names in os.walk(folder):
        folders[:] = sorted(one for one in folders if one != "node_modules" and one[0] != ".")
        yield from (Path(place) / name for name in sorted(names) if Path(name).suffix in family)


def _cover_directory(cover: _Cover, folder: Path) -> None:
    """Cover a directory that can be run: `python DIR`, `node DIR`, `uv run --directory DIR`."""
    if (folder / "__main__.py").is_file():
        cover.named = True
        cover.add_all(importable_files(folder))
    if (folder / "package.json").is_file():
        cover.named = True
        cover.add_all(_scripts_below(folder))


def _cover_launcher(cover: _Cover, program: str, args: Sequence[str], cwd: Path) -> None:
    """Cover the files the launcher reads, from each directory it starts in up to the root."""
    files = FILES_OF.get("python" if _is_python(program) else _program_name(program))
    starts_any = _is_inside(Path(program), cover.root) or any(map(_is_python, args))
    if files is None and not starts_any and not cover.named:
        return
    names = files or PROJECT_FILES
    for folder in _launch_directories(cover, program, args, cwd):
        cover.add_all(folder / name for name in names)
        bins = folder / "node_modules" / ".bin"
        if bins.is_dir():
            cover.add_all(bins / word for word in args if _is_word(word))


def _launch_directories(
    cover: _Cover, program: str, args: Sequence[str], cwd: Path
) -> dict[Path, None]:
    starts = [Path(os.path.realpath(cwd))]
    for word in (program, *_words(args)):
        try:
            place = Path(os.path.realpath(cwd / word))
            if cover.holds(place) and place.exists():
                starts.append(place if place.is_dir() else place.parent)
            # The link `.venv/bin/python` leads elsewhere, and its `.venv` decides what is imported.
            beside = Path(os.path.realpath((cwd / word).parent))
            if os.path.lexists(cwd / word) and cover.holds(beside):
                starts.append(beside)
        except (OSError, ValueError):
            continue
    found: dict[Path, None] = {}
    for start in starts:
        folder = start
        while cover.holds(folder):
            found[folder] = None
            if folder == cover.root:
                break
            folder = folder.parent
    return found


def _cover_module(cover: _Cover, module: str, cwd: Path) -> None:
    """Cover the module of `python -m NAME`, and what the start directory puts before others."""
    start = Path(os.path.realpath(cwd))
    top = module.partition(".")[0]
    if not (cover.holds(start) and top.isidentifier()):
        return
    for package in (start / top, start / "src" / top):
        cover.add(package.with_suffix(".py"))
        cover.add(package / "__init__.py")
        if package.is_dir():
            cover.named = True
            cover.add_all(importable_files(package.parent, package))
    if (start / f"{top}.py").is_file():
        cover.named = True
        cover.add_all(importable_files(start))
    # The module may import any of these, and its libraries may, in place of their own.
    for name in module_names(start):
        cover.note(name)


def is_launcher(command: str, args: Sequence[str]) -> bool:
    """Return whether the directory a command line starts in decides what it runs.

    That is a launcher of packages or images, or a module of Python: `npx`, `docker run`,
    `python -m`. A file that the line names is none.

    Args:
        command: The program, with or without a directory.
        args: Its arguments.
    """
    if _is_python(command):
        return _module_of(args) is not None
    return names_package(_program_name(command), args)


def _module_in(program: str, args: Sequence[str]) -> str | None:
    """Return the module a line runs: `python -m NAME`, `env python -m NAME`, `uv run -m NAME`."""
    words = (program, *args)
    for at, word in enumerate(words):
        if _is_python(word):
            return _module_of(words[at + 1 :])
    options = [at for at, word in enumerate(words) if word in {"-m", "--module"}]
    is_uv = _program_name(program) == "uv" and options and options[0] + 1 < len(words)
    return words[options[0] + 1] if is_uv else None


def _is_python(word: str) -> bool:
    return _PYTHON.fullmatch(_program_name(word)) is not None


def _module_of(args: Sequence[str]) -> str | None:
    """Return the module of `python -m NAME`, also behind other options or joined to them."""
    words = iter(args)
    for word in words:
        if word in {"-X", "-W"}:
            next(words, None)
            continue
        module = _MODULE.fullmatch(word)
        if module is not None:
            return module[1] or next(words, None)
        if not word.startswith("-") or word == "-c":
            return None
    return None


def _notes(program: str, args: Sequence[str], cover: _Cover) -> Iterator[str]:
    if downloads_package(_program_name(program), args):
        yield DOWNLOADS
    if not cover.named:
        yield ONLY_LINE


def _program_name(program: str) -> str:
    name = Path(program).name.lower()
    return name.removesuffix(".exe").removesuffix(".cmd")


def _is_word(word: str) -> bool:
    return (
        bool(word) and not word.startswith("-") and os.sep not in word and word not in {".", ".."}
    )


def _is_inside(path: Path, root: Path) -> bool:
    return Path(os.path.realpath(path)).is_relative_to(root)


def _shown_directory(cwd: Path, root: Path) -> str:
    place = Path(os.path.realpath(cwd))
    return f"./{place.relative_to(root).as_posix()}" if place.is_relative_to(root) else str(place)
