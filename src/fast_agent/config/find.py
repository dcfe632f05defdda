"""Finding configuration files: from the working directory upwards, then in the home."""

from __future__ import annotations

import os
import stat
from shlex import quote
from typing import TYPE_CHECKING

from fast_agent.config.home import CONFIG_NAMES, SECRETS_NAMES
from fast_agent.config.layer import Place
from fast_agent.diagnostics.rules import OPEN_SECRETS, SHADOWED_CONFIG, UNSAFE_CONFIG
from fast_agent.text.frozen import frozen

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from fast_agent.diagnostics.diagnostic import Diagnostic


@frozen
class Found:
    """The files a configuration is read from.

    Args:
        config: The configuration file, or None.
        secrets: The secrets file, or None.
        warnings: What was skipped, and why.
    """

    config: Path | None
    secrets: Path | None
    warnings: tuple[Diagnostic, ...]


def find_files(cwd: Path, home: Path, config_path: Path | None = None) -> Found:
    """Find the configuration and the secrets.

    Args:
        cwd: The working directory, absolute.
        home: The home directory of the program.
        config_path: A configuration file given by name, or None to search for one.

    Returns:
        The nearest of each. Secrets next to the configuration are nearest.
    """
    warnings: list[Diagnostic] = []
    config = config_path or _nearest(CONFIG_NAMES, _upwards(cwd), home, warnings)
    beside = () if config is None else (config.parent,)
    secrets = next(
        (found for folder in beside if (found := _in(SECRETS_NAMES, folder)) is not None), None
    )
    if secrets is None or not _safe(secrets, home):
        secrets = _nearest(SECRETS_NAMES, _upwards(cwd), home, warnings)
    if secrets is not None and (found := _open_to_others(secrets)) is not None:
        warnings.append(found)
    return Found(config, secrets, tuple(warnings))


def shown_path(path: Path, cwd: Path) -> str:
    """Write a path as people would: relative where it is below the working directory."""
    return str(path.relative_to(cwd)) if path.is_relative_to(cwd) else str(path)


def _upwards(cwd: Path) -> Iterator[Path]:
    yield cwd
    yield from cwd.parents


def _nearest(
    names: tuple[str, ...], folders: Iterator[Path], home: Path, warnings: list[Diagnostic]
) -> Path | None:
    for folder in (*folders, home):
        found = _in(names, folder)
        if found is None:
            continue
        if not _safe(found, home):
            warnings.append(_passed_over(found))
            continue
        for other in names[names.index(found.name) + 1 :]:
            if _is_file(folder / other):
                message = f"`{other}` is not read, because `{found.name}` is next to it"
                hint = f"keep one of them, best `{found.name}`"
                warnings.append(Place(str(folder / other)).problem(SHADOWED_CONFIG, message, hint))
        return found
    return None


def _in(names: tuple[str, ...], folder: Path) -> Path | None:
    return next((folder / name for name in names if _is_file(folder / name)), None)


def _is_file(path: Path) -> bool:
    try:
        return path.is_file()
    except OSError:
        return False


def _safe(path: Path, home: Path) -> bool:
    """Whether only the user can have left the file there: a configuration can start programs."""
    if os.name != "posix" or path.parent == home:
        return True
    try:
        open_to_all = path.parent.stat().st_mode & 0o002
        return not open_to_all or path.lstat().st_uid in (os.geteuid(), 0)
    except OSError:
        return False


def _open_to_others(secrets: Path) -> Diagnostic | None:
    """Return a warning where other users may read or write the secrets."""
    if os.name != "posix":
        return None
    try:
        mode = stat.S_IMODE(secrets.stat().st_mode)
    except OSError:
        return None
    if not mode & (stat.S_IRWXG | stat.S_IRWXO):
        return None
    message = f"other users may read or write these secrets: the permissions are {mode:04o}"
    return Place(str(secrets)).problem(OPEN_SECRETS, message, f"`chmod 600 {quote(str(secrets))}`")


def _passed_over(path: Path) -> Diagnostic:
    return Place(str(path)).problem(
        UNSAFE_CONFIG,
        "the file was skipped: it is another user's, in a directory everyone may write to",
        "name it with `--config-path` if you trust it",
    )
