"""Writing several files into one directory: all of them or none, and never anywhere else."""

from __future__ import annotations

import os
import re
import stat
from contextlib import suppress
from hashlib import sha256
from typing import TYPE_CHECKING, NamedTuple
from uuid import uuid4

from fast_agent.diagnostics import rules
from fast_agent.diagnostics.diagnostic import Diagnostic
from fast_agent.errors import CardError, os_reason

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path


_FIRST_PRINTABLE = 32
_OPEN_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_CREATE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC


def write_directory(directory: Path, files: Mapping[str, bytes]) -> list[Path]:
    """Write files into a directory, which is made when it is not there.

    Every file is first written whole under a temporary name and then put in its place. What was
    there before comes back when that fails half way.

    Args:
        directory: Where to write; not a symbolic link.
        files: Contents by file name, without any path.

    Returns:
        The files written, in the order given.

    Raises:
        CardError: A name is not a plain file name, the directory or a file is a symbolic link or
            no file, or the system refuses. Nothing was written.
    """
    refuse([problem for name in files for problem in name_problems(name)])
    try:
        directory.mkdir(parents=True, exist_ok=True)
        handle = os.open(directory, _OPEN_DIRECTORY)
    except OSError as error:
        refuse([_unwritable(directory, error)])
        raise
    try:
        refuse([problem for name in files if (problem := _blocked(handle, directory, name))])
        _write_all(handle, files)
    except OSError as error:
        refuse([_unwritable(directory, error)])
        raise
    finally:
        os.close(handle)
    return [directory / name for name in files]


def _write_all(handle: int, files: Mapping[str, bytes]) -> None:
    staged: dict[str, str] = {}
    try:
        for name, data in files.items():
            temporary = f".{uuid4().hex}.tmp"
            staged[name] = temporary
            _write_new(handle, temporary, data, _mode(handle, name))
        _put_in_place(handle, staged)
    finally:
        for temporary in staged.values():
            with suppress(FileNotFoundError):
                os.unlink(temporary, dir_fd=handle)
    os.fsync(handle)


def _put_in_place(handle: int, staged: dict[str, str]) -> None:
    kept: dict[str, str | None] = {}
    try:
        for name, temporary in staged.items():
            kept[name] = _keep(handle, name)
            os.replace(temporary, name, src_dir_fd=handle, dst_dir_fd=handle)
    except OSError:
        for name, old in kept.items():
            if old is not None:
                os.replace(old, name, src_dir_fd=handle, dst_dir_fd=handle)
                with suppress(FileNotFoundError):  # two names of one file: renaming did nothing
                    os.unlink(old, dir_fd=handle)
            elif _is_missing(handle, staged[name]):
                os.unlink(name, dir_fd=handle)
        raise
    for old in kept.values():
        if old is not None:
            os.unlink(old, dir_fd=handle)


def _keep(handle: int, name: str) -> str | None:
    """Link the old file to a second name, to restore it from."""
    old = f".{uuid4().hex}.old"
    try:
        os.link(name, old, src_dir_fd=handle, dst_dir_fd=handle, follow_symlinks=False)
    except FileNotFoundError:
        return None
    return old


def _is_missing(handle: int, name: str) -> bool:
    try:
        os.stat(name, dir_fd=handle, follow_symlinks=False)
    except FileNotFoundError:
        return True
    return False


def _write_new(handle: int, name: str, data: bytes, mode: int | None) -> None:
    descriptor = os.open(name, _CREATE, 0o666, dir_fd=handle)
    with os.fdopen(descriptor, "wb") as file:
        file.write(data)
        file.flush()
        if mode is not None:
            os.fchmod(descriptor, mode)
        os.fsync(descriptor)


def _mode(handle: int, name: str) -> int | None:
    try:
        return stat.S_IMODE(os.stat(name, dir_fd=handle, follow_symlinks=False).st_mode)
    except FileNotFoundError:
        return None


def _blocked(handle: int, directory: Path, name: str) -> DumpProblem | None:
    try:
        mode = os.stat(name, dir_fd=handle, follow_symlinks=False).st_mode
    except FileNotFoundError:
        return None
    if stat.S_ISREG(mode):
        return None
    what = "a symbolic link" if stat.S_ISLNK(mode) else "not a regular file"
    return DumpProblem(
        rules.DUMP_OUTSIDE,
        f"`{directory / name}` is {what}; nothing was written",
        "remove it, or dump to another directory",
    )


_UNUSUAL = re.compile(r'[<>:"|?*]|[. ]+$')
_DEVICES = re.compile(r"(?i)(con|prn|aux|nul|com\d|lpt\d)(?=\.|$)")
_MAX_STEM_BYTES = 200


def file_stem(name: str) -> str:
    """Return the file name, without suffix, that any file system can hold for an agent's name.

    Args:
        name: A valid name of an agent.

    Returns:
        The name, with what some system forbids written as `%3A`, and cut where it is too long.
    """
    stem = _UNUSUAL.sub(lambda found: "".join(f"%{ord(one):02X}" for one in found[0]), name)
    stem = _DEVICES.sub(lambda found: f"%{ord(found[0][0]):02X}{found[0][1:]}", stem, count=1)
    data = stem.encode()
    if len(data) <= _MAX_STEM_BYTES:
        return stem
    return f"{data[:_MAX_STEM_BYTES].decode(errors='ignore')}-{sha256(data).hexdigest()[:8]}"


def name_problems(name: str) -> list[DumpProblem]:
    """Return why a file of this name might be written outside the directory, if it might.

    Args:
        name: The file name.

    Returns:
        The reason, or nothing.
    """
    held = any(character in "/\\" or ord(character) < _FIRST_PRINTABLE for character in name)
    if name and not name.startswith(".") and not held:
        return []
    return [
        DumpProblem(
            rules.DUMP_OUTSIDE,
            f"`{name}` is not a plain file name, so it might leave the directory",
            "use a name without `/`, `\\`, control characters and a leading `.`",
        )
    ]


def _unwritable(directory: Path, error: OSError) -> DumpProblem:
    if directory.is_symlink():
        return DumpProblem(
            rules.DUMP_OUTSIDE,
            f"`{directory}` is a symbolic link; nothing was written",
            "name the directory it leads to",
        )
    reason = os_reason(error)
    return DumpProblem(
        rules.DUMP_FAILED,
        f"cannot write to `{directory}`: {reason}",
        "see that it is a directory, that it may be written and that there is room",
    )


class DumpProblem(NamedTuple):
    """One reason not to dump.

    Args:
        code: The rule.
        message: What is wrong.
        hint: What to do.
        path: The card it is about, as the user named it; empty where there is none.
    """

    code: str
    message: str
    hint: str
    path: str = ""


def refuse(problems: Sequence[DumpProblem]) -> None:
    """Raise one error for all problems, if there are any.

    Args:
        problems: What was found.

    Raises:
        CardError: There is at least one; its diagnostics hold them all.
    """
    if problems:
        raise CardError(
            problems[0].message,
            hint=problems[0].hint,
            diagnostics=[
                Diagnostic(problem.code, problem.message, problem.path, hint=problem.hint)
                for problem in problems
            ],
        )
