from __future__ import annotations

import queue
import sys
import time
from functools import partial
from typing import TYPE_CHECKING

import pytest
from tests.whole_file import write_whole

from fast_agent.cards.card import FetchedText
from fast_agent.prompt.named_file import card_inputs
from fast_agent.registry.card_root import CardReader, read_roots
from fast_agent.registry.registry import Registry
from fast_agent.registry.reload import Reload, Reloader
from fast_agent.registry.watch import CardWatch, watched_places

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


class Watched:
    """Agents loaded from a directory that is watched."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.cards = directory / "cards"
        self.cards.mkdir()
        self.write("ann")
        self.registry = Registry(())
        self.reloader = Reloader(self.registry, partial(card_inputs, workspace=directory))
        self.reader = CardReader(directory, {}, lambda address: FetchedText(address, address))
        self.load("cards")
        self._reported: queue.Queue[Reload] = queue.Queue()
        self.watch = CardWatch(self.reloader, self._reported.put)

    def load(self, path: str) -> None:
        self.reloader.load(read_roots(self.reader, [path], multi_card=False))

    def write(self, name: str, text: str = "Be brief.", field: str = "default: false") -> None:
        write_whole(self.cards / f"{name}.md", f"---\n{field}\n---\n{text}\n")

    def next(self) -> Reload:
        return self._reported.get(timeout=60)

    def instruction(self, name: str) -> str | None:
        return self.registry.snapshot.load_set.cards[name].config.instruction


@pytest.fixture
def watched(tmp_path: Path) -> Iterator[Watched]:
    world = Watched(tmp_path)
    with world.watch:
        yield world


@pytest.mark.spec("RELOAD-9")
def test_an_edit_is_taken_in_without_being_asked(watched: Watched) -> None:
    watched.write("ann", "Be long.")
    assert watched.next().updated == ("ann",)
    assert watched.instruction("ann") == "Be long."
    watched.write("bob")
    assert watched.next().added == ("bob",)
    (watched.cards / "bob.md").unlink()
    assert watched.next().removed == ("bob",)


@pytest.mark.spec("RELOAD-5", "RELOAD-9")
def test_nothing_wrong_ends_the_watching(watched: Watched) -> None:
    watched.write("ann", field="instructoin: x")
    assert watched.next().refused
    watched.cards.rename(watched.directory / "away")
    assert watched.next().refused
    (watched.directory / "away").rename(watched.cards)
    watched.write("ann", "Back.")
    while (done := watched.next()).refused:
        pass
    assert done.updated == ("ann",)


@pytest.mark.spec("RELOAD-7", "RELOAD-9")
def test_files_beside_the_cards_are_watched_from_when_a_card_names_them(watched: Watched) -> None:
    notes = watched.directory / "notes.txt"
    notes.write_text("one")
    watched.write("ann", "{{file:notes.txt}}")
    assert watched.next().updated == ("ann",)
    write_whole(notes, "two")
    assert watched.next().updated == ("ann",)


@pytest.mark.spec("RELOAD-9")
def test_roots_loaded_later_are_watched_too(watched: Watched) -> None:
    later = watched.directory / "later"
    later.mkdir()
    (later / "cid.md").write_text("---\ndefault: false\n---\nHi.\n")
    watched.load("later")
    watched.watch.look_after()
    assert str(later) in watched_places(watched.reloader)
    write_whole(later / "cid.md", "---\ndefault: false\n---\nHello.\n")
    assert watched.next().updated == ("cid",)


@pytest.mark.spec("RELOAD-5")
def test_ten_thousand_changes_in_a_burst_end_with_the_last(watched: Watched) -> None:
    begun = time.monotonic()
    watched.write("ann", "Number ----.")
    place = (watched.cards / "ann.md").read_bytes().index(b"----.")
    for number in range(10_000):
        with (watched.cards / "ann.md").open("r+b") as file:
            file.seek(place)
            file.write(b"%04d" % number)
    while watched.instruction("ann") != "Number 9999.":
        watched.next()
    spent = time.monotonic() - begun
    # Two looks are never nearer than the quiet that ends a burst.
    assert watched.registry.snapshot.version <= 12 + spent / 0.015


@pytest.mark.spec("RELOAD-11")
def test_without_events_of_the_system_it_looks_for_itself(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "watchfiles", None)
    world = Watched(tmp_path)
    with world.watch:
        beside = world.directory / "beside"  # an editor's way of saving
        beside.write_text("---\ndefault: false\n---\nBe long.\n")
        beside.replace(world.cards / "ann.md")
        assert world.next().updated == ("ann",)
        world.write("ann", field="instructoin: x")
        assert world.next().refused
        world.write("ann", "Back.")
        assert world.next().updated == ("ann",)
