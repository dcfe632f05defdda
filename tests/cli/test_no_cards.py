"""Directories that were named and hold no card, through every command that loads cards."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from fast_agent import FastAgent
from fast_agent.cards.card_files import CARD_SUFFIXES
from fast_agent.errors import CardError

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.card_writer import WriteCard
    from tests.cli.conftest import Run

HEADED = "# The agent\n\n---\ntype: agent\n---\nBe brief.\n"


def empty(project: Path) -> None:
    (project / "set").mkdir()


def deeper(project: Path) -> None:
    below = project / "set" / "agents"
    below.mkdir(parents=True)
    (below / "ann.md").write_text("---\ntype: agent\n---\nBe brief.")


def headed(project: Path) -> None:
    (project / "set").mkdir()
    (project / "set" / "ann.md").write_text(HEADED)


def suffixes(project: Path) -> None:
    (project / "set").mkdir()
    (project / "set" / "ann.txt").write_text("---\ntype: agent\n---\nBe brief.")


def fields(project: Path) -> None:
    (project / "set").mkdir()
    (project / "set" / "README.md").write_text("# Agents\n")
    (project / "set" / "notes.yaml").write_text("title: notes\n")


REASONS: list[tuple[Callable[[Path], None], list[str]]] = [
    (empty, []),
    (deeper, ["a directory below, with a file that looks like a card", "--> set/agents"]),
    (headed, ["its frontmatter starts on line 3, and must start on line 1", "--> set/ann.md"]),
    (suffixes, [f"`.txt` is not a suffix of cards; they end in {', '.join(CARD_SUFFIXES)}"]),
    (fields, ["no frontmatter", "neither `type` nor `instruction` is in it"]),
]
COMMANDS = [
    ("go", "--card", "set", "--model", "passthrough", "--message", "hello"),
    ("go", "--card-tool", "set", "--model", "passthrough", "--message", "hello"),
    ("serve", "--card", "set", "--model", "passthrough", "--transport", "stdio"),
    ("acp", "--card", "set", "--model", "passthrough"),
    ("graph", "set"),
]


@pytest.mark.spec("FILE-18")
@pytest.mark.parametrize(("make", "reasons"), REASONS)
@pytest.mark.parametrize("command", COMMANDS, ids=lambda command: " ".join(command[:2]))
def test_commands_refuse_it(
    run: Run,
    project: Path,
    make: Callable[[Path], None],
    reasons: list[str],
    command: tuple[str, ...],
) -> None:
    make(project)
    done = run(*command)
    assert done.code == 1
    assert done.out == ""
    assert done.codes == ["FA137"]
    # `graph` shows paths from where the set would run.
    err = done.err.replace(f"{project}/", "")
    assert [reason for reason in reasons if reason not in err] == []


@pytest.mark.spec("FILE-18")
@pytest.mark.parametrize(("make", "reasons"), [one for one in REASONS if one[0] is not deeper])
def test_check_refuses_it(
    run: Run, project: Path, make: Callable[[Path], None], reasons: list[str]
) -> None:
    make(project)
    for paths in (["set"], ["set/"], ["set", "."], ["."]):
        done = run("check", *paths)
        assert done.code == 1, paths
        assert set(done.codes) == {"FA137"}
        if paths != ["."]:
            assert [reason for reason in reasons if reason not in done.err] == []


@pytest.mark.spec("FILE-18")
def test_check_of_several_paths_refuses_what_lies_deeper(run: Run, project: Path) -> None:
    deeper(project)
    (project / "other").mkdir()
    assert run("check", "set").code == 0
    done = run("check", "set", "other")
    assert (done.code, done.codes) == (1, ["FA137", "FA137"])
    assert "hint: name the directory the cards are in: `set/agents`" in done.err


@pytest.mark.spec("FILE-18")
def test_tests_of_cards_refuse_it(run: Run, project: Path) -> None:
    headed(project)
    (project / "ann.test.yaml").write_text(
        "cards: [set]\ncases:\n  - name: one\n    messages: [hello]\n"
    )
    done = run("test", "ann.test.yaml")
    assert done.code == 1
    assert "set` holds no cards" in done.out
    assert "ann.md` is not a card: its frontmatter starts on line 3" in done.out


@pytest.mark.spec("FILE-18")
def test_the_process_refuses_it(spawn: Run, project: Path) -> None:
    headed(project)
    done = spawn("go", "--card", "set", "--model", "passthrough", "--message", "hello")
    assert (done.code, done.out, done.codes) == (1, "", ["FA137"])


@pytest.mark.spec("FILE-18")
def test_python_refuses_it(project: Path) -> None:
    async def program() -> str:
        fast = FastAgent(cwd=project)
        fast.load_agents("set")
        async with fast.run(model="passthrough") as app:
            return await app("hello")

    headed(project)
    with pytest.raises(CardError, match="the directory `set` holds no cards") as caught:
        asyncio.run(program())
    [found] = caught.value.diagnostics
    assert [one.path for one in found.related] == ["set/ann.md"]
    (project / "set" / "bea.md").write_text("---\ntype: agent\n---\nBe brief.")
    assert asyncio.run(program()) == "hello"


@pytest.mark.spec("FILE-19")
def test_a_directory_that_loads_by_itself_may_be_empty(run: Run, project: Path) -> None:
    cards = project / ".fast-agent" / "agent-cards"
    cards.mkdir(parents=True)
    message = ("go", "--model", "passthrough", "--message", "hello")
    for name, text in ((None, ""), (".keep", ""), ("notes.txt", "x")):
        if name is not None:
            (cards / name).write_text(text)
        done = run(*message)
        assert (done.code, done.out, done.err) == (0, "hello\n", "")
        done = run("check")
        assert (done.code, done.codes) == (0, [])
        assert "no cards were found here" in done.err


@pytest.mark.spec("FILE-19")
@pytest.mark.parametrize("trust", [(), ("--trust",)])
def test_what_is_passed_over_where_cards_load_by_themselves_is_a_warning(
    run: Run, project: Path, trust: tuple[str, ...]
) -> None:
    cards = project / ".fast-agent" / "agent-cards"
    cards.mkdir(parents=True)
    (cards / "ann.md").write_text(HEADED)
    done = run("go", "--model", "passthrough", "--message", "hello", *trust)
    assert (done.code, done.out, done.codes) == (0, "hello\n", ["FA137"])
    assert "warning[FA137]" in done.err
    assert "its frontmatter starts on line 3" in done.err
    done = run("check")
    assert (done.code, done.codes) == (0, ["FA137"])


@pytest.mark.spec("FILE-19")
def test_neighbours_of_a_card_are_not_reported(run: Run, write_card: WriteCard) -> None:
    write_card("set/ann.md")
    Path("set/bea.md").write_text(HEADED)
    Path("set/deeper").mkdir()
    Path("set/notes.txt").write_text("x")
    done = run("go", "--card", "set", "--model", "passthrough", "--message", "hello")
    assert (done.code, done.out, done.err) == (0, "hello\n", "")
