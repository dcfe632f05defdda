"""Named files: texts that `{{file:}}` placeholders put into an instruction.

With its other files they are what an agent is made from in addition to its card.
"""

from __future__ import annotations

import os
from dataclasses import replace
from typing import TYPE_CHECKING

from fast_agent.cards.placeholder import PROJECT_FILES, Placeholder, parse_template
from fast_agent.errors import CardError
from fast_agent.text.safe_file import FileStamp, RefusedFileError, confined_parts, read_confined
from fast_agent.text.source import SourceError, decode

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from fast_agent.cards.agent_config import AgentConfig
    from fast_agent.cards.grant import CardGrant

MAX_FILE_BYTES = 1024 * 1024
"""Largest file a `{{file:}}` placeholder may name, in bytes."""


class NamedFile:
    """The text of a file, read again when the file is another one or has changed.

    Args:
        placeholder: A `{{file:}}` or `{{file_silent:}}` placeholder.
        config: The card it is in.
        workspace: The workspace's root directory.
    """

    def __init__(self, placeholder: Placeholder, config: AgentConfig, workspace: Path) -> None:
        self._placeholder = placeholder
        self._config = config
        self._workspace = workspace
        self._paths: list[str] = []
        self._state: tuple[int, FileStamp | None] | None = None
        self._text = ""

    def read(self) -> str:
        """Return the file's current text.

        Raises:
            CardError: The file is missing, leaves its directory, is too large or no text.
        """
        if self._state is None or self._state != self._state_now():
            places = file_places(self._config, self._workspace)
            grant = self._config.grant
            self._text, index, stamp = read_named_file(self._placeholder, places, grant)
            inside = "/".join(confined_parts(self._placeholder.argument))
            self._paths = [f"{place}/{inside}" for place in places]
            self._state = (index, stamp)
        return self._text

    def _state_now(self) -> tuple[int, FileStamp | None] | None:
        """Check the file without opening it; None if that is not conclusive."""
        for index, path in enumerate(self._paths):
            try:
                return index, FileStamp.of(os.stat(path, follow_symlinks=False))  # noqa: PTH116 (hot)
            except (FileNotFoundError, NotADirectoryError):
                continue
            except OSError:
                return None
        return -1, None


class ProjectInstructions:
    """What the project says to agents that work in it: `AGENTS.md` and `CLAUDE.md`.

    Args:
        config: The card that asks for it.
        workspace: The workspace's root directory.
    """

    def __init__(self, config: AgentConfig, workspace: Path) -> None:
        self._files: list[NamedFile] = []
        if config.remote is not None:
            return  # a card from the network reads no files
        own = replace(config, source=workspace / PROJECT_FILES[0])  # the workspace, no other place
        for name in PROJECT_FILES:
            placeholder = Placeholder("file_silent", name, 0, 0)
            self._files.append(NamedFile(placeholder, own, workspace))

    def read(self) -> str:
        """Return the current texts; a text that only leads to the other is left out.

        Raises:
            CardError: A file leaves the workspace, is too large or is not text.
        """
        texts: dict[str, None] = {}
        for file in self._files:
            text = file.read().strip()
            if text and not (texts and text.lstrip("@") in PROJECT_FILES):
                texts[text] = None
        return "\n\n".join(texts)


def file_places(config: AgentConfig, workspace: Path) -> tuple[Path, ...]:
    """Return the directories a `{{file:}}` placeholder searches, in order.

    Raises:
        CardError: The card came over the network and may not read files.
    """
    if config.remote is not None:
        raise CardError(
            "a card from the network may not read files into its instruction",
            hint="save the card as a file, or put the text into the instruction",
        )
    if config.directory is None or config.directory == workspace:
        return (workspace,)
    return (config.directory, workspace)


def read_named_file(
    placeholder: Placeholder, places: Sequence[Path], grant: CardGrant | None = None
) -> tuple[str, int, FileStamp | None]:
    """Read the file a `{{file:}}` or `{{file_silent:}}` placeholder names.

    Args:
        placeholder: The placeholder.
        places: The directories to look in, in order.
        grant: What the card's found set may read; None where a user named the card.

    Returns:
        The text, the index of the place it was found in, and the file's stamp; no text, -1 and None
        for a missing file that `file_silent` names.

    Raises:
        CardError: The file is missing, leaves its directory, is too large or no text.
    """
    for index, place in enumerate(places):
        try:
            if grant is not None and os.path.lexists(place / placeholder.argument):
                grant.check_read(place / placeholder.argument)
            found = read_confined(place, placeholder.argument, MAX_FILE_BYTES)
            return decode(found.data), index, found.stamp
        except RefusedFileError as error:
            if error.missing:
                continue
            hint = "name a file below the card's directory or the workspace, not through a link"
            raise CardError(f"the file of `{placeholder}` {error.message}", hint=hint) from error
        except SourceError as error:
            message = f"the file of `{placeholder}` cannot be used: {error.message}"
            raise CardError(message, hint=error.hint) from error
    if placeholder.name == "file_silent":
        return "", -1, None
    looked = " and ".join(f"`{place}`" for place in places)
    raise CardError(
        f"the file of `{placeholder}` does not exist",
        hint=f"it was searched for in {looked}; `file_silent` leaves a missing file out",
    )


def card_inputs(config: AgentConfig, *, workspace: Path) -> Iterator[str]:
    """Yield the files an agent is made from in addition to its card.

    Args:
        config: The agent; one from a web address names no files here.
        workspace: Where relative paths of an agent made in Python start, absolute.

    Yields:
        Absolute paths, which may be missing: histories, files of functions and hooks with the
        Python files beside them, folders of skills, files the instruction includes.
    """
    if config.remote is not None:
        return
    start = os.fspath(config.directory or workspace)
    for name in (*config.messages, *(config.skills or ())):
        yield os.path.join(start, name)  # noqa: PTH118
    folders: dict[str, None] = {}
    for function in _functions(config):
        file = os.path.join(start, function.rpartition(":")[0])  # noqa: PTH118
        yield file
        folders[os.path.dirname(file)] = None  # noqa: PTH120
    for folder in folders:
        yield from _python_files(folder)
    if "{{file" in (config.instruction or ""):
        yield from _included(config, workspace)


def _functions(config: AgentConfig) -> Iterator[str]:
    hooks = config.tool_hooks
    groups = (hooks,) if isinstance(hooks, tuple) else tuple(hooks.values())
    for group in (config.function_tools, *groups):
        yield from (one for one in group if isinstance(one, str))


def _python_files(folder: str) -> Iterator[str]:
    try:
        with os.scandir(folder) as entries:
            yield from sorted(one.path for one in entries if one.name.endswith(".py"))
    except OSError:
        return


def _included(config: AgentConfig, workspace: Path) -> Iterator[str]:
    try:
        places = file_places(config, workspace)
    except CardError:
        return
    for placeholder in parse_template(config.instruction or "").placeholders:
        if placeholder.name in {"file", "file_silent"}:
            yield from (os.path.join(place, placeholder.argument) for place in places)  # noqa: PTH118
