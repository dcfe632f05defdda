"""Files no permission for good covers: what is run or loaded without being asked for."""

from __future__ import annotations

import os
import unicodedata
from pathlib import Path
from typing import TYPE_CHECKING, Final, Protocol

from fast_agent.cards.card_files import CARD_SUFFIXES, TEST_SUFFIXES
from fast_agent.config.home import CONFIG_NAMES, SECRETS_NAMES
from fast_agent.trust.launchers import is_launcher_file
from fast_agent.trust.programs import named_files

if TYPE_CHECKING:
    from collections.abc import Iterator

    from fast_agent.cards.load_set import LoadSet
    from fast_agent.config.settings import Settings
    from fast_agent.mcp.server import StdioTarget

_NAMES: Final = frozenset((*CONFIG_NAMES, *SECRETS_NAMES))

_DIRECTORIES: Final = frozenset({".fast-agent", ".git"})


class LoadedProgram(Protocol):
    """What was loaded, in its current state."""

    @property
    def load_set(self) -> LoadSet:
        """The cards."""
        ...

    @property
    def settings(self) -> Settings:
        """The configuration."""
        ...

    @property
    def workspace(self) -> Path:
        """The directory the program works in."""
        ...


class ProtectedFiles:
    """Which files are asked about separately at every write.

    They are those of the home, of configurations, of cards, their functions and tests, of skills
    and guides, those that the command lines of servers name, and the files that launchers read,
    such as `Makefile` and `package.json`: a model that may write one of them chooses what runs or
    is loaded later.

    Args:
        program: The agents.
        home: The home directory of the program.
        cwd: The directory that is worked in.
    """

    def __init__(self, program: LoadedProgram, home: Path, cwd: Path) -> None:
        self._program = program
        self._home = _folded(home)
        self._cwd = cwd

    def holds(self, path: Path) -> bool:
        """Return whether a file is protected.

        Args:
            path: An absolute path without links.
        """
        place = _folded(path)
        if place.name in _NAMES or place.name.endswith(TEST_SUFFIXES):
            return True
        if not _DIRECTORIES.isdisjoint(place.parts):
            return True
        if is_launcher_file(place.as_posix()) or place.is_relative_to(self._home):
            return True
        return self._is_loaded(place) or self._is_same_file(path)

    def _is_loaded(self, place: Path) -> bool:
        """Whether it lies where cards, skills or guides are loaded from."""
        here = _folded(self._cwd)
        for directory in map(_folded, self._directories()):
            if here.is_relative_to(directory):
                # The whole project lies there too, so that only what may be a card counts.
                if place.parent == directory and place.suffix in CARD_SUFFIXES:
                    return True
            elif place.is_relative_to(directory):
                return True
        return any(place == _folded(Path(file)) for file in self._files())

    def _is_same_file(self, path: Path) -> bool:
        """Whether it is a loaded file under another name, such as a hard link."""
        try:
            own = os.stat(path)  # noqa: PTH116
        except OSError:
            return False
        return own.st_nlink > 1 and any(_is_file(file, own) for file in self._files())

    def _directories(self) -> Iterator[Path]:
        from fast_agent.agents.agent_skills import directories_of, skill_home

        program = self._program
        settings = program.settings
        for card in program.load_set.cards.values():
            if card.config.directory is not None:
                yield card.config.directory
            names, _ = directories_of(
                card.config, settings.skills, program.workspace, skill_home(os.environ)
            )
            yield from map(Path, names)
        if settings.guide.docroot is not None:
            yield Path(settings.guide.docroot)

    def _files(self) -> Iterator[str]:
        from fast_agent.prompt.named_file import card_inputs

        program = self._program
        for card in program.load_set.cards.values():
            if card.config.source is not None:
                yield os.fspath(card.config.source)
            yield from card_inputs(card.config, workspace=program.workspace)
        for source in program.settings.sources:
            yield os.path.abspath(source)  # noqa: PTH100
        for target in self._commands():
            start = Path(target.cwd or program.workspace)
            yield from named_files((target.command, *target.args), start)

    def _commands(self) -> Iterator[StdioTarget]:
        from fast_agent.mcp.server import StdioTarget, from_connect, from_settings

        program = self._program
        specs = list(from_settings(program.settings.mcp))
        for card in program.load_set.cards.values():
            directory = card.config.directory or program.workspace
            specs += [from_connect(one, directory=directory) for one in card.config.mcp_connect]
        yield from (spec.target for spec in specs if isinstance(spec.target, StdioTarget))


def _is_file(file: str, status: os.stat_result) -> bool:
    try:
        return os.path.samestat(os.stat(file), status)  # noqa: PTH116
    except OSError:
        return False


def _folded(path: Path) -> Path:
    """Return a path as a file system sees it that knows no case and no forms of letters."""
    real = os.path.realpath(path)
    return Path(unicodedata.normalize("NFC", real).casefold())
