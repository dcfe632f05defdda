"""Files of other tools: their values, where each is written, and what became of each."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeAlias

from fast_agent.diagnostics import rules
from fast_agent.diagnostics.diagnostic import Diagnostic
from fast_agent.errors import FastAgentError
from fast_agent.formats.loose import split_names
from fast_agent.text.frozen import frozen
from fast_agent.text.json_value import as_list
from fast_agent.text.span import Span
from fast_agent.text.yaml_document import YamlError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from fast_agent.diagnostics.rules import Rule
    from fast_agent.text.json_value import JsonObject, JsonValue
    from fast_agent.text.source import Source
    from fast_agent.text.yaml_document import YamlDocument

Keys: TypeAlias = tuple[str | int, ...]
"""Where a value stands: keys and indexes from the root."""

_MAX_SHOWN = 60


@frozen
class Note:
    """One thing a reader of the import must know.

    Args:
        rule: The rule.
        message: What happened.
        keys: The value it is about.
        hint: What does the same, or what to do.
    """

    rule: Rule
    message: str
    keys: Keys
    hint: str | None = None


@dataclass(slots=True)
class ForeignFile:
    """A file of another tool and what its import says about it.

    Args:
        source: Its text.
        format: The name of its format.
        values: What it holds.
        body: What follows the frontmatter; empty for a file without one.
        yaml: The places of its values, for YAML and JSON.
        mapped: The values that went into cards.
        notes: The values that did not, or not as they were, and what is wrong with the text.
    """

    source: Source
    format: str
    values: JsonObject
    body: str = ""
    yaml: YamlDocument | None = None
    mapped: set[Keys] = field(default_factory=set[Keys])
    notes: list[Note] = field(default_factory=list[Note])

    @property
    def path(self) -> str:
        """The file, as the user named it."""
        return self.source.path

    def note(self, rule: Rule, message: str, keys: Keys, hint: str | None = None) -> None:
        """Add a note, once: several agents may share a field."""
        added = Note(rule, message, keys, hint)
        if added not in self.notes:
            self.notes.append(added)

    def fields(self, keys: Keys = ()) -> Fields:
        """Return the fields of the mapping at a place; none where there is no mapping."""
        value: JsonValue = self.values
        for key in keys:
            if isinstance(value, Mapping) and isinstance(key, str):
                value = value.get(key)
            else:
                held = as_list(value)
                value = held[key] if isinstance(key, int) and key < len(held) else None
        return Fields(self, value if isinstance(value, Mapping) else {}, keys)

    def diagnostics(self) -> list[Diagnostic]:
        """Return the notes with their places, in file order."""
        located = [(self._span(note.keys), note) for note in self.notes]
        located.sort(key=lambda item: (item[0].start.line, item[0].start.column))
        return [
            Diagnostic(
                code=note.rule.code,
                message=note.message,
                path=self.path,
                span=span,
                severity=note.rule.severity,
                hint=note.hint,
                source_line=self.source.line(span.start.line),
            )
            for span, note in located
        ]

    def _span(self, keys: Keys) -> Span:
        if not keys:
            return Span.at(1, 1, max(1, len(self.source.line(1))))
        if self.yaml is not None and len(keys) > 1:
            try:
                return self.yaml.span_of(keys, key=isinstance(keys[-1], str))
            except (YamlError, FastAgentError):
                pass
        return self._searched(keys)

    def _searched(self, keys: Keys) -> Span:
        """Find the line of a key by its text: for TOML, and for text that is not quite YAML."""
        at = 0
        for key in [key for key in keys if isinstance(key, str)]:
            word = re.escape(key)
            pattern = rf"""^[ \t\[{{,.\w-]*["']?({word})["']?[ \t]*[:=\].]"""
            found = re.compile(pattern, re.MULTILINE).search(self.source.text, at)
            if found is None:
                break
            at = found.start(1)
        place = self.source.position(at)
        last = str(keys[-1]) if isinstance(keys[-1], str) else ""
        return Span.at(place.line, place.column, max(1, len(last)))


class Fields:
    """The fields of one mapping, each of which has to be mapped or reported before `close`.

    Args:
        file: The file it is in.
        values: The mapping.
        keys: Where it stands.
    """

    __slots__ = ("_seen", "file", "keys", "values")

    def __init__(self, file: ForeignFile, values: JsonObject, keys: Keys = ()) -> None:
        self.file = file
        self.values = values
        self.keys = keys
        self._seen: set[str] = set()

    def has(self, name: str) -> bool:
        """Whether a field is given and not null."""
        return self.values.get(name) is not None

    def place(self, name: str) -> Keys:
        """Return where a field stands."""
        return (*self.keys, name)

    def take(self, name: str) -> JsonValue:
        """Return a field's value, which counts as mapped."""
        if name in self.values and name not in self._seen:
            self._seen.add(name)
            self.file.mapped.add((*self.keys, name))
        return self.values.get(name)

    def text(self, name: str) -> str | None:
        """Return a field that is text, or a number written without quotes; else report it."""
        value = self.values.get(name)
        if isinstance(value, str):
            return str(self.take(name)).strip() or None
        if isinstance(value, int | float) and not isinstance(value, bool):
            return str(self.take(name))
        return self._not(name, "text")

    def number(self, name: str, *, above: float | None = None) -> float | int | None:
        """Return a field that is a number above a bound; else report it."""
        value = self.values.get(name)
        if isinstance(value, str):
            value = _number(value)
        if isinstance(value, int | float) and not isinstance(value, bool):
            if above is None or value > above:
                self.take(name)
                return value
            self.lost(name, f"`{name}: {value}` is outside what a card takes", "set it in the card")
            return None
        return self._not(name, "a number")

    def flag(self, name: str) -> bool | None:
        """Return a field that is true or false; else report it."""
        value = self.values.get(name)
        if isinstance(value, str) and value.lower() in {"true", "false", "yes", "no"}:
            value = value.lower() in {"true", "yes"}
        if isinstance(value, bool):
            self.take(name)
            return value
        return self._not(name, "`true` or `false`")

    def words(self, name: str) -> list[str] | None:
        """Return a field that is a list of names, or text with commas; else report it."""
        value = self.values.get(name)
        if isinstance(value, str):
            self.take(name)
            return split_names(value)
        if isinstance(value, list | tuple):
            self.take(name)
            return [str(item).strip() for item in value if isinstance(item, str | int | float)]
        return self._not(name, "a list of names")

    def below(self, name: str) -> Fields | None:
        """Return the fields of a mapping, which has to be closed too; else report it."""
        value = self.values.get(name)
        if isinstance(value, Mapping):
            self._seen.add(name)
            return Fields(self.file, value, (*self.keys, name))
        return self._not(name, "a mapping")

    def lost(self, name: str, message: str, hint: str | None = None) -> None:
        """Report a field that cannot be written into a card, if it is given."""
        if name in self.values:
            self._seen.add(name)
            self.file.mapped.discard((*self.keys, name))
            self.file.note(rules.LOST_FIELD, message, (*self.keys, name), hint)

    def adapted(self, name: str, message: str, hint: str | None = None) -> None:
        """Report a field that goes into the card in another form."""
        self.file.note(rules.ADAPTED_FIELD, message, (*self.keys, name), hint)

    def none_of(self, table: Mapping[str, tuple[str, str | None]]) -> None:
        """Report the fields of a table: what each is, and what does the same here."""
        for name in self.values:
            if name in table and name not in self._seen:
                what, hint = table[name]
                self.lost(name, f"`{name}` has no counterpart in a card: {what}", hint)

    def close(self, known: str) -> None:
        """Report every field that was neither mapped nor reported.

        Args:
            known: Whose fields they should be, such as `a Claude Code agent`.
        """
        for name, value in self.values.items():
            if name in self._seen:
                continue
            self._seen.add(name)
            if value is None:
                self.file.mapped.add((*self.keys, name))
                continue
            self.file.note(
                rules.FOREIGN_FIELD,
                f"`{name}` is not a field of {known}, and is left out",
                (*self.keys, name),
                "if it matters, say it in the instruction",
            )

    def _not(self, name: str, wanted: str) -> None:
        value = self.values.get(name)
        if value is not None and name not in self._seen:
            self.lost(name, f"`{name}` is not {wanted}, and is left out", "set it in the card")
        elif name in self.values:
            self.take(name)


def clip(text: str) -> str:
    """Shorten a string for a message."""
    line = " ".join(text.split())
    return line if len(line) <= _MAX_SHOWN else f"{line[: _MAX_SHOWN - 1]}…"


def _number(text: str) -> float | int | None:
    try:
        return int(text)
    except ValueError:
        try:
            return float(text)
        except ValueError:
            return None


def unaccounted(file: ForeignFile) -> list[Keys]:
    """Return the places of values that an import said nothing about; it should be none."""
    named = {*file.mapped, *(note.keys for note in file.notes if note.keys)}
    return list(_unnamed(file.values, (), named))


def _unnamed(values: JsonObject, keys: Keys, named: set[Keys]) -> Iterator[Keys]:
    for key, value in values.items():
        place = (*keys, key)
        if place in named or value is None:
            continue
        if isinstance(value, Mapping) and any(one[: len(place)] == place for one in named):
            yield from _unnamed(value, place, named)
        elif not (isinstance(value, Mapping) and not value):
            yield place
