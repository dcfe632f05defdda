"""Card code: what a card file brings that runs on this machine, and a fingerprint of it all."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import sha256
from typing import TYPE_CHECKING, Final

from fast_agent.errors import CardError, FastAgentError
from fast_agent.text.source import MAX_BYTES, SourceError, read_source

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from pathlib import Path

    from fast_agent.cards.agent_config import AgentConfig
    from fast_agent.cards.card import Card
    from fast_agent.cards.card_load import CardLoad

CODE_FIELDS: Final = ("function_tools", "tool_hooks", "shell", "mcp_connect")
"""The fields by which a card runs something."""

MAX_FILES: Final = 1_000
"""Most files a card may bring; with more beside its functions, nobody can have looked at them."""

_MAX_PROGRAM = 64 << 20


@dataclass(frozen=True, slots=True)
class CardCode:
    """What one card file brings.

    Args:
        path: The card file, as `place_of` gives it.
        shown: The same, as the user named it.
        agents: The agents in it that bring code.
        fields: The fields by which they do.
        files: All files that are run, or may be imported by one that is, with their digests.
        card: The text of the card file, and what became of it.
    """

    path: str
    shown: str
    agents: tuple[str, ...]
    fields: tuple[str, ...]
    files: Mapping[str, str]
    card: str

    @property
    def fingerprint(self) -> str:
        """A hash of the card and of all files it runs."""
        whole = json.dumps([self.card, sorted(self.files.items())])
        return f"sha256:{sha256(whole.encode()).hexdigest()}"


def code_of(cards: Sequence[Card], workspace: Path) -> CardCode:
    """Look at what the cards of one file bring; nothing of it is run.

    Args:
        cards: The cards of the file.
        workspace: The directory the program works in.

    Raises:
        CardError: There is more beside it than a person could have read.
    """
    own = [card for card in cards if card.config.brings_code]
    files: dict[str, str] = {}
    said: list[object] = []
    for card in own:
        config, directory = card.config, card.config.directory or workspace
        for folder in function_folders(config, workspace):
            for file in python_files(folder):
                files.setdefault(str(file), digest_of(file))
                if len(files) > MAX_FILES:
                    raise _too_many(card, folder)
        for target in _commands(config):
            said.append([target, str(directory.resolve())])
            files.update(_programs(target, directory, workspace))
        # Variables of the environment may make another function of the same text.
        said.append(sorted(_function_names(config)))
    document = own[0].document if own else None
    text = "" if document is None else document.source.text
    return CardCode(
        path=place_of(own[0].config.source) if own else "",
        shown=own[0].path if own else "",
        agents=tuple(card.config.name for card in own),
        fields=tuple(
            name for name in CODE_FIELDS if any(getattr(card.config, name) for card in own)
        ),
        files=files,
        card=json.dumps([text, said]),
    )


def codes_in(loads: Iterable[CardLoad], workspace: Path) -> list[CardCode]:
    """Look at what the cards that were loaded bring, one for each file that brings code.

    Raises:
        CardError: A file has errors that keep its cards from being read, or brings too much.
    """
    codes: list[CardCode] = []
    for load in loads:
        errors = [one for one in load.diagnostics if one.severity == "error"]
        if errors:
            raise CardError(errors[0].message, hint=errors[0].hint, diagnostics=errors)
        files: dict[str, list[Card]] = {}
        for card in load.cards:
            if card.config.brings_code and card.config.source is not None:
                files.setdefault(place_of(card.config.source), []).append(card)
        codes += [code_of(own, workspace) for own in files.values()]
    return codes


def place_of(source: Path | None) -> str:
    """Give the place of a card file: in its directory without links, and itself, if it is one."""
    return "" if source is None else str(source.parent.resolve() / source.name)


def function_folders(config: AgentConfig, workspace: Path) -> Iterator[Path]:
    """Give the directories whose Python files a card's functions and hooks may come from."""
    from fast_agent.trust.function_path import find_function_file, parse_function_path

    seen: set[Path] = set()
    for name in _function_names(config):
        try:
            path = parse_function_path(name)
            folder = find_function_file(path, config.directory or workspace, workspace).parent
        except CardError:
            continue  # reported where functions are checked; it cannot be run
        if folder not in seen:
            seen.add(folder)
            yield folder


def python_files(folder: Path) -> Iterator[Path]:
    """Give the Python files that code of a directory may import: its own, and its packages'."""
    waiting = [folder]
    while waiting:
        place = waiting.pop()
        try:
            entries = sorted(place.iterdir())
        except OSError:
            continue
        for entry in entries:
            if entry.suffix == ".py":
                yield entry
            elif (entry / "__init__.py").is_file():
                waiting.append(entry)


def digest_of(file: Path) -> str:
    """Give the digest of a Python file's text; of one that cannot be read, why."""
    try:
        return digest(read_source(file, limit=MAX_BYTES).text)
    except SourceError as error:
        return f"unreadable: {error.message}"


def digest(text: str) -> str:
    """Give the digest of the text of a Python file."""
    return sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def _function_names(config: AgentConfig) -> Iterator[str]:
    hooks = config.tool_hooks
    groups = hooks.values() if isinstance(hooks, Mapping) else (hooks,)
    for group in (config.function_tools, *groups):
        yield from (one for one in group if isinstance(one, str))


def _commands(config: AgentConfig) -> Iterator[str]:
    from fast_agent.config.server import is_url

    yield from (one.target for one in config.mcp_connect if not is_url(one.target))


def _programs(target: str, directory: Path, workspace: Path) -> Iterator[tuple[str, str]]:
    """Give the files below the card or the workspace that a command line names."""
    from fast_agent.config.server import split_command

    try:
        command, arguments = split_command(target, "mcp_connect")
    except FastAgentError:
        return  # it is reported where the command is needed, and cannot be run
    roots = (directory.resolve(), workspace.resolve())
    for word in (command, *arguments):
        try:
            file = (directory / word).resolve()
            if any(file.is_relative_to(root) for root in roots) and file.is_file():
                yield from _program(file)
        except (OSError, ValueError):
            continue


def _program(file: Path) -> Iterator[tuple[str, str]]:
    if file.suffix == ".py":
        # A script finds the modules beside it first.
        yield from ((str(one), digest_of(one)) for one in python_files(file.parent))
        return
    if file.stat().st_size > _MAX_PROGRAM:
        yield str(file), f"large: {file.stat().st_size} {file.stat().st_mtime_ns}"
        return
    yield str(file), sha256(file.read_bytes()).hexdigest()


def _too_many(card: Card, folder: Path) -> CardError:
    return CardError(
        f"there are more than {MAX_FILES:,} Python files in `{folder}`, all of which "
        f"`{card.config.name}` may run",
        hint="move the functions of the card into a directory of their own",
    )
