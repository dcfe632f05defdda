from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from tests.card_writer import card_writer
from tests.own_home import own_home

if TYPE_CHECKING:
    from pathlib import Path

    from tests.card_writer import WriteCard


@pytest.fixture(name="project")
def _project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A directory of its own, with a home whose person declared it as their own."""
    work = tmp_path / "work"
    work.mkdir()
    for name, value in own_home(work, tmp_path / "home").items():
        monkeypatch.setenv(name, value)
    for name in ("NO_COLOR", "FORCE_COLOR", "CLICOLOR", "FAST_AGENT_PLAIN", "PAGER", "VISUAL"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.chdir(work)
    return work


@pytest.fixture(name="write_card")
def _write_card(project: Path) -> WriteCard:
    return card_writer(project)
