"""Survey: the found set of one root, from the texts of what a run loads of it."""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Final

from fast_agent.trust.config_effects import ConfigEffects
from fast_agent.trust.effect import Holder
from fast_agent.trust.found_set import FoundSet
from fast_agent.trust.origin import Root, ownership_of
from fast_agent.trust.programs import digest_of, python_files
from fast_agent.trust.reach import ANY_COMMAND, Reach

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from fast_agent.cards.card import Card
    from fast_agent.config.layer import FileLayer
    from fast_agent.config.settings import Settings
    from fast_agent.text.json_value import JsonValue
    from fast_agent.trust.effect import Effect

_ARGUMENT: Final = r":\s*((?:\$\{[^{}]*\}|[^{}\n])+?)\s*\}\}"
_URL: Final = re.compile(r"\{\{\s*url" + _ARGUMENT)
_FILE: Final = re.compile(r"\{\{\s*file(?:_silent)?" + _ARGUMENT)


@dataclass(frozen=True, slots=True, kw_only=True)
class Surveyed:
    """What a run loads of one root.

    Args:
        root: The root, without links.
        environ: The environment, for `PATH` and homes.
        workspace: The directory the program works in.
        cards: Its cards, read with the names of variables only.
        layers: Its configuration files.
        given_servers: Names of servers a person gave.
        given_agents: Names of agents a person gave.
        person: The person's own settings, whose bounds it may not weaken; None has none.
    """

    root: Path
    environ: Mapping[str, str]
    workspace: Path
    cards: tuple[Card, ...] = ()
    layers: tuple[FileLayer, ...] = ()
    given_servers: frozenset[str] = frozenset()
    given_agents: frozenset[str] = frozenset()
    person: Settings | None = None


def survey(parts: Surveyed) -> FoundSet:
    """Work out what a set would do, and digest its files."""
    files = dict(_texts(parts))
    place = Root.of(parts.root, parts.environ, files)
    merged = _merged_into(parts.cards)
    effects: list[Effect] = []
    for card in parts.cards:
        effects.extend(_CardEffects(card, place, parts, written=card.config.name in merged))
    for layer in parts.layers:
        effects.extend(ConfigEffects(layer, place, parts.environ, parts.person))
    whose = ownership_of(map(str, files), parts.root)
    texts = {place.name(file): text for file, text in files.items()}
    return FoundSet(
        parts.root,
        {name: _digest(text) for name, text in texts.items()},
        tuple(dict.fromkeys(effects)),
        texts,
        {one.config.name: one.config.model for one in parts.cards if one.config.model},
        whose.owner,
        whose.open_path is not None,
    )


