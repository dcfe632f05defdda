"""The home directory of the program: where a user's own configuration and data are."""

from __future__ import annotations

import os
from pathlib import Path, PurePath
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from fast_agent.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Mapping

HOME_VARIABLE: Final = "FAST_AGENT_HOME"
"""Environment variable that names another home directory."""


def working_directory() -> Path:
    """Return the directory the process works in, absolute.

    Raises:
        ConfigError: It was deleted.
    """
    try:
        return Path.cwd()
    except FileNotFoundError as error:
        raise ConfigError(
            "the working directory no longer exists", hint="change to one that does"
        ) from error


def inside_working_directory(path: Path, *, hint: str) -> Path:
    """Return a path that the program chose, not the user, if writing there stays in this directory.

    A project can bring `.claude` or `.agents` as a link to the user's own.

    Args:
        path: The path, relative to the working directory.
        hint: What to do.

    Raises:
        ConfigError: A link leads out of the working directory.
    """
    end = path.resolve()
    if not end.is_relative_to(working_directory().resolve()):
        raise ConfigError(f"`{path}` leads to `{end}`, outside of this directory", hint=hint)
    return path


def home_directory(environ: Mapping[str, str]) -> Path:
    """Find the home directory; it need not exist.

    Args:
        environ: The environment.

    Returns:
        `FAST_AGENT_HOME`, or `.fast-agent` in the user's home; absolute.
    """
    named = environ.get(HOME_VARIABLE)
    if named:
        return from_home(named, environ).absolute()
    return user_home(environ) / ".fast-agent"


def user_home(environ: Mapping[str, str]) -> Path:
    """Find the user's home as the environment has it."""
    named = environ.get("HOME") or environ.get("USERPROFILE")
    return Path(named).absolute() if named else Path.home()


def from_home(text: str, environ: Mapping[str, str]) -> Path:
    """Make a path of a string that may start with `~/`."""
    if text == "~" or text.startswith(("~/", "~\\")):
        return user_home(environ) / text[2:]
    return Path(text)


CONFIG_NAMES: Final = ("fastagent.config.yaml", "fast-agent.yaml")
"""Names a configuration file may have, the preferred one first."""

USER_SKILL_FOLDERS: Final = (".agents/skills", ".claude/skills")
"""Below the user's home, the directories of skills for all projects."""

SKILL_FOLDERS: Final = (".fast-agent/skills", ".claude/skills", ".agents/skills")
"""Where the skills of a project are, below its directory, where nothing else is said."""


FOREIGN_PLACES: Final[Mapping[str, str]] = MappingProxyType(
    {
        ".claude/agents": "Claude Code",
        ".github/agents": "VS Code or Copilot",
        ".github/chatmodes": "VS Code or Copilot",
        ".opencode/agent": "OpenCode",
        ".opencode/agents": "OpenCode",
        ".gemini/agents": "Gemini CLI",
        ".codex/agents": "Codex",
    }
)
"""Where projects keep agents of other tools, and whose these are."""


def is_foreign_place(folder: str) -> bool:
    """Return whether a directory is one in which another tool keeps agents.

    Args:
        folder: Its path.
    """
    return "/".join(PurePath(folder).parts[-2:]) in FOREIGN_PLACES


def project_directories(workspace: Path, home: Path | None) -> tuple[Path, ...]:
    """Return where skills of the project of a directory may be, the nearest place first.

    Args:
        workspace: An absolute directory.
        home: The user's home; None if unknown.

    Returns:
        The directory and those above it up to the root of its Git checkout; the directory alone
        where it is in none, or where the checkout holds the user's home.
    """
    found: list[Path] = []
    for one in (workspace, *workspace.parents):
        if one == home:
            break
        found.append(one)
        if os.path.lexists(one / ".git"):
            return tuple(found)
    return (workspace,)


def usual_skill_folders(workspace: Path, home: Path | None, *, with_own: bool) -> list[Path]:
    """Return where skills are searched for, where no card and no configuration says so.

    Args:
        workspace: An absolute directory.
        home: The user's home; None if unknown.
        with_own: Whether the user's own count too. They come first: nothing that was found takes
            their names.
    """
    places = project_directories(workspace, home)
    usual = [place / name for place in places for name in SKILL_FOLDERS]
    if not with_own or home is None or home == workspace:
        return usual
    return [*(home / name for name in USER_SKILL_FOLDERS), *usual]


SECRETS_NAMES: Final = ("fastagent.secrets.yaml", "fast-agent.secrets.yaml")
"""Names a file that holds secrets may have, the preferred one first."""


GUIDE_FILE: Final = ".guide.yaml"
"""The file next to documents that contains the configuration of their guide."""

_NEVER_SERVED: Final = frozenset(
    {".git", ".hg", ".svn", ".jj", ".venv", "node_modules", "__pycache__", ".DS_Store"}
)


def is_never_served(name: str) -> bool:
    """Return whether a file or directory of skills or documents is never served.

    These are version control, the values of variables, and caches.
    """
    return name in _NEVER_SERVED or name.startswith(".env")
