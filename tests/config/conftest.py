"""A working directory and a home of one test."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import pytest

from fast_agent.config.load import load_settings
from fast_agent.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from fast_agent.config.settings import Settings
    from fast_agent.diagnostics.diagnostic import Diagnostic


@dataclass
class Place:
    """Where a test works: `cwd` is two levels below `root`."""

    root: Path
    environ: dict[str, str] = field(default_factory=dict[str, str])

    @property
    def cwd(self) -> Path:
        return self.root / "project" / "deep"

    @property
    def home(self) -> Path:
        return self.root / "home"

    def write(self, text: str, name: str = "fastagent.config.yaml") -> Path:
        """Write a file, relative to the working directory."""
        path = (self.cwd / name).resolve()
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
        return path

    def load(self, config_path: Path | None = None) -> Settings:
        return load_settings(
            cwd=self.cwd, environ=self.environ, home=self.home, config_path=config_path
        )

    def problems(self, text: str | None = None) -> tuple[Diagnostic, ...]:
        """Load what must be refused, and give why."""
        if text is not None:
            self.write(text)
        with pytest.raises(ConfigError) as caught:
            self.load()
        return caught.value.diagnostics

    def problem(self, text: str | None = None) -> Diagnostic:
        (only,) = self.problems(text)
        return only


@pytest.fixture
def place(tmp_path: Path) -> Place:
    made = Place(tmp_path)
    made.cwd.mkdir(parents=True)
    made.home.mkdir()
    return made


def underlined(problem: Diagnostic, text: str) -> str:
    """Cut out of a text what a problem points at."""
    assert problem.span is not None
    line = text.splitlines()[problem.span.start.line - 1]
    assert problem.span.end.line == problem.span.start.line
    return line[problem.span.start.column - 1 : problem.span.end.column - 1]


@pytest.fixture
def at() -> Callable[[Diagnostic, str], str]:
    return underlined
