from __future__ import annotations

import os
from functools import partial
from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fast_agent.cards.card import FetchedText
from fast_agent.errors import CardError
from fast_agent.prompt.named_file import card_inputs
from fast_agent.registry.card_root import CardReader, read_roots
from fast_agent.registry.registry import Registry
from fast_agent.registry.reload import Reloader

if TYPE_CHECKING:
    from pathlib import Path

    from fast_agent.registry.reload import Reload


class World:
    """A directory, and agents loaded from places in it."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.reader = CardReader(
            directory, {}, lambda address: FetchedText(address, f"---\n---\n{address}")
        )
        self.registry = Registry(("time",))
        self.reloader = Reloader(self.registry, partial(card_inputs, workspace=directory))

    def load(self, *paths: str, tools: tuple[str, ...] = ()) -> tuple[str, ...]:
        roots = read_roots(self.reader, (*paths, *tools), multi_card=False)
        keys = {self.reader.key(path) for path in tools}
        return self.reloader.load(roots, tools=keys)

    def write(self, name: str, text: str = "Be brief.", /, **fields: str) -> Path:
        path = self.directory / name
        path.parent.mkdir(parents=True, exist_ok=True)
        lines = [f"{key}: {value}\n" for key, value in fields.items()]
        path.write_text(f"---\n{''.join(lines)}---\n{text}\n", encoding="utf-8")
        return path

    @property
    def names(self) -> list[str]:
        return list(self.registry.snapshot.load_set.cards)

    def instruction(self, name: str) -> str | None:
        return self.registry.snapshot.load_set.cards[name].config.instruction


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path)


def counts(done: Reload) -> tuple[tuple[str, ...], tuple[str, ...], tuple[str, ...]]:
    return done.added, done.updated, done.removed


@pytest.mark.spec("RELOAD-2", "RELOAD-6")
def test_a_pass_takes_in_new_changed_and_vanished_files(world: World) -> None:
    for name in ("ann", "bob", "cid"):
        world.write(f"cards/{name}.md")
    world.load("cards")
    world.write("cards/ann.md", "Be long.")
    (world.directory / "cards/bob.md").unlink()
    world.write("cards/dan.md")
    done = world.reloader.run()
    assert counts(done) == (("dan",), ("ann",), ("bob",))
    assert done.line == "AgentCards reloaded: +1 ~1 -1"
    assert (done.version, world.registry.snapshot.version) == (2, 2)
    assert world.names == ["ann", "cid", "dan"]
    assert world.instruction("ann") == "Be long."
    assert world.reloader.run(retry=True).line is None


@pytest.mark.spec("RELOAD-1")
def test_only_changed_files_are_read_again(world: World) -> None:
    for name in ("ann", "bob"):
        world.write(f"cards/{name}.md")
    world.load("cards")
    before = dict(world.registry.snapshot.load_set.cards)
    world.write("cards/bob.md", "Be long.")
    world.reloader.run()
    after = world.registry.snapshot.load_set.cards
    assert after["ann"] is before["ann"]
    assert after["bob"] is not before["bob"]


@pytest.mark.spec("RELOAD-6")
def test_nothing_changed_moves_nothing(world: World) -> None:
    path = world.write("cards/ann.md")
    world.load("cards")
    snapshot = world.registry.snapshot
    assert world.reloader.run().line is None
    assert world.registry.snapshot is snapshot
    os.utime(path, ns=(1, 1))  # read again, and found to be the same
    done = world.reloader.run()
    assert (done.changed, done.line, done.version) == (False, None, 1)


@pytest.mark.spec("RELOAD-3", "RELOAD-4")
def test_a_wrong_file_keeps_the_last_good_set_whole_until_it_changes_again(world: World) -> None:
    world.write("cards/ann.md")
    world.write("cards/bob.md")
    world.load("cards")
    snapshot = world.registry.snapshot
    world.write("cards/ann.md", "Be long.")
    (world.directory / "cards/bob.md").write_text("---\ninstruc")
    refused = world.reloader.run()
    assert (refused.refused, refused.changed) == (True, False)
    assert [problem.code for problem in refused.problems] == ["FA112"]
    assert refused.line == "AgentCards not reloaded: 1 error; the previous version keeps running"
    assert world.registry.snapshot is snapshot
    assert world.reloader.run().line is None  # reported once
    assert world.reloader.run(retry=True).line == refused.line  # a person asks again
    world.write("cards/cid.md")
    assert world.reloader.run().refused  # reported again with what else changed
    world.write("cards/bob.md", "Whole again.")
    assert counts(world.reloader.run()) == (("cid",), ("ann", "bob"), ())
    assert world.instruction("ann") == "Be long."


@pytest.mark.spec("RELOAD-3")
@pytest.mark.parametrize("text", ["", "--", "# Ann", "---\n", "---\nname: [", "\0"])
def test_a_half_written_card_is_read_at_its_next_change(world: World, text: str) -> None:
    path = world.write("cards/ann.md", default="true")
    world.load("cards")
    path.write_text(text)
    assert world.reloader.run().refused
    world.write("cards/ann.md", "Done.", default="true")
    assert counts(world.reloader.run())[1] == ("ann",)
    assert world.instruction("ann") == "Done."


@pytest.mark.spec("RELOAD-5")
def test_two_cards_that_swap_names(world: World) -> None:
    world.write("cards/one.md", "One.", name="ann")
    world.write("cards/two.md", "Two.", name="bob")
    world.load("cards")
    world.write("cards/one.md", "One.", name="bob")
    halfway = world.reloader.run()
    assert [problem.code for problem in halfway.problems] == ["FA204"]
    assert world.instruction("bob") == "Two."
    world.write("cards/two.md", "Two.", name="ann")
    assert counts(world.reloader.run()) == ((), ("bob", "ann"), ())
    assert (world.instruction("bob"), world.instruction("ann")) == ("One.", "Two.")


@pytest.mark.spec("RELOAD-5")
def test_files_that_swap_places_are_noticed_though_times_and_sizes_agree(world: World) -> None:
    for name, text in (("a.md", "Aaa."), ("b.md", "Bbb.")):
        os.utime(world.write(f"cards/{name}", text), ns=(5, 5))
    world.load("cards")
    cards = world.directory / "cards"
    (cards / "a.md").rename(cards / "c")
    (cards / "b.md").rename(cards / "a.md")
    (cards / "c").rename(cards / "b.md")
    assert counts(world.reloader.run())[1] == ("a", "b")
    assert world.instruction("a") == "Bbb."


@pytest.mark.spec("RELOAD-5")
def test_a_vanished_root_is_reported_and_may_come_back(world: World) -> None:
    world.write("cards/ann.md")
    world.write("alone/bob.md")
    world.load("cards", "alone/bob.md")
    (world.directory / "cards").rename(world.directory / "away")
    gone = world.reloader.run()
    assert [problem.code for problem in gone.problems] == ["FA131"]
    assert world.names == ["ann", "bob"]
    assert world.reloader.run().line is None
    (world.directory / "away").rename(world.directory / "cards")
    world.write("cards/ann.md", "Back.")
    assert counts(world.reloader.run())[1] == ("ann",)
    (world.directory / "alone/bob.md").unlink()
    assert world.reloader.run().refused
    world.write("alone/bob.md", "Back.")
    assert counts(world.reloader.run())[1] == ("bob",)


def test_a_root_that_comes_back_file_by_file_is_followed(world: World) -> None:
    directory = world.directory / "cards"
    for name in ("near", "far"):
        world.write(f"cards/{name}.md")
    world.load("cards")
    assert not world.reloader.run().changed
    away = directory.rename(world.directory / "away")
    assert world.reloader.run().refused
    directory.mkdir()
    (away / "near.md").rename(directory / "near.md")
    assert world.reloader.run().removed == ("far",)
    away_far = away / "far.md"
    away_far.rename(directory / "far.md")
    assert world.reloader.run().added == ("far",)
    assert sorted(world.names) == ["far", "near"]


def test_a_file_that_comes_and_goes_between_two_passes_is_followed(world: World) -> None:
    world.write("cards/ann.md")
    world.load("cards")
    assert not world.reloader.run().changed
    bob = world.write("cards/bob.md")
    assert world.reloader.run().added == ("bob",)
    bob.unlink()
    assert world.reloader.run().removed == ("bob",)
    assert not world.reloader.run().changed


def test_a_folder_called_like_a_card_may_give_way_to_one(world: World) -> None:
    world.write("cards/ann.md")
    folder = world.directory / "cards/bob.md"
    folder.mkdir()
    world.load("cards")
    assert not world.reloader.run().changed
    folder.rmdir()
    world.write("cards/bob.md")
    assert world.reloader.run().added == ("bob",)


@pytest.mark.spec("RELOAD-2")
def test_a_directory_may_become_empty_and_fill_again(world: World) -> None:
    world.write("cards/ann.md")
    world.load("cards")
    (world.directory / "cards/ann.md").unlink()
    assert counts(world.reloader.run()) == ((), (), ("ann",))
    assert world.reloader.run().line is None
    world.write("cards/bob.md")
    assert counts(world.reloader.run()) == (("bob",), (), ())


@pytest.mark.spec("RELOAD-7")
@pytest.mark.parametrize("name", ["tools.py", "beside.py", "notes.txt", "talk.md"])
def test_a_file_a_card_stands_on_makes_its_agent_new(world: World, name: str) -> None:
    (world.directory / "tools.py").write_text("import beside\ndef add(a: int) -> int: return a\n")
    (world.directory / "beside.py").write_text("")
    (world.directory / "notes.txt").write_text("one")
    (world.directory / "talk.md").write_text("---USER\nhi\n---ASSISTANT\nho\n")
    world.write(
        "ann.md", "{{file:notes.txt}}", function_tools='["tools.py:add"]', messages="talk.md"
    )
    world.write("bob.md")
    world.write("lead.md", agents="[ann]")
    world.load("ann.md", "bob.md", "lead.md")
    assert world.reloader.run().line is None
    (world.directory / name).write_text("---USER\nhi\n---ASSISTANT\nhello\n" * 2)
    done = world.reloader.run()
    assert counts(done) == ((), ("ann",), ())
    assert world.registry.snapshot.changed_since(1) == {"ann", "lead"}
    assert world.reloader.run().line is None
    world.write("bob.md", "Be long.")
    assert counts(world.reloader.run()) == ((), ("bob",), ())


@pytest.mark.spec("RELOAD-8")
def test_agents_given_as_tools_stay_and_are_missed_when_gone(world: World) -> None:
    world.write("main.md", default="true")
    world.write("tools/one.md", tool_only="true")
    world.write("cards/two.md")
    world.load("main.md", "cards", tools=("tools",))
    assert world.registry.attach("main", ["two", "main", "two", "one"]) == ("two",)
    world.write("main.md", "Changed.", default="true")
    world.write("tools/new.md", tool_only="true")
    world.reloader.run()
    main = world.registry.snapshot.load_set.cards["main"].config
    assert main.agents == ("two", "new", "one")
    (world.directory / "cards/two.md").unlink()
    done = world.reloader.run()
    assert [problem.code for problem in done.problems] == ["FA212"]
    assert counts(done) == ((), ("main",), ("two",))
    world.write("cards/two.md")
    world.reloader.run()
    assert "two" in world.registry.snapshot.load_set.cards["main"].config.agents


@pytest.mark.spec("RELOAD-8")
def test_attaching_what_would_be_a_ring_or_is_unknown_changes_nothing(world: World) -> None:
    world.write("cards/ann.md", agents="[bob]")
    world.write("cards/bob.md")
    world.load("cards")
    snapshot = world.registry.snapshot
    with pytest.raises(CardError, match="in a cycle"):
        world.registry.attach("bob", ["ann"])
    with pytest.raises(CardError, match="no agent is named `bbo`"):
        world.registry.attach("ann", ["bbo"])
    assert world.registry.attach("ann", ["bob", "ann"]) == ()
    assert world.registry.snapshot is snapshot


ACTIONS = st.lists(
    st.tuples(
        st.sampled_from("abcd"),
        st.sampled_from(
            [
                "Be brief.",
                "Be long.",
                "agents: [a]",
                "agents: [b, c]",
                "default: true",
                "tool_only: true",
                "modle: 1",
                "name: a",
                "",
                "{{file_silent:part.txt}}",
                "FOLDER",
                "part.txt",
                "README.md",
                "name: a b",
                "PASS",
                "SWAP",
                "AWAY",
            ]
        ),
        st.booleans(),
    ),
    max_size=12,
)


def swap(one: Path, other: Path) -> None:
    """Let two files change their names, if both are there."""
    if one.is_file() and other.is_file():
        beside = one.with_name("beside")
        one.rename(beside)
        other.rename(one)
        beside.rename(other)


def act(world: World, name: str, what: str, at: int) -> None:
    """Write or remove a card, put a folder in its place, take all away, or only make a pass."""
    path = world.directory / f"cards/{name}.md"
    if what == "PASS":
        world.reloader.run()
        return
    if what in {"part.txt", "README.md"}:
        if path.parent.exists():
            path.with_name(what).write_text("x" * at)
        return
    if what == "SWAP":
        swap(path, world.directory / "cards/z.md")
        return
    if what == "AWAY":
        if path.parent.exists():
            path.parent.rename(world.directory / f"away{at}")
        return
    if path.is_dir():
        path.rmdir()
    if what == "FOLDER":
        path.unlink(missing_ok=True)
        path.mkdir(parents=True)
    elif what:
        fields = dict([what.split(": ")]) if ": " in what else {}
        os.utime(world.write(f"cards/{name}.md", what, **fields), ns=(at, at))
    else:
        path.unlink(missing_ok=True)


@settings(max_examples=100)
@given(ACTIONS)
def test_a_pass_comes_to_the_same_as_a_fresh_load(
    tmp_path_factory: pytest.TempPathFactory, actions: list[tuple[str, str, bool]]
) -> None:
    world = World(tmp_path_factory.mktemp("cards"))
    world.write("cards/z.md")
    world.load("cards")
    for number, (name, what, looks) in enumerate(actions, 1):
        act(world, name, what, number)
        if not looks and number < len(actions):
            continue
        before = world.registry.snapshot
        done = world.reloader.run()
        fresh = Registry(("time",))
        try:
            fresh.load({"cards": world.reader.read(["cards"], multi_card=False)})
        except CardError as error:
            wrong = error.diagnostics
        else:
            wrong = ()
        if wrong:
            assert world.registry.snapshot is before
            assert done.problems in (wrong, ())
            continue
        assert not done.refused
        mine, theirs = world.registry.snapshot.load_set, fresh.snapshot.load_set
        assert world.registry.snapshot.notes == fresh.snapshot.notes
        assert (mine.default, mine.callers) == (theirs.default, theirs.callers)
        assert [card.config for card in mine.cards.values()] == [
            card.config for card in theirs.cards.values()
        ]
        assert (world.registry.snapshot.version > before.version) == done.changed
