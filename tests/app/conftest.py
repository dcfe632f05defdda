from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

import pytest
from tests.card_writer import card_writer
from tests.mcp.served_everything import served_everything
from tests.own_home import own_home

from fast_agent import FastAgent

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tests.card_writer import WriteCard

    NewProgram: TypeAlias = Callable[..., FastAgent]

SERVER = Path(__file__).parents[1] / "mcp/servers/everything.py"


@pytest.fixture(name="write_card")
def _write_card(tmp_path: Path) -> WriteCard:
    return card_writer(tmp_path)


@pytest.fixture(name="new_program")
def _new_program(tmp_path: Path) -> NewProgram:
    """Make a program in an empty directory, with an environment of its own."""

    def make(configuration: str | None = None, **environ: str) -> FastAgent:
        if configuration is not None:
            (tmp_path / "fastagent.config.yaml").write_text(configuration, encoding="utf-8")
        return FastAgent("test", cwd=tmp_path, environ={**own_home(tmp_path), **environ})

    return make


@pytest.fixture(scope="session")
def server_url() -> Iterator[str]:
    """The address of a real MCP server, started once."""
    with served_everything() as url:
        yield url
