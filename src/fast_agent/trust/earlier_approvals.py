"""Earlier approvals: `card-approvals.json`, which was kept per card file before sets were approved.

An entry whose fingerprint still fits covers the functions, hooks, shell and commands of its card,
so that only other effects are asked about. Nothing writes to the file but `--revoke`.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Final, cast

from fast_agent.config.server import is_url, split_command
from fast_agent.errors import CardError, ConfigError, FastAgentError, os_reason
from fast_agent.text.source import MAX_BYTES, SourceError, read_source
from fast_agent.trust.digest import python_files
from fast_agent.trust.function_path import find_function_file, parse_function_path

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Sequence

    from fast_agent.cards.agent_config import AgentConfig
    from fast_agent.cards.card import Card
    from fast_agent.trust.effect import Effect

FILE: Final = "card-approvals.json"
"""Where they are in the home."""

MAX_CARD_FILES: Final = 1_000
"""More files than this, in addition to its functions, were never approved."""

_MAX_FILE: Final = 4 << 20
_MAX_PROGRAM: Final = 64 << 20

log = logging.getLogger(__name__)


class EarlierApprovals:
    """The approvals of card files.

    Args:
        home: The home.
        readable: Whether the file counts; False where the home is not the user's own.
    """

    def __init__(self, home: Path, *, readable: bool = True) -> None:
        self.path = home / FILE
        self._fingerprints = self._read() if readable else {}

    def __bool__(self) -> bool:
        """Return whether there are any."""
        return bool(self._fingerprints)

    @property
    def paths(self) -> tuple[str, ...]:
        """The card files that have an entry."""
        return tuple(self._fingerprints)

    def covered(
        self, effects: Iterable[Effect], cards: Sequence[Card], workspace: Path
    ) -> frozenset[Effect]:
        """Return the effects that an entry covers.

        Args:
            effects: Those of the set.
            cards: The cards of the set.
            workspace: The directory the program works in.
        """
        if not self._fingerprints:
            return frozenset()
        files: dict[Path, list[Card]] = {}
        for card in cards:
            if card.config.source is not None and card.config.brings_code:
                files.setdefault(card.config.source, []).append(card)
        names = {
            card.config.name
            for source, own in files.items()
            if (known := self._fingerprints.get(_place_of(source))) is not None
            and known == fingerprint_of(own, workspace)
            for card in own
        }
        return frozenset(
            effect
            for effect in effects
            if effect.kind == "run" and effect.holder.kind == "card" and effect.holder.name in names
        )

    def revoke(self, paths: Collection[str]) -> tuple[str, ...]:
        """Forget the entries of card files, and of all in the directories named.

        Args:
            paths: Files and directories, absolute and without links.

        Returns:
            The card files that had one.

        Raises:
            ConfigError: The rest cannot be written.
        """
        from fast_agent.text.safe_file import write_atomic

        gone = [
            path
            for path in self._fingerprints
            if any(Path(path).is_relative_to(one) for one in paths)
        ]
        if not gone:
            return ()
        try:
            whole = json.loads(self.path.read_bytes())
            rest = {path: one for path, one in whole.items() if path not in gone}
            text = json.dumps(rest, indent=2, sort_keys=True) + "\n"
            write_atomic(self.path, text.encode("utf-8", "replace"))
        except OSError as error:
            reason = os_reason(error)
            raise ConfigError(f"the approval cannot be revoked: {reason}") from error
        for path in gone:
            del self._fingerprints[path]
        return tuple(gone)

    def _read(self) -> dict[str, str]:
        from fast_agent.text.safe_file import RefusedFileError, read_confined

        try:
            data = read_confined(self.path.parent, self.path.name, _MAX_FILE).data
        except RefusedFileError as refusal:
            if not refusal.missing:
                log.warning("`%s` %s; no card counts as approved", self.path, refusal.message)
            return {}
        try:
            found = _fingerprints(json.loads(data))
        except (ValueError, RecursionError):
            found = None
        if found is None:
            log.warning("`%s` is not a file of approvals; no card counts as approved", self.path)
        return found or {}


def fingerprint_of(cards: Sequence[Card], workspace: Path) -> str | None:
    """Return the fingerprint an earlier version made of the cards of one file and all they run.

    Args:
        cards: The cards of the file that bring code.
        workspace: The directory the program works in.

    Returns:
        None where they bring more files than could be approved.
    """
    files: dict[str, str] = {}
    said: list[object] = []
    for card in cards:
        config, directory = card.config, card.config.directory or workspace
        for folder in _function_folders(config, workspace):
            for file in python_files(folder):
                files.setdefault(str(file), _text_digest(file))
                if len(files) > MAX_CARD_FILES:
                    return None
        for target in _commands(config):
            said.append([target, str(directory.resolve())])
            files.update(_programs(target, directory, workspace))
        said.append(sorted(_function_names(config)))
    document = cards[0].document if cards else None
    text = "" if document is None else document.source.text
    whole = json.dumps([json.dumps([text, said]), sorted(files.items())])
    return f"sha256:{sha256(whole.encode()).hexdigest()}"


def _place_of(source: Path) -> str:
    """Return the place of a card file: in its directory without links, and itself, if it is one."""
    return str(source.parent.resolve() / source.name)


def _function_folders(config: AgentConfig, workspace: Path) -> Iterator[Path]:
    seen: set[Path] = set()
    for name in _function_names(config):
        try:
            path = parse_function_path(name)
            folder = find_function_file(path, config.directory or workspace, workspace).parent
        except CardError:
            continue
        if folder not in seen:
            seen.add(folder)
            yield folder


def _function_names(config: AgentConfig) -> Iterator[str]:
    hooks = config.tool_hooks
    groups = hooks.values() if isinstance(hooks, Mapping) else (hooks,)
    for group in (config.function_tools, *groups):
        yield from (one for one in group if isinstance(one, str))


def _commands(config: AgentConfig) -> Iterator[str]:
    yield from (one.target for one in config.mcp_connect if not is_url(one.target))


def _programs(target: str, directory: Path, workspace: Path) -> Iterator[tuple[str, str]]:
    try:
        command, arguments = split_command(target, "mcp_connect")
    except FastAgentError:
        return
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
        yield from ((str(one), _text_digest(one)) for one in python_files(file.parent))
    elif file.stat().st_size > _MAX_PROGRAM:
        # Size and time were its digest then; they prove nothing, so it is asked about again.
        yield str(file), ""
    else:
        yield str(file), sha256(file.read_bytes()).hexdigest()


def _text_digest(file: Path) -> str:
    try:
        text = read_source(file, limit=MAX_BYTES).text
    except SourceError as error:
        return f"unreadable: {error.message}"
    return sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def _fingerprints(value: object) -> dict[str, str] | None:
    """Read what the file holds; None where it is something else."""
    if not isinstance(value, dict):
        return None
    found: dict[str, str] = {}
    for path, one in cast("dict[str, object]", value).items():
        facts = cast("dict[str, object]", one) if isinstance(one, dict) else {}
        fingerprint = facts.get("fingerprint")
        if not isinstance(fingerprint, str):
            return None
        found[path] = fingerprint
    return found
