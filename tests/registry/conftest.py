from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

import pytest
from tests.card_writer import card_writer

from fast_agent.cards.load import load_cards
from fast_agent.registry.registry import Registry

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.card_writer import WriteCard

    from fast_agent.cards.load import CardLoad

    Read: TypeAlias = Callable[..., dict[str, CardLoad]]


@pytest.fixture(name="write_card")
def _write_card(tmp_path: Path) -> WriteCard:
    return card_writer(tmp_path)


@pytest.fixture(name="read")
def _read() -> Read:
    """Read paths as an app does: each is a root of its own."""

    def read(*paths: Path, multi_card: bool = False) -> dict[str, CardLoad]:
        return {str(path): load_cards([path], environ={}, multi_card=multi_card) for path in paths}

    return read


@pytest.fixture(name="registry")
def _registry() -> Registry:
    return Registry(servers=("time",))
