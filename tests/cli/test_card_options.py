"""The dump options of `fast-agent go`."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

import pytest

from fast_agent.cards.load import load_cards

if TYPE_CHECKING:
    from collections.abc import Callable

    from conftest import Ran
    from tests.card_writer import WriteCard

    Run: TypeAlias = Callable[..., Ran]


@pytest.fixture(autouse=True)
def _cards(write_card: WriteCard) -> None:
    fields = ("default: true", "agents: [bob]", "model: passthrough")
    body = "# Title\n\nSay {{currentDate}}."
    write_card("cards/ann.md", *fields, "function_tools: [tools.py:one]", body=body)
    write_card("cards/bob.md", "tool_only: true", "skills: []", "model: passthrough")
    Path("cards/tools.py").write_text("def one() -> int:\n    return 1\n")


def configs(path: str) -> list[object]:
    from dataclasses import replace

    load = load_cards([path], environ={})
    assert not load.failed
    return [replace(card.config, source=None, function_tools=()) for card in load.cards]


@pytest.mark.spec("CARD-89", "CARD-90", "CARD-94", "DUMP-5", "DUMP-6")
@pytest.mark.parametrize("option", ["--dump", "--dump-agents"])
def test_markdown(run: Run, option: str) -> None:
    done = run("go", "--card", "cards", option, "a dir/out")
    assert (done.code, done.err) == (0, "")
    assert sorted(path.name for path in Path("a dir/out").iterdir()) == ["ann.md", "bob.md"]
    text = Path("a dir/out/ann.md").read_text()
    assert text.startswith("---\n")
    assert text.endswith("---\n# Title\n\nSay {{currentDate}}.\n")
    assert "../../cards/tools.py:one" in text
    assert configs("a dir/out") == configs("cards")


@pytest.mark.spec("CARD-94", "DUMP-6")
def test_the_printed_command_runs(run: Run, spawn: Run) -> None:
    printed = run("go", "--card", "cards", "--dump", "a dir/out").out
    program, *arguments = shlex.split(printed)
    assert program == "fast-agent"
    done = spawn(*arguments)
    assert (done.code, done.out) == (0, "hello\n"), done.err


@pytest.mark.spec("CARD-91", "DUMP-5")
@pytest.mark.parametrize("option", ["--dump-yaml", "--dump-agents-yaml"])
def test_yaml(run: Run, option: str) -> None:
    done = run("go", "--card", "cards", option, "out")
    assert done.code == 0
    assert sorted(path.name for path in Path("out").iterdir()) == ["ann.yaml", "bob.yaml"]
    assert "instruction: |" in Path("out/ann.yaml").read_text()
    assert configs("out") == configs("cards")


@pytest.mark.spec("CARD-92", "CARD-93", "DUMP-5")
@pytest.mark.parametrize(("more", "start"), [((), "---\n"), (("--dump-agent-yaml",), "type: ")])
def test_one_agent(run: Run, more: tuple[str, ...], start: str) -> None:
    suffix = "yaml" if more else "md"
    path = f"one.{suffix}"
    done = run("go", "--card", "cards", "--dump-agent", "bob", "--dump-agent-path", path, *more)
    assert done.code == 0
    assert Path(path).read_text().startswith(start)
    assert configs(path)[0] == configs("cards")[1]


def test_both_forms_at_once(run: Run) -> None:
    done = run("go", "--card", "cards", "--dump", "md", "--dump-yaml", "yaml")
    assert done.out.count("fast-agent go --card") == 2
    assert configs("md") == configs("yaml")


@pytest.mark.spec("DUMP-4")
def test_only_in_its_directory(run: Run, write_card: WriteCard) -> None:
    write_card("odd/x.md", "name: fastagent.config")
    done = run("go", "--card", "odd", "--dump-yaml", "out")
    assert (done.code, done.out, done.codes) == (1, "", ["FA227"])
    assert not Path("out").exists()


def test_what_cannot_be_dumped_leaves_nothing(run: Run) -> None:
    Path("file").touch()
    done = run("go", "--card", "cards", "--dump", "file")
    assert (done.code, done.out) == (1, "")
    unknown = run("go", "--card", "cards", "--dump-agent", "an", "--dump-agent-path", "x.md")
    assert unknown.code == 1
    assert "did you mean `ann`?" in unknown.err
    assert not Path("x.md").exists()


@pytest.mark.parametrize(
    "arguments",
    [
        ("--dump-agent", "ann"),
        ("--dump-agent-path", "x.md"),
        ("--dump-agent-yaml", "--message", "hi"),
        ("--dump", "out", "--message", "hi"),
        ("--dump", "out", "--prompt-file", "x.md"),
    ],
)
def test_options_that_do_not_go_together(run: Run, arguments: tuple[str, ...]) -> None:
    done = run("go", "--card", "cards", *arguments)
    assert (done.code, done.out) == (2, "")
    assert not Path("out").exists()


@pytest.mark.spec("CARD-95")
def test_a_program_of_decorators_can_be_dumped(tmp_path: Path) -> None:
    from fast_agent import FastAgent
    from fast_agent.cards.dump import dump_set

    program = FastAgent(cwd=tmp_path, environ={})
    program.agent("ann", "Hi.", agents=["bob"], request_params={"max_tokens": 9})
    program.agent("bob", "Ho.", tool_only=True)
    dump_set(program.load_set, tmp_path / "out", "markdown", base=tmp_path)
    again = FastAgent(cwd=tmp_path, environ={})
    assert again.load_agents("out") == ["ann", "bob"]
    for name, card in program.load_set.cards.items():
        from dataclasses import replace

        assert replace(again.load_set.cards[name].config, source=None) == card.config
