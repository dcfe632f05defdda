"""`SECTION__KEY` variables: settings from the environment, over those of the files."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, cast

from fast_agent.cards.kinds import MapOf, Record, Text
from fast_agent.config.kinds import SecretText
from fast_agent.config.layer import EnvironmentLayer, Place
from fast_agent.config.reading import Reader, entry_of
from fast_agent.diagnostics.config_rules import WRONG_OVERRIDE
from fast_agent.text.suggestion import closest

if TYPE_CHECKING:
    from pathlib import Path

    from fast_agent.cards.kinds import Kind
    from fast_agent.config.layer import Keys
    from fast_agent.config.reading import Tree
    from fast_agent.diagnostics.diagnostic import Diagnostic

_MARK = "__"


@dataclass(frozen=True, slots=True)
class Overrides:
    """What the environment says.

    Args:
        layer: The variables, for places.
        tree: Their values.
        problems: What is wrong with them.
    """

    layer: EnvironmentLayer
    tree: Tree
    problems: tuple[Diagnostic, ...]


def read_overrides(
    table: Record, environ: Mapping[str, str], directory: Path, known: Mapping[str, Any]
) -> Overrides:
    """Read the variables whose first part names a section.

    Args:
        table: The configuration.
        environ: The environment.
        directory: Where relative paths start.
        known: What the files give, so that names in them are found in any letter case.
    """
    variables: dict[Keys, str] = {}
    tree: Tree = {}
    layer = EnvironmentLayer(variables)
    reader = Reader(layer, directory, environ)
    problems: list[Diagnostic] = []
    sections = {
        entry.name.upper()
        for entry in table.entries
        if isinstance(entry.kind, Record | MapOf) and entry.name != "trust"
    }
    for name in sorted(environ):
        first, mark, _ = name.partition(_MARK)
        if not mark or first not in sections:
            continue
        found = _target(table, name.split(_MARK), known)
        if isinstance(found, str):
            place = Place("", variable=name)
            problems.append(place.problem(WRONG_OVERRIDE, *_unknown(found)))
            continue
        keys, kind = found
        text = environ[name]
        if not text and not (isinstance(kind, Text) and kind.blank):
            continue
        variables[keys] = name
        value = reader.text(kind, text, keys)
        if value is not None:
            _put(tree, keys, value)
    # One code for all of them: what is wrong is the variable.
    wrong = [_recoded(problem) for problem in reader.problems]
    return Overrides(layer, tree, (*problems, *wrong))


def _target(
    table: Record, parts: list[str], known: Mapping[str, Any]
) -> tuple[tuple[str, ...], Kind] | str:
    """Find the setting a variable stands for, or say what is wrong and, a line below, a hint."""
    kind: Kind = table
    keys: tuple[str, ...] = ()
    here: object = known
    for part in parts:
        if isinstance(kind, Record):
            entry = entry_of(kind, part.lower())
            if entry is None:
                names = [entry.name for entry in kind.entries]
                near = closest(part, names)
                hint = (
                    f"did you mean `{near.upper()}`?" if near else f"known keys: {', '.join(names)}"
                )
                return f"there is no `{part}` in `{'.'.join(keys)}`\n{hint}"
            key, kind = entry.name, entry.kind
        elif isinstance(kind, MapOf) and part:
            key, kind = _free_key(part, here, exact=isinstance(kind.value, SecretText)), kind.value
        else:
            return f"`{'.'.join(keys)}` has nothing below it that a variable could set"
        keys = (*keys, key)
        here = cast("Mapping[str, object]", here).get(key) if isinstance(here, Mapping) else None
    return keys, kind


def _free_key(part: str, here: object, *, exact: bool) -> str:
    """Choose the key a part stands for: one that is there, or a new one."""
    if isinstance(here, Mapping):
        folded = _fold(part)
        for key in cast("Mapping[str, object]", here):
            if key == part or (not exact and _fold(key) == folded):
                return key
    return part if exact else part.lower()


def _fold(key: str) -> str:
    return key.lower().replace("-", "_")


def _unknown(text: str) -> tuple[str, str | None]:
    message, _, hint = text.partition("\n")
    return message, hint or None


def _put(tree: Tree, keys: tuple[str, ...], value: object) -> None:
    for key in keys[:-1]:
        tree = tree.setdefault(key, {})
    tree[keys[-1]] = value


def _recoded(problem: Diagnostic) -> Diagnostic:
    return replace(problem, code=WRONG_OVERRIDE.code)
