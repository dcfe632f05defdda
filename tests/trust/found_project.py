"""A project that was found, written file by file, and what would come of it."""

from __future__ import annotations

import os
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from fast_agent.cards.load import load_cards
from fast_agent.config.layer import read_layer
from fast_agent.config.load import with_our_keys
from fast_agent.models.spec import parse_model_spec
from fast_agent.text.environment import VariableNames
from fast_agent.trust.context import GivenOptions
from fast_agent.trust.effects.survey import RootSurvey, survey

if TYPE_CHECKING:
    from pathlib import Path

    from fast_agent.cards.card import Card
    from fast_agent.config.layer import FileLayer
    from fast_agent.diagnostics.diagnostic import Diagnostic
    from fast_agent.trust.effect import Effect
    from fast_agent.trust.found_set import FoundSet

CARDS = ".fast-agent/agent-cards"
CONFIG = "fastagent.config.yaml"
SECRETS = "fastagent.secrets.yaml"


class Project:
    """A directory with found files, beside a directory of programs and a home.

    Args:
        folder: An empty directory.
    """

    def __init__(self, folder: Path) -> None:
        self.root = folder / "desk"
        self.home = folder / "home"
        self.bin = folder / "bin"
        for one in (self.root, self.home, self.bin):
            one.mkdir()
        for name in ("uvx", "python3", "npx"):
            self.program(self.bin / name)
        self.environ = {"PATH": str(self.bin), "HOME": str(self.home)}
        self.given = GivenOptions(parse_model=parse_model_spec, environ=self.environ, cwd=self.root)

    def program(self, place: Path) -> Path:
        """Write a program."""
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text("#!/bin/sh\n")
        place.chmod(0o755)
        return place

    def write(self, place: str, text: str) -> Path:
        """Write a file of the project."""
        file = self.root / place
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
        return file

    def card(self, fields: str, name: str = "lead", body: str = "Work.\n") -> Path:
        """Write a card in Markdown."""
        return self.write(f"{CARDS}/{name}.md", f"---\n{fields}---\n{body}")

    def cards(self) -> tuple[Card, ...]:
        """Read the cards as found ones are read: with the names of variables only."""
        folder = self.root / CARDS
        if not folder.is_dir():
            return ()
        known = VariableNames({**os.environ, **self.environ})
        return load_cards([folder], environ=known, cwd=self.root).cards

    def layers(self) -> tuple[FileLayer, ...]:
        """Read the configuration and the secrets."""
        names = [name for name in (CONFIG, SECRETS) if (self.root / name).exists()]
        return tuple(with_our_keys(self.layer(name), [], []) for name in names)

    def layer(self, place: str) -> FileLayer:
        """Read a YAML file."""
        problems: list[Diagnostic] = []
        layer = read_layer(self.root / place, place, problems)
        assert layer is not None, problems
        return layer

    def surveyed(self, **given: Any) -> RootSurvey:
        """Return what a run loads of it."""
        return RootSurvey(
            root=self.root,
            given=replace(self.given, **given),
            cards=self.cards(),
            layers=self.layers(),
        )

    def found(self, **given: Any) -> FoundSet:
        """Work out its found set."""
        return survey(self.surveyed(**given))

    def effects(self, **given: Any) -> list[Effect]:
        """Work out its effects."""
        return list(self.found(**given).effects)
