from __future__ import annotations

from dataclasses import FrozenInstanceError
from typing import TYPE_CHECKING, TypeAlias

import pytest

from fast_agent.decorators import code_card
from fast_agent.errors import CardError
from fast_agent.registry.registry import CODE, Registry

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.card_writer import WriteCard

    from fast_agent.cards.load import CardLoad
    from fast_agent.registry.registry import Snapshot

    Read: TypeAlias = Callable[..., dict[str, CardLoad]]


def names_of(snapshot: Snapshot, root: str) -> list[str]:
    return [card.config.name for card in snapshot.roots[root]]


def test_an_empty_registry_is_version_0(registry: Registry) -> None:
    assert registry.snapshot.version == 0
    assert dict(registry.snapshot.load_set.cards) == {}


@pytest.mark.spec("CARD-75", "CARD-79", "CARD-80")
def test_loading_gives_names_in_order_and_keeps_where_they_came_from(
    registry: Registry, write_card: WriteCard, read: Read, tmp_path: Path
) -> None:
    for name in ("zoe.md", "ann.md", "sub/deep.md"):
        write_card(name)
    alone = write_card("other/bob.md")
    loads = read(alone, tmp_path)
    assert registry.load(loads) == ("bob", "ann", "zoe")
    snapshot = registry.snapshot
    assert list(snapshot.load_set.cards) == ["bob", "ann", "zoe"]
    assert names_of(snapshot, str(alone)) == ["bob"]
    assert names_of(snapshot, str(tmp_path)) == ["ann", "zoe"]
    sources = {name: card.config.source for name, card in snapshot.load_set.cards.items()}
    assert sources == {"bob": alone, "ann": tmp_path / "ann.md", "zoe": tmp_path / "zoe.md"}


@pytest.mark.spec("CARD-81")
def test_loading_a_root_again_removes_what_is_gone_and_nothing_else(
    registry: Registry, write_card: WriteCard, read: Read, tmp_path: Path
) -> None:
    one, other = tmp_path / "one", tmp_path / "other"
    gone = write_card("one/ann.md")
    write_card("one/bob.md")
    write_card("other/cid.md")
    registry.load(read(one, other))
    gone.unlink()
    write_card("one/dan.md")
    assert registry.load(read(one)) == ("bob", "dan")
    assert sorted(registry.snapshot.load_set.cards) == ["bob", "cid", "dan"]


@pytest.mark.spec("CARDS-6", "PY-5")
def test_the_version_rises_only_when_something_changed(
    registry: Registry, write_card: WriteCard, read: Read, tmp_path: Path
) -> None:
    write_card("ann.md")
    registry.load(read(tmp_path))
    registry.load(read(tmp_path))
    registry.check()
    assert registry.snapshot.version == 1
    write_card("ann.md", body="Be long.")
    registry.load(read(tmp_path))
    assert registry.snapshot.version == 2


@pytest.mark.spec("CARDS-6")
@pytest.mark.parametrize(
    ("fields", "code"),
    [
        (("nmae: bob",), "FA101"),
        (("use_history: maybe",), "FA102"),
        (("agents: [nobody]",), "FA201"),
        (("servers: [tmie]",), "FA206"),
        (("name: ann",), "FA204"),
    ],
)
def test_an_error_leaves_everything_as_it_was(
    registry: Registry,
    write_card: WriteCard,
    read: Read,
    tmp_path: Path,
    fields: tuple[str, ...],
    code: str,
) -> None:
    write_card("ann.md")
    registry.load(read(tmp_path))
    before = registry.snapshot
    write_card("ann.md", body="Changed.")
    write_card("bob.md", *fields)
    write_card("cid.md")
    with pytest.raises(CardError) as raised:
        registry.load(read(tmp_path))
    assert code in {found.code for found in raised.value.diagnostics}
    assert registry.snapshot is before
    assert registry.snapshot.version == 1


