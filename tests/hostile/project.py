"""Projects: what a generator makes of traps."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path
    from random import Random

    from fast_agent.text.json_value import JsonValue

from tests.hostile.trap import CARDS, Trap


@dataclass
class Project:
    """A project made of traps.

    Args:
        traps: Its parts, by number; one that contradicts an earlier one is left out.
        random: Chooses between the spellings of files.
    """

    traps: dict[int, Trap]
    random: Random
    lines: dict[int, str] = field(default_factory=dict[int, str])
    """Where each trap is asked for, as `file:line`, once it was written."""

    def write(self, project: Path, home: Path) -> None:
        """Write its files, and the configuration of the person."""
        config, given = self._settings()
        places = {}
        if config:
            text, places = block(config)
            _put(project / "fastagent.config.yaml", text)
        if given:
            _put(home / "fastagent.config.yaml", block(given)[0])
        for number, trap in self.traps.items():
            for name, text in trap.files.items():
                _put(project / name, text)
            card, lines = self._card(trap)
            name = f"{CARDS}/a{number}{'.md' if card.startswith('---') else '.yaml'}"
            _put(project / name, card)
            match trap.at:
                case ("card", key):
                    self.lines[number] = f"{name}:{lines[key]}"
                case ("config", *keys):
                    self.lines[number] = f"fastagent.config.yaml:{places[tuple(keys)]}"
                case ("test", key):
                    tests = f"t{number}.test.yaml"
                    _put(
                        project / tests,
                        "".join(
                            f"{one}: {json.dumps(value)}\n" for one, value in trap.tests.items()
                        ),
                    )
                    self.lines[number] = f"{tests}:{[*trap.tests].index(key) + 1}"
                case _:
                    self.lines[number] = f"{trap.at[1]}:1"

    def _settings(self) -> tuple[dict[str, JsonValue], dict[str, JsonValue]]:
        """Join the configurations of the project and of the person; drop who contradicts."""
        config: dict[str, JsonValue] = {}
        given: dict[str, JsonValue] = {}
        for number, trap in [*self.traps.items()]:
            try:
                config, given = joined(config, trap.config), joined(given, trap.home)
            except ContradictionError:
                del self.traps[number]
        # The nearest configuration is read alone: a project's own hides that of the home.
        hidden = [at for at, trap in self.traps.items() if config and trap.home and not trap.config]
        for number in hidden:
            del self.traps[number]
        return config, given

    def _card(self, trap: Trap) -> tuple[str, dict[str, int]]:
        fields = [(key, self._model(key, value)) for key, value in trap.card.items()]
        self.random.shuffle(fields)
        if self.random.random() < 0.3:
            fields.insert(0, ("description", "Does things."))
        head = "".join(f"{key}: {json.dumps(value)}\n" for key, value in fields)
        lines = {key: number for number, (key, _) in enumerate(fields, 1)}
        # In a Markdown card the line of the fence comes first.
        if self.random.random() < 0.5:
            lines = {key: line + 1 for key, line in lines.items()}
            lines["instruction"] = len(fields) + 3
            return f"---\n{head}---\n{trap.body}\n", lines
        lines["instruction"] = len(fields) + 1
        return f"{head}instruction: {json.dumps(trap.body)}\n", lines

    def _model(self, key: str, value: JsonValue) -> JsonValue:
        """Write a model as it is, or as the first of a list, which is asked first."""
        is_one = key == "model" and isinstance(value, str) and value != "passthrough"
        return [value, "passthrough"] if is_one and self.random.random() < 0.4 else value


class ContradictionError(Exception):
    """Two traps want one setting."""


def joined(lower: Mapping[str, JsonValue], upper: Mapping[str, JsonValue]) -> dict[str, JsonValue]:
    """Put two configurations together.

    Raises:
        ContradictionError: They have one value in common.
    """
    whole = dict(lower)
    for key, value in upper.items():
        below = whole.get(key)
        if key not in whole:
            whole[key] = value
        elif isinstance(below, dict) and isinstance(value, dict):
            whole[key] = joined(below, value)
        else:
            raise ContradictionError(key)
    return whole


def block(
    tree: Mapping[str, JsonValue], above: tuple[str, ...] = (), first: int = 1
) -> tuple[str, dict[tuple[str, ...], int]]:
    """Write YAML with each key of a mapping on its own line, and the line of each."""
    lines: list[str] = []
    places: dict[tuple[str, ...], int] = {}
    for key, value in tree.items():
        keys = (*above, key)
        places[keys] = first + len(lines)
        indent = "  " * len(above)
        if isinstance(value, dict) and value:
            text, inner = block(value, keys, first + len(lines) + 1)
            lines += [f"{indent}{key}:", *text.splitlines()]
            places |= inner
        else:
            lines.append(f"{indent}{key}: {json.dumps(value)}")
    return "\n".join((*lines, "")), places


def _put(file: Path, text: str) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text, encoding="utf-8")
