"""Card roots: how the files of a directory are read, and what changed in them."""

from __future__ import annotations

from typing import TYPE_CHECKING, NoReturn

import pytest

from fast_agent.registry.card_root import CardReader, CardRoot
from fast_agent.trust.grant import Grant

if TYPE_CHECKING:
    from pathlib import Path

    from tests.card_writer import WriteCard


def nowhere(address: str) -> NoReturn:
    raise AssertionError(address)


def reader(folder: Path) -> CardReader:
    return CardReader(folder, {"WHO": "Ann", "SECRET": "s3cret"}, nowhere)


def texts(root: CardRoot) -> list[str | None]:
    return [card.config.description for card in root.load.cards]


@pytest.mark.parametrize("is_found", [False, True])
def test_only_a_card_a_user_named_is_read_with_values_of_variables(
    tmp_path: Path, write_card: WriteCard, is_found: bool
) -> None:
    write_card("ann.md", 'description: "${WHO} has ${SECRET}"')
    grant = Grant(tmp_path, frozenset()) if is_found else None
    root = CardRoot(reader(tmp_path), tmp_path, multi_card=False, grant=grant)
    assert texts(root) == ["${WHO} has ${SECRET}" if is_found else "Ann has s3cret"]
    write_card("ann.md", 'description: "again ${SECRET}"')
    assert root.scan()
    assert texts(root) == ["again ${SECRET}" if is_found else "again s3cret"]


def test_a_folder_takes_the_place_of_a_card(tmp_path: Path, write_card: WriteCard) -> None:
    for name in ("ann", "bob"):
        write_card(f"{name}.md", f"description: {name}")
    root = CardRoot(reader(tmp_path), tmp_path, multi_card=False)
    (tmp_path / "ann.md").unlink()
    (tmp_path / "ann.md").mkdir()
    assert root.scan()
    assert texts(root) == ["bob"]
    assert not root.scan()