@pytest.mark.spec("CARDS-2")
def test_problems_of_files_and_of_the_set_come_together(
    registry: Registry, write_card: WriteCard, read: Read, tmp_path: Path
) -> None:
    write_card("ann.md", "max_parallel: two", "agents: [nobody, broken]")
    write_card("bob.md", "instruktion: x")
    (tmp_path / "broken.md").write_text("---\nname: broken\n")
    with pytest.raises(CardError) as raised:
        registry.load(read(tmp_path))
    # `broken` cannot be read, so a reference to it is not called unknown as well.
    codes = [found.code for found in raised.value.diagnostics]
    assert sorted(codes) == ["FA101", "FA102", "FA112", "FA201"]
    assert "4 problems" in raised.value.message


def test_a_single_problem_is_reported_in_the_message(
    registry: Registry, write_card: WriteCard, read: Read, tmp_path: Path
) -> None:
    path = write_card("ann.md", "use_histroy: true")
    with pytest.raises(CardError, match="use_histroy") as raised:
        registry.load(read(tmp_path))
    assert str(path) in raised.value.message
    assert raised.value.hint == "did you mean `use_history`?"


@pytest.mark.spec("FILE-10")
def test_a_file_reached_by_two_roots_is_there_once(
    registry: Registry, write_card: WriteCard, read: Read, tmp_path: Path
) -> None:
    path = write_card("ann.md")
    write_card("bob.md")
    assert registry.load(read(path)) == ("ann",)
    registry.load(read(tmp_path))
    assert sorted(registry.snapshot.load_set.cards) == ["ann", "bob"]
    registry.load(read(path, tmp_path))
    assert sorted(registry.snapshot.load_set.cards) == ["ann", "bob"]


@pytest.mark.spec("CARD-17")
def test_a_name_in_two_files_is_an_error_that_shows_both(
    registry: Registry, write_card: WriteCard, read: Read, tmp_path: Path
) -> None:
    write_card("one/ann.md")
    write_card("two/other.md", "name: ann")
    with pytest.raises(CardError) as raised:
        registry.load(read(tmp_path / "one", tmp_path / "two"))
    (found,) = raised.value.diagnostics
    assert found.code == "FA204"
    places = [found.path, *(one.path for one in found.related)]
    assert sorted(places) == [str(tmp_path / "one/ann.md"), str(tmp_path / "two/other.md")]


@pytest.mark.spec("CARD-8", "CARD-86", "CARD-88")
def test_tools_and_servers_go_to_the_default_agent_and_never_to_itself(
    registry: Registry, write_card: WriteCard, read: Read, tmp_path: Path
) -> None:
    main = write_card("main.md", "default: true", "agents: [first]")
    write_card("tools/first.md", "tool_only: true")
    write_card("tools/second.md", "tool_only: true")
    loads = read(main, tmp_path / "tools")
    registry.load(loads, tools={str(tmp_path / "tools")}, servers=("time",))
    cards = registry.snapshot.load_set.cards
    assert cards["main"].config.agents == ("first", "second")
    assert cards["main"].config.servers == ("time",)
    assert cards["first"].config.agents == ()
    # The card that was loaded stays as it was written, so that a later load starts from it.
    assert registry.snapshot.roots[str(main)][0].config.agents == ("first",)


@pytest.mark.spec("CARD-86")
def test_the_receiver_among_the_tools_does_not_become_its_own_tool(
    registry: Registry, write_card: WriteCard, read: Read, tmp_path: Path
) -> None:
    write_card("main.md")
    write_card("other.md")
    root = str(tmp_path)
    registry.load(read(tmp_path))
    registry.load(read(tmp_path), tools={root}, receiver="main")
    cards = registry.snapshot.load_set.cards
    assert cards["main"].config.agents == ("other",)


def test_additions_stay_when_the_card_is_loaded_again(
    registry: Registry, write_card: WriteCard, read: Read, tmp_path: Path
) -> None:
    main = write_card("main.md", "default: true")
    helper = write_card("tools/helper.md", "tool_only: true")
    registry.load(read(main, helper), tools={str(helper)}, servers=("time",))
    write_card("main.md", "default: true", body="Changed.")
    registry.load(read(main))
    config = registry.snapshot.load_set.cards["main"].config
    assert (config.instruction, config.agents, config.servers) == (
        "Changed.",
        ("helper",),
        ("time",),
    )