class _CardEffects:
    """Works out the effects of one card from its text."""

    def __init__(self, card: Card, root: Root, parts: Surveyed, *, written: bool) -> None:
        config = card.config
        self._card, self._parts, self._written = card, parts, written
        self._value = card.written or {}
        self._directory = config.directory or parts.workspace
        path = root.name(config.source) if config.source else card.path
        search = parts.environ.get("PATH", "")
        self._reach = Reach(root, Holder("card", config.name), path, self._directory, search)

    def __iter__(self) -> Iterator[Effect]:
        yield from self._code()
        for entry in _items(self._value.get("mcp_connect")):
            yield from self._target(entry)
        yield from self._text()
        yield from self._files()
        yield from self._uses()

    def _line(self, name: str) -> int | None:
        span = self._card.span_of(name)
        return None if span is None else span.start.line

    def _code(self) -> Iterator[Effect]:
        reach = self._reach
        for name in ("function_tools", "tool_hooks"):
            functions = [one for one in _strings(self._value.get(name)) if ".py" in one]
            if functions:
                folders = {(self._directory / one.rpartition(":")[0]).parent for one in functions}
                files = {
                    reach.root.name(file): digest_of(file)
                    for folder in sorted(folders)
                    for file in python_files(folder)
                }
                yield reach.effect("run", ", ".join(functions), self._line(name), files=files)
        if self._value.get("shell"):
            yield reach.effect("run", ANY_COMMAND, self._line("shell"))

    def _target(self, entry: JsonValue) -> Iterator[Effect]:
        reach, line = self._reach, self._line("mcp_connect")
        target = entry.get("target") if isinstance(entry, Mapping) else entry
        env = entry.get("env") if isinstance(entry, Mapping) else None
        headers = entry.get("headers") if isinstance(entry, Mapping) else None
        if not isinstance(target, str) or not target.strip():
            return
        if "://" in target.strip().partition(" ")[0]:
            yield reach.connect(target.strip(), line)
            to = reach.connect(target.strip(), None).subject
            for header in _mapping(headers):
                yield reach.effect("send", f"header `{header}` to {to}", line)
            return
        try:
            command, *words = shlex.split(target)
        except ValueError:
            return
        command = str(self._directory / command) if "/" in command else command
        yield reach.start(
            command,
            words,
            line,
            cwd=self._directory,
            env={name: str(value) for name, value in _mapping(env).items()},
        )

    def _text(self) -> Iterator[Effect]:
        reach, config = self._reach, self._card.config
        for url in _URL.findall(config.instruction or ""):
            yield reach.connect(url, self._line("instruction"))
        for name, value in self._value.items():
            for text in _strings(value):
                yield from reach.sends(text, f"`{name}`", self._line(name))
        if config.api_key:
            yield reach.effect("send", "a key of its own to its provider", self._line("api_key"))

    def _files(self) -> Iterator[Effect]:
        reach, config, start = self._reach, self._card.config, self._directory
        for name in (*config.messages, *_FILE.findall(config.instruction or "")):
            yield from reach.read(start / name, self._line("messages"))
        for name in config.skills or ():
            yield from reach.read(start / name, self._line("skills"))
        if config.model:
            yield from reach.model(config.model, self._line("model"))
        if self._written and config.messages:
            file = start / config.messages[0]
            refusal = None if reach.root.holds(file) else "it is outside the project"
            line = self._line("messages")
            yield reach.effect("write", reach.root.name(file), line, refusal=refusal)
        if config.type == "smart":
            yield reach.effect("write", "cards that its model writes", self._line("type"))

    def _uses(self) -> Iterator[Effect]:
        config, parts = self._card.config, self._parts
        for name in config.servers:
            if name in parts.given_servers:
                subject = f"`{config.name}` uses your server `{name}`"
                yield self._reach.effect("use", subject, self._line("servers"))
        for name in config.agents:
            if name in parts.given_agents:
                subject = f"`{config.name}` calls your agent `{name}`"
                yield self._reach.effect("use", subject, self._line("agents"))


def _texts(parts: Surveyed) -> Iterator[tuple[Path, str]]:
    for card in parts.cards:
        if card.config.source is not None and card.document is not None:
            yield card.config.source, card.document.source.text
    for layer in parts.layers:
        yield layer.directory / Path(layer.source.path).name, layer.source.text


def _merged_into(cards: Iterable[Card]) -> frozenset[str]:
    """Name the cards whose histories are written by their callers."""
    names: set[str] = set()
    for card in cards:
        config = card.config
        if config.history_merge_target == "messages":
            names.update((*config.agents, *config.sequence, *config.fan_out))
        own = (config.child_history or {}).items()
        names.update(name for name, one in own if one.merge_target == "messages")
    return frozenset(names)


def _digest(text: str) -> str:
    return f"sha256:{sha256(text.encode('utf-8', 'surrogatepass')).hexdigest()}"


def _strings(value: JsonValue) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for inner in value.values():
            yield from _strings(inner)
    elif isinstance(value, Sequence):
        for inner in value:
            yield from _strings(inner)


def _items(value: JsonValue) -> Sequence[JsonValue]:
    if value is None:
        return ()
    return value if isinstance(value, Sequence) and not isinstance(value, str) else (value,)


def _mapping(value: JsonValue) -> Mapping[str, JsonValue]:
    return value if isinstance(value, Mapping) else {}