def test_tools_without_an_agent_to_give_them_to(
    registry: Registry, write_card: WriteCard, read: Read
) -> None:
    helper = write_card("helper.md", "tool_only: true")
    with pytest.raises(CardError, match="no agent to attach the tools to") as raised:
        registry.load(read(helper), tools={str(helper)})
    assert raised.value.hint is not None
    assert "--card" in raised.value.hint
    assert registry.snapshot.version == 0


def test_an_agent_of_code_may_refer_to_one_made_later(registry: Registry) -> None:
    registry.add(code_card("agent", "ann", "Hi.", {"agents": ["bob"]}))
    registry.add(code_card("agent", "bob", "Hi.", {}))
    registry.check()
    assert names_of(registry.snapshot, CODE) == ["ann", "bob"]
    registry.add(code_card("agent", "cid", "Hi.", {"agents": ["nobody"]}))
    with pytest.raises(CardError, match="no agent is named `nobody`"):
        registry.check()


def test_an_agent_of_code_with_a_taken_name(
    registry: Registry, write_card: WriteCard, read: Read
) -> None:
    path = write_card("ann.md")
    registry.load(read(path))
    with pytest.raises(CardError, match="two agents called `ann`") as raised:
        registry.add(code_card("agent", "ann", "Hi.", {}))
    assert raised.value.hint == f"the other is in {path}"
    registry.add(code_card("agent", "bob", "Hi.", {}))
    with pytest.raises(CardError, match="two agents called `bob`") as raised:
        registry.add(code_card("agent", "bob", "Hi.", {}))
    assert raised.value.hint == "the other is made in code too"


def test_warnings_do_not_stop_a_load_and_are_kept(
    registry: Registry, write_card: WriteCard, read: Read
) -> None:
    path = write_card("ann.md", "history_mode: scratch")
    registry.load(read(path))
    assert [note.code for note in registry.snapshot.notes] == ["FA123"]


def test_a_snapshot_cannot_be_changed(
    registry: Registry, write_card: WriteCard, read: Read
) -> None:
    registry.load(read(write_card("ann.md")))
    with pytest.raises(FrozenInstanceError):
        registry.snapshot.version = 7  # pyright: ignore[reportAttributeAccessIssue]
    with pytest.raises(TypeError):
        registry.snapshot.roots["x"] = ()  # pyright: ignore[reportIndexIssue]


def test_probes_are_asked_about_every_card(write_card: WriteCard, read: Read) -> None:
    asked: list[str] = []
    registry = Registry((), [lambda card: asked.append(card.config.name) or ()])
    registry.load(read(write_card("ann.md"), write_card("bob.md")))
    assert asked == ["ann", "bob"]


def test_a_file_read_again_by_another_root_is_new_in_both(
    registry: Registry, write_card: WriteCard, read: Read, tmp_path: Path
) -> None:
    path = write_card("ann.md")
    write_card("bob.md")
    registry.load(read(tmp_path))
    write_card("ann.md", "name: anna", body="Changed.")
    assert registry.load(read(path)) == ("anna",)
    cards = registry.snapshot.load_set.cards
    assert list(cards) == ["anna", "bob"]
    assert cards["anna"].config.instruction == "Changed."


def test_an_unknown_receiver_changes_nothing(
    registry: Registry, write_card: WriteCard, read: Read
) -> None:
    main, helper = write_card("main.md"), write_card("helper.md", "tool_only: true")
    with pytest.raises(CardError, match="no agent is named `man`") as raised:
        registry.load(read(main, helper), tools={str(helper)}, receiver="man")
    assert raised.value.hint == "did you mean `main`?"
    assert registry.snapshot.version == 0
    assert dict(registry.snapshot.added) == {}


def test_a_receiver_whose_card_is_wrong_is_not_called_unknown(
    registry: Registry, write_card: WriteCard, read: Read, tmp_path: Path
) -> None:
    (tmp_path / "main.md").write_text("---\nname: main\n")
    helper = write_card("tools/helper.md", "tool_only: true")
    with pytest.raises(CardError) as raised:
        registry.load(read(tmp_path, helper), tools={str(helper)}, receiver="main")
    assert [found.code for found in raised.value.diagnostics] == ["FA112"]
